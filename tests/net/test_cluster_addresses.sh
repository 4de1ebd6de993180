#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Nodes that share a registry: no two have an address that was asked for, many apps may come and go at once,
# and those of a node that is gone are no backends for long.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
need dig
build_c tcp

CLUSTER=$'  routes: direct\n  dead-after: 3s'
nodes_with_ways 3

# --- two apps of a name ----------------------------------------------------------------------------

on n1
serve 7000 --name web -- "$BIN/tcp" listen 4 0.0.0.0 7000 first
A1=$(node_addr n1 web)
on n2
serve 7000 --name web -- "$BIN/tcp" listen 4 0.0.0.0 7000 second
A2=$(node_addr n2 web)
ok "a service of two nodes" wait_for '[ "$(backends n3 web | tr -cd ";")" = ";;" ]'

# --- addresses that are asked for ------------------------------------------------------------------------

# a block that nobody has
BLOCKS="$(for i in 1 2 3; do node_state n$i .blocks[]; done)"
for FREE in 10.80.{250..255}; do
	grep -q "^$FREE\.0/" <<<"$BLOCKS" || break
done
on n1
run_app --ip 192.0.2.7 --name fixed -- sleep 1000
FIXED=$APP
launched fixed
on n2
like "an address of another node's app is refused, and said whose it is" \
	"$(in_app --ip 192.0.2.7 -- true 2>&1)" "the address 192.0.2.7 is the app fixed's on the node n1"
like "and so is one of another node's block" \
	"$(in_app --ip "${A1%.*}.250" -- true 2>&1)" "the address ${A1%.*}.250 is in a block of the node n1"
like "and one of the pool that is of no node's" \
	"$(in_app --ip "$FREE.250" -- true 2>&1)" "$FREE.250 is in the cluster's pool 10.80.0.0/16, and in no block of this node"
is "one of the own block is had" "$(in_app --ip "${A2%.*}.250" -- echo had 2>&1)" had
end "$FIXED"
ok "when nobody has it any more it is had elsewhere" wait_for '[ "$(in_app --ip 192.0.2.7 -- echo had 2>&1)" = had ]'
WON=
for i in {1..4}; do
	rm -f "$T"/race[12] # what the last two said
	for n in 1 2; do
		(on n$n && in_app --ip "198.51.100.$i" --name "race$i" -- \
			sh -c 'echo had; while [ ! -e "$1" ]; do sleep 0.1; done' - "$T/over$i") >"$T/race$n" 2>&1 &
		RACE[n]=$!
	done
	# who has it keeps it until the other one has been told
	wait_for 'cat "$T"/race[12] | grep -q "^had" && cat "$T"/race[12] | grep -q "on the node n[12]"'
	touch "$T/over$i"
	wait "${RACE[@]}"
	WON+=$(cat "$T"/race[12] | grep -c '^had$')$(cat "$T"/race[12] | grep -c "is the app race$i's on the node n[12]")
done
is "of two nodes that want one at the same time one has it, and the other is told" "$WON" 11111111

# --- a machine that was copied: another node with this one's id ------------------------------------------

# node_put KEY JSON, node_del KEY: below the cluster's
node_put() { lan_etcd put '{key: ($k | @base64), value: ($v | @base64)}' --arg k "/ax/east/$1" --arg v "$2" >/dev/null; }
node_del() { lan_etcd deleterange '{key: ($k | @base64)}' --arg k "/ax/east/$1" >/dev/null; }
ID=$(lan_etcd range '{key: ("/ax/east/nodes/n1" | @base64)}' | jq -r '.kvs[0].value | @base64d | fromjson | .id')
like "the node's id" "$ID" '^[0-9a-f]{32}$'
OWN=$(node_state n1 '.blocks | join(" ")')
node_put nodes/copy '{"v":1,"name":"copy","id":"'"$ID"'","address":"10.99.0.98","since":1,"version":"0"}'
node_put "blocks/$FREE.0-24" '{"v":1,"prefix":"'"$FREE"'.0/24","node":"copy","id":"'"$ID"'"}'
node_put addresses/192.0.2.9 '{"v":1,"address":"192.0.2.9","node":"copy","app":"there","id":"'"$ID"'"}'
ok "the copy's block is reached as another node's" wait_for '[ "$(node_routes n1)" = 3 ]'
is "and is none of this one's" "$(node_state n1 '.blocks | join(" ")')" "$OWN"
on n1
like "no app here gets an address of it" "$(in_app --ip "$FREE.9" -- true 2>&1)" "$FREE.9 is in a block of the node copy"
like "nor one that the copy has" "$(in_app --ip 192.0.2.9 -- true 2>&1)" "the address 192.0.2.9 is the app there's on the node copy"
node_del "blocks/$FREE.0-24"
node_del addresses/192.0.2.9
node_del nodes/copy
ok "it goes as any other" wait_for '[ "$(node_routes n1)" = 2 ]'

# --- many at once ------------------------------------------------------------------------------------------

# burst COUNT: so many apps of a node that comes with them, two of a name
burst() {
	jq -nc --argjson n "$1" --arg net "$FREE" '
		def put(k; v): {requestPut: {key: (k | @base64), value: (v | tojson | @base64)}};
		[put("/ax/east/nodes/n9"; {v: 1, name: "n9", id: ("9" * 32), address: "10.99.0.99", since: 1, version: "0"}),
		 put("/ax/east/blocks/\($net).0-24"; {v: 1, prefix: "\($net).0/24", node: "n9", id: ("9" * 32)})],
		[range($n) | put("/ax/east/apps/n9/\(. + 1)"; {v: 1, node: "n9", name: "many\(. / 2 | floor)", id: (. + 1),
			ip4: "\($net).\(. + 1)", since: 1, labels: "zone=default", net: "private", ports: [{proto: "tcp", port: 80}]})] |
		_nwise(100) | {success: .}' >"$T/burst"
	while read -r txn; do
		curl -sS --max-time 30 -d "$txn" "http://$LAN.1:2379/v3/kv/txn" >/dev/null
	done <"$T/burst"
}
many() { # NODE: services of two apps of n9
	ax_in "${NODE_INST[$1]}" get services -o json | jq '[.[] | select(.name | test("^many"))] | map(.backends | length) | add // 0'
}
burst 250
for i in 1 2 3; do
	ok "250 apps that come at once are found by n$i" wait_for -t 40 "[ \"\$(many n$i)\" = 250 ]"
done
like "and their names lead to services" "$(ask n3 many100.ax.internal)" "^10\.80\."
lan_etcd deleterange '{key: ("/ax/east/apps/n9/" | @base64), range_end: ("/ax/east/apps/n90" | @base64)}' >/dev/null
for i in 1 2 3; do
	ok "and n$i forgets them when they go at once" wait_for -t 40 "[ \"\$(many n$i)\" = 0 ]"
done
is "nobody has their names any more" "$(at n3 dig many100.ax.internal | grep -c NXDOMAIN)" 1
lan_etcd deleterange '{key: ("/ax/east/nodes/n9" | @base64)}' >/dev/null

# --- a node is gone -------------------------------------------------------------------------------------

ip link set vn1 down
on n1
agent_kill9
NODE_AGENT[n1]=
is "a node that says nothing keeps its apps for now" "$(backends n3 web | tr -cd ';')" ";;"
ok "when its lease and dead-after are over they are no backends" wait_for -t 60 '[ "$(backends n3 web | grep -c n1)" = 0 ]'
is "the others go on" "$(answers n3 web 7000 5)" second
ip link set vn1 up
node_again n1
ok "it comes back with them" wait_for -t 60 '[ "$(backends n3 web | tr -cd ";")" = ";;" ]'

stop_apps
nodes_flush n1 n2 n3
nodes_end n1 n2 n3
done_testing
