#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# a processor each
# The agent as a daemon: one per instance, who may talk to it, readiness, idleness, status, flush.
. "$(dirname "$0")/lib.sh"
need socat setpriv jq
build_c tcp

# a group ax of this mount namespace's own, before the agent looks for it
{ sed '/^ax:/d' /etc/group; echo "ax:x:64999:"; } >"$T/group"
mount --bind "$T/group" /etc/group

# readiness by sd_notify
bg "$T/notify" socat -u UNIX-RECV:"$T/notify.sock" -
wait_for "[ -S $T/notify.sock ]"
default_config >"$T/$INST.yaml"
NOTIFY_SOCKET=$T/notify.sock agent_again
ok "sd_notify says READY=1" wait_for "grep -q READY=1 $T/notify"
kill -HUP "$AGENT"
ok "and RELOADING=1 then READY=1 on SIGHUP" \
	wait_for "grep -q RELOADING=1 $T/notify && [ \$(grep -o READY=1 $T/notify | wc -l) -ge 2 ]"

# one agent only
out=$(timeout 60 "$AX" --instance "$INST" agent --config "$T/$INST.yaml" 2>&1)
rc=$?
is "a second agent of the instance ends with an error" "$([ $rc -ne 0 ] && [ $rc -ne 124 ] && echo error)" \
	error
like "and says that one is running" "$out" "(already|another).*"
ok "the first goes on" ax status

# who may
sock=/run/ax/$INST/control.sock
like "the socket belongs to root and group ax, nobody else" "$(stat -c '%a %u %g' "$sock")" \
	"^660 0 64999$"
cp "$AX" "$T/ax" # where every user gets at it
as() {
	setpriv --reuid 64998 "$@"
}
ok "a member of group ax may ask" as --regid 64999 --clear-groups "$T/ax" --instance "$INST" get apps
ok "also where it is a supplementary group" \
	as --regid 64998 --groups 64999 "$T/ax" --instance "$INST" get apps
fails "another user may not" as --regid 64998 --clear-groups "$T/ax" --instance "$INST" get apps
chmod 755 /run/ax /run/ax/"$INST" 2>/dev/null
chmod 666 "$sock"
out=$(as --regid 64998 --clear-groups "$T/ax" --instance "$INST" get apps 2>&1)
is "another user may not either when the socket's mode lets it" "$?" 1
like "and is told what to do" "$out" "group ax|ax group|root"
out=$(as --regid 64998 --clear-groups socat -t 2 - UNIX-CONNECT:"$sock" 2>&1 <<<'{"op":"get","what":"apps"}')
unlike "no answer leaks to it" "$out" '"apps"'
chmod 660 "$sock"

# the protocol
raw() {
	timeout 30 socat -t 20 - UNIX-CONNECT:"$sock" | head -c 2000
}
like "what is not JSON is refused in JSON" "$(echo 'hello' | raw)" '"ok": ?false.*"error"'
like "an unknown op too" "$(echo '{"op":"dance"}' | raw)" '"ok": ?false.*"error"'
like "two requests on one connection" "$(printf '%s\n' '{"op":"get","what":"apps"}' \
	'{"op":"get","what":"names"}' | raw | tr '\n' ' ')" '"apps".*"names"'
head -c 1000000 /dev/urandom | raw >/dev/null
ok "a megabyte of noise does not hurt" ax status

# seeing
run_app --name web --ip 10.77.1.1,fd77::1:1 --labels zone=default,team=a -- \
	"$BIN/tcp" listen 6 :: 7000 web patient
wait_for "listens $APP 7000"
# (both stay until they are stopped)
run_app --net host --name client --ip 10.77.1.9 -- "$BIN/tcp" connect 4 10.77.1.1 7000 -k 1000
wait_for "grep -q you= $OUT"
is "get apps" "$(ax get apps -o json | jq -c '.[] | select(.name == "web") |
	[.ip4, .ip6, .net, .state, .egress, .command[0:2], (.pid > 0), (.id > 0)]')" \
	"[\"10.77.1.1\",\"fd77::1:1\",\"private\",\"running\",false,[\"$BIN/tcp\",\"listen\"],true,true]"
is "get apps has all fields" "$(ax get apps -o json | jq -c '[.[0] | has("id", "name", "ip4", "net",
	"labels", "pid", "state", "since", "command", "egress", "restart", "detached", "wait_ms",
	"cgroup", "restarts")] | all')" true
is "get servers" "$(ax get servers -o json | jq -c '[.[] | select(.app == "web") |
	[.proto, .port, .sockets]] | unique')" '[["tcp",7000,1]]'
is "get conns has both ends, with names" "$(ax get conns -o json | jq -c '[.[] |
	select(.state == "established") |
	[.local_name, .local, .remote_name, .remote]] | sort')" \
	'[["client","10.77.1.9","web","10.77.1.1"],["web","10.77.1.1","client","10.77.1.9"]]'
is "get conns has ports" "$(ax get conns -o json | jq -c '[.[] | select(.local_name == "client") |
	[.proto, .remote_port]]')" '[["tcp",7000]]'
is "get names" "$(ax get names -o json | jq -c '[.[] | select(.name == "web") | [.ip4, .ip6, .kind]]')" \
	'[["10.77.1.1","fd77::1:1","app"]]'
like "a table has titles and rows" "$(ax get apps)" "NAME.*web.*10.77.1.1"
is "-o name" "$(ax get apps -o name | sort | tr '\n' ' ')" "client web "
unlike "no colours in a pipe" "$(ax get apps)" $'\e'
is "columns fit the terminal" "$(COLUMNS=60 script -qc "stty cols 60; $AX --instance $INST get apps -o table" \
	/dev/null 2>/dev/null </dev/null | sed 's/\x1b\[[0-9;]*m//g' | tr -d '\r' | awk 'length > 60')" ""
for what in pid instance dns.domain pool4.prefix counters features; do
	is "status has $what" "$(ax status -o json | jq ".$what != null")" true
done
is "status: apps and the agent's pid" "$(ax status -o json | jq -c '[.apps, .pid]')" "[2,$AGENT]"
ok "ax doctor" ax doctor
like "ax doctor names what is on" "$(ax doctor 2>&1)" "connect4|sock_addr"
ax doctor -o json >"$T/doctor"
is "ax doctor covers sockets, splicing, XDP and probes" "$(jq -r '[.[].of] | unique | join(" ")' "$T/doctor")" \
	"probes sockets splicing xdp"
is "kprobes are on where the kernel has them" "$(jq '.[] | select(.name == "kprobe") | .on' "$T/doctor")" \
	"$([ -e /sys/bus/event_source/devices/kprobe ] && echo true || echo false)"
is "and libxdp's sharing, as for an interface" "$(jq '.[] | select(.name == "freplace") | .on' "$T/doctor")" \
	"$(ax doctor lo -o json | jq '.[] | select(.check == "freplace") | .state == "ok"')"
if [ -e /sys/bus/event_source/devices/kprobe ]; then
	mkdir "$T/devices"
	for d in /sys/bus/event_source/devices/*; do
		[ "${d##*/}" = kprobe ] || ln -s "$(readlink -f "$d")" "$T/devices/"
	done
	mount --bind "$T/devices" /sys/bus/event_source/devices
	is "and are off where it has them not, which has its cost" \
		"$(ax doctor -o json | jq -c '.[] | select(.name == "kprobe") | [.on, .cost != ""]')" "[false,true]"
	unlike "then not all is there" "$(ax doctor)" "Everything that ax can use is there"
	umount /sys/bus/event_source/devices
fi
is "each that is off says what that costs" \
	"$(jq -r '.[] | select((.on | not) and ((.cost // "") == "")) | .name' "$T/doctor")" ""
is "all is said to be there only where nothing is off" \
	"$(ax doctor | grep -c '^Everything that ax can use is there')" \
	"$(jq 'if all(.[]; .on) then 1 else 0 end' "$T/doctor")"
stop_apps
leftovers "nothing is left of these"

# idle
usage() {
	awk '{ print $14 + $15 }' "/proc/$AGENT/stat"
	awk '/^voluntary_ctxt_switches/ { print $2 }' "/proc/$AGENT/task"/*/status |
		awk '{ n += $1 } END { print n }'
}
run_app -- sleep 100
run_app --net host -- sleep 100
wait_for "ax get apps -o json | jq -e '[.[] | select(.state == \"running\")] | length == 2'"
# settled: what came before, as the ends of other apps' namespaces, reaches it when the kernel comes to it
settled() {
	before=$(usage | tr '\n' ' ')
	sleep 1
	[ "$(usage | tr '\n' ' ')" = "$before" ]
}
wait_for settled
sleep 5
is "with two idle apps the agent uses no CPU and does not wake up in 5 s (ticks, switches)" \
	"$(usage | tr '\n' ' ')" "$before"
stop_apps

# SIGTERM leaves the apps, --flush leaves nothing
serve 7000 --name web --ip 10.77.1.1 -- "$BIN/tcp" listen 4 0.0.0.0 7000
serve 7000 --name web2 --net host --ip 10.77.1.2 -- "$BIN/tcp" listen 4 0.0.0.0 7000
ax run --detach --name back -- sleep 1000 >/dev/null
agent_stop
ok "SIGTERM leaves the apps running" alive "$APP"
like "and reachable" "$("$BIN/tcp" connect 4 10.77.1.1 7000; "$BIN/tcp" connect 4 10.77.1.2 7000)" \
	"peer=10.77.1.1:7000.*peer=10.77.1.2:7000"
ok "flush with running apps" ax agent --flush
for pid in "${APPS[@]}"; do
	wait_for "! alive $pid"
done
is "no app is left" "$(for pid in "${APPS[@]}"; do alive "$pid" && echo "$pid"; done)" ""
wait_for '[ -z "$(machine_leftovers | grep -v socat)" ]'
is "nothing at all is left" "$(machine_leftovers | grep -v socat)" ""
ok "a second flush has nothing to do" ax agent --flush
agent_again
is "and an agent starts from nothing" "$(in_app -- echo fine)" fine
fails "a flush refuses while the agent runs" ax agent --flush

# what is no app's device, though its name begins like one
agent_stop
ip link add "$INST-uplink" type veth peer name up1
ip link set "$INST-uplink" up
ifindex() {
	ip -o link show "$1" 2>&1 | sed 's/:.*//'
}
uplink=$(ifindex "$INST-uplink")
agent_again
agent_kill9
agent_again
is "a foreign device whose name begins with the instance's survives the agents" \
	"$(ifindex "$INST-uplink")" "$uplink"
agent_stop
ok "flush" ax agent --flush
is "and the flush" "$(ifindex "$INST-uplink")" "$uplink"
ip link del "$INST-uplink"
done_testing
