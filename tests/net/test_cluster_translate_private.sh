#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 300
# Private apps of two nodes, and those in host mode, reach each other where nothing but the nodes' addresses is
# routed: both ends see the apps' own addresses, policy judges by them where the server is, an app says nothing of
# itself that is not true, and what is known of connections goes with their apps and stays with their agents' death.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
need "$PYTHON" nginx redis-server redis-cli bpftool "${CLANG:-clang}"
build_c tcp udp
build strip.bpf.o strip.bpf.c "${CLANG:-clang}" -target bpf -O2 -g -idirafter "/usr/include/$(uname -m)-linux-gnu" -c "$SRC/strip.bpf.c" -o %o
STRIP=/sys/fs/bpf/strip-$INST
bpftool prog load "$BIN/strip.bpf.o" "$STRIP" type classifier || bail_out "the kernel does not load strip.bpf.o"

CLUSTER='  routes: translate'
nodes_with_ways 2

# --- servers on n2, clients on n1 --------------------------------------------------------------------

on n2
head -c 30000000 /dev/urandom >"$T/large"
chmod 755 "$T"
for mode in private host; do
	serve 7000 --net $mode --name "tcp-$mode" -- "$BIN/tcp" listen 4 0.0.0.0 7000 "from-$mode"
	serve 8080 --net $mode --name "web-$mode" -- nginx -c "$(nginx_conf "web-$mode" 1 "server { listen 8080; root $T; location = / { return 200 \"\$remote_addr\\n\"; } }")"
	serve 6379 --net $mode --name "redis-$mode" -- redis-server --port 6379 --bind 0.0.0.0 --protected-mode no --save '' --dir "$T"
	serve 7000 --net $mode --labels zone=red --name "red-$mode" -- "$BIN/tcp" listen 4 0.0.0.0 7000 red
done
serve 7000 --net private --name other -- "$BIN/tcp" listen 4 0.0.0.0 7000 another
serve 7001/udp --net private --name udp -- "$BIN/udp" serve 4 0.0.0.0 7001 from-udp
declare -A AT
for app in {tcp,web,redis,red}-{private,host} other udp; do
	AT[$app]=$(node_addr n2 "$app")
done
on n1
run_app --net private --name c-private -- sleep 1000
run_app --net host --name c-host -- sleep 1000
run_app --net private --name evil -- sleep 1000
launched c-private c-host evil
ok "n1 knows the apps of n2" wait_for -t 30 "node_knows n1 ${!AT[*]}"
ok "and n2 those of n1" wait_for -t 30 "node_knows n2 c-private c-host evil"
ME=$(node_addr n1 c-private) TCP=${AT[tcp-private]}

# ask CLIENT COMMAND...: by that app on n1
ask() { timeout 30 "${NODE_AX[n1]}" --instance "${NODE_INST[n1]}" exec "$1" -- "${@:2}" 2>&1; }
# counted NODE COUNTER
counted() { ax_in "${NODE_INST[$1]}" status -o json | jq ".counters.\"$2\""; }

for mode in private host; do
	FROM=$(node_addr n1 "c-$mode")
	for to in private host; do
		like "TCP from a $mode app to a $to one: both see each other's own address" \
			"$(ask "c-$mode" "$BIN/tcp" connect 4 "${AT[tcp-$to]}" 7000)" \
			"^peer=${AT[tcp-$to]}:7000 local=$FROM:[0-9]+ from-$to you=$FROM:[0-9]+ me=${AT[tcp-$to]}:7000"
		is "nginx sees who asks by name: $mode to $to" "$(ask "c-$mode" curl -sS --max-time 10 "http://web-$to:8080/")" "$FROM"
		is "and gives it much: $mode to $to" \
			"$(ask "c-$mode" curl -sS --max-time 25 "http://web-$to:8080/large" | cksum)" "$(cksum <"$T/large")"
		is "redis keeps what it is given: $mode to $to" \
			"$(ask "c-$mode" redis-cli -h "redis-$to" set k "$mode" | tr -d '\r'; ask "c-$mode" redis-cli -h "redis-$to" get k)" "OK"$'\n'"$mode"
		like "redis sees who asks: $mode to $to" "$(ask "c-$mode" redis-cli -h "redis-$to" client list)" " addr=$FROM:[0-9]+ "
		like "labels hold: $mode to $to" "$(ask "c-$mode" "$BIN/tcp" connect 4 "${AT[red-$to]}" 7000)" "^error connect "
	done
done
like "an IPv6 socket, too" "$(ask c-private "$BIN/tcp" connect 6 "::ffff:$TCP" 7000)" "^peer=.*$TCP\]?:7000 local=.*$ME"
like "and one that has a port already" "$(ask c-private "$BIN/tcp" connect 4 "$TCP" 7000 -b 0.0.0.0 7777)" \
	"^peer=$TCP:7000 local=$ME:7777 from-private you=$ME:"
is "a port that nobody serves is refused" "$(ask c-private "$BIN/tcp" connect 4 "$TCP" 7001)" "error connect ECONNREFUSED"
for how in connected sendto; do
	like "UDP ($how) is told that this is not for it" "$(ask c-private "$BIN/udp" ask $how 4 "${AT[udp]}" 7001)" \
		"^error (connect|sendto) Protocol not supported$"
done
cat >"$T/full.py" <<'PY'
import socket, sys
how, ip = sys.argv[1:]
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262 if how == "mptcp" else 0)
s.settimeout(10)
try:
    if how == "fastopen":
        s.setsockopt(socket.IPPROTO_TCP, 30, 1)
    s.connect((ip, 7000))
    print(how, s.getpeername())
except OSError as e:
    print("error", e.strerror)
PY
for how in fastopen mptcp; do
	like "a connection whose SYN has no room for its name is refused ($how)" \
		"$(ask c-private "$PYTHON" "$T/full.py" $how "$TCP")" "^error (Operation|Protocol) not (supported|available)"
done
in_ns n2 ip link set eth0 mtu 1300
in_ns n1 ip link set eth0 mtu 1300
is "packets fit where the way takes less than the apps' devices" \
	"$(ask c-private curl -sS --max-time 25 "http://web-private:8080/large" | cksum)" "$(cksum <"$T/large")"
in_ns n1 ip link set eth0 mtu 1500
in_ns n2 ip link set eth0 mtu 1500

# --- rules, at the server's node ------------------------------------------------------------------------

on n2
{ cat "$T/$INST.yaml"; printf 'policy:\n  rules:\n    - {deny: {from: [c-private, evil], to: tcp-private}}\n    - {deny: {from: %s.11/32, to: other}}\n' "$LAN"; } >"$T/rules.yaml"
ok "the server's node gets rules" ax config apply "$T/rules.yaml"
is "a rule there names the private client: it is refused" "$(ask c-private "$BIN/tcp" connect 4 "$TCP" 7000)" "error connect ECONNREFUSED"
like "it names no other one" "$(ask c-host "$BIN/tcp" connect 4 "$TCP" 7000)" " from-private you="
like "one that names its node is not about it" "$(ask c-private "$BIN/tcp" connect 4 "${AT[other]}" 7000)" " another you=$ME:"

# --- who is not believed -----------------------------------------------------------------------------------

# via APP: n2's port for it
via() { lan_etcd range '{key: ("/ax/east/apps/n2/" | @base64), range_end: ("/ax/east/apps/n20" | @base64)}' |
	jq -r --arg a "$1" '.kvs[].value | @base64d | fromjson | select(.name == $a) | .ports[0].via'; }
secret() { lan_etcd range '{key: ("/ax/east/key" | @base64)}' | jq -r '.kvs[0].value | @base64d | fromjson | "\(.key) \(.id)"'; }
number() { ax_in "${NODE_INST[n1]}" get apps -o json "$1" | jq '.[0].id'; }
NUMBER=$(number c-host) VIA=$(via tcp-private) SECRET=$(secret)
# syn FROM SOURCE HOW
# shellcheck disable=SC2086 # two words
syn() { in_ns "$1" "$PYTHON" "$SRC/syn.py" "$3" "$2" "$LAN.12" "$VIA" "$TCP" 7000 "$NUMBER" $SECRET; }
is "what a node says of its app is understood" "$(syn n1 "$LAN.11" good)" accepted
FORGED=$(counted n2 nodes-forged)
machine_make out 66
HOWS=(mac number seq server id short)
for how in "${HOWS[@]}"; do syn n1 "$LAN.11" "$how" >"$T/syn.$how" & done
syn out "$LAN.66" stolen >"$T/syn.stolen" &
for how in "${HOWS[@]}" stolen; do wait_for -t 60 '[ -s "$T/syn.$how" ]'; done
for how in "${HOWS[@]}" stolen; do
	is "a SYN that says what is not true is not answered ($how)" "$(cat "$T/syn.$how")" nothing
done
is "all that is counted" "$(counted n2 nodes-forged)" $((FORGED + 7))
is "and such a one that says nothing is refused" "$(syn out "$LAN.66" none)" refused

# An app that makes its SYNs itself, in the name of another one that may have the server.
# shellcheck disable=SC2086 # two words
own_syn() { ask evil "$PYTHON" "$SRC/syn.py" "$1" "$(node_addr n1 evil)" "$2" 7000 "$2" 7000 "$NUMBER" $SECRET; }
is "an app is itself, whatever it says" "$(own_syn good "$TCP")" refused
is "which is how it is let in" "$(own_syn mac "${AT[other]}")" accepted
PLAIN=$(counted n2 nodes-without-option)
is "and if it says nothing, nobody hears it" "$(own_syn short "${AT[other]}") $(ask evil "$PYTHON" "$SRC/syn.py" none "$(node_addr n1 evil)" "${AT[other]}" 7000 "${AT[other]}" 7000 "$NUMBER" 00000000000000000000000000000000 1)" "nothing nothing"
is "least of all as its node" "$(counted n2 nodes-without-option)" "$PLAIN"
is "no app goes to a node's port by itself" "$(ask evil "$BIN/tcp" connect 4 "$LAN.12" "$VIA")" "error connect ECONNREFUSED"

# --- a machine on the way that takes the option away ---------------------------------------------------------

ok "one is put there" in_ns n1 tc filter add dev eth0 egress bpf da object-pinned "$STRIP"
for to in private host; do
	like "without the option the private client is its node ($to)" \
		"$(ask c-private "$BIN/tcp" connect 4 "${AT[tcp-$to]}" 7000)" " from-$to you=$LAN.11:[0-9]+ me=${AT[tcp-$to]}:7000"
done
is "whom a rule refuses" "$(ask c-private "$BIN/tcp" connect 4 "${AT[other]}" 7000)" "error connect ECONNREFUSED"
ok "and it is noticed" [ "$(counted n2 nodes-without-option)" -ge $((PLAIN + 3)) ]
in_ns n1 tc filter del dev eth0 egress
rm -f "$STRIP"
like "with it the client is itself again" "$(ask c-private "$BIN/tcp" connect 4 "${AT[other]}" 7000)" " another you=$ME:"

# --- connections that stay ---------------------------------------------------------------------------------

# flows_of NODE ID: how many connections are known of that app
flows_of() { bpftool -j map dump pinned "/sys/fs/bpf/${NODE_INST[$1]}/map_across_slots" |
	jq --arg app "$(printf '%02x%02x' $(($2 & 255)) $(($2 >> 8)))" '[.[].key[0:2] | map(.[2:]) | join("") | select(. == $app)] | length'; }
on n1
for to in private host; do
	run_app --net private --name "stays-$to" -- "$PYTHON" -u "$SRC/stay.py" "${AT[tcp-$to]}" 7000 0
	STAYS+=("$APP") OUTS+=("$OUT")
done
run_app --net private --name brief -- "$PYTHON" -u "$SRC/stay.py" "${AT[other]}" 7000 0
BRIEF=$APP
ok "connections stay" wait_for "grep -q 'still tcp' '$OUT'"
conns() { ax_in "${NODE_INST[$1]}" get conns -o json | jq -c ".[] | select(.local_name == \"$2\") | [.local, .remote, .remote_port, .remote_name]"; }
ok "they are shown with their apps' addresses: at the client" \
	wait_for 'conns n1 brief | grep -qF "[\"$(node_addr n1 brief)\",\"${AT[other]}\",7000,\"other\"]"'
ok "and at the server" wait_for 'conns n2 other | grep -qE "\"${AT[other]}\",\"$(node_addr n1 brief)\",[0-9]+,\"brief\""'
ID=$(number brief)
is "one is known of its app" "$(flows_of n1 "$ID")" 1
kill "$BRIEF"
ok "and none when that has ended" wait_for '[ "$(flows_of n1 "$ID")" = 0 ]'
on n2
ID=$(ax_in "${NODE_INST[n2]}" get apps -o json other | jq '.[0].id')
ok "so it is with servers" [ "$(flows_of n2 "$ID")" -gt 0 ]
ok "(it ends)" ax stop other
ok "whose connections go with them" wait_for '[ "$(flows_of n2 "$ID")" = 0 ]'

# goes_on: each of those that stay has been answered since
goes_on() {
	local out n
	for out in "${OUTS[@]}"; do
		n=$(grep -c "still tcp" "$out")
		wait_for "[ \"\$(grep -c 'still tcp' '$out')\" -gt $((n + 1)) ]" || return 1
	done
}
ok "others go on" goes_on
for node in n1 n2; do
	on $node
	agent_kill9
	NODE_AGENT[$node]=
	ok "without $node's agent, too" goes_on
	[ $node = n1 ] || like "and new ones come about" \
		"$(ask c-private "$BIN/tcp" connect 4 "${AT[tcp-host]}" 7000)" " from-host you=$ME:"
	node_again $node
	ok "the next one has the way again" wait_for -t 30 "[ \"\$(node_state $node .ways.routes)\" = 1 ]"
done
ok "they know each other again" wait_for -t 30 "node_knows n1 tcp-private && node_knows n2 c-private"
ok "all goes on" goes_on
is "no connection was lost" "$(grep -ch '^tcp ' "${OUTS[@]}" | tr '\n' ' ')" "1 1 "
like "and new ones come about as ever" "$(ask c-private "$BIN/tcp" connect 4 "${AT[tcp-host]}" 7000)" " from-host you=$ME:"

stop_apps
nodes_flush n1 n2
nodes_end n1 n2 out
done_testing
