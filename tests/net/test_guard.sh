#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Guards: what the group ax may and may not do, what of the machine is not ax's, who gets in from
# the host and from a LAN, the host's own daemons, and whose an address is.
. "$(dirname "$0")/lib.sh"
need socat setpriv jq
build_c tcp udp spoof

# a group ax of this mount namespace's own, before the agent looks for it
{ sed '/^ax:/d' /etc/group; echo "ax:x:64999:"; } >"$T/group"
mount --bind "$T/group" /etc/group
cp "$AX" "$T/ax" # where every user gets at it

config() {
	cat <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		  host_access: ${1:-true}
	EOF
}
# what is no app's device, though its name begins like one
ip link add "$INST-uplink" type veth peer name up1
ip link set "$INST-uplink" up
ifindex() {
	ip -o link show "$1" 2>&1 | sed 's/:.*//'
}
uplink=$(ifindex "$INST-uplink")
agent_start - < <(config)

# --- the rights of the group ---

as_member() {
	timeout 20 setpriv --reuid 64998 --regid 64999 --clear-groups "$T/ax" --instance "$INST" "$@" \
		2>&1 </dev/null
}
run_app --name mine --ip 10.77.1.1 -- sleep 1000
launched mine
mine=$(child_of "$APP")
config >"$T/new.yaml"
echo "apps: {intruder: {command: [touch, $T/was-here]}}" >>"$T/new.yaml"
like "a member of the group sees root's apps" "$(as_member get apps -o name)" mine
out=$(as_member config apply --dry-run "$T/new.yaml")
is "it may try an apply" "$?" 0
like "and sees the difference" "$out" "\+ app intruder"
out=$(as_member config apply "$T/new.yaml")
unlike "it may not apply" "$?" "^0$"
like "and is told so" "$out" "only root"
echo "root:not for you" >"$T/secret"
chmod 600 "$T/secret"
config >"$T/file.yaml"
echo "xdp: {interfaces: {lo: {rules-file: $T/secret}}}" >>"$T/file.yaml"
out=$(as_member config apply --dry-run "$T/file.yaml")
unlike "it may not have the agent read files" "$?" "^0$"
like "and is told so" "$out" "only root"
unlike "nor sees what is in them" "$out" "not for you"
out=$(as_member run --name intruder -- touch "$T/was-here")
unlike "it may not run" "$?" "^0$"
like "and is told so" "$out" "root"
out=$(as_member run --net host --detach --name intruder -- touch "$T/was-here")
unlike "it may not run in host mode, detached" "$?" "^0$"
like "and is told so" "$out" "root"
# the request itself, without the command's own checks
out=$(timeout 5 setpriv --reuid 64998 --regid 64999 --clear-groups socat -t 1 - \
	UNIX-CONNECT:"/run/ax/$INST/control.sock" \
	<<<'{"op":"launch","pid":1,"spec":{"name":"intruder","command":["true"],"net":"private"}}')
like "nor ask the agent itself for a launch" "$out" '"ok": ?false.*only root'
out=$(as_member stop mine)
unlike "it may not stop root's app" "$?" "^0$"
like "and is told so" "$out" "only root"
ok "the app goes on" alive "$mine"
is "nothing has run" "$(ax get apps -o name; ls "$T/was-here" 2>/dev/null)" mine

# --- what others find on the disk ---

ok "root may apply" ax config apply "$T/new.yaml"
ok "which runs" wait_for "[ -e $T/was-here ]"
is "the kept config is root's alone" "$(stat -c '%a %u' "/run/ax/$INST/applied.yaml")" "600 0"
# with egress, the lock on the machine's forwarding is there as well
run_app --egress --name gate -- sleep 1000
launched gate
locks=$(find /run/ax -name '*lock*' -type f)
is "there are locks" "$(grep -c . <<<"$locks")" 2
for lock in $locks; do
	for how in "<" ">>"; do
		fails "who is in the group cannot open ${lock##*/} ($how)" setpriv --reuid 64998 \
			--regid 64999 --clear-groups bash -c "exec $how$lock"
	done
done
stop_app "$APP"

# --- a client that is killed while it waits ---

for mode in private host; do
	run_app --net $mode --name stubborn -- bash -c 'trap "" TERM; echo trapped
		while :; do sleep 0.1; done'
	wait_for "grep -q trapped $OUT"
	"$AX" --instance "$INST" stop --timeout 1 stubborn >/dev/null 2>&1 &
	stop=$!
	"$AX" --instance "$INST" stop --timeout 1 stubborn >"$T/stop" 2>&1 &
	second=$!
	ok "$mode: an app is being stopped" wait_for "ax get apps -o json |
		jq -e '.[] | select(.name == \"stubborn\" and .state == \"stopping\")'"
	kill -KILL $stop
	wait $stop 2>/dev/null
	is "$mode: ax stop was still waiting when it was killed" "$?" 137
	ok "$mode: the agent goes on" ax status
	wait $second
	is "$mode: another ax stop has its answer" "$?" 0
	ok "$mode: the app is gone" wait_for "! alive $APP"
	ok "$mode: and the agent is there" ax status
done

# the app's end and the clients' reach the agent at once, in this order
run_app --name stubborn -- bash -c 'trap "" TERM; echo trapped; while :; do sleep 0.1; done'
wait_for "grep -q trapped $OUT"
child=$(child_of "$APP") stops=()
for _ in 1 2 3; do
	stops+=("$("$AX" --instance "$INST" stop --timeout 30 stubborn >/dev/null 2>&1 & echo $!)")
done
wait_for "ax get apps -o json | jq -e '.[] | select(.name == \"stubborn\" and .state == \"stopping\")'"
sleep 0.3
kill -STOP "$AGENT"
kill -KILL "$child"
sleep 0.3
kill -KILL "${stops[@]}"
wait_for "! kill -0 ${stops[0]} && ! kill -0 ${stops[1]} && ! kill -0 ${stops[2]}"
kill -CONT "$AGENT"
ok "several killed while the app ends: the agent goes on" ax status
ok "the app is gone" wait_for "! alive $APP && ! ax get apps -o name | grep -q stubborn"
is "after all that it is the same agent" "$(ax status -o json | jq .pid)" "$AGENT"
stop_apps

# --- the host's own daemons, and the host as a client ---

bg "$T/daemon" "$BIN/tcp" listen 6 :: 8000 daemon
bg "$T/daemon-udp" "$BIN/udp" serve 6 :: 8000 daemon
wait_for "grep -q listening $T/daemon && grep -q bound $T/daemon-udp"
for to in "4 10.77.0.1" "6 fd77::1" "6 10.77.0.1"; do
	is "a private app does not reach a daemon of the host: $to" \
		"$(in_app -- "$BIN/tcp" connect $to 8000)" "error connect ENETUNREACH"
	is "nor by UDP: $to" "$(in_app -- "$BIN/udp" ask sendto $to 8000 | sed 's/error [a-z]* //')" \
		ENETUNREACH
	like "one with egress does: $to" "$(in_app --egress -- "$BIN/tcp" connect $to 8000)" " daemon you="
done
serve 7000/udp --name echo --ip 10.77.1.2,fd77::1:2 -- "$BIN/udp" serve 6 :: 7000 echo
for to in UDP4:10.77.1.2:7000 UDP4-DATAGRAM:10.77.1.2:7000 "UDP6:[fd77::1:2]:7000" \
	"UDP6-DATAGRAM:[fd77::1:2]:7000"; do
	like "a private UDP server without egress answers a program of the host: $to" \
		"$(echo hello | timeout 5 socat -t 1 -T 2 - "$to" 2>&1)" "^echo you=.*hello"
done
stop_apps

# an address of the machine is nobody's
ip link add spare type veth peer name spare1
ip addr add 192.0.2.7/24 dev spare
ip addr add 192.0.2.8/32 dev lo
for mode in private host; do
	for addr in 192.0.2.7 192.0.2.8; do
		out=$(in_app --net $mode --ip $addr -- true 2>&1)
		is "$mode: --ip with an address of the machine, $addr" "$?" 125
		like "$mode: the sentence says why, $addr" "$out" "$addr is an address of this machine"
	done
done
like "the machine's address stays" "$(ip -o -4 addr show dev lo; ip -o -4 addr show dev spare)" \
	"192.0.2.8/32.*192.0.2.7/24"
ip link del spare
ip addr del 192.0.2.8/32 dev lo

# --- a LAN ---

bg /dev/null unshare -n sleep 600
LAN=$BG
wait_for "[ \"\$(readlink /proc/$LAN/ns/net)\" != \"\$(readlink /proc/self/ns/net)\" ] &&
	grep -q sleep /proc/$LAN/comm"
ip link add lan0 type veth peer name lan1 netns /proc/$LAN/ns/net
ip addr add 198.51.100.1/24 dev lan0
ip addr add 2001:db8:1::1/64 dev lan0 nodad
ip link set lan0 up
nsenter -t $LAN -n sh -c "ip link set lo up; ip addr add 198.51.100.2/24 dev lan1
	ip addr add 2001:db8:1::2/64 dev lan1 nodad; ip link set lan1 up
	ip route add 10.77.0.0/16 via 198.51.100.1; ip route add fd77::/64 via 2001:db8:1::1"
forward=$(sysctl -n net.ipv4.ip_forward net.ipv6.conf.all.forwarding | tr '\n' ' ')
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
rp_filter=$(sysctl -n net.ipv4.conf.all.rp_filter)
sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.lan0.rp_filter=0
run_app --name victim --ip 10.77.1.9,fd77::1:9 -- sleep 1000
launched victim
# arrives SOURCE DESTINATION: a datagram from the LAN, three times
arrives() {
	local text=text-$EPOCHREALTIME
	for _ in 1 2 3; do
		nsenter -t $LAN -n "$BIN/spoof" "$1" "$2" 7000 "$text" | grep -v '^sent$'
		sleep 0.1
	done
	if wait_for -t 0.3 "grep -q '$text\$' $OUT"; then
		echo arrives
	else
		echo lost
	fi
}
for mode in private host; do
	serve 7000/udp --net $mode --name lan-$mode --ip 10.77.1.3,fd77::1:3 -- \
		"$BIN/udp" serve 6 :: 7000
	is "$mode: a datagram from the LAN" "$(arrives 198.51.100.2 10.77.1.3)" arrives
	is "$mode: a datagram from the LAN, IPv6" "$(arrives 2001:db8:1::2 fd77::1:3)" arrives
	is "$mode: one from the LAN with an app's address as its source" \
		"$(arrives 10.77.1.9 10.77.1.3)" lost
	is "$mode: the same with IPv6" "$(arrives fd77::1:9 fd77::1:3)" lost
	like "$mode: the app itself is heard" \
		"$(nsenter -t "$(child_of "${APPS[0]}")" -n true &&
			in_app --ip 10.77.1.8 -- "$BIN/udp" ask sendto 4 10.77.1.3 7000)" "^from=10.77.1.3:7000"
	stop_app "$APP"
done
stop_apps
sysctl -qw net.ipv4.ip_forward="${forward%% *}" net.ipv4.conf.all.rp_filter="$rp_filter"
sysctl -qw net.ipv6.conf.all.forwarding="$(awk '{ print $2 }' <<<"$forward")"
end "$LAN"
wait_for "! ip link show lan0"

# --- host_access: false ---

config false >"$T/closed.yaml"
for egress in "" --egress; do
	serve 7000 $egress --name plain$egress --ip 10.77.1.4,fd77::1:4 -- "$BIN/tcp" listen 6 :: 7000
	ok "host_access: true is applied" ax config apply <(config)
	for to in "4 10.77.1.4" "6 fd77::1:4"; do
		like "the host reaches a private app $egress: $to" \
			"$(timeout 3 "$BIN/tcp" connect $to 7000 2>&1)" "^peer="
	done
	ok "host_access: false is applied" ax config apply "$T/closed.yaml"
	for to in "4 10.77.1.4" "6 fd77::1:4"; do
		unlike "host_access: false: the host does not reach a private app $egress: $to" \
			"$(timeout 2 "$BIN/tcp" connect $to 7000 2>&1)" "peer="
		like "other apps do: $to" "$(in_app -- "$BIN/tcp" connect $to 7000)" "^peer="
	done
	stop_app "$APP"
done
stop_apps

# --- the pool ---

agent_stop
agent_start - <<EOF
agent:
  pool: {ipv4: 10.77.9.0/28}
EOF
ip_of() {
	ax get apps -o json | jq -r --arg n "$1" '.[] | select(.name == $n) | .ip4'
}
run_app --name decl -- sleep 1000
launched decl
decl=$(ip_of decl)
like "an app gets an address of the pool" "$decl" "^10\.77\.9\."
{
	cat "$T/$INST.yaml"
	echo "apps: {decl: {}}"
} >"$T/decl.yaml"
ok "it is declared while it runs" ax config apply "$T/decl.yaml"
is "and keeps its address" "$(ip_of decl)" "$decl"
stop_app "$APP"
ok "it ends and is declared still" wait_for "ax get apps -o json |
	jq -e '.[] | select(.name == \"decl\" and .state == \"declared\")'"
declared=$(ax get names -o json | jq -r '.[] | select(.name == "decl") | .ip4')
for i in $(seq 14); do
	mode=private
	[ $((i % 2)) -eq 0 ] || mode=host
	run_app --net $mode --name "p$i" -- sleep 1000
	[ "$i" -ne 1 ] || first=$APP
	wait_for "! alive $APP || [ -n \"\$(ip_of p$i)\" ]"
	[ -n "$(ip_of "p$i")" ] || break
done
like "the pool is used up, which ax run says" "$(cat "$OUT")" "pool has no address left"
is "12 got one: all but the network's, the host's, the broadcast and the declared one" \
	"$(ax get apps -o json | jq '[.[] | select(.name != "decl")] | length')" 12
is "no address was given twice" \
	"$({
		ax get apps -o json | jq -r '.[] | select(.name != "decl") | .ip4'
		echo "$declared"
		echo 10.77.9.1
	} | sort | uniq -d)" ""
run_app --name decl -- sleep 1000
launched decl
is "the declared app runs under its own" "$(ip_of decl)" "$declared"
stop_app "$first"

# two addresses of two apps
run_app --name one --ip 10.77.9.100,fd77::9:1 -- sleep 1000
run_app --name two --ip 10.77.9.101,fd77::9:2 -- sleep 1000
launched one two
for ips in 10.77.9.100,fd77::9:2 10.77.9.101,fd77::9:1; do
	out=$(in_app --name three --ip $ips -- true 2>&1)
	is "--ip $ips, which belong to two apps, is refused" "$?" 125
	like "and the sentence says why" "$out" "different apps"
done
is "no app has joined another" "$(ax get services -o json | jq -c 'map(.name)')" "[]"
stop_apps

# --- the end of it ---

agent_kill9
agent_again
is "a foreign device whose name begins with the instance's survives the agents" \
	"$(ifindex "$INST-uplink")" "$uplink"
agent_stop
ok "flush" ax agent --flush
is "and the flush" "$(ifindex "$INST-uplink")" "$uplink"
ip link del "$INST-uplink"
done_testing
