#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Host-mode apps of two nodes reach each other where nothing but the nodes' addresses is routed, with
# their own addresses at both ends; and nobody is believed who does not prove whose connection it is.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
need "$PYTHON" nginx bpftool "${CLANG:-clang}"
build_c tcp udp
build strip.bpf.o strip.bpf.c "${CLANG:-clang}" -target bpf -O2 -g -idirafter "/usr/include/$(uname -m)-linux-gnu" -c "$SRC/strip.bpf.c" -o %o
STRIP=/sys/fs/bpf/strip-$INST
bpftool prog load "$BIN/strip.bpf.o" "$STRIP" type classifier || bail_out "the kernel does not load strip.bpf.o"

CLUSTER='  routes: translate'
nodes_with_ways 2
like "ax status says so" "$(ax_in "${NODE_INST[n1]}" status)" "routes: translate, to 1 blocks of other nodes"
is "no block is routed" "$(node_routes n1) $(node_routes n2)" "0 0"

on n2
serve 7000 --net host --name tcp -- "$BIN/tcp" listen 4 0.0.0.0 7000 server
serve 7000 --net host --name other -- "$BIN/tcp" listen 4 0.0.0.0 7000 another
serve 7000 --net host --labels zone=red --name red -- "$BIN/tcp" listen 4 0.0.0.0 7000 red
serve 80 --net host --name web -- nginx -c "$(nginx_conf web 1 'server { listen 80; location / { return 200 "$remote_addr\n"; } }')"
on n1
run_app --net host --name c -- sleep 1000
run_app --net private --egress --name p -- sleep 1000
launched c p
ok "n1 knows the apps of n2" wait_for -t 30 "node_knows n1 tcp other red web"
ok "and n2 those of n1" wait_for -t 30 "node_knows n2 c p"
ME=$(node_addr n1 c) TCP=$(node_addr n2 tcp) OTHER=$(node_addr n2 other) RED=$(node_addr n2 red)

# ask COMMAND...: by the client on n1, or by $FROM
ask() { timeout 20 "${NODE_AX[n1]}" --instance "${NODE_INST[n1]}" exec "${FROM:-c}" -- "$@" 2>&1; }
# counted NODE COUNTER
counted() { ax_in "${NODE_INST[$1]}" status -o json | jq ".counters.\"$2\""; }
BOTH="you=$ME:[0-9]+ me=$TCP:7000"

like "both ends see each other's own address" "$(ask "$BIN/tcp" connect 4 "$TCP" 7000)" \
	"^peer=$TCP:7000 local=$ME:[0-9]+ server $BOTH"
like "an IPv6 socket, too" "$(ask "$BIN/tcp" connect 6 "::ffff:$TCP" 7000)" \
	"^peer=.*$TCP\]?:7000 local=.*$ME\]?:[0-9]+ server $BOTH"
like "servers at one port are told from each other" "$(ask "$BIN/tcp" connect 4 "$OTHER" 7000)" " another you=$ME:"
is "nginx sees who asks by name" "$(ask curl -sS --max-time 10 http://web/)" "$ME"
like "whose server it is says a service, too" "$(ask sh -c 'exec "$1" connect 4 "$(getent ahostsv4 tcp | head -n 1 | cut -d " " -f 1)" 7000' - "$BIN/tcp")" " $BOTH"
like "labels hold between nodes" "$(ask "$BIN/tcp" connect 4 "$RED" 7000)" "^error connect "
is "a port that nobody serves is refused" "$(ask "$BIN/tcp" connect 4 "$TCP" 7001)" "error connect ECONNREFUSED"
for how in connected sendto; do
	like "UDP ($how) is told that this is not for it" "$(ask "$BIN/udp" ask $how 4 "$TCP" 7000)" "^error (connect|sendto) Protocol not supported$"
done
is "these are counted" "$(counted n1 nodes-refused)" 2
is "a socket that has a port already is refused" "$(ask "$BIN/tcp" connect 4 "$TCP" 7000 -b 0.0.0.0 7777)" "error connect EADDRNOTAVAIL"

on n1
run_app --net host --name stays -- "$BIN/tcp" connect 4 "$TCP" 7000 -k 1000
STAYS=$APP
conns() { ax_in "${NODE_INST[$1]}" get conns -o json | jq -c ".[] | select(.local_name == \"$2\") | [.local, .remote, .remote_port, .remote_name]"; }
ok "connections are shown with their apps' addresses: at the client" \
	wait_for 'conns n1 stays | grep -qF "[\"$(node_addr n1 stays)\",\"$TCP\",7000,\"tcp\"]"'
ok "and at the server" wait_for 'conns n2 tcp | grep -qE "\"$TCP\",\"$(node_addr n1 stays)\",[0-9]+,\"stays\""'

# --- rules --------------------------------------------------------------------------------------------

on n2
{ cat "$T/$INST.yaml"; printf 'policy:\n  rules:\n    - {deny: {from: c, to: tcp}}\n    - {deny: {from: %s.11/32, to: other}}\n' "$LAN"; } >"$T/rules.yaml"
ok "the server's node gets rules" ax config apply "$T/rules.yaml"
is "a rule there names the client: it is refused" "$(ask "$BIN/tcp" connect 4 "$TCP" 7000)" "error connect ECONNREFUSED"
like "one that names its node is not about it" "$(ask "$BIN/tcp" connect 4 "$OTHER" 7000)" " another you=$ME:"

# --- who is not believed ----------------------------------------------------------------------------------

# via APP: n2's port for it
via() { lan_etcd range '{key: ("/ax/east/apps/n2/" | @base64), range_end: ("/ax/east/apps/n20" | @base64)}' |
	jq -r --arg a "$1" '.kvs[].value | @base64d | fromjson | select(.name == $a) | .ports[0].via'; }
secret() { lan_etcd range '{key: ("/ax/east/key" | @base64)}' | jq -r '.kvs[0].value | @base64d | fromjson | "\(.key) \(.id)"'; }
NUMBER=$(ax_in "${NODE_INST[n1]}" get apps -o json c | jq '.[0].id')
VIA=$(via other) SECRET=$(secret)
# syn FROM SOURCE HOW
# shellcheck disable=SC2086 # two words
syn() { in_ns "$1" "$PYTHON" "$SRC/syn.py" "$3" "$2" "$LAN.12" "$VIA" "$OTHER" 7000 "$NUMBER" $SECRET; }
CAME=$(counted n2 nodes-came)
is "what others make by the description is understood" "$(syn n1 "$LAN.11" good)" accepted
is "it is counted" "$(counted n2 nodes-came)" $((CAME + 1))
FORGED=$(counted n2 nodes-forged)
machine_make out 66
HOWS=(mac number seq server id short)
for how in "${HOWS[@]}"; do syn n1 "$LAN.11" "$how" >"$T/syn.$how" & done
syn out "$LAN.66" stolen >"$T/syn.stolen" &
for how in "${HOWS[@]}" stolen; do wait_for -t 60 '[ -s "$T/syn.$how" ]'; done
for how in "${HOWS[@]}"; do
	is "a SYN that says what it has not signed is not answered ($how)" "$(cat "$T/syn.$how")" nothing
done
is "nor is a machine outside the cluster, with the cluster's key" "$(cat "$T/syn.stolen")" nothing
is "all that is counted" "$(counted n2 nodes-forged)" $((FORGED + 7))
is "and such a one that says nothing is refused" "$(syn out "$LAN.66" none)" refused
for from in c p; do
	is "no app goes to such a port by itself, as if it were a program of its node's ($from)" \
		"$(FROM=$from ask "$BIN/tcp" connect 4 "$LAN.12" "$VIA")" "error connect ECONNREFUSED"
done
like "which one may that is no app" "$(in_ns n1 timeout 20 "$BIN/tcp" connect 4 "$LAN.12" "$(via tcp)" 2>&1)" \
	" server you=$LAN.11:[0-9]+ me=$TCP:7000"

# What needs the SYN's options for itself leaves no room to say who asks.
cat >"$T/full.py" <<'PY'
import socket, sys
how, ip = sys.argv[1:]
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262 if how == "mptcp" else 0)
s.settimeout(10)
try:
    if how == "fastopen-connect":
        s.setsockopt(socket.IPPROTO_TCP, 30, 1)
    if how == "fastopen":
        s.sendto(b"hi", socket.MSG_FASTOPEN, (ip, 7000))
    else:
        s.connect((ip, 7000))
    print(how, s.getpeername())
except OSError as e:
    print("error", e.strerror)
PY
for how in fastopen fastopen-connect mptcp; do
	like "a connection whose SYN has no room for its name is refused ($how)" \
		"$(ask "$PYTHON" "$T/full.py" $how "$TCP")" "^error (Operation|Protocol) not (supported|available)"
done

# --- a machine on the way that takes the option away --------------------------------------------------------

PLAIN=$(counted n2 nodes-without-option)
ok "one is put there" in_ns n1 tc filter add dev eth0 egress bpf da object-pinned "$STRIP"
like "without the option the client is its node" "$(ask "$BIN/tcp" connect 4 "$TCP" 7000)" " server you=$LAN.11:[0-9]+ me=$TCP:7000"
is "whom a rule refuses" "$(ask "$BIN/tcp" connect 4 "$OTHER" 7000)" "error connect ECONNREFUSED"
ok "and it is noticed" [ "$(counted n2 nodes-without-option)" -ge $((PLAIN + 2)) ]
in_ns n1 tc filter del dev eth0 egress
rm -f "$STRIP"
like "with it the client is itself again" "$(ask "$BIN/tcp" connect 4 "$OTHER" 7000)" " another you=$ME:"

# --- another key, and another agent -----------------------------------------------------------------------------

lan_etcd deleterange '{key: ("/ax/east/key" | @base64)}' >/dev/null
ok "a key that is deleted is followed by another one" wait_for '[ "$(secret)" != "$SECRET" ] && [ -n "$(secret)" ]'
like "which is used" "$(ask "$BIN/tcp" connect 4 "$OTHER" 7000)" " another you=$ME:"
node_stop n2
like "without an agent all goes on" "$(ask "$BIN/tcp" connect 4 "$OTHER" 7000)" " another you=$ME:"
node_again n2
ok "the next one has the way again" wait_for -t 30 '[ "$(node_state n2 .ways.routes)" = 1 ] && node_knows n2 c'
is "servers keep their ports" "$(via other)" "$VIA"
like "and are reached" "$(ask "$BIN/tcp" connect 4 "$OTHER" 7000)" " another you=$ME:"
ok "connections have gone on all the time" alive "$STAYS"

# --- ports of nodes, also when an agent does not know them ---------------------------------------------------

kill -STOP "$ETCD"
on n1
agent_kill9
node_again n1
for from in c p; do
	is "an agent that begins while etcd is away lets no app go to a node's port by itself ($from)" \
		"$(FROM=$from ask timeout 20 "$BIN/tcp" connect 4 "$LAN.12" "$VIA")" "error connect ECONNREFUSED"
done
kill -CONT "$ETCD"
ok "etcd is back" wait_for -t 60 '[ "$(node_state n1 .ways.routes)" = 1 ]'
on n2
agent_kill9
NODE_AGENT[n2]=
ok "a node goes" wait_for -t 60 '[ "$(node_state n1 .ways.routes)" = 0 ]'
for from in c p; do
	is "nor does one that knows it no more ($from)" \
		"$(FROM=$from ask timeout 20 "$BIN/tcp" connect 4 "$LAN.12" "$VIA")" "error connect ECONNREFUSED"
done
node_again n2

stop_apps
nodes_flush n1 n2
nodes_end n1 n2 out
done_testing
