#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 300
# beside others
# Nodes with an etcd of three members: one is killed, the leader is, all are and come back; connections between
# apps go on all the time, no lease is lost while a majority is there, and what happens is known on both sides.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
need python3
build_c tcp

declare -A MEMBER
# member N: with what it had on its disk
member() {
	local all='' i
	for i in 1 2 3; do all+=${all:+,}m$i=http://127.0.0.1:239$i; done
	bg "$T/etcd.$1" etcd --name "m$1" --data-dir "$T/etcd.$1.data" --listen-client-urls "http://$LAN.1:238$1" \
		--advertise-client-urls "http://$LAN.1:238$1" --listen-peer-urls "http://127.0.0.1:239$1" \
		--initial-advertise-peer-urls "http://127.0.0.1:239$1" --initial-cluster "$all" \
		--heartbeat-interval 100 --election-timeout 1000
	MEMBER[$1]=$BG
}
is_well() { curl -sf --max-time 5 "http://$LAN.1:238$1/health" | grep -q true; }
member_kill9() {
	kill -KILL "${MEMBER[$1]}"
	wait "${MEMBER[$1]}" 2>/dev/null
}
leader() {
	local i
	for i in 1 2 3; do
		curl -sf --max-time 5 -d '{}' "http://$LAN.1:238$i/v3/maintenance/status" |
			jq -e '.leader == .header.member_id' >/dev/null && echo "$i"
	done
}
# asked NODE: the member that it talks to
asked() { node_state "$1" .member | tail -c 2; }
# goes_on: an app of n1 comes and is known at n2, and its end, too
goes_on() {
	on n1
	serve 7100 --name "$1" -- "$BIN/tcp" listen 4 0.0.0.0 7100 "$1"
	ok "$2: an app that comes is known" wait_for -t 60 "node_knows n2 $1"
	stop_app "$APP"
	ok "and its end" wait_for -t 60 "! node_knows n2 $1"
}
# Echoes on one connection all the time; each is a byte of a file.
cat >"$T/beat.py" <<'PY'
import socket, sys, time

s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
f = s.makefile("rb")
f.readline()
while True:
    s.sendall(b"beat\n")
    if f.readline() != b"beat\n":
        sys.exit("the connection is gone")
    with open(sys.argv[3], "a") as beats:
        beats.write(".")
    time.sleep(0.05)
PY
beats() {
	local was
	was=$(stat -c %s "$T/beats")
	wait_for -t 60 "[ \"\$(stat -c %s '$T/beats')\" -ge $((was + 3)) ]"
}

lan_make
for i in 1 2 3; do member $i; done
for i in 1 2 3; do wait_for -t 60 "is_well $i" || bail_out "etcd does not start: $(tail -n 3 "$T/etcd.$i")"; done
CLUSTER='  routes: direct'
ETCD_URL="http://$LAN.1:2381\", \"http://$LAN.1:2382\", \"http://$LAN.1:2383"
node_make n1 11
node_make n2 12
node_start n1
node_start n2
ok "each node has a way to the other one" wait_for -t 60 '[ "$(node_routes n1)" = 1 ] && [ "$(node_routes n2)" = 1 ]'
LEASES="$(node_state n1 .lease) $(node_state n2 .lease)"
on n2
serve 7000 --name server -- "$BIN/tcp" listen 4 0.0.0.0 7000 server
ok "n1 knows it" wait_for -t 30 'node_knows n1 server'
touch "$T/beats"
chmod 666 "$T/beats"
on n1
run_app --name beat -- "$PYTHON" "$T/beat.py" "$(node_addr n2 server)" 7000 "$T/beats"
BEAT=$APP
run_app --name from -- sleep 1000
ok "and n2 knows one of n1" wait_for -t 30 'node_knows n2 from'
ok "a connection between the nodes is open" beats

FIRST=$(asked n1)
member_kill9 "$FIRST"
ok "when the member that a node talks to is killed it takes another" wait_for -t 60 '[ "$(node_state n1)" = connected ] && [ "$(asked n1)" != "$FIRST" ]'
goes_on one "with two members"
member "$FIRST"
ok "it comes back" wait_for -t 60 "is_well $FIRST"
LEADER=$(leader)
member_kill9 "$LEADER"
ok "the leader is killed, and there is another one" wait_for -t 60 '[ -n "$(leader)" ]'
goes_on two "with another leader"
is "no lease was lost" "$(node_state n1 .lease) $(node_state n2 .lease)" "$LEASES"
member "$LEADER"
ok "it comes back, too" wait_for -t 60 "is_well $LEADER"

for i in 1 2 3; do member_kill9 $i; done
ok "all are killed: both nodes say so" wait_for -t 60 '[ "$(node_state n1) $(node_state n2)" = "partitioned partitioned" ]'
ok "the connection goes on" beats
on n1
like "and new ones come about" \
	"$(timeout 20 "$AX" --instance "$INST" exec from -- "$BIN/tcp" connect 4 "$(node_addr n2 server)" 7000 2>&1)" " server you="
serve 7101 --name alone -- "$BIN/tcp" listen 4 0.0.0.0 7101 alone
for i in 1 2 3; do member $i; done
ok "all are back: both nodes are connected" wait_for -t 90 '[ "$(node_state n1) $(node_state n2)" = "connected connected" ]'
ok "what began meanwhile is known" wait_for -t 60 'node_knows n2 alone'
goes_on three "with all of them"
ok "the connection has gone on all the time" beats
ok "its program, too" alive "$BEAT"

stop_apps
nodes_flush n1 n2
for i in 1 2; do member_kill9 $i; done
ETCD=${MEMBER[3]}
nodes_end n1 n2
done_testing
