#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 240
# beside others
# An etcd whose disk is full takes nothing more: apps of each node go on, new ones too, what others know of them
# stays; it is said, and written as soon as there is room again.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
build_c tcp

# fill: writes until etcd takes no more; what it says last
fill() {
	local i said=
	for ((i = 0; i < 40; i++)); do
		said=$(jq -nc --arg k "/fill/$i" '{key: ($k | @base64), value: ("x" * 900000 | @base64)}' |
			curl -sS --max-time 30 --data-binary @- "$ETCD_URL/v3/kv/put")
		[[ $said != *"space exceeded"* ]] || break
	done
	echo "$said"
}
post() { curl -sS --max-time 30 -d "$2" "$ETCD_URL/v3/$1"; }

ETCD_WITH=(--quota-backend-bytes 8000000)
CLUSTER='  routes: direct'
nodes_with_ways 2
on n1
serve 7000 --name before -- "$BIN/tcp" listen 4 0.0.0.0 7000 before
ok "n2 knows an app of n1" wait_for 'node_knows n2 before'

on n2
run_app --name asks -- sleep 1000
ok "and n1 one of n2" wait_for 'node_knows n1 asks'
on n1
run_app --name ends -- sleep 1000
ENDS=$APP
ok "n2 knows another one" wait_for 'node_knows n2 ends'

like "etcd's disk is full" "$(fill)" "space exceeded"
on n1
serve 7001 --name meanwhile -- "$BIN/tcp" listen 4 0.0.0.0 7001 meanwhile
like "an app starts all the same, with an address of the block" "$(node_addr n1 meanwhile)" "^10\.80\."
like "and is reached on its node" "$(at n1 "$BIN/tcp" connect 4 "$(node_addr n1 meanwhile)" 7001)" " meanwhile "
ok "the node says that etcd has no room" wait_for -t 60 'ax_in "${NODE_INST[n1]}" status | grep -q "space exceeded"'
like "with what is to be done" "$(ax_in "${NODE_INST[n1]}" status)" "space exceeded.*(compact|quota|defrag)"
like "and so does the doctor" "$(ax_in "${NODE_INST[n1]}" doctor --cluster 2>&1 | tr '\n' ' ')" "space exceeded|no room|NOSPACE"
sleep 12 # longer than a lease, which is kept without a write
is "no node is taken for away" "$(ax_in "${NODE_INST[n2]}" get nodes -o json | jq -r '.[] | "\(.name) \(.state)"' | tr '\n' ';')" "n1 up;n2 up;"
ok "what n2 knows stays" node_knows n2 before
# reached NAME PORT: an app of n2 that n1 knows has its answer
reached() {
	timeout 20 "${NODE_AX[n2]}" --instance "${NODE_INST[n2]}" exec asks -- "$BIN/tcp" connect 4 "$(node_addr n1 "$1")" "$2" 2>&1
}
like "and is reached" "$(reached before 7000)" " before "
on n1
stop_app "$ENDS"
ok "an end, which needs no room, is told all the same" wait_for -t 60 '! node_knows n2 ends'
is "what is wrong is logged once" "$(grep -c "does not take this node's apps" "$T/${NODE_INST[n1]}.log")" 1

# room again: what is old is thrown away, as etcd's manual says
lan_etcd deleterange '{key: ("/fill/" | @base64), range_end: ("/fill0" | @base64)}' >"$T/deleted"
post kv/compaction "{\"revision\": \"$(jq -r .header.revision "$T/deleted")\"}" >"$T/compacted"
post maintenance/defragment '{}' >"$T/defragmented"
post maintenance/alarm '{"action": "GET"}' | jq -c '.alarms[] | {action: "DEACTIVATE"} + .' >"$T/alarms"
while read -r alarm; do post maintenance/alarm "$alarm"; done <"$T/alarms" >"$T/disarmed"
ok "as soon as it has, the app is written" wait_for -t 60 'node_knows n2 meanwhile'
like "and is reached from the other node" "$(reached meanwhile 7001)" " meanwhile "
ok "nothing is said any more" wait_for -t 60 '! ax_in "${NODE_INST[n1]}" status | grep -q "space exceeded"'

stop_apps
nodes_flush n1 n2
nodes_end n1 n2
done_testing
