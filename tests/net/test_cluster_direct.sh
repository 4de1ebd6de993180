#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Apps of two nodes reach each other by routes, with their own addresses, whatever their modes, if labels
# and rules let them; and nobody does by an address that is another's.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
need python3 nginx
build_c tcp udp spoof

CLUSTER='  routes: direct'
nodes_with_ways 2

block() { node_state "$1" '.blocks[0]'; }

B1=$(block n1) B2=$(block n2)
like "its block is routed to its address" "$(ip -n n1 route show proto 97)" "^$B2 via $LAN.12 dev eth0 "
like "and the other way round" "$(ip -n n2 route show proto 97)" "^$B1 via $LAN.11 dev eth0 "
like "ax status says so" "$(ax_in "${NODE_INST[n1]}" status)" "routes: direct, to 1 blocks of other nodes"

# --- servers on n2, clients on n1 --------------------------------------------------------------------

on n2
for mode in private host; do
	serve 7000 --net $mode --name "tcp-$mode" -- "$BIN/tcp" listen 4 0.0.0.0 7000 "from-$mode"
	serve 7001/udp --net $mode --name "udp-$mode" -- "$BIN/udp" serve 4 0.0.0.0 7001 "from-$mode"
done
serve 8080 --net private --name web -- nginx -c "$(nginx_conf web 1 'server { listen 8080; location / { return 200 "$remote_addr\n"; } }')"
serve 8080 --net host --name webhost -- nginx -c "$(nginx_conf webhost 1 'server { listen 8080; location / { return 200 "$remote_addr\n"; } }')"
serve 7000 --net private --labels zone=red --name red -- "$BIN/tcp" listen 4 0.0.0.0 7000 red
serve 7000 --net host --labels zone=red --name redhost -- "$BIN/tcp" listen 4 0.0.0.0 7000 red
declare -A AT
for app in tcp-private tcp-host udp-private udp-host web webhost red redhost; do
	AT[$app]=$(node_addr n2 "$app")
done
ok "n1 knows the apps of n2" wait_for -t 30 "node_knows n1 ${!AT[*]}"

on n1
for mode in private host; do
	run_app --net $mode --name "c-$mode" -- sleep 1000
done
launched c-private c-host
ok "and n2 those of n1" wait_for -t 30 "node_knows n2 c-private c-host"
for mode in private host; do
	ME=$(node_addr n1 "c-$mode")
	for to in private host; do
		like "TCP from a $mode app to a $to one: both see real addresses" \
			"$(timeout 20 "$AX" --instance "$INST" exec "c-$mode" -- "$BIN/tcp" connect 4 "${AT[tcp-$to]}" 7000 2>&1)" \
			"^peer=${AT[tcp-$to]}:7000 local=$ME:[0-9]+ from-$to you=$ME:[0-9]+ me=${AT[tcp-$to]}:7000"
		for how in connected sendto; do
			like "UDP ($how) from a $mode app to a $to one" \
				"$(timeout 20 "$AX" --instance "$INST" exec "c-$mode" -- "$BIN/udp" ask $how 4 "${AT[udp-$to]}" 7001 2>&1)" \
				"from=${AT[udp-$to]}:7001 from-$to you=$ME:"
		done
	done
	is "nginx sees who asks, a $mode app" \
		"$(timeout 20 "$AX" --instance "$INST" exec "c-$mode" -- curl -sS --max-time 10 "http://${AT[web]}:8080/" "http://${AT[webhost]}:8080/" | tr '\n' ' ')" "$ME $ME "
	for to in red redhost; do
		like "labels hold between nodes: $mode to $to" \
			"$(timeout 20 "$AX" --instance "$INST" exec "c-$mode" -- "$BIN/tcp" connect 4 "${AT[$to]}" 7000 2>&1)" "^error connect "
	done
done
is "a private app pings apps of the other node" \
	"$(timeout 30 "$AX" --instance "$INST" exec c-private -- "$PYTHON" "$SRC/ping.py" raw "${AT[tcp-private]}" "${AT[tcp-host]}" 2>&1 | tr '\n' ' ')" "answered answered "

ok "an app that nobody knows yet reaches a host-mode server at last" \
	in_app --net host --name fresh -- "$BIN/tcp" connect 4 "${AT[tcp-host]}" 7000
ok "and a private one" in_app --name fresh -- "$BIN/tcp" connect 4 "${AT[tcp-private]}" 7000

# --- rules ---------------------------------------------------------------------------------------------

# ask MODE COMMAND...: by the client of that mode on n1
ask() {
	timeout 20 "${NODE_AX[n1]}" --instance "${NODE_INST[n1]}" exec "c-$1" -- "${@:2}" 2>&1
}

on n2
{ cat "$T/$INST.yaml"; printf 'policy:\n  rules:\n    - {deny: {from: c-host, to: tcp-private}}\n    - {deny: {from: c-private, to: webhost}}\n    - {allow: {from: c-private, to: red}}\n'; } >"$T/rules.yaml"
ok "the server's node gets rules" ax config apply "$T/rules.yaml"
like "a rule there names a client of the other node: it is refused" \
	"$(ask host timeout 3 "$BIN/tcp" connect 4 "${AT[tcp-private]}" 7000)" "^(error connect .*)?$"
is "nor does it answer the ping of one whom a rule forbids that" \
	"$(ask private timeout 2 "$PYTHON" "$SRC/ping.py" raw "${AT[webhost]}")" ""
like "and another one is not" "$(ask private "$BIN/tcp" connect 4 "${AT[tcp-private]}" 7000)" "^peer="
like "what the client's node forbids no rule of the server's allows" \
	"$(ask private "$BIN/tcp" connect 4 "${AT[red]}" 7000)" "^error connect "
on n1
{ cat "$T/$INST.yaml"; printf 'policy:\n  rules:\n    - {allow: {from: c-private, to: red}}\n'; } >"$T/rules.yaml"
ok "the client's node gets the same rule" ax config apply "$T/rules.yaml"
like "who is allowed on both nodes comes in without a label in common" \
	"$(ask private "$BIN/tcp" connect 4 "${AT[red]}" 7000)" "^peer="

# --- who is none of them ---------------------------------------------------------------------------------

# a machine that n2 reaches by another interface, and one at the same network
machine_make out 66
ip link add o2 netns n2 type veth peer name side netns out
ip -n n2 addr add 10.98.0.2/24 dev o2
ip -n n2 link set o2 up
ip -n out addr add 10.98.0.66/24 dev side
ip -n out link set side up
in_ns n2 sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.o2.rp_filter=0 net.ipv4.conf.eth0.rp_filter=0
ip -n out route add "$B2" via 10.98.0.2
CLIENT=$(node_addr n1 c-private)
for to in private host; do
	in_ns out "$BIN/spoof" "$CLIENT" "${AT[udp-$to]}" 7001 forged-other-interface >/dev/null
done
in_ns out ip route replace "$B2" via "$LAN.12"
NOBODY=${B1%.0/24}.250
for to in private host; do
	in_ns out "$BIN/spoof" "$NOBODY" "${AT[udp-$to]}" 7001 forged-nobody >/dev/null
	in_ns out "$BIN/spoof" "${AT[tcp-private]}" "${AT[udp-$to]}" 7001 forged-local >/dev/null
done
for to in private host; do
	like "a datagram of the real client comes in ($to)" "$(ask private "$BIN/udp" ask sendto 4 "${AT[udp-$to]}" 7001)" "^from="
done
unlike "an app's address from another interface is not believed" "$(cat "$T"/run.*)" forged-other-interface
unlike "nor one that nobody has" "$(cat "$T"/run.*)" forged-nobody
unlike "nor one of this node's own" "$(cat "$T"/run.*)" forged-local
is "nobody else is routed to private apps" \
	"$(in_ns out timeout 3 "$BIN/tcp" connect 4 "${AT[tcp-private]}" 7000 2>&1 | grep -c you=)" 0

stop_apps
nodes_flush n1 n2
nodes_end n1 n2 out
done_testing
