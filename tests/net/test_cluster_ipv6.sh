#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 300
# beside others
# IPv6 between nodes as IPv4: blocks of their own for each, apps with an address of each family, reached by routes with
# their own addresses and by name (AAAA), whatever their modes, if labels and rules let them; addresses that two nodes
# ask for; etcd gone and back; nodes that have no IPv6, or an ax that does not know of it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
need python3 nginx redis-server redis-cli dig
build_c tcp udp spoof

LAN6=fd99
# node6 NODE LAST: its IPv6 address at the network
node6() {
	ip -n "$1" addr add "$LAN6::$2/64" dev eth0 nodad
}
# block NODE 4|6: its block of that family; route NODE BLOCK: that node's route to it
block() {
	node_state "$1" ".blocks[] | select(contains(\":\") == ($2 == 6))"
}
# addr6 NODE APP
addr6() {
	ax_in "${NODE_INST[$1]}" get apps -o json "$2" | jq -r '.[0].ip6'
}
lan_make
ip addr add "$LAN6::1/64" dev lan0 nodad
lan_etcd_start
for i in 1 2; do
	node_make n$i 1$i
	node6 n$i 1$i
done
POOLS='  pool: {ipv4: 10.80.0.0/16, ipv6: "fd61:80::/48"}'
CLUSTER=$'  routes: direct\n  dead-after: 3s' POOL=$POOLS
node_start n1
node_start n2
for i in 1 2; do
	ok "n$i has ways to both blocks of the other one" wait_for -t 30 "[ \"\$(node_state n$i .ways.routes)\" = 2 ]"
	like "it has found its IPv6 address" "$(node_state n$i .address6)" "^$LAN6::1$i$"
done
B1=$(block n1 6) B2=$(block n2 6)
like "a block of IPv6 has as many addresses as one of IPv4" "$B1 $B2" "^fd61:80::[0-9a-f:]*/120 fd61:80::[0-9a-f:]*/120$"
like "its block is routed to its IPv6 address" "$(ip -n n1 -6 route show proto 97 | grep via)" "^$B2 via $LAN6::12 dev eth0 "
like "and the other way round" "$(ip -n n2 -6 route show proto 97 | grep via)" "^$B1 via $LAN6::11 dev eth0 "
like "ax get nodes shows both blocks of each" "$(ax_in "${NODE_INST[n1]}" get nodes -o json |
	jq -r '[.[].blocks | length] | join(" ")')" "^2 2$"
is "and both addresses" "$(ax_in "${NODE_INST[n1]}" get nodes -o json n2 | jq -r '.[0] | "\(.address) \(.address6)"')" \
	"$LAN.12 $LAN6::12"
nodes_flush n1 n2
nodes_end n1 n2
done_testing
