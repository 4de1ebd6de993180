#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# A config for all nodes: judged before it is stored, held by every node beside its own config, kept by an
# agent that starts while etcd is away, rolled back; of two that are applied at the same time one is stored;
# a node that cannot have one says so and keeps what it had.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
need dig
build_c tcp

CLUSTER='  routes: direct'
nodes_with_ways 3

# file NAME: a config for all, from stdin
file() { cat >"$T/$1.yaml"; }
# config_on NODE WORD... : ax config there
config_on() { ax_in "${NODE_INST[$1]}" config "${@:2}"; }
# has NODE REVISION: that one holds there, and nothing is wrong with it
has() { [ "$(node_state "$1" '.config | "\(.revision) \(.why)"')" = "$2 null" ]; }
all_have() { has n1 "$1" && has n2 "$1" && has n3 "$1"; }
# services NODE: those of the config, its own or all nodes'
services() { ax_in "${NODE_INST[$1]}" get services -o json | jq -r '[.[] | select(.declared).name] | sort | join(" ")'; }
revisions() { config_on n1 history --cluster -o json | jq -r '[.[].revision] | join(" ")'; }
# reach NODE APP SERVICE: who answers an app of that name there
reach() {
	local ip
	ip=$(ask "$1" "$3.ax.internal")
	on "$1"
	in_app --name "$2" -- "$BIN/tcp" connect 4 "$ip" 80 2>&1 | sed 's/^peer=[^ ]* local=[^ ]* \([^ ]*\) .*/\1/'
}

# --- one for all -------------------------------------------------------------------------------------------

file one <<'Y'
services:
  front: {ports: [{port: 80, target: 7000}], backends: [{app: web}]}
policy:
  rules: [{deny: {from: guest, to: front}}]
Y
file two <<'Y'
services:
  front: {ports: [{port: 80, target: 7000}], backends: [{app: web}]}
  second: {ports: [{port: 80, target: 7000}], backends: [{app: web}]}
Y
on n1
serve 7000 --name web -- "$BIN/tcp" listen 4 0.0.0.0 7000 first
is "there is none at first" "$(config_on n2 history --cluster)" "no config was applied to the cluster"
ok "what is for all is tried without a change" config_on n2 apply --cluster --dry-run "$T/one.yaml"
is "nothing was stored by that" "$(revisions)" ""
ok "it is applied" config_on n2 apply --cluster "$T/one.yaml"
ok "all nodes have it" wait_for 'all_have 1'
is "its services are there" "$(services n1) $(services n2) $(services n3)" "front front front"
ok "they are reached" wait_for '[ "$(reach n3 friend front)" = first ]'
is "its rules hold" "$(reach n3 guest front)" "error connect EACCES"
# (what one node has comes to others by etcd)
wait_for 'ax_in "${NODE_INST[n1]}" get nodes | grep -q "^n3 .* 1"'
like "a list says who has which" "$(ax_in "${NODE_INST[n1]}" get nodes)" "n3 .* 1"
like "a node's own is not taken for it" "$(config_on n3 apply "$T/${NODE_INST[n3]}.yaml" 2>&1)" "no differences"
is "and leaves it alone" "$(services n3)" front
fails "a service of that name cannot be added on a node" ax_in "${NODE_INST[n3]}" service add front --port 80 --backend web

# --- what is refused before it is stored -------------------------------------------------------------------

file apps <<'Y'
apps:
  web: {command: "true"}
Y
file exec <<'Y'
services:
  front: {ports: ["80"], backends: [{app: web}], check: {type: exec, command: "true"}}
Y
file wrong <<'Y'
services:
  front: {ports: ["http"], backends: [{app: web}]}
Y
like "apps are not for all" "$(config_on n2 apply --cluster "$T/apps.yaml" 2>&1)" "apps.yaml:1:1: apps: .*services or policy"
like "nor are commands" "$(config_on n2 apply --cluster "$T/exec.yaml" 2>&1)" "exec.yaml:2:.*found a check by a command"
like "an error is shown with its place" "$(config_on n2 apply --cluster "$T/wrong.yaml" 2>&1)" "wrong.yaml:2:"
is "nothing of that was stored" "$(revisions)" 1

# --- a node's own, and one that cannot have it -------------------------------------------------------------

on n3
{ cat "$T/$INST.yaml"; printf '%s\n' 'services:' '  front: {ports: [{port: 80, target: 7999}], backends: [{app: web}]}'; } >"$T/own.yaml"
ok "a node has its own service of that name" ax config apply "$T/own.yaml"
is "which comes first there, and is said" "$(reach n3 friend front) $(node_state n3 '.config.own[]')" "error connect EHOSTUNREACH front"
ok "until it gives that up" ax config apply "$T/$INST.yaml"
ok "then it has the one for all" wait_for '[ "$(reach n3 friend front)" = first ]'
run_app --name second -- sleep 1000
TAKER=$APP
wait_for 'ax get apps -o json second | jq -e ".[0].state == \"running\""'
ok "another one is applied" config_on n2 apply --cluster "$T/two.yaml"
ok "two nodes have it" wait_for 'has n1 2 && has n2 2'
ok "the one where an app has a name of it says so to all" wait_for \
	'ax_in "${NODE_INST[n1]}" get nodes | grep -q "^n3 .*1, not revision 2: the service second cannot have that name"'
is "and keeps what it had" "$(services n3) $(reach n3 guest front)" "front error connect EACCES"
end "$TAKER"
ok "when the app has ended it has the new one" wait_for -t 30 'has n3 2'
is "without the rule" "$(reach n3 guest front)" first
on n3
{
	cat "$T/$INST.yaml"
	printf '%s\n' 'policy:' '  rules:'
	for ((i = 0; i < 1024; i++)); do printf '    - deny: {from: nobody, to: nowhere}\n'; done
} >"$T/full.yaml"
ok "a node has as many rules as there may be" ax config apply "$T/full.yaml"
like "it stores no config whose rules it has no room for" "$(config_on n3 apply --cluster "$T/one.yaml" 2>&1)" "no room for so many rules"
is "nothing was stored" "$(revisions)" "2 1"
ok "it has none of its own again" ax config apply "$T/$INST.yaml"

# --- earlier ones ------------------------------------------------------------------------------------------

ok "the one before is taken up again" config_on n3 rollback --cluster
ok "by all" wait_for 'all_have 3'
is "with its rule" "$(services n1) $(reach n3 guest front)" "front error connect EACCES"
is "as what it was stored" "$(config_on n1 history --cluster 3)" "$(cat "$T/one.yaml")"
like "the list says so" "$(config_on n1 history --cluster)" "3 .* n3 .* 1 .* current"
fails "one that was never there is not" config_on n1 rollback --cluster 99

# --- two at once, and no etcd ------------------------------------------------------------------------------

kill -STOP "$ETCD"
for i in 1 2; do
	config_on n$i apply --cluster "$T/two.yaml" >"$T/at-once.$i" 2>&1 &
	AT_ONCE[i]=$!
done
ok "two are applied at once" wait_for '[ "$(node_state n1 .config.storing) $(node_state n2 .config.storing)" = "true true" ]'
kill -CONT "$ETCD"
wait "${AT_ONCE[1]}" "${AT_ONCE[2]}"
is "one is stored" "$(cat "$T"/at-once.* | grep -c '^revision 4 of .* is stored')" 1
is "and the other's node says whose" "$(cat "$T"/at-once.* | grep -c 'somebody else has applied a config as revision 4 at the same time, on the node n[12]')" 1
ok "which all have" wait_for 'all_have 4'
for i in 5 6 7 8 9 10 11 12; do
	config_on n2 apply --cluster "$T/one.yaml" >"$T/many" 2>&1 || diag "revision $i: $(cat "$T/many")"
done
ok "of many the last ten are kept" wait_for '[ "$(revisions)" = "12 11 10 9 8 7 6 5 4 3" ] && all_have 12'
end "$ETCD"
ok "etcd is away" wait_for -t 60 '[ "$(node_state n2) $(node_state n3)" = "partitioned partitioned" ]'
like "then nothing is applied" "$(config_on n2 apply --cluster "$T/two.yaml" 2>&1)" "not connected to the cluster east: nothing was stored"
node_stop n3
node_again n3
is "an agent that starts then has the one that it knew" "$(services n3) $(node_state n3 .config.revision)" "front 12"
is "with its rules" "$(ax_in "${NODE_INST[n3]}" get policy -o json | jq -r '.[] | "\(.action) \(.text)"' | grep -c '^deny guest')" 1
lan_etcd_start
ok "all go on when it is back" wait_for -t 40 'config_on n3 apply --cluster "$T/two.yaml"'

node_stop n3
on n3
sed -i 's/^  name: east/  name: west/' "$T/$INST.yaml"
node_again n3
is "in another cluster it has none of that" "$(services n3) $(node_state n3 .config)" " null"

stop_apps
nodes_flush n1 n2 n3
nodes_end n1 n2 n3
done_testing
