#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Who gets in from the host and from a LAN, the host's own daemons, and `host_access: false`.
. "$(dirname "$0")/lib.sh"
need socat jq
build_c tcp udp spoof

config() {
	cat <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		  host_access: ${1:-true}
	EOF
}
agent_start - < <(config)

# --- the host's own daemons, and the host as a client ---

bg "$T/daemon" "$BIN/tcp" listen 6 :: 8000 daemon
bg "$T/daemon-udp" "$BIN/udp" serve 6 :: 8000 daemon
wait_for "grep -q listening $T/daemon && grep -q bound $T/daemon-udp"
# shellcheck disable=SC2086 # $to: a family, an address, maybe a port
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
	timeout 60 socat -t 30 -T 30 - "$to" <<<hello >"$T/answer" 2>&1 &
	asker=$!
	BACKGROUND+=("$asker")
	wait_for "grep -q hello $T/answer"
	like "a private UDP server without egress answers a program of the host: $to" \
		"$(cat "$T/answer")" "^echo you=.*hello"
	end "$asker"
done
stop_apps

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
# arrives SOURCE DESTINATION [SECONDS]: a datagram from the LAN, three times
arrives() {
	local text=text-$EPOCHREALTIME
	for _ in 1 2 3; do
		nsenter -t $LAN -n "$BIN/spoof" "$1" "$2" 7000 "$text" | grep -v '^sent$'
		sleep 0.1
	done
	if wait_for -t "${3:-0.3}" "grep -q '$text\$' $OUT"; then
		echo arrives
	else
		echo lost
	fi
}
for mode in private host; do
	serve 7000/udp --net $mode --name lan-$mode --ip 10.77.1.3,fd77::1:3 -- \
		"$BIN/udp" serve 6 :: 7000
	is "$mode: a datagram from the LAN" "$(arrives 198.51.100.2 10.77.1.3 20)" arrives
	is "$mode: a datagram from the LAN, IPv6" "$(arrives 2001:db8:1::2 fd77::1:3 20)" arrives
	is "$mode: one from the LAN with an app's address as its source" \
		"$(arrives 10.77.1.9 10.77.1.3)" lost
	is "$mode: the same with IPv6" "$(arrives fd77::1:9 fd77::1:3)" lost
	like "$mode: the app itself is heard" \
		"$(nsenter -t "$(child_of "${APPS[0]}")" -n true &&
			in_app --ip 10.77.1.8 -- "$BIN/udp" ask sendto 4 10.77.1.3 7000)" "^from=10.77.1.3:7000"
	stop_app "$APP"
	serve 7000 --net $mode --name lan-$mode --ip 10.77.1.3,fd77::1:3 -- "$BIN/tcp" listen 6 :: 7000
	for to in "4 10.77.1.3" "6 fd77::1:3"; do
		# shellcheck disable=SC2086 # $to: a family and an address
		like "$mode: TCP from the LAN: $to" \
			"$(timeout 20 nsenter -t $LAN -n "$BIN/tcp" connect $to 7000 2>&1)" "^peer="
	done
	stop_app "$APP"
done
stop_apps
sysctl -qw net.ipv4.ip_forward="${forward%% *}" net.ipv4.conf.all.rp_filter="$rp_filter"
sysctl -qw net.ipv6.conf.all.forwarding="$(awk '{ print $2 }' <<<"$forward")"
end "$LAN"
ip link del lan0 2>/dev/null # (without waiting for its other end)

# --- host_access: false ---

config false >"$T/closed.yaml"
# shellcheck disable=SC2086 # $to: a family, an address, maybe a port
for egress in "" --egress; do
	serve 7000 $egress --name plain$egress --ip 10.77.1.4,fd77::1:4 -- "$BIN/tcp" listen 6 :: 7000
	ok "host_access: true is applied" ax config apply <(config)
	for to in "4 10.77.1.4" "6 fd77::1:4"; do
		like "the host reaches a private app $egress: $to" \
			"$(timeout 20 "$BIN/tcp" connect $to 7000 2>&1)" "^peer="
	done
	ok "host_access: false is applied" ax config apply "$T/closed.yaml"
	for to in "4 10.77.1.4" "6 fd77::1:4"; do
		unlike "host_access: false: the host does not reach a private app $egress: $to" \
			"$(timeout 2 "$BIN/tcp" connect $to 7000 2>&1)" "peer="
		like "other apps do: $to" "$(in_app -- "$BIN/tcp" connect $to 7000)" "^peer="
	done
	stop_app "$APP"
done
done_testing
