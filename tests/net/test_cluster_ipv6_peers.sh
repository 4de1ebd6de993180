#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Apps of two clusters reach each other by IPv6 as by IPv4, and a peer has no say in IPv6 addresses beyond its pool,
# nor in where nodes of this cluster are.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
need dig
build_c tcp

EAST_ETCD=$ETCD_URL WEST_ETCD=http://$LAN.1:3379

# in_cluster NAME N ETCD PEER N ETCD NODE: starts the node
in_cluster() {
	on "$7"
	agent_start - <<-EOF
		cluster:
		  name: $1
		  etcd: ["$3"]
		  pool: {ipv4: 10.$2.0.0/16, ipv6: "fd61:$2::/64"}
		  node: {name: $7, address: ${NODE_ADDR[$7]}}
		  routes: direct
		  export: all
		  peers: [{name: $4, etcd: ["$6"], pool: {ipv4: 10.$5.0.0/16, ipv6: "fd61:$5::/64"}}]
		policy: {rules: [{allow: {from: cluster=$4, to: cluster=$1}}, {allow: {from: cluster=$1, to: cluster=$4}}]}
	EOF
	NODE_AGENT[$7]=$AGENT
}
# west_put KEY VALUE: below /ax/west/, as somebody who has that etcd may
west_put() {
	ETCD_URL=$WEST_ETCD lan_etcd put '{key: ("/ax/west/" + $k | @base64), value: ($v | @base64)}' --arg k "$1" --arg v "$2" >/dev/null
}
peer() { node_state "$1" ".peers[0]$2"; }
addr6() {
	ax_in "${NODE_INST[$1]}" get apps -o json "$2" | jq -r '.[0].ip6'
}

lan_make
lan_etcd_start
bg "$T/etcd-west.log" etcd --name w --data-dir "$T/etcd-west" --listen-client-urls "$WEST_ETCD" \
	--advertise-client-urls "$WEST_ETCD" --listen-peer-urls http://127.0.0.1:3380 \
	--initial-advertise-peer-urls http://127.0.0.1:3380 --initial-cluster w=http://127.0.0.1:3380
WEST=$BG
ok "the other cluster has its etcd" wait_for -t 60 'curl -sf "$WEST_ETCD/health" | grep -q true'
node_make e1 11
node_make w1 13
ip -n e1 addr add fd99::11/64 dev eth0 nodad
ip -n w1 addr add fd99::13/64 dev eth0 nodad
in_cluster east 80 "$EAST_ETCD" west 90 "$WEST_ETCD" e1
in_cluster west 90 "$WEST_ETCD" east 80 "$EAST_ETCD" w1
for n in e1 w1; do
	ok "$n has ways to both blocks of the peer's node" wait_for -t 60 "[ \"\$(peer $n .ways.routes)\" = 2 ]"
done
is "ax status has the peer's pools" "$(peer e1 .pool) $(peer e1 .pool6)" "10.90.0.0/16 fd61:90::/64"

on w1
for mode in private host; do
	serve 7000 --net $mode --name "web-$mode" -- "$BIN/tcp" listen 6 :: 7000 "west-$mode"
done
for mode in private host; do
	W=$(addr6 w1 web-$mode)
	ok "an app of the peer is found as NAME.CLUSTER" wait_for -t 30 '[ "$(ask e1 "web-$mode.west.ax.internal" AAAA)" = "$W" ]'
	on e1
	for from in private host; do
		like "and reached by a $from app" "$(in_app --net $from -- "$BIN/tcp" connect 6 "$W" 7000 2>&1)" "^peer=\[?$W\]?:7000 .* west-$mode you=\[?fd61:80:"
	done
done

# --- what is not believed ---

ID=0123456789abcdef0123456789abcdef
west_put nodes/evil "{\"v\":1,\"name\":\"evil\",\"id\":\"$ID\",\"since\":1,\"version\":\"1\",\"address\":\"$LAN.99\",\"address6\":\"fd99::11\"}"
west_put blocks6/fd61:80::f00-120 "{\"v\":1,\"prefix\":\"fd61:80::f00/120\",\"node\":\"evil\",\"id\":\"$ID\"}"
ok "a block of this cluster's pool is no peer's" wait_for -t 30 '[[ $(peer e1 .refused_why) == *"it is no block of the pool" ]]'
west_put blocks6/fd61:90::f:ff00-120 "{\"v\":1,\"prefix\":\"fd61:90::f:ff00/120\",\"node\":\"evil\",\"id\":\"$ID\"}"
ok "nor is a node of this cluster the peer's" \
	wait_for -t 30 '[[ $(peer e1 .ways.failed[0].why) == "its node says that it is at fd99::11, where a node of this cluster is" ]]'
west_put blocks6/fd61:90::10:0-120 "{\"v\":1,\"prefix\":\"fd61:90::10:0/120\",\"node\":\"evil\",\"id\":\"$ID\"}"
ok "and what is beyond the part of a pool that is cut is no block" wait_for -t 30 '[[ $(peer e1 .refused_why) == *"fd61:90::10:0-120: it is no block of the pool" ]]'
is "the ways are as they were" "$(peer e1 .ways.routes) $(ip -n e1 -6 route show proto 97 | grep -c via)" "2 1"

on w1
stop_apps
nodes_flush e1 w1
end "$WEST"
nodes_end e1 w1
done_testing
