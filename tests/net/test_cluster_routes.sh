#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# The routes between nodes: they outlive the agent, go with those whom they lead to, and leave alone what is
# somebody else's.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
build_c tcp

CLUSTER=$'  routes: direct\n  dead-after: 1s'
nodes_with_ways 2
B2=$(node_state n2 '.blocks[0]')
on n2
serve 7000 --net host --name server -- "$BIN/tcp" listen 4 0.0.0.0 7000 server
SERVER=$(node_addr n2 server)
ok "the server is known" wait_for -t 30 "node_knows n1 server"

# --- the agent dies, routes are looked after ----------------------------------------------------------------

on n1
BLOCKS="$(for i in 1 2; do node_state n$i .blocks[]; done)"
agent_kill9
is "without an agent the route stays" "$(node_routes n1)" 1
for NOBODYS in 10.80.{253..255}.0/24; do # a block that nobody has
	grep -qx "$NOBODYS" <<<"$BLOCKS" || break
done
ip -n n1 route add "$NOBODYS" via "$LAN.1" proto 97 metric "$(ip -n n1 -o route show proto 97 | sed -n 's/.* via .* metric \([0-9]*\).*/\1/p')"
node_again n1
ok "the next agent takes away what is wanted no more" wait_for -t 30 '[ "$(node_routes n1)" = 1 ] && [ "$(node_state n1)" = connected ]'
ok "and keeps what is" wait_for -t 30 "ip -n n1 route show proto 97 | grep -q '^$B2 via $LAN.12 '"
ok "apps are reached as before" wait_for -t 30 "in_app --name client -- '$BIN/tcp' connect 4 $SERVER 7000 | grep -q ^peer="
ip -n n1 route del "$B2"
ok "a route that somebody took away comes back" wait_for -t 30 '[ "$(node_routes n1)" = 1 ]'
ip -n n1 route add "${B2%.0/24}.128/25" via "$LAN.1"
ok "a foreign route in the way is told" wait_for -t 30 'ax_in "${NODE_INST[n1]}" status | grep -q "no way to $B2, a block of n2: a route to ${B2%.0/24}.128/25 by eth0 that is not ax.s is in the way"'
is "it is left alone, and ours is none" "$(ip -n n1 route show | grep -c "^${B2%0/24}")" 1
ip -n n1 route del "${B2%.0/24}.128/25"
ok "without it the way is there again" wait_for -t 30 '[ "$(node_routes n1)" = 1 ] && [ "$(node_state n1 ".ways.failed | length")" = 0 ]'

# --- a node goes -------------------------------------------------------------------------------------------

stop_apps
on n2
agent_kill9
NODE_AGENT[n2]=
ok "the route to a node that is gone goes" wait_for -t 60 '[ "$(node_routes n1)" = 0 ]'
is "that of the other one stays as it was" "$(node_routes n2)" 1
node_again n2
ok "and comes back with it" wait_for -t 60 '[ "$(node_routes n1)" = 1 ]'
node_stop n2
CLUSTER='' node_start n2
ok "without routes: direct there are none" wait_for -t 30 '[ "$(node_routes n2)" = 0 ]'

nodes_flush n1 n2
nodes_end n1 n2
done_testing
