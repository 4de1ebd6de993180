#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 300
# beside others
# An agent that starts while etcd is away knows the other nodes, their apps and the ways to them as the one before
# it did, and says so: connections go on and new ones come about, until etcd says what has changed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
need python3 dig
build_c tcp

# A connection on which something comes back all the time: each time is a byte of a file.
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
# goes_on FILE: something more comes back, three times at least
goes_on() {
	local was
	was=$(stat -c %s "$1" 2>/dev/null || echo 0)
	wait_for -t 60 "[ \"\$(stat -c %s '$1')\" -ge $((was + 3)) ]"
}
# others NODE: the apps of other nodes as it knows them
others() {
	ax_in "${NODE_INST[$1]}" get apps -A -o json |
		jq -r --arg n "$1" '.[] | select(.node != $n) | "\(.node) \(.name) \(.state)"' | sort | tr '\n' ' '
}
# reaches APP NAME: an app of n1 (which n2 knows: of new ones it is not told without etcd) has an answer of another
reaches() {
	local ip
	ip=$(timeout 20 "$AX" --instance "$INST" exec "$1" -- dig +short +time=10 +tries=1 "$2.ax.internal") || return 1
	timeout 20 "$AX" --instance "$INST" exec "$1" -- "$BIN/tcp" connect 4 "$ip" 7000 | grep -q " $2 "
}
# memory NODE: what its agent left
memory() {
	echo "/run/ax/${NODE_INST[$1]}/cluster-others"
}
# etcd_away: it ends, and n1's agent is killed
etcd_away() {
	end "$ETCD"
	on n1
	agent_kill9
}

CLUSTER=$'  routes: direct\n  dead-after: 2s'
nodes_with_ways 2
on n2
for mode in private host; do
	serve 7000 --net $mode --name "to-$mode" -- "$BIN/tcp" listen 4 0.0.0.0 7000 "to-$mode"
done
serve 7001 --name brief -- "$BIN/tcp" listen 4 0.0.0.0 7001 brief
BRIEF=$APP
ok "n1 knows the apps of n2" wait_for -t 30 "node_knows n1 to-private to-host brief"
on n1
for mode in private host; do
	: >"$T/beats.$mode"
	chmod 666 "$T/beats.$mode"
	run_app --net private --name "from-$mode" -- "$PYTHON" "$T/beat.py" "$(node_addr n2 "to-$mode")" 7000 "$T/beats.$mode"
	ok "a private app is connected to a $mode one" goes_on "$T/beats.$mode"
done
ok "what n1 knows is kept" wait_for -t 30 'grep -q "\"to-host\"" "$(memory n1)" && grep -q "\"brief\"" "$(memory n1)"'
is "for nobody else to read" "$(stat -c '%U %a' "$(memory n1)")" "root 600"
is "and nothing of its own is" "$(grep -c '"from-' "$(memory n1)")" 0

# --- an agent that starts without etcd ------------------------------------------------------------------------

# knows_all HOW: n1, whose agent has just started
knows_all() {
	is "$1: it says that etcd is away" "$(node_state n1)" partitioned
	is "and that it goes by memory" "$(node_state n1 '.remembered | "\(.nodes) \(.apps)"')" "1 3"
	like "to people, too" "$(ax_in "${NODE_INST[n1]}" status)" "1 nodes, 3 apps by memory, as they were .* ago"
	is "it knows the apps of n2" "$(others n1)" "n2 brief unknown n2 to-host unknown n2 to-private unknown "
	is "and since when it does" "$(ax_in "${NODE_INST[n1]}" get apps -A -o json |
		jq '[.[] | select(.node == "n2") | .remembered > 1600000000] | all')" true
	is "and the node" "$(ax_in "${NODE_INST[n1]}" get nodes -o json |
		jq -r '.[] | select(.name == "n2") | "\(.state) \(.remembered > 1600000000) \(.blocks | length)"')" "unknown true 1"
	is "the route stands" "$(node_routes n1)" 1
	for mode in private host; do
		ok "connections go on ($mode)" goes_on "$T/beats.$mode"
		ok "new ones come about, by the name ($mode)" wait_for 'reaches from-private "to-$mode"'
	done
	like "an address that n2 has is refused" "$(on n1; in_app --ip "$(node_addr n2 to-host)" -- true 2>&1)" "to-host.*n2|block of the node n2"
}

etcd_away
node_again n1
knows_all "an agent after one that was killed"
agent_kill9
node_again n1
knows_all "and one after that"
node_stop n1
node_again n1
knows_all "and one after another that ended well"
agent_kill9
printf '%s\n' 'garbage' '0 0 1 /ax/east/nodes/n8 {"v":1,"name":"n9"}' >>"$(memory n1)"
node_again n1
knows_all "lines that are none are left out"
like "and are told of" "$(node_state n1 .refused)" '^2$'
on n2
stop_app "$BRIEF"
is "what ends while etcd is away is not known" "$(others n1 | grep -c brief)" 1
lan_etcd_start
ok "etcd is back: what it says holds" wait_for -t 60 '[ "$(others n1)" = "n2 to-host running n2 to-private running " ]'
is "and nothing is by memory any more" "$(node_state n1 .remembered)" null
for mode in private host; do
	ok "connections go on ($mode)" goes_on "$T/beats.$mode"
done

# --- an etcd that has lost all ---------------------------------------------------------------------------------

etcd_away
kill -STOP "${NODE_AGENT[n2]}"
rm -rf "$T/etcd"
lan_etcd_start
node_again n1
ok "n1 is there again" wait_for -t 60 '[ "$(node_state n1)" = connected ] && [ "$(node_state n1 .current)" = true ]'
is "what an empty etcd does not say is known all the same" "$(others n1 | grep -o 'n2 to-[a-z]*' | tr '\n' ' ')" "n2 to-host n2 to-private "
for mode in private host; do
	ok "connections go on ($mode)" goes_on "$T/beats.$mode"
done
kill -CONT "${NODE_AGENT[n2]}"
ok "n2 writes it anew" wait_for -t 60 '[ "$(others n1)" = "n2 to-host running n2 to-private running " ]'

# --- a node that is gone -----------------------------------------------------------------------------------------

ok "that is kept, too" wait_for -t 30 'grep -q "\"to-host\"" "$(memory n1)"'
etcd_away
on n2
agent_kill9
NODE_AGENT[n2]=
node_again n1
is "a node that goes while etcd is away is known" "$(node_state n1 .remembered.nodes) $(node_routes n1)" "1 1"
agent_kill9
cp "$(memory n1)" "$T/memory"
head -c 100000 /dev/urandom >"$(memory n1)"
node_again n1
is "of a file that is none nothing is known" "$(node_state n1 .remembered) $(others n1)" "null "
is "but what the kernel has is not undone" "$(node_routes n1)" 1
agent_kill9
cp "$T/memory" "$(memory n1)"
node_again n1
lan_etcd_start
ok "when etcd is back and its lease over, it is gone after dead-after" wait_for -t 90 '[ "$(node_routes n1)" = 0 ] && [ "$(others n1)" = "" ]'
stop_apps
node_again n2
node_stop n2
node_stop n1

# --- and where nothing is routed --------------------------------------------------------------------------------

CLUSTER='  routes: translate'
node_start n1
node_start n2
on n2
serve 7000 --net host --name across -- "$BIN/tcp" listen 4 0.0.0.0 7000 across
on n1
run_app --net host --name from -- sleep 1000
ok "by translation n1 reaches n2" wait_for -t 60 'reaches from across'
ok "it is kept" wait_for -t 30 'grep -q "\"across\"" "$(memory n1)"'
etcd_away
node_again n1
ok "without etcd it does so, too" wait_for 'reaches from across'
is "since it remembers" "$(node_state n1) $(node_state n1 .remembered.apps)" "partitioned 1"
stop_apps
lan_etcd_start
ok "etcd is back" wait_for -t 60 '[ "$(node_state n1)" = connected ] && [ "$(node_state n2)" = connected ]'

nodes_flush n1 n2
nodes_end n1 n2
done_testing
