# SPDX-License-Identifier: GPL-2.0-or-later
# kernel: 6.1
# Two clusters with an etcd each reach each other's apps by WireGuard; and all nodes go from there to
# `routes: direct`, and back: their apps keep their addresses, and nothing of the other way is left.
. "${0%/*}/lib.sh"
. "${0%/*}/nodes.sh"

# Set by name, as nodes.sh says.
pid_e1='' pid_e2='' pid_w1=''

# config NODE LAST ROUTES CLUSTER POOL PORT PEER PEERS-POOL PEERS-PORT
config()
{
	cat >"/tmp/$1.yaml" <<-EOF
		agent: {host_access: false}
		cluster:
		  name: $4
		  etcd: ["http://10.99.0.1:$6"]
		  pool: $5
		  node: {name: $1, address: 10.99.0.$2}
		  routes: $3
		  export: all
		  peers: [{name: $7, etcd: ["http://10.99.0.1:$9"], pool: $8}]
		policy: {rules: [{allow: {from: cluster=$7}}, {allow: {to: cluster=$7}}]}
	EOF
}

# configs ROUTES: of all nodes
configs()
{
	config e1 11 "$1" east 10.80.0.0/16 2379 west 10.90.0.0/16 3379
	config e2 12 "$1" east 10.80.0.0/16 2379 west 10.90.0.0/16 3379
	config w1 13 "$1" west 10.90.0.0/16 3379 east 10.80.0.0/16 2379
}

etcd_at()
{
	etcd --data-dir "/tmp/etcd-$1" --listen-client-urls "http://10.99.0.1:$1" --advertise-client-urls "http://10.99.0.1:$1" \
		--listen-peer-urls "http://127.0.0.1:$2" --initial-advertise-peer-urls "http://127.0.0.1:$2" \
		--initial-cluster "default=http://127.0.0.1:$2" --log-level error >"/tmp/etcd-$1.log" 2>&1 </dev/null &
}
has_etcds()
{
	wget -q -O - http://10.99.0.1:2379/health | grep -q true && wget -q -O - http://10.99.0.1:3379/health | grep -q true
}

# ways NODE KIND: it has one to each of the two others, of whichever cluster, of that kind alone
ways()
{
	ax_at "$1" status -o json | tr -d ' \n' >"/tmp/status.$1"
	[ "$(grep -o "\"kind\":\"$2\",\"routes\":[0-9]*" "/tmp/status.$1" | sed 's/.*://' | awk '{ n += $1 } END { print n }')" = 2 ]
}

# switch ROUTES: all nodes, one after the other
switch()
{
	local node agent

	configs "$1"
	for node in e1 e2 w1; do
		eval "agent=\$agent_$node"
		kill "$agent"
		wait "$agent"
		start $node
	done
}

fetch()
{
	at e1 private wget -q -O - "http://$1:8080/who" | grep -qx "$2"
}

# all_ways KIND: each node has all of its ways, and apps come through
all_ways()
{
	for node in e1 e2 w1; do
		tap "$node has $1 ways to both others" within 200 ways $node "$1" || cat "/tmp/status.$node"
	done
	tap "an app of the own cluster answers" within 120 fetch own.ax.internal e2
	tap "and one of the other" within 120 fetch far.west.ax.internal w1
}

brctl addbr lan0
ip addr add 10.99.0.1/24 dev lan0
ip link set lan0 up
machine e1 11
machine e2 12
machine w1 13
etcd_at 2379 2380
etcd=$!
etcd_at 3379 3380
etcd="$etcd $!"
tap "both etcds run" within 90 has_etcds

configs wireguard
start e1
start e2
start w1
for node in e2 w1; do
	mkdir -p /tmp/www-$node
	echo $node >/tmp/www-$node/who
done
app e1 c-private -- sleep 2000
app e2 own -- httpd -f -p 8080 -h /tmp/www-e2
app w1 far -- httpd -f -p 8080 -h /tmp/www-w1
tap "e1 knows them" within 120 knows e1 own far.west
all_ways wireguard
address=$(addr e1 c-private)

switch direct
all_ways direct
no_device()
{
	! in_ns "$1" ip link show dev "$1-wg"
}
for node in e1 e2 w1; do
	tap "$node has no WireGuard device any more" no_device $node
done

switch wireguard
all_ways wireguard
like "what is routed goes into the device" "^10\.90\.[0-9]+\.0/24 dev e1-wg " in_ns e1 ip route
direct_routes()
{
	! in_ns "$1" ip route | grep '^10\.[89]0\..* via '
}
for node in e1 e2 w1; do
	tap "$node has no direct route any more" direct_routes $node
done
like "apps keep their addresses" "^$address$" addr e1 c-private

for node in e1 e2 w1; do
	eval "agent=\$agent_$node"
	kill "$agent"
	wait "$agent"
	tap "ax agent --flush on $node" ax_at $node agent --flush
done
# shellcheck disable=SC2086 # lists
wait $pids
# shellcheck disable=SC2086
kill $etcd "$pid_e1" "$pid_e2" "$pid_w1"
# shellcheck disable=SC2086
wait $etcd "$pid_e1" "$pid_e2" "$pid_w1"
ip link del lan0
rm -rf /tmp/etcd-*
[ "$failures" = 0 ] || tail -n 30 /tmp/e1.log /tmp/w1.log
done_testing
