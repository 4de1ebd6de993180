#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# A node whose agent is started again under another name is that one: the former name goes away, as the node
# that had it is there no more.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"

# states: of all nodes, as n2 has them
states() {
	ax_in "${NODE_INST[n2]}" get nodes -o json | jq -r '.[] | "\(.name) \(.state)"' | tr '\n' ';'
}

nodes_make 2
ok "two nodes are up" wait_for -t 30 '[ "$(states)" = "n1 up;n2 up;" ]'
on n1
run_app --name still -- sleep 1000
ok "one has an app" wait_for -t 30 'node_knows n2 still'
node_stop n1
node_again n1
ok "an agent with the same name goes on with its lease" wait_for -t 30 '[ "$(states)" = "n1 up;n2 up;" ]'
LEASE=$(node_state n1 .lease)
node_stop n1
sed -i 's/name: n1,/name: m1,/' "$T/${NODE_INST[n1]}.yaml"
node_again n1
ok "under another name it is that one, and the former goes away" wait_for -t 60 '[ "$(states)" = "m1 up;n1 away;n2 up;" ]'
unlike "with another lease" "$(node_state n1 .lease)" "^$LEASE\$"
ok "its app is its own under the new name" wait_for -t 30 \
	'[ "$(ax_in "${NODE_INST[n2]}" get apps -A -o json | jq -r ".[] | select(.name == \"still\" and .state == \"running\") | .node")" = m1 ]'

stop_apps
nodes_flush n1 n2
nodes_end n1 n2
done_testing
