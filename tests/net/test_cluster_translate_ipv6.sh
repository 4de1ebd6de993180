#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 300
# IPv6 addresses of apps are reached by translation as IPv4's are, from node to node by IPv6: all four ways between
# network modes, by name (AAAA), with labels and rules that hold where the server is; nobody is believed who does not
# prove whose connection it is, also not by headers of IPv6 alone; and what becomes of nodes without an IPv6 address.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
need "$PYTHON" nginx redis-server redis-cli bpftool dig "${CLANG:-clang}"
build_c tcp udp
build strip.bpf.o strip.bpf.c "${CLANG:-clang}" -target bpf -O2 -g -idirafter "/usr/include/$(uname -m)-linux-gnu" -c "$SRC/strip.bpf.c" -o %o
STRIP=/sys/fs/bpf/strip-$INST
bpftool prog load "$BIN/strip.bpf.o" "$STRIP" type classifier || bail_out "the kernel does not load strip.bpf.o"

LAN6=fd99
# node6 NODE LAST: its IPv6 address at the network
node6() { ip -n "$1" addr add "$LAN6::$2/64" dev eth0 nodad; }
# addr6 NODE APP
addr6() { ax_in "${NODE_INST[$1]}" get apps -o json "$2" | jq -r '.[0].ip6'; }
lan_make
ip addr add "$LAN6::1/64" dev lan0 nodad
lan_etcd_start
for i in 1 2; do
	node_make n$i 1$i
	node6 n$i 1$i
done
POOL='  pool: {ipv4: 10.80.0.0/16, ipv6: "fd61:80::/48"}'
CLUSTER=$'  routes: translate\n  dead-after: 3s'
node_start n1
node_start n2
for i in 1 2; do
	ok "n$i has ways to both blocks of the other one" wait_for -t 30 "[ \"\$(node_state n$i .ways.routes)\" = 2 ]"
done
is "no block is routed" "$(node_routes n1) $(ip -n n1 -6 route show proto 97 | grep -c via)" "0 0"

# doctor NODE: what it finds, into $FOUND
doctor() {
	on "$1"
	FOUND=$(ax doctor --cluster -o json)
}
# found NODE CHECK: state and sentence
found() { jq -r --arg n "$1" --arg c "$2" '.[] | select(.node == $n and .check == $c) | "\(.state) \(.why)"' <<<"$FOUND"; }
doctor n1
like "ax doctor --cluster says so of both" "$(found n2 routes | tr '\n' '|')" \
	"^ok apps in its block 10\.80\.[^|]* are reached by translation\|ok apps in its block fd61:80::[^|]* are reached by translation\|$"

# --- servers on n2, clients on n1 --------------------------------------------------------------------

on n2
head -c 30000000 /dev/urandom >"$T/large"
chmod 755 "$T"
for mode in private host; do
	serve 7000 --net $mode --name "tcp-$mode" -- "$BIN/tcp" listen 6 :: 7000 "from-$mode"
	serve 8080 --net $mode --name "web-$mode" -- nginx -c "$(nginx_conf "web-$mode" 1 "server { listen [::]:8080; root $T; location = / { return 200 \"\$remote_addr\\n\"; } }")"
	serve 6379 --net $mode --name "redis-$mode" -- redis-server --port 6379 --bind '*' '-::*' --protected-mode no --save '' --dir "$T"
	serve 7000 --net $mode --labels zone=red --name "red-$mode" -- "$BIN/tcp" listen 6 :: 7000 red
	serve 7000 --net $mode --name "other-$mode" -- "$BIN/tcp" listen 6 :: 7000 "another-$mode"
done
serve 7000 --net host --name four -- "$BIN/tcp" listen 4 0.0.0.0 7000 four
serve 7001/udp --net private --name udp -- "$BIN/udp" serve 6 :: 7001 from-udp
declare -A AT
for app in {tcp,web,redis,red,other}-{private,host} four udp; do
	AT[$app]=$(addr6 n2 "$app")
done
on n1
run_app --net private --name c-private -- sleep 1000
run_app --net host --name c-host -- sleep 1000
run_app --net private --egress --name evil -- sleep 1000
launched c-private c-host evil
ok "n1 knows the apps of n2" wait_for -t 30 "node_knows n1 ${!AT[*]}"
ok "and n2 those of n1" wait_for -t 30 "node_knows n2 c-private c-host evil"

# ask CLIENT COMMAND...: by that app on n1
ask() { timeout 30 "${NODE_AX[n1]}" --instance "${NODE_INST[n1]}" exec "$1" -- "${@:2}" 2>&1; }
# six CLIENT SERVER [PORT]
six() { ask "$1" "$BIN/tcp" connect 6 "${AT[$2]}" "${3:-7000}"; }
# ask_dns NODE NAME: its IPv6 address
ask_dns() { at "$1" dig +short +time=10 +tries=1 "$2.ax.internal" AAAA; }
# counted NODE COUNTER
counted() { ax_in "${NODE_INST[$1]}" status -o json | jq ".counters.\"$2\""; }

for mode in private host; do
	FROM=$(addr6 n1 "c-$mode")
	for to in private host; do
		like "TCP from a $mode app to a $to one: both see each other's own address" "$(six "c-$mode" "tcp-$to")" \
			"^peer=\[?${AT[tcp-$to]}\]?:7000 local=\[?$FROM\]?:[0-9]+ from-$to you=\[?$FROM\]?:[0-9]+ me=\[?${AT[tcp-$to]}\]?:7000"
		like "IPv4 goes on beside it: $mode to $to" "$(ask "c-$mode" "$BIN/tcp" connect 4 "$(node_addr n2 "tcp-$to")" 7000)" \
			"^peer=$(node_addr n2 "tcp-$to"):7000 local=$(node_addr n1 "c-$mode"):[0-9]+ from-$to you=.*$(node_addr n1 "c-$mode")"
		is "nginx sees who asks by name: $mode to $to" "$(ask "c-$mode" curl -6 -sS --max-time 10 "http://web-$to.ax.internal:8080/")" "$FROM"
		is "and gives it much: $mode to $to" \
			"$(ask "c-$mode" curl -6 -sS --max-time 25 "http://web-$to.ax.internal:8080/large" | cksum)" "$(cksum <"$T/large")"
		like "redis sees who asks: $mode to $to" "$(ask "c-$mode" redis-cli -h "${AT[redis-$to]}" client list)" " addr=\[$FROM\]:[0-9]+ "
		like "labels hold: $mode to $to" "$(six "c-$mode" "red-$to")" "^error connect "
	done
	is "a server of IPv4 alone is not reached by IPv6 ($mode)" "$(six "c-$mode" four)" "error connect ECONNREFUSED"
	is "a port that nobody serves is refused ($mode)" "$(six "c-$mode" tcp-host 7001)" "error connect ECONNREFUSED"
	for how in connected sendto; do
		like "UDP ($how) is told that this is not for it ($mode)" "$(ask "c-$mode" "$BIN/udp" ask $how 6 "${AT[udp]}" 7001)" \
			"^error (connect|sendto) Protocol not supported$"
	done
done
is "a name has an address of each family" "$(ask_dns n1 tcp-host) $(at n1 dig +short +time=10 +tries=1 tcp-host.ax.internal A)" \
	"${AT[tcp-host]} $(node_addr n2 tcp-host)"
is "a socket in host mode that has a port already is refused" "$(ask c-host "$BIN/tcp" connect 6 "${AT[tcp-host]}" 7000 -b :: 7777)" "error connect EADDRNOTAVAIL"
like "a private app's is not" "$(ask c-private "$BIN/tcp" connect 6 "${AT[tcp-host]}" 7000 -b :: 7777)" " local=.*:7777 from-host you="
in_ns n2 ip link set eth0 mtu 1300
in_ns n1 ip link set eth0 mtu 1300
is "packets fit where the way takes less than the apps' devices" \
	"$(ask c-private curl -6 -sS --max-time 25 "http://web-private.ax.internal:8080/large" | cksum)" "$(cksum <"$T/large")"
in_ns n1 ip link set eth0 mtu 1500
in_ns n2 ip link set eth0 mtu 1500

on n1
for mode in private host; do
	run_app --net $mode --name "stays-$mode" -- "$BIN/tcp" connect 6 "${AT[tcp-private]}" 7000 -k 1000
	STAYS+=("$APP")
done
conns() { ax_in "${NODE_INST[$1]}" get conns -o json | jq -c ".[] | select(.local_name == \"$2\") | [.local, .remote, .remote_name]"; }
for mode in private host; do
	ok "connections are shown with their apps' addresses: at the client ($mode)" \
		wait_for 'conns n1 "stays-$mode" | grep -qF "[\"$(addr6 n1 "stays-$mode")\",\"${AT[tcp-private]}\",\"tcp-private\"]"'
	ok "and at the server" wait_for 'conns n2 tcp-private | grep -qF "[\"${AT[tcp-private]}\",\"$(addr6 n1 "stays-$mode")\",\"stays-$mode\"]"'
done

# --- services ----------------------------------------------------------------------------------------------

on n1
serve 7002 --name both -- "$BIN/tcp" listen 6 :: 7002 here
serve 7003 --name back -- "$BIN/tcp" listen 6 :: 7003 back
on n2
serve 7002 --name both -- "$BIN/tcp" listen 6 :: 7002 there
ok "apps of a name are a service with addresses of both families" \
	wait_for -t 20 '[ "$(backends n1 both | grep -o "n[12] both fd61" | sort -u | tr "\n" " ")" = "n1 both fd61 n2 both fd61 " ]'
VIP=$(ask_dns n1 both)
is "both are reached there" "$(ask c-host sh -c 'for i in $(seq 16); do "$1" connect 6 "$2" 7002; done' - "$BIN/tcp" "$VIP" |
	sed 's/^peer=[^ ]* local=[^ ]* \([^ ]*\) .*/\1/' | sort -u | tr '\n' ' ')" "here there "
is "and which it is nobody sees" "$(ask c-private "$BIN/tcp" connect 6 "$VIP" 7002 | grep -o '^peer=[^ ]*' | tr -d '[]')" "peer=$VIP:7002"

ok "the other way round names have both addresses, too" \
	wait_for '[ "$(ask_dns n2 back)" = "$(addr6 n1 back)" ]'
like "and are reached" "$(at n2 "$BIN/tcp" connect 6 "$(addr6 n1 back)" 7003)" " back you=\[?fd61:80:"

# --- rules, at the server's node ------------------------------------------------------------------------

on n2
{ cat "$T/$INST.yaml"; printf 'policy:\n  rules:\n    - {deny: {from: [c-private, c-host, evil], to: [tcp-private, tcp-host]}}\n    - {deny: {from: "%s::11/128", to: [other-private, other-host]}}\n' "$LAN6"; } >"$T/rules.yaml"
ok "the server's node gets rules" ax config apply "$T/rules.yaml"
for mode in private host; do
	for to in private host; do
		is "a rule there names the client: it is refused ($mode to $to)" "$(six "c-$mode" "tcp-$to")" "error connect ECONNREFUSED"
		like "one that names its node is not about it" "$(six "c-$mode" "other-$to")" " another-$to you=\[?$(addr6 n1 "c-$mode")\]?:"
	done
done

# --- who is not believed -----------------------------------------------------------------------------------

# port APP [MEMBER]: n2's port for it
port() { lan_etcd range '{key: ("/ax/east/apps/n2/" | @base64), range_end: ("/ax/east/apps/n20" | @base64)}' |
	jq -r --arg a "$1" --arg m "${2:-via6}" '.kvs[].value | @base64d | fromjson | select(.name == $a) | .ports[0][$m]'; }
secret() { lan_etcd range '{key: ("/ax/east/key" | @base64)}' | jq -r '.kvs[0].value | @base64d | fromjson | "\(.key) \(.id)"'; }
NUMBER=$(ax_in "${NODE_INST[n1]}" get apps -o json c-host | jq '.[0].id') SECRET=$(secret)
is "a server of IPv4 alone has no port at the IPv6 address" "$(port four) $(port four via | grep -c '^6[0-9]*$')" "null 1"
machine_make out 66
node6 out 66
ok "a machine outside the cluster reaches n2" wait_for 'in_ns out "$PYTHON" "$SRC/ping.py" raw $LAN6::12 | grep -q answered'
for to in private host; do
	OTHER=${AT[other-$to]} VIA=$(port "other-$to")
	# syn FROM SOURCE HOW
	# shellcheck disable=SC2086 # two words
	syn() { in_ns "$1" "$PYTHON" "$SRC/syn.py" "$3" "$2" "$LAN6::12" "$VIA" "$OTHER" 7000 "$NUMBER" $SECRET; }
	CAME=$(counted n2 nodes-came)
	is "what others make by the description is understood ($to)" "$(syn n1 "$LAN6::11" good)" accepted
	is "it is counted" "$(counted n2 nodes-came)" $((CAME + 1))
	FORGED=$(counted n2 nodes-forged)
	HOWS=(mac number seq server id short extension) # (fragments the node's own stack may put together)
	rm -f "$T"/syn.*
	for how in "${HOWS[@]}"; do syn n1 "$LAN6::11" "$how" >"$T/syn.$how" & done
	syn out "$LAN6::66" stolen >"$T/syn.stolen" &
	for how in "${HOWS[@]}" stolen; do wait_for -t 60 '[ -s "$T/syn.$how" ]'; done
	for how in "${HOWS[@]}" stolen; do
		is "a SYN that is not what its node has signed is not answered ($how, $to)" "$(cat "$T/syn.$how")" nothing
	done
	is "all that is counted" "$(counted n2 nodes-forged)" $((FORGED + 8))
	is "and a machine outside the cluster that says nothing is refused" "$(syn out "$LAN6::66" none)" refused
	for from in c-private c-host evil; do
		is "no app goes to such a port by itself ($from, $to)" "$(ask $from "$BIN/tcp" connect 6 "$LAN6::12" "$VIA")" "error connect ECONNREFUSED"
	done
	is "one of the node itself a rule about it refuses" "$(syn n1 "$LAN6::11" none)" refused
done
# An app that makes its SYNs itself, in the name of another one that may have the server.
# shellcheck disable=SC2086 # two words
own_syn() { ask evil "$PYTHON" "$SRC/syn.py" "$1" "$(addr6 n1 evil)" "$2" 7000 "$2" 7000 "$NUMBER" $SECRET; }
is "an app is itself, whatever it says" "$(own_syn good "${AT[tcp-private]}")" refused
is "which is how it is let in" "$(own_syn mac "${AT[other-private]}")" accepted
PLAIN=$(counted n2 nodes-without-option)
is "behind other headers it says nothing, and if it says nothing nobody hears it" \
	"$(own_syn extension "${AT[other-host]}") $(own_syn fragment "${AT[other-host]}") $(own_syn none "${AT[other-host]}")" "nothing nothing nothing"
is "least of all as its node" "$(counted n2 nodes-without-option)" "$PLAIN"

# --- a machine on the way that takes the option away ---------------------------------------------------------

ok "the rules are those without addresses again" ax config apply "$T/$INST.yaml"
ok "one that takes options away is put there" in_ns n1 tc filter add dev eth0 egress bpf da object-pinned "$STRIP"
for mode in private host; do
	for to in private host; do
		like "without the option the client is its node ($mode to $to)" "$(six "c-$mode" "tcp-$to")" \
			" from-$to you=\[?$LAN6::11\]?:[0-9]+ me=\[?${AT[tcp-$to]}\]?:7000"
	done
done
ok "the rules are back" ax config apply "$T/rules.yaml"
for to in private host; do
	is "whom a rule refuses ($to)" "$(six c-private "other-$to")" "error connect ECONNREFUSED"
done
ok "and it is noticed" [ "$(counted n2 nodes-without-option)" -ge $((PLAIN + 6)) ]
in_ns n1 tc filter del dev eth0 egress
rm -f "$STRIP"
like "with it the client is itself again" "$(six c-private other-private)" " another-private you=\[?$(addr6 n1 c-private)\]?:"

# --- agents that end, addresses that change -------------------------------------------------------------------

VIA=$(port other-host)
on n2
agent_kill9
NODE_AGENT[n2]=
like "without n2's agent all goes on" "$(six c-private other-host)" " another-host you=\[?$(addr6 n1 c-private)\]?:"
node_again n2
ok "the next one has the ways again" wait_for -t 30 '[ "$(node_state n2 .ways.routes)" = 2 ] && node_knows n2 c-private'
ok "and n1 to it" wait_for -t 30 '[ "$(node_state n1 .ways.routes)" = 2 ]'
is "servers keep their ports" "$(port other-host)" "$VIA"
like "and are reached" "$(six c-host other-host)" " another-host you=\[?$(addr6 n1 c-host)\]?:"
ok "connections have gone on all the time" alive "${STAYS[@]}"

ip -n n2 addr del "$LAN6::12/64" dev eth0
ok "a node that has no IPv6 address any more is reached by IPv4 alone" wait_for -t 30 '[ "$(node_state n1 .ways.routes)" = 1 ]'
like "it says so" "$(ax_in "${NODE_INST[n2]}" status)" "other nodes have no way to its blocks of IPv6: this machine has no IPv6 address"
like "and so do the others" "$(ax_in "${NODE_INST[n1]}" status)" "no way to fd61:80::[^ ]*, a block of n2: its node has no IPv6 address"
doctor n1
like "and the doctor" "$(found n2 routes)" "bad there is no way to its block fd61:80::[^ ]*: its node has no IPv6 address"
for mode in private host; do
	is "who asks for its IPv6 addresses is told that there is no way ($mode)" "$(six "c-$mode" other-host)" "error connect ENETUNREACH"
	like "and reaches its IPv4 addresses ($mode)" "$(ask "c-$mode" "$BIN/tcp" connect 4 "$(node_addr n2 other-host)" 7000)" " another-host you="
done
is "by name, too, where there is no other address any more" \
	"$(wait_for '[ -z "$(ask_dns n1 other-host)" ]' && echo none)" none
node6 n2 22
ok "with another address there is a way again" wait_for -t 30 '[ "$(node_state n1 .ways.routes)" = 2 ]'
for mode in private host; do
	ok "and its apps are reached by that ($mode)" wait_for -t 20 'six "c-$mode" other-private | grep -q " another-private you="'
done
for last in 23 24; do node6 n2 $last; done
ip -n n2 addr del "$LAN6::22/64" dev eth0
ok "a node that has several, of which nobody says which it is, has no way by IPv6 itself, either" \
	wait_for -t 30 '[ "$(node_state n1 .ways.routes) $(node_state n2 .ways.routes)" = "1 1" ]'
like "and says so" "$(ax_in "${NODE_INST[n2]}" status)" \
	"no way to fd61:80::[^ ]*, a block of n1: this machine has several IPv6 addresses: give the one by which"
ok "so names have no such address there" wait_for '[ -z "$(ask_dns n2 back)" ]'
is "but no app goes to ports where the node was ($LAN6::12)" "$(ask evil "$BIN/tcp" connect 6 "$LAN6::12" "$VIA")" "error connect ECONNREFUSED"

stop_apps
nodes_flush n1 n2
nodes_end n1 n2 out
done_testing
