#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Apps of other nodes are found by name: one by its address, several as a service, each for the ports at
# which it listens.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
need dig
build_c tcp

CLUSTER='  routes: direct'
nodes_with_ways 3

# --- one app ---------------------------------------------------------------------------------------

on n1
serve 7000 --name web -- "$BIN/tcp" listen 4 0.0.0.0 7000 first
A1=$(node_addr n1 web)
ok "an app of another node is found by its name, at its address" wait_for '[ "$(ask n2 web.ax.internal)" = "$A1" ]'
# (that it listens is told after that it runs)
wait_for '[ "$(ask n2 _7000._tcp.web.ax.internal SRV)" ]'
is "and its ports by SRV" "$(ask n2 _7000._tcp.web.ax.internal SRV)" "0 0 7000 web.ax.internal."
is "and its name by its address" "$(at n2 dig -x "$A1" +short)" "web.ax.internal."
is "it has no IPv6 address, and that is said" "$(at n2 dig web.ax.internal AAAA | grep -c 'status: NOERROR')" 1
is "it answers" "$(answers n2 web 7000)" first

# --- several: a service on each node -----------------------------------------------------------------

on n2
serve 7000 --name web -- "$BIN/tcp" listen 4 0.0.0.0 7000 second
WEB2=$APP
A2=$(node_addr n2 web)
BOTH="n1 web $A1;n2 web $A2;"
for i in 1 2 3; do
	ok "n$i has a service of both" wait_for "[ \"\$(backends n$i web)\" = '$BOTH' ]"
	ok "its name leads to both of them" wait_for "[ \"\$(answers n$i web 7000 20)\" = 'first second' ]"
done
is "on the nodes of its apps by their own address" "$(ask n1 web.ax.internal) $(ask n2 web.ax.internal)" "$A1 $A2"
like "the list says where they are" "$(ax_in "${NODE_INST[n3]}" get services)" "web $A1 on n1"
like "also those of the node itself" "$(ax_in "${NODE_INST[n2]}" get services)" "web $A2 on n2"

servers() { ax_in "${NODE_INST[$1]}" get servers "${@:2}"; }
ok "ax get servers has those of all nodes, if they are asked for" \
	wait_for '[ "$(servers n3 -A -o json web | jq -r ".[] | \"\(.node) \(.app) \(.proto) \(.address) \(.port)\"" | sort | tr "\n" ";")" = "n1 web tcp $A1 7000;n2 web tcp $A2 7000;" ]'
is "its own with its name" "$(servers n1 -A -o json web | jq -r '.[] | select(.since).node')" n1
like "in the table, too" "$(servers n3 -A)" "^APP +NODE +PROTO .*web +n1 +tcp +$A1 +7000 "
is "else there are none on n3" "$(servers n3 -o json)" "[]"
on n3
run_app --name held -- "$BIN/tcp" connect 4 "$A1" 7000 -k 1000
ok "a connection with the node at its other end" \
	wait_for '[ "$(ax_in "${NODE_INST[n3]}" get conns -o json | jq -r ".[] | select(.local_name == \"held\").remote_node")" = n1 ]'
stop_app "$APP"

# --- only where they listen ------------------------------------------------------------------------

cat >"$T/two.py" <<'P'
import os, socket, sys, time
def at(port):
	s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
	s.bind(("0.0.0.0", port)); s.listen(); s.settimeout(0.05); return s
name, t = sys.argv[1:3]
ports = {}
while True:
	want = {int(p) for p in open(f"{t}/{name}.ports").read().split()}
	for p in want - set(ports): ports[p] = at(p)
	for p in set(ports) - want: ports.pop(p).close()
	for s in ports.values():
		try: c, _ = s.accept()
		except socket.timeout: continue
		c.sendall(f"{name} you=\n".encode()); c.settimeout(5)
		try:
			while d := c.recv(100): c.sendall(d)
		except OSError: pass
		c.close()
P
listen_at() { # NAME PORT...: from now on
	echo "${*:2}" >"$T/$1.new"
	mv "$T/$1.new" "$T/$1.ports"
}
listen_at x 7100
listen_at y 7100
on n1
serve 7100 --name two -- "$PYTHON" "$T/two.py" x "$T"
on n2
serve 7100 --name two -- "$PYTHON" "$T/two.py" y "$T"
ok "two of a name" wait_for '[ "$(backends n3 two | tr -cd ";")" = ";;" ] && [ "$(answers n3 two 7100 20)" = "x y" ]'
listen_at x 7100 7101
ok "one of them listens at another port" wait_for '[ "$(answers n3 two 7101 10)" = x ]'
ok "all connections there go to it, also from the other one's node" wait_for '[ "$(answers n2 two 7101 10)" = x ]'
listen_at x 7101
ok "it is a backend no longer where it does not listen any more" wait_for '[ "$(answers n3 two 7100 10)" = y ]'
ok "from its own node, too" wait_for '[ "$(answers n1 two 7100 10)" = y ]'
listen_at x
ok "nor anywhere, if nowhere" wait_for '[ "$(answers n3 two 7101)" = "error connect ECONNREFUSED" ]'

# --- who waits for a name -----------------------------------------------------------------------------

on n3
run_app --wait 60s --name patient -- sh -c "exec '$BIN/tcp' connect 4 \"\$(dig +short +time=55 +tries=1 later.ax.internal)\" 7200"
# shellcheck disable=SC2034 # wait_for sees SAID
PATIENT=$APP SAID=$OUT
wait_for 'ax get apps -o json patient | jq -e ".[0].state == \"running\""'
on n1
run_app --name later -- "$PYTHON" -c 'import socket, time
time.sleep(1); s = socket.socket(); s.bind(("0.0.0.0", 7200)); s.listen(); c, a = s.accept()
c.sendall(b"waited-for you=\n"); c.sendall(c.recv(100)); time.sleep(1000)'
ok "a client that waits has its answer when an app of another node listens" \
	wait_for -t 40 'grep -q waited-for "$SAID"'
end "$PATIENT"
is "who does not wait is told at once that there is no such name" "$(at n3 dig nobody.ax.internal | grep -c NXDOMAIN)" 1

# --- services of the config -----------------------------------------------------------------------------

on n3
{ cat "$T/$INST.yaml"; printf '%s\n' 'services:' '  front: {ports: [{port: 80, target: 7000}], backends: [{app: web}]}'; } >"$T/front.yaml"
ok "a service of the config takes apps by their name" ax config apply "$T/front.yaml"
ok "of all nodes" wait_for '[ "$(backends n3 front)" = "$BOTH" ] && [ "$(answers n3 front 80 20)" = "first second" ]'

# --- who is near may be preferred ------------------------------------------------------------------------

on n2
sed 's/routes: direct/&\n  prefer: local/' "$T/$INST.yaml" >"$T/local.yaml"
ok "a node may prefer its own apps" ax config apply "$T/local.yaml"
ok "then the others wait" wait_for '[ "$(backends n2 web)" = "n1 web $A1 far;n2 web $A2;" ] && [ "$(answers n2 web 7000 20)" = second ]'
end "$WEB2"
ok "until there are none of its own" wait_for '[ "$(backends n2 web)" = "n1 web $A1;" ] && [ "$(answers n2 web 7000 3)" = first ]'

stop_apps
nodes_flush n1 n2 n3
nodes_end n1 n2 n3
done_testing
