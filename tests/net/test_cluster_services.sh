#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Nodes that share a registry: an address that a declared service asks for is no other node's, neither an app's
# nor a service's of another name; those of one name share it, and one of them that goes leaves it to the others.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
build_c tcp

CLUSTER='  routes: direct'
nodes_with_ways 3

# service NODE WORD...: ax service there
service() { ax_in "${NODE_INST[$1]}" service "${@:2}" 2>&1; }
# holder ADDRESS: what etcd has of it, "node name service"
holder() {
	lan_etcd range '{key: ($k | @base64)}' --arg k "/ax/east/addresses/$1" |
		jq -r '.kvs[]?.value | @base64d | fromjson | "\(.node) \(.app) \(.service)"'
}
# claimed ADDRESS HOLDER
claimed() { wait_for "[ \"\$(holder $1)\" = '$2' ]"; }
conflicts() { node_state "$1" '.conflicts | join("; ")'; }
# (what was tried in vain is forgotten a moment later)
no_conflicts() { wait_for '[ -z "$(conflicts n1)$(conflicts n2)$(conflicts n3)" ]'; }
# known NODE ADDRESS: that node refuses it to any service
known() { wait_for "service $1 add probe --ip $2 --port 80 --backend web | grep -q 'on the node' || ! service $1 del probe"; }

# --- a service's address is its node's ----------------------------------------------------------------------

ok "a service asks for an address" service n1 add shop --ip 192.0.2.50 --port 80 --backend web
ok "it is claimed" claimed 192.0.2.50 'n1 shop true'
on n2
like "an app of another node is refused it" "$(in_app --ip 192.0.2.50 -- true 2>&1)" \
	"the address 192.0.2.50 is the service shop's on the node n1"
ok "other nodes know of it" known n2 192.0.2.50
like "and a service of another name is refused it" "$(service n2 add other --ip 192.0.2.50 --port 80 --backend web)" \
	"service other cannot be had: the address 192.0.2.50 is the service shop's on the node n1"
cat "$T/${NODE_INST[n3]}.yaml" - >"$T/other.yaml" <<'Y'
services:
  other: {ip: 192.0.2.50, ports: ["80"], backends: [{app: web}]}
Y
ok "the third one does, too" known n3 192.0.2.50
like "also one of a config, before any of it is applied" \
	"$(ax_in "${NODE_INST[n3]}" config apply "$T/other.yaml" 2>&1)" "address 192.0.2.50 is the service shop's on the node n1"

# --- one name, one address -------------------------------------------------------------------------------

sed 's/other:/shop:/' "$T/other.yaml" >"$T/shop.yaml"
ok "a service of that name may have it" ax_in "${NODE_INST[n3]}" config apply "$T/shop.yaml"
ok "and one that is added" service n2 add shop --ip 192.0.2.50 --port 80 --backend web
is "one node's claim does for all" "$(holder 192.0.2.50)" 'n1 shop true'
ok "and nobody says that there is anything wrong" no_conflicts
ok "where it goes" service n1 del shop
ok "another node's follows" wait_for '[[ "$(holder 192.0.2.50)" == "n"[23]" shop true" ]]'
ok "the one that had it knows" known n1 192.0.2.50
like "and is refused it now" "$(service n1 add other --ip 192.0.2.50 --port 80 --backend web)" \
	"is the service shop's on the node n[23]"
ok "one of the two goes" service n2 del shop
ok "and it is the last one's" claimed 192.0.2.50 'n3 shop true'
ok "that one's goes" ax_in "${NODE_INST[n3]}" config apply "$T/${NODE_INST[n3]}.yaml"
ok "nobody has it any more" claimed 192.0.2.50 ''
ok "and it is had elsewhere" wait_for 'service n1 add other --ip 192.0.2.50 --port 80 --backend web'
ok "by that" claimed 192.0.2.50 'n1 other true'

# --- an app's address ---------------------------------------------------------------------------------------

on n1
run_app --ip 192.0.2.7 --name fixed -- sleep 1000
launched fixed
ok "other nodes know of an app's" known n2 192.0.2.7
like "a service is refused an app's" "$(service n2 add late --ip 192.0.2.7 --port 80 --backend web)" \
	"the address 192.0.2.7 is the app fixed's on the node n1"

# --- at the same time ----------------------------------------------------------------------------------------

for i in {1..4}; do
	for n in 1 2; do
		service n$n add "race$n" --ip "198.51.100.$i" --port 80 --backend web >"$T/race$n" &
		RACE[n]=$!
	done
	wait "${RACE[@]}"
	# who has lost is told so at once, or when his node has asked for it
	ok "of two services that ask for one at the same time one has it ($i)" \
		wait_for "[[ \$(holder 198.51.100.$i) == 'n'?' race'?' true' ]]"
	W=$(holder "198.51.100.$i")
	W=${W:1:1} L=$((3 - W))
	ok "and the other one is told ($i)" \
		wait_for "cat '$T/race$L' <(conflicts n$L) | grep -q '198.51.100.$i is the service race$W.s on the node n$W'"
	ok "only that one ($i)" wait_for "[ -z \"\$(conflicts n$W)\" ]"
	service "n$W" del "race$W"
	service "n$L" del "race$L" >"$T/race.gone"
	ok "both are gone ($i)" wait_for "[ -z \"\$(holder 198.51.100.$i)\" ]"
done

# --- for all nodes, and a node that goes -----------------------------------------------------------------------

cat >"$T/all.yaml" <<'Y'
services:
  front: {ip: 203.0.113.5, ports: ["80"], backends: [{app: web}]}
Y
ok "a service of all nodes has an address" ax_in "${NODE_INST[n1]}" config apply --cluster "$T/all.yaml"
front() { ax_in "${NODE_INST[$1]}" get services -o json front | jq -r '.[].ip4'; }
ok "on all of them" wait_for '[ "$(front n1) $(front n2) $(front n3)" = "203.0.113.5 203.0.113.5 203.0.113.5" ]'
ok "it is claimed by one" wait_for '[[ "$(holder 203.0.113.5)" == "n"?" front true" ]]'
ok "there is nothing wrong with that" no_conflicts
W=$(holder 203.0.113.5)
W=${W%% *}
on "$W"
agent_kill9
NODE_AGENT[$W]=
ok "when that node is gone it is another's" \
	wait_for -t 60 "[[ \$(holder 203.0.113.5) == 'n'?' front true' && \$(holder 203.0.113.5) != $W* ]]"
node_again "$W"
ok "it comes back" wait_for -t 60 "[ \"\$(node_state $W)\" = connected ]"
ok "and has it with the others" no_conflicts

stop_apps
nodes_flush n1 n2 n3
nodes_end n1 n2 n3
done_testing
