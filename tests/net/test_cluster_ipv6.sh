#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 300
# beside others
# IPv6 between nodes as IPv4: blocks of their own for each, apps with an address of each family, reached by routes with
# their own addresses and by name (AAAA), whatever their modes, if labels and rules let them; addresses that two nodes
# ask for; etcd gone and back; nodes that have no IPv6, or an ax that does not know of it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
need python3 nginx redis-server redis-cli dig
build_c tcp udp spoof

LAN6=fd99
# node6 NODE LAST: its IPv6 address at the network
node6() {
	ip -n "$1" addr add "$LAN6::$2/64" dev eth0 nodad
}
# block NODE 4|6: its block of that family; route NODE BLOCK: that node's route to it
block() {
	node_state "$1" ".blocks[] | select(contains(\":\") == ($2 == 6))"
}
# addr6 NODE APP
addr6() {
	ax_in "${NODE_INST[$1]}" get apps -o json "$2" | jq -r '.[0].ip6'
}
# inside BLOCK: its address that ends with fa
inside() {
	local p=${1%/120}
	case $p in
	*::) echo "${p}fa" ;;
	*:0) echo "${p%0}fa" ;;
	*) echo "${p%00}fa" ;;
	esac
}
lan_make
ip addr add "$LAN6::1/64" dev lan0 nodad
lan_etcd_start
for i in 1 2; do
	node_make n$i 1$i
	node6 n$i 1$i
done
POOLS='  pool: {ipv4: 10.80.0.0/16, ipv6: "fd61:80::/48"}'
CLUSTER=$'  routes: direct\n  dead-after: 3s' POOL=$POOLS
node_start n1
node_start n2
for i in 1 2; do
	ok "n$i has ways to both blocks of the other one" wait_for -t 30 "[ \"\$(node_state n$i .ways.routes)\" = 2 ]"
	like "it has found its IPv6 address" "$(node_state n$i .address6)" "^$LAN6::1$i$"
done
B1=$(block n1 6) B2=$(block n2 6)
like "a block of IPv6 has as many addresses as one of IPv4" "$B1 $B2" "^fd61:80::[0-9a-f:]*/120 fd61:80::[0-9a-f:]*/120$"
like "its block is routed to its IPv6 address" "$(ip -n n1 -6 route show proto 97 | grep via)" "^$B2 via $LAN6::12 dev eth0 "
like "and the other way round" "$(ip -n n2 -6 route show proto 97 | grep via)" "^$B1 via $LAN6::11 dev eth0 "
like "ax get nodes shows both blocks of each" "$(ax_in "${NODE_INST[n1]}" get nodes -o json |
	jq -r '[.[].blocks | length] | join(" ")')" "^2 2$"
is "and both addresses" "$(ax_in "${NODE_INST[n1]}" get nodes -o json n2 | jq -r '.[0] | "\(.address) \(.address6)"')" \
	"$LAN.12 $LAN6::12"

# doctor NODE: what it finds, into $FOUND; $RC
doctor() {
	on "$1"
	FOUND=$(ax doctor --cluster -o json 2>"$T/doctor.err")
	RC=$?
	[ ! -s "$T/doctor.err" ] || diag "$(cat "$T/doctor.err")"
}
# found NODE CHECK: state and sentence
found() {
	jq -r --arg n "$1" --arg c "$2" '.[] | select(.node == $n and .check == $c) | "\(.state) \(.why)"' <<<"$FOUND"
}
doctor n1
is "ax doctor --cluster looks at both families, and finds nothing wrong" \
	"$RC $(jq -r '[.[] | select(.node == "n2").check] | join(" ")' <<<"$FOUND")" \
	"0 lease address rp-filter mtu address6 interface6 mtu6 routes routes clock"
like "each block is routed" "$(found n2 routes | tr '\n' '|')" "^ok its block 10\.80\.[^|]*\|ok its block $B2 is routed to it by eth0\|$"
ip link set vn2 mtu 1400
doctor n1
like "packets that are too large for the way are found by IPv6, too" "$(found n2 mtu6)" \
	"^(bad|note) packets of 1400 bytes get there, "
ip link set vn2 mtu 1500

# --- servers on n2, clients on n1 --------------------------------------------------------------------

on n2
for mode in private host; do
	serve 7000 --net $mode --name "tcp-$mode" -- "$BIN/tcp" listen 6 :: 7000 "from-$mode"
	serve 7001/udp --net $mode --name "udp-$mode" -- "$BIN/udp" serve 6 :: 7001 "from-$mode"
	serve 8080 --net $mode --name "web-$mode" -- nginx -c "$(nginx_conf "web$mode" 1 'server { listen [::]:8080; location / { return 200 "$remote_addr\n"; } }')"
done
serve 6379 --net private --name store -- redis-server --save "" --bind '*' '-::*' --protected-mode no --dir "$T"
serve 7000 --net private --labels zone=red --name red -- "$BIN/tcp" listen 6 :: 7000 red
serve 7000 --net host --labels zone=red --name redhost -- "$BIN/tcp" listen 6 :: 7000 red
serve 7005 --net host --name four -- "$BIN/tcp" listen 4 0.0.0.0 7005 four
declare -A AT
for app in tcp-private tcp-host udp-private udp-host web-private web-host store red redhost; do
	AT[$app]=$(addr6 n2 "$app")
done
like "an app has an address of each of the node's blocks" "$(node_addr n2 store) ${AT[store]}" "^10\.80\..* $(inside "$B2" | sed s/fa$//)"
ok "n1 knows the apps of n2" wait_for -t 30 "node_knows n1 ${!AT[*]} four"
on n1
for mode in private host; do
	run_app --net $mode --name "c-$mode" -- sleep 1000
done
launched c-private c-host
ok "and n2 those of n1" wait_for -t 30 "node_knows n2 c-private c-host"
# from MODE COMMAND...: by the client of that mode on n1
from() {
	timeout 30 "${NODE_AX[n1]}" --instance "${NODE_INST[n1]}" exec "c-$1" -- "${@:2}" 2>&1
}
for mode in private host; do
	ME=$(addr6 n1 "c-$mode")
	for to in private host; do
		like "TCP from a $mode app to a $to one: both see real addresses" \
			"$(from $mode "$BIN/tcp" connect 6 "${AT[tcp-$to]}" 7000)" \
			"^peer=\[?${AT[tcp-$to]}\]?:7000 local=\[?$ME\]?:[0-9]+ from-$to you=\[?$ME\]?:[0-9]+ me=\[?${AT[tcp-$to]}\]?:7000"
		for how in connected sendto; do
			like "UDP ($how) from a $mode app to a $to one" \
				"$(from $mode "$BIN/udp" ask $how 6 "${AT[udp-$to]}" 7001)" \
				"from=\[?${AT[udp-$to]}\]?:7001 from-$to you=\[?$ME\]?:"
		done
		is "nginx ($to) sees who asks, a $mode app" "$(from $mode curl -sS -g --max-time 10 "http://[${AT[web-$to]}]:8080/")" "$ME"
		is "and by its name, of which curl takes the IPv6 address" \
			"$(from $mode curl -6 -sS --max-time 10 "http://web-$to.ax.internal:8080/")" "$ME"
	done
	is "redis by address, a $mode app" "$(from $mode redis-cli -h "${AT[store]}" incr n)$(from $mode redis-cli -h store ping)" \
		"$([ $mode = private ] && echo 1 || echo 2)PONG"
	for to in red redhost; do
		like "labels hold between nodes: $mode to $to" "$(from $mode "$BIN/tcp" connect 6 "${AT[$to]}" 7000)" "^error connect "
	done
done
is "a private app pings apps of the other node" \
	"$(from private "$PYTHON" "$SRC/ping.py" raw "${AT[tcp-private]}" "${AT[tcp-host]}" | tr '\n' ' ')" "answered answered "
is "a name has an address of each family" "$(ask n1 tcp-host.ax.internal AAAA) $(ask n1 tcp-host.ax.internal A)" \
	"${AT[tcp-host]} $(node_addr n2 tcp-host)"
is "and the address a name" "$(on n1 && in_app -- dig +short +time=10 -x "${AT[tcp-host]}")" tcp-host.ax.internal.
is "where an app of another node listens is listed for the families that it serves" \
	"$(ax_in "${NODE_INST[n1]}" get servers -A -o json | jq -r --arg a four '[.[] | select(.app == $a).address] | join(" ")')" \
	"$(node_addr n2 four)"
head -c 60000 /dev/zero | tr '\0' x >"$T/long"
like "datagrams that need fragments arrive" "$(from private "$BIN/udp" ask sendto 6 "${AT[udp-host]}" 7001 "$(head -c 20000 "$T/long")" | head -c 200)" "^from="

# --- rules ---------------------------------------------------------------------------------------------

on n2
{ cat "$T/$INST.yaml"; printf 'policy:\n  rules:\n    - {deny: {from: c-host, to: tcp-private}}\n    - {deny: {from: c-private, to: web-host}}\n'; } >"$T/rules.yaml"
ok "the server's node gets rules" ax config apply "$T/rules.yaml"
like "a rule there names a client of the other node: it is refused" \
	"$(from host timeout 3 "$BIN/tcp" connect 6 "${AT[tcp-private]}" 7000)" "^(error connect .*)?$"
is "nor is it answered a ping where a rule forbids it everything" \
	"$(from private timeout 2 "$PYTHON" "$SRC/ping.py" raw "${AT[web-host]}")" ""
like "and another one is not" "$(from private "$BIN/tcp" connect 6 "${AT[tcp-private]}" 7000)" "^peer="
ok "the rules go" ax config apply "$T/$INST.yaml"

# --- who is none of them ---------------------------------------------------------------------------------

machine_make out 66
node6 out 66
ip link add o2 netns n2 type veth peer name side netns out
ip -n n2 addr add fd98::2/64 dev o2 nodad
ip -n n2 link set o2 up
ip -n out addr add fd98::66/64 dev side nodad
ip -n out link set side up
ip -n out -6 route add "$B2" via fd98::2
CLIENT=$(addr6 n1 c-private)
ok "it reaches n2 by another interface" wait_for 'in_ns out "$PYTHON" "$SRC/ping.py" raw fd98::2 | grep -q answered'
ok "and by the network" wait_for 'in_ns out "$PYTHON" "$SRC/ping.py" raw $LAN6::12 | grep -q answered'
for to in private host; do
	in_ns out "$BIN/spoof" "$CLIENT" "${AT[udp-$to]}" 7001 forged-other-interface >/dev/null
done
in_ns out ip -6 route replace "$B2" via "$LAN6::12"
for to in private host; do
	in_ns out "$BIN/spoof" "$(inside "$B1")" "${AT[udp-$to]}" 7001 forged-nobody >/dev/null
	in_ns out "$BIN/spoof" "${AT[tcp-private]}" "${AT[udp-$to]}" 7001 forged-local >/dev/null
done
for to in private host; do
	like "a datagram of the real client comes in ($to)" "$(from private "$BIN/udp" ask sendto 6 "${AT[udp-$to]}" 7001)" "^from="
done
unlike "an app's address from another interface is not believed" "$(cat "$T"/run.*)" forged-other-interface
unlike "nor one that nobody has" "$(cat "$T"/run.*)" forged-nobody
unlike "nor one of this node's own" "$(cat "$T"/run.*)" forged-local
is "nobody else is routed to private apps" \
	"$(in_ns out timeout 3 "$BIN/tcp" connect 6 "${AT[tcp-private]}" 7000 2>&1 | grep -c you=)" 0

# --- services -------------------------------------------------------------------------------------------

on n1
serve 7000 --name both -- "$BIN/tcp" listen 6 :: 7000 here
on n2
serve 7000 --name both -- "$BIN/tcp" listen 6 :: 7000 there
serve 7005 --name four -- "$BIN/tcp" listen 6 :: 7005 six
ok "apps of a name are a service with addresses of both families" \
	wait_for -t 20 '[ "$(backends n1 both | grep -o "n[12] both fd61" | sort -u | tr "\n" " ")" = "n1 both fd61 n2 both fd61 " ]'
# who answers at the name's IPv6 address
answers6() {
	local ip
	ip=$(ask "$1" "$2.ax.internal" AAAA)
	at "$1" sh -c 'for i in $(seq 16); do "$1" connect 6 "$2" "$3"; done' - "$BIN/tcp" "$ip" "$3" |
		sed 's/^peer=[^ ]* local=[^ ]* \([^ ]*\) .*/\1/' | sort -u | tr '\n' ' ' | sed 's/ $//'
}
is "both are reached there" "$(answers6 n1 both 7000)" "here there"
ok "a service of apps of which one listens at IPv4 alone" \
	wait_for -t 20 '[ "$(backends n1 four | tr ";" "\n" | grep -c "^n2 four")" = 4 ]'
is "has that one not at its IPv6 address" "$(answers6 n1 four 7005)" six

# --- addresses that are asked for -------------------------------------------------------------------------

on n1
run_app --ip fd42::7 --name fixed -- sleep 1000
FIXED=$APP
launched fixed
on n2
like "an address of another node's app is refused, and said whose it is" \
	"$(in_app --ip fd42::7 -- true 2>&1)" "the address fd42::7 is the app fixed's on the node n1"
like "and so is one of another node's block" \
	"$(in_app --ip "$(inside "$B1")" -- true 2>&1)" "the address $(inside "$B1") is in a block of the node n1"
like "and one of the pool that is in no block, wherever there" \
	"$(in_app --ip fd61:80:0:9::1 -- true 2>&1)" "fd61:80:0:9::1 is in the cluster's pool fd61:80::/48, and in no block of this node"
is "one of the own block is had" "$(in_app --ip "$(inside "$B2")" -- echo had 2>&1)" had
end "$FIXED"
ok "when nobody has it any more it is had elsewhere" wait_for '[ "$(in_app --ip fd42::7 -- echo had 2>&1)" = had ]'
WON=
for i in {1..4}; do
	rm -f "$T"/race[12]
	for n in 1 2; do
		(on n$n && in_app --ip "fd42::1:$i" --name "race$i" -- \
			sh -c 'echo had; while [ ! -e "$1" ]; do sleep 0.1; done' - "$T/over$i") >"$T/race$n" 2>&1 &
		RACE[n]=$!
	done
	wait_for 'cat "$T"/race[12] | grep -q "^had" && cat "$T"/race[12] | grep -q "on the node n[12]"'
	touch "$T/over$i"
	wait "${RACE[@]}"
	WON+=$(cat "$T"/race[12] | grep -c '^had$')$(cat "$T"/race[12] | grep -c "is the app race$i's on the node n[12]")
done
is "of two nodes that want one at the same time one has it, and the other is told" "$WON" 11111111

# --- etcd gone and back, an agent that starts meanwhile -----------------------------------------------------

BLOCKS1=$(node_state n1 '.blocks[]' | sort)
end "$ETCD"
ok "n1 is cut off" wait_for -t 30 '[ "$(node_state n1)" = partitioned ]'
like "what is known is reached" "$(from private "$BIN/tcp" connect 6 "${AT[tcp-host]}" 7000)" "^peer="
node_stop n1
node_again n1
ok "an agent that starts without etcd knows them, too" wait_for -t 30 '[ "$(node_state n1 .ways.routes)" = 2 ]'
like "and reaches them" "$(from host "$BIN/tcp" connect 6 "${AT[tcp-private]}" 7000)" "^peer="
is "by name" "$(ask n1 tcp-host.ax.internal AAAA)" "${AT[tcp-host]}"
is "its blocks are the same" "$(node_state n1 '.blocks[]' | sort)" "$BLOCKS1"
like "and it gives addresses out of them" "$(on n1 && in_app --name late -- ip -6 -o addr show dev eth0 scope global)" "$(inside "$B1" | sed 's/fa$//')"
lan_etcd_start
ok "etcd is back" wait_for -t 30 '[ "$(node_state n1)" = connected ] && [ "$(node_state n2)" = connected ]'
is "and nobody has other blocks" "$(block n1 6) $(block n2 6)" "$B1 $B2"

# --- nodes without IPv6 --------------------------------------------------------------------------------------

node_make n3 13
node_start n3
ok "a node without an IPv6 address has a way to IPv4's blocks alone" wait_for -t 30 \
	'[ "$(node_state n3 .ways.routes)" -ge 2 ] && [ "$(node_state n1 ".ways.failed[0].node")" = n3 ]'
like "it says so" "$(ax_in "${NODE_INST[n3]}" status)" \
	"other nodes have no way to its blocks of IPv6: this machine has no IPv6 address: give the one by which other nodes reach its blocks of IPv6 as cluster\.node\.address6, or all nodes routes: wireguard"
like "and so do the others" "$(ax_in "${NODE_INST[n1]}" status)" \
	"no way to fd61:80::[^ ]*, a block of n3: its node has no IPv6 address: give it one as cluster\.node\.address6, or all nodes routes: wireguard"
doctor n3
like "and the doctor of both" "$(found n3 address6)" "^bad other nodes have no way to its blocks of IPv6: this machine has no IPv6 address"
doctor n1
like "of the others" "$(found n3 routes)" "bad there is no way to its block fd61:80::[^ ]*: its node has no IPv6 address"
node6 n3 13
ok "an address that comes later is found" wait_for -t 30 '[ "$(node_state n1 .ways.routes)" = 4 ] && [ "$(node_state n3 .ways.routes)" = 4 ]'
node_stop n3
POOL=
node_start n3
ok "a node whose config has no pool of IPv6 is in the cluster all the same" wait_for -t 30 '[ "$(node_state n3 .ways.routes)" = 2 ]'
is "what it does not have to know is no record that is left out" "$(node_state n3 '.refused // 0')" 0
node_stop n3
POOL='  pool: {ipv4: 10.80.0.0/16, ipv6: "fd61:81::/64"}'
node_start n3
ok "one with another pool is refused" wait_for -t 30 '[[ $(node_state n3 .why) == "its pool is fd61:80::/48, and this node'\''s config has fd61:81::/64: "* ]]'
node_stop n3

# an ax that does not know of IPv6 writes no such address and no such block, and reads neither
ID=0123456789abcdef0123456789abcdef
record() { lan_etcd put '{key: ($k | @base64), value: ($v | @base64)}' --arg k "/ax/east/$1" --arg v "$2" >/dev/null; }
record nodes/old "{\"v\":1,\"name\":\"old\",\"id\":\"$ID\",\"since\":1,\"version\":\"1\",\"address\":\"$LAN.66\"}"
record blocks/10.80.254.0-24 "{\"v\":1,\"prefix\":\"10.80.254.0/24\",\"node\":\"old\",\"id\":\"$ID\"}"
record apps/old/7 '{"v":1,"node":"old","name":"aged","id":7,"net":"host","since":1,"labels":"","ip4":"10.80.254.7","ip6":"fd61:80::7","ports":[{"proto":"tcp","port":80}]}'
ok "the app of a node with an older ax has its IPv4 address" wait_for -t 30 '[ "$(ask n1 aged.ax.internal A)" = 10.80.254.7 ]'
is "and none that is in no block of its node" "$(ask n1 aged.ax.internal AAAA)" ""

# --- a node that ends -----------------------------------------------------------------------------------------

kill -9 "${NODE_AGENT[n2]}" && wait "${NODE_AGENT[n2]}" 2>/dev/null
NODE_AGENT[n2]=
ok "a node that was killed is away after its lease and dead-after, with both routes" wait_for -t 60 '! ip -n n1 -6 route show proto 97 | grep -q " via " &&
	! ip -n n1 route show proto 97 | grep -q " via $LAN.12 "'
is "and its apps are no names" "$(ask n1 tcp-host.ax.internal AAAA)" ""
node_again n2
ok "it comes back" wait_for -t 30 'ip -n n1 -6 route show proto 97 | grep -q " via $LAN6::12 "'
like "and its apps with it" "$(wait_for -t 30 'node_knows n1 tcp-host' && from private "$BIN/tcp" connect 6 "${AT[tcp-host]}" 7000)" "^peer="

on n1
stop_apps
on n2
stop_apps
nodes_flush n1 n2
on n3
ax agent --flush
for i in 1 2; do
	is "no route of IPv6 is left in n$i" "$(ip -n n$i -6 route show proto 97)" ""
done
nodes_end n1 n2 n3 out
done_testing
