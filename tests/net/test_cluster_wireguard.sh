#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# `routes: wireguard`: a kernel without WireGuard says so in one sentence, and nothing is half done; with it, apps
# of two nodes reach each other (tests/vm/test_cluster_wireguard.sh has the rest, on kernels that have it).
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
need python3
build_c tcp

lan_make
lan_etcd_start
CLUSTER='  routes: wireguard'
node_make n1 11
node_make n2 12
if ip link add probe-wg type wireguard 2>/dev/null; then
	ip link del probe-wg
	HAS=1
else
	HAS=
fi

node_nodes() {
	ax_in "${NODE_INST[$1]}" get nodes -o json | jq -r "${2:-length}"
}

if [ -z "$HAS" ]; then
	BEFORE=$(in_ns n1 sysctl -n net.ipv4.ip_forward)
	node_start n1
	like "this kernel has none: the node says so" "$(ax_in "${NODE_INST[n1]}" status)" \
		": failed: this kernel has no WireGuard: load its module \(modprobe wireguard, CONFIG_WIREGUARD\), or give all nodes another word than routes: wireguard"
	like "and so does the doctor" "$(ax_in "${NODE_INST[n1]}" doctor --cluster 2>&1 | tr -s ' \n' ' ')" \
		"etcd BAD the agent is not in the cluster \(failed\): this kernel has no WireGuard"
	is "forwarding is as it was" "$(in_ns n1 sysctl -n net.ipv4.ip_forward)" "$BEFORE"
	is "there is no device of it" "$(ip -n n1 -o link show | grep -c -- "${NODE_INST[n1]}-wg")" 0
	is "nor a route" "$(ip -n n1 route show 10.80.0.0/16)" ""
	is "nor a program" "$(tc -n n1 filter show dev eth0 ingress)" ""
	is "etcd has no such node" "$(lan_etcd range '{key: ("/ax/east/nodes/n1" | @base64)}' | jq -r '.count // 0')" 0
	ok "nor is there a key" test ! -e "/run/ax/${NODE_INST[n1]}/wireguard.key"
	sleep 4
	is "it is said once, however often it is tried" "$(grep -c 'has no WireGuard' "$T/${NODE_INST[n1]}.log")" 1
	CLUSTER='  routes: direct' MORE='agent: {host_access: false}'
	node_stop n1
	node_start n1
	ok "another word is another way" wait_for -t 30 '[ "$(node_state n1)" = connected ]'

	# --- a way that takes less than private apps' devices, as any tunnel does ---
	node_start n2
	ok "there are ways" wait_for -t 30 '[ "$(node_routes n1)" = 1 ] && [ "$(node_routes n2)" = 1 ]'
	mkdir "$T/files"
	head -c 262144 /dev/urandom >"$T/files/bytes"
	on n1
	ip -n n1 link set eth0 mtu 1300
	serve 8000 --net private --name files -- "$PYTHON" -m http.server -d "$T/files" 8000
	ok "n2 knows the app of n1" wait_for -t 30 "node_knows n2 files"
	AT=$(node_addr n1 files)
	on n2
	in_app -- curl -sS --max-time 20 -o "$T/got" "http://$AT:8000/bytes" >"$T/curl" 2>&1
	ok "what is too long for the way is said to a private app, whatever host_access says" cmp "$T/got" "$T/files/bytes"
	on n1
	stop_apps

	# --- a node that has it, as another one sees it ---
	KEY=AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=
	lan_etcd put '{key: ("/ax/east/nodes/far" | @base64), value: ({v: 1, name: "far", id: ("f" * 32), since: 1, version: "9",
		address: "10.99.0.77", wireguard: {key: $k, port: 4500}} | tojson | @base64)}' --arg k "$KEY" >/dev/null
	ok "the record of a node with a key is understood" \
		wait_for -t 20 '[ "$(node_nodes n1 ".[] | select(.name == \"far\").wireguard | \"\(.key) \(.port)\"")" = "$KEY 4500" ]'
	nodes_flush n1 n2
else
	node_start n1
	node_start n2
	ok "each node has a way to the other one" \
		wait_for -t 30 '[ "$(node_state n1 .ways.routes)" = 1 ] && [ "$(node_state n2 .ways.routes)" = 1 ]'
	on n2
	serve 7000 --net private --name server -- "$BIN/tcp" listen 4 0.0.0.0 7000 served
	ok "n1 knows the app of n2" wait_for -t 30 "node_knows n1 server"
	on n1
	like "and reaches it" "$(in_app -- "$BIN/tcp" connect 4 "$(node_addr n2 server)" 7000 2>&1)" "^peer=.* served you="
	stop_apps
	nodes_flush n1 n2
	is "no device is left" "$(ip -n n1 -o link show type wireguard)$(ip -n n2 -o link show type wireguard)" ""
fi
nodes_end n1 n2
done_testing
