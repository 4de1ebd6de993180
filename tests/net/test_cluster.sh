#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 240
# beside others
# Nodes that share a real etcd: each its name, its part of the pool and its apps, seen by the others;
# and what becomes of them when etcd is out of reach, is empty, or has another node of that name.
. "$(dirname "$0")/lib.sh"
need etcd jq python3 curl
build_c tcp

# --- etcd, and nodes in namespaces of their own that have a way to it ---------------------------------

ip addr add 10.99.0.1/32 dev lo

etcd_start() {
	bg "$T/etcd.log" etcd --name e --data-dir "$T/etcd" --listen-client-urls http://10.99.0.1:2379 \
		--advertise-client-urls http://10.99.0.1:2379 --listen-peer-urls http://127.0.0.1:2380 \
		--initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster e=http://127.0.0.1:2380
	ETCD=$BG
	wait_for -t 30 'etcd_get /ax/ | jq -e .header'
}

# etcd_ask PATH FILTER [ARGUMENT...]: jq's answer to FILTER is sent
etcd_ask() {
	local body
	body=$(jq -nc "${@:3}" "$2")
	curl -sS --max-time 20 -d "$body" "http://10.99.0.1:2379/v3/kv/$1"
}

# values PREFIX, keys PREFIX: of all keys that begin so; one a line
etcd_get() {
	etcd_ask range '{key: ($p | @base64), range_end: (($p | explode | .[-1] += 1 | implode) | @base64)}' --arg p "$1"
}
values() { etcd_get "$1" | jq -r '.kvs[]?.value | @base64d'; }
keys() { etcd_get /ax/ | jq -re 'if .header then .kvs[]?.key | @base64d else error end'; }
etcd_put() {
	etcd_ask put '{key: ($k | @base64), value: ($v | @base64)}' --arg k "$1" --arg v "$2" >/dev/null
}

declare -A NODE_INST NODE_AX NODE_AGENT
REAL_AX=$AX

# node_make NAME ADDRESS: a namespace; its ax runs in it.
node_make() {
	ip netns add "$1"
	ip link add "v$1" type veth peer name eth0 netns "$1"
	ip addr add 10.99.0.1/32 peer "$2/32" dev "v$1"
	ip -n "$1" addr add "$2/32" peer 10.99.0.1/32 dev eth0
	ip link set "v$1" up
	ip -n "$1" link set eth0 up
	ip -n "$1" link set lo up
	printf '#!/bin/sh\nexec nsenter --net=/run/netns/%s "%s" "$@"\n' "$1" "$REAL_AX" >"$T/ax-$1"
	chmod 755 "$T/ax-$1"
	NODE_AX[$1]=$T/ax-$1
	if [ "$1" = n1 ]; then
		NODE_INST[$1]=$INST
	else
		NODE_INST[$1]=$(random_name)
		INSTANCES+=("${NODE_INST[$1]}")
	fi
	NODE_AGENT[$1]=
}

# node_config NAME [MORE...]: of the cluster east; MORE: further lines of its section
node_config() {
	printf '%s\n' 'cluster:' '  name: east' '  etcd: ["http://10.99.0.1:2379"]' \
		"  pool: ${POOL:-10.80.0.0/16}" "  node: {name: $1}" "  dead-after: 1s" "${@:2}"
}

# on NODE: what lib.sh does from here on is that node's
on() {
	INST=${NODE_INST[$1]} AX=${NODE_AX[$1]} AGENT=${NODE_AGENT[$1]}
}

# node_start NODE [NAME]: the agent of a namespace, by another name
node_start() {
	on "$1"
	agent_start - < <(node_config "${2:-$1}")
	NODE_AGENT[$1]=$AGENT
}

node_stop() {
	on "$1"
	agent_stop
	NODE_AGENT[$1]=
}

state() { # NODE [FILTER]
	ax_in "${NODE_INST[$1]}" status -o json | jq -r ".cluster${2:-.state}"
}

nodes() { # NODE
	ax_in "${NODE_INST[$1]}" get nodes -o json | jq -r '.[] | "\(.name) \(.state) \(.apps)"' | sort | tr '\n' ' '
}

others() { # NODE: the apps of other nodes that it knows
	ax_in "${NODE_INST[$1]}" get apps -A -o json |
		jq -r --arg n "$1" '.[] | select(.node != $n) | "\(.node) \(.name) \(.state)"' | sort | tr '\n' ' '
}

etcd_start
node_make n1 10.99.0.11
node_make n2 10.99.0.12

# --- names and blocks ------------------------------------------------------------------------------

node_start n1
node_start n2
ok "a node is connected" wait_for -t 30 '[ "$(state n1)" = connected ]'
ok "and the other one" wait_for -t 30 '[ "$(state n2)" = connected ]'
ok "each knows both" wait_for -t 30 '[ "$(nodes n1)" = "n1 up 0 n2 up 0 " ] && [ "$(nodes n2)" = "n1 up 0 n2 up 0 " ]'
is "their addresses were found" "$(ax_in "$INST" get nodes -o json | jq -r '.[].address' | tr '\n' ' ')" \
	"10.99.0.11 10.99.0.12 "
wait_for -t 30 '[ "$(state n1 ".blocks | length")" = 1 ] && [ "$(state n2 ".blocks | length")" = 1 ]'
B1=$(state n1 .blocks[0]) B2=$(state n2 .blocks[0])
like "a block is a part of the pool" "$B1" '^10\.80\.[0-9]+\.0/24$'
is "and nobody else's" "$([ "$B1" != "$B2" ] && echo another)" another
is "etcd has both of them" "$(keys | grep -c /blocks/)" 2
like "ax status says so" "$(ax_in "$INST" status)" \
	"Cluster +east, node n2 at 10.99.0.12: connected to http://10.99.0.1:2379 for .*blocks $B2"
# (which node has which block comes to others by etcd)
wait_for 'ax_in "$INST" get nodes | grep -q "^n1 .* $B1 "'
like "and ax get nodes" "$(ax_in "$INST" get nodes)" "n1 +10.99.0.11 +up +$B1 +0 "

# --- apps ------------------------------------------------------------------------------------------

on n1
serve 7000 --name web --labels tier=front -- "$BIN/tcp" listen 4 0.0.0.0 7000 first
like "an app's address is of its node's block" "$(ax get apps -o json web | jq -r '.[0].ip4')" "^${B1%.0/24}\\."
ok "another node knows it" wait_for '[ "$(others n2)" = "n1 web running " ]'
ok "with its port" wait_for "ax_in ${NODE_INST[n2]} get apps -A -o json | jq -e '.[] | select(.name == \"web\" and .node == \"n1\") | .ports == [\"7000/tcp\"]'"
on n2
like "the list says where it is" "$(ax get apps -A)" "web +n1 +"
unlike "without -A others' are no rows" "$(ax get apps)" "web"
unlike "and there is no column for it" "$(ax get apps)" "NODE"
fails "names of others that cannot be reached are not answered" in_app -- getent ahosts web
on n1
run_app --name late -- "$PYTHON" -c 'import os,socket,sys,time
s=socket.socket(); time.sleep(0.5); s.bind(("0.0.0.0", 7100)); s.listen()
while not os.path.exists(sys.argv[1]): time.sleep(0.02)
s.close(); time.sleep(1000)' "$T/told"
LATE=$APP
ports_of_late() {
	values /ax/east/apps/n1/ | jq -c 'select(.name == "late") | .ports'
}
ok "who listens later is told of then" wait_for '[[ $(ports_of_late) == *7100* ]]'
touch "$T/told"
ok "and who does not any more" wait_for '[ "$(ports_of_late)" = "[]" ]'
stop_app "$LATE"
ok "an app that has ended is gone" wait_for '[ "$(others n2)" = "n1 web running " ]'

# --- another node of that name ---------------------------------------------------------------------

node_make n3 10.99.0.13
node_start n3 n1
ok "a second node of a name is refused it" wait_for '[ "$(state n3)" = refused ]'
like "with a sentence" "$(state n3 .why)" "has a node n1 already, at 10.99.0.11"
is "it has no block" "$(state n3 ".blocks | length")" 0
like "an app there gets no address" "$(in_app -- true 2>&1)" "no block of the cluster's pool yet"
is "and the first one notices nothing" "$(state n1)" connected
node_stop n3
POOL=10.81.0.0/16 node_start n3
ok "nor does a node with another pool come in" wait_for '[[ $(state n3 .why) == *"its pool is 10.80.0.0/16"* ]]'
node_stop n3

# --- out of reach ----------------------------------------------------------------------------------

ip link set vn1 down
ok "a node that is cut off says so" wait_for -t 60 '[ "$(state n1)" = partitioned ]'
on n1
serve 7001 --name alone -- "$BIN/tcp" listen 4 0.0.0.0 7001 alone
like "it goes on: apps start, in its block" "$(ax get apps -o json alone | jq -r '.[0].ip4')" "^${B1%.0/24}\\."
like "and are reached" "$(in_app -- "$BIN/tcp" connect 4 "$(ax get apps -o json alone | jq -r '.[0].ip4')" 7001)" alone
agent_stop
agent_again
NODE_AGENT[n1]=$AGENT
is "a new agent there has the block" "$(state n1 .blocks[0])" "$B1"
like "and gives addresses out of it" "$(in_app -- sh -c 'cat /proc/net/fib_trie')" "${B1%.0/24}\\."
ok "the other one sees it go away" wait_for -t 60 '[ "$(nodes n2)" = "n1 away 0 n2 up 0 " ]'
is "its block stays its own" "$(keys | grep -c /blocks/)" 2
ip link set vn1 up
ok "it comes back, with all of its apps" wait_for -t 60 '[ "$(others n2)" = "n1 alone running n1 web running " ]'
is "by the same block" "$(state n1 '.blocks | join(" ")')" "$B1"

# --- etcd ends, is compacted, and loses everything -------------------------------------------------

end "$ETCD"
ok "without etcd all say so" wait_for -t 60 '[ "$(state n1)" = partitioned ] && [ "$(state n2)" = partitioned ]'
is "and forget nothing" "$(others n2 | sed 's/unknown/running/g')" "n1 alone running n1 web running "
rm -rf "$T/etcd"
etcd_start
ok "what etcd has lost is written again" wait_for -t 60 '[ "$(keys | grep -c "/apps/n1/\|/nodes/\|/blocks/")" = 6 ]'
is "each block its owner's" "$(values /ax/east/blocks/ | jq -r '"\(.prefix) \(.node)"' | sort)" \
	"$(printf '%s\n' "$B1 n1" "$B2 n2" | sort)"
ok "and the apps are known as they were" wait_for -t 60 '[ "$(others n2)" = "n1 alone running n1 web running " ]'

# --- two who want the same -------------------------------------------------------------------------

gcc -D_GNU_SOURCE -std=gnu11 -O2 -Wall -Wextra -I"$TOP/agent" -I"$TOP/include" "$SRC/cluster_claims.c" \
	"$(dirname "$REAL_AX")/libax.a" -ljansson -lnettle -o "$T/claims"
like "of two claimants of a block one gets it, in 1,000 tries" \
	"$(timeout 100 "$T/claims" http://10.99.0.1:2379 1000 blocks 2>&1)" '^1000 one, 0 none, 0 both; [1-9][0-9]* and [1-9][0-9]*$'
like "and so of an address" \
	"$(timeout 100 "$T/claims" http://10.99.0.1:2379 1000 addresses 2>&1)" '^1000 one, 0 none, 0 both; [1-9][0-9]* and [1-9][0-9]*$'
is "the nodes' own records are what they were" "$(values /ax/east/nodes/n | jq -r .name)" $'n1\nn2'

# --- what others may write -------------------------------------------------------------------------

etcd_put /ax/east/apps/n9/1 '{"v":2,"node":"n9"}'
ok "a record of a newer version is left out, and said" wait_for '[[ $(state n1 .refused_why) == *"schema version 2"* ]]'
etcd_put $'/ax/east/nodes/\e]0;title\a' '{}'
ok "one with a name for terminals, too" wait_for '[[ $(state n1 .refused_why) == *"title"* ]]'
is "and no terminal obeys the log" "$(grep -c $'\e' "$T/${NODE_INST[n1]}.log")" 0
etcd_put /ax/east/apps/n9/2 '{"v":1,"node":"n1","name":"web","id":1,"since":1,"labels":"","ports":[]}'
ok "and one that speaks of another node" wait_for '[[ $(state n1 .refused_why) == *"speaks of something else"* ]]'

# --- the way to etcd can change while the agent runs -----------------------------------------------

on n2
node_config n2 >"$T/other.yaml"
sed -i 's|"http://10.99.0.1:2379"|"http://10.99.0.1:1", "http://10.99.0.1:2379"|' "$T/other.yaml"
like "another member is a change" "$(ax config apply --dry-run "$T/other.yaml")" "cluster.*east.*the way to etcd"
ok "it is applied" ax config apply "$T/other.yaml"
ok "and used" wait_for -t 30 '[ "$(state n2)" = connected ] && [ "$(others n2)" = "n1 alone running n1 web running " ]'
like "another node's name needs a new agent" "$(node_config n7 | ax config apply --dry-run -)" "cluster.*started again"

stop_apps
on n1
ok "all apps are gone there, too" wait_for -t 60 '[ "$(others n2)" = "" ]'
node_stop n2
node_stop n1
AX=$REAL_AX AGENT=
INST=${NODE_INST[n1]}
end "$ETCD"
for n in n1 n2 n3; do
	on $n
	ok "ax agent --flush in $n" ax agent --flush
done
AX=$REAL_AX AGENT="" INST=${NODE_INST[n1]}
for n in n1 n2 n3; do
	ip link del v$n
	ip netns del $n
done
ip addr del 10.99.0.1/32 dev lo
done_testing
