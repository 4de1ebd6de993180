#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Datagrams of apps in host mode that get to others than whom the hooks are asked about: broadcasts, multicast and
# source routes. And a port that an app has given back is nobody's.
. "$(dirname "$0")/lib.sh"
need "$PYTHON"
. "$(dirname "$0")/outside.sh"
ip addr add 198.51.100.1/24 brd 198.51.100.255 dev wan0
ip addr add 2001:db8:1::1/64 dev wan0 nodad
ip link set wan0 up
outside sh -c 'ip addr add 198.51.100.2/24 dev wan1; ip addr add 2001:db8:1::2/64 dev wan1 nodad; ip link set wan1 up'
agent_start

SAY=("$PYTHON" "$SRC/for_others.py")
# guest ZONE [OPTION...] -- COMMAND...
guest() {
	in_app --net "${NET_OF:-host}" --user "${USER_OF:-nobody}" --ip 10.77.1.9,fd77::1:9 --labels "zone=$1" "${@:2}" 2>&1
}

# waits NAME FAMILY ADDRESS: an app's socket on the wildcard; $PORT is its port, $OUT what comes
waits() {
	run_app --net host --name "$1" --labels zone=vault -- "${SAY[@]}" wait "$2" "$3"
	wait_for "grep -q ^port $OUT" || not_ok "$1 comes up" "$(cat "$OUT")"
	PORT=$(awk '/^port/ {print $2}' "$OUT")
}

# --- for many ---

waits v4 4 0.0.0.0
v4=$OUT
v4_port=$PORT
waits v6 6 ::
v6=$OUT
v6_port=$PORT
for port in "$v4_port" "$v6_port"; do
	for addr in 127.255.255.255 198.51.100.255 255.255.255.255 224.0.0.1; do
		like "what is for many does not get to an app that shares no label: $addr" \
			"$(guest guest -- "${SAY[@]}" tell $addr "$port" wan0)" "^(ECONNREFUSED|EHOSTUNREACH|EACCES)$"
	done
	like "nor by a socket that connects" \
		"$(guest guest -- "${SAY[@]}" ask 127.255.255.255 "$port")" \
		"^(ECONNREFUSED|EHOSTUNREACH|EACCES)$"
done
like "nor by IPv6" "$(guest guest -- "${SAY[@]}" tell ff02::1 "$v6_port" wan0)" "^(ECONNREFUSED|EHOSTUNREACH|EACCES)$"
for addr in 198.51.100.255 255.255.255.255; do
	NET_OF=private guest guest --egress -- "${SAY[@]}" tell $addr "$v4_port" >/dev/null
done
is "nor what a private app sends, which may go outside" "$(NET_OF=private guest vault --egress -- \
	"${SAY[@]}" tell 198.51.100.255 "$v4_port")" sent
ok "but that of one that shares a label" wait_for "grep -qx 198.51.100.255 $v4"
is "a port at which no app is may be asked by all" "$(guest guest -- "${SAY[@]}" tell 127.255.255.255 7)" sent
is "who shares a label may" "$(guest vault -- "${SAY[@]}" tell 127.255.255.255 "$v4_port")" sent
is "and by IPv6" "$(guest vault -- "${SAY[@]}" tell ff02::1 "$v6_port" wan0)" sent
ok "that arrives" wait_for "grep -qx 127.255.255.255 $v4"
ok "and that" wait_for "grep -qx ff02::1 $v6"
is "and nothing else" "$(grep -hv ^port "$v4" "$v6" | sort | tr '\n' ' ')" "127.255.255.255 198.51.100.255 ff02::1 "
stop_apps

# --- ports that were given back ---

run_app --net host --user nobody --labels zone=guest -- "${SAY[@]}" give_back 200
wait_for "grep -q 'given back' $OUT" || not_ok "ports are given back" "$(cat "$OUT")"
read -r _ first second _ < <(grep ^ports "$OUT")
for port in "$first" "$second"; do
	bg "$T/daemon.$port" "${SAY[@]}" wait 4 0.0.0.0 "$port"
	wait_for "grep -q ^port $T/daemon.$port" || not_ok "a daemon of the host has port $port"
	"${SAY[@]}" tell 127.0.0.1 "$port" >/dev/null
	ok "who has such a port next is reached by it" wait_for "grep -q 127.0.0.1 $T/daemon.$port"
	outside "${SAY[@]}" tell 198.51.100.1 "$port" >/dev/null
	ok "and from other machines" wait_for "grep -q 198.51.100.1 $T/daemon.$port"
done
stop_apps

# --- detours ---

bg "$T/seen" outside "${SAY[@]}" seen wan1
wait_for "grep -q looks $T/seen" || not_ok "the other machine looks"
serve 7000/udp --net host --ip 10.77.1.5,fd77::1:5 --name friend --labels zone=guest -- "${SAY[@]}" wait 6 :: 7000
friend=$OUT

# by_way ADDRESS HOP HOW OPTION... (Newer kernels let nobody but root have source routes of IPv4.)
by_way() {
	local USER_OF=nobody
	[[ $1 = *:* ]] || USER_OF=root
	guest guest "${@:4}" -- "${SAY[@]}" option "$3" "$2" "$1" 7000
}

for how in before behind beside; do
	like "an app without egress sends nothing by way of others, IPv4: $how" \
		"$(by_way 10.77.1.5 198.51.100.2 $how --egress=none)" "^(EPERM|EACCES)$"
	[ $how = beside ] || like "an app without egress sends nothing by way of others, IPv6: $how" \
		"$(by_way fd77::1:5 2001:db8:1::2 $how --egress=none)" "^(EPERM|EACCES)$"
done
like "nor does one with a list" "$(by_way fd77::1:5 2001:db8:1::2 before --egress=192.0.2.1)" "^(EPERM|EACCES)$"
is "its other datagrams arrive" "$(guest guest --egress=none -- "${SAY[@]}" tell fd77::1:5 7000)" sent
ok "there" wait_for "grep -q fd77::1:5 $friend"
ok "it is counted" test "$(ax status -o json | jq '.counters."no-egress"')" -ge 3
agent_kill9
agent_again
run_app --net host --name stays --egress=none -- sleep 1000
launched stays
stop_app "$APP"
like "behind a new agent it is the same" "$(by_way fd77::1:5 2001:db8:1::2 before --egress=none)" "^(EPERM|EACCES)$"
is "one that may go everywhere may do so by a detour" "$(by_way fd77::1:5 2001:db8:1::2 before --egress)" sent
ok "that is seen on the other machine" wait_for "grep -q detour $T/seen"
is "and nothing else was" "$(grep -c detour "$T/seen")" 1
stop_apps
ip link del wan0
done_testing
