# SPDX-License-Identifier: GPL-2.0-or-later
# kernel: 6.12
# Two nodes with `routes: wireguard`, in network namespaces of their own at a bridge: their apps reach each other
# by name and address in both network modes and families, nothing but WireGuard's UDP passes between them, who is none of them
# is believed nothing, and what the agent makes it takes over, and takes away.
. "${0%/*}/lib.sh"

. "${0%/*}/nodes.sh"

# Set by name, as nodes.sh says.
pid_n1='' pid_n2='' agent_n1='' agent_n2=''

# config NODE ADDRESS ROUTES
config()
{
	cat >"/tmp/$1.yaml" <<-EOF
		agent: {host_access: false}
		cluster:
		  name: east
		  etcd: ["http://10.99.0.1:2379"]
		  pool: {ipv4: 10.80.0.0/16, ipv6: "fd61:80::/64"}
		  node: {name: $1, address: "$2"}
		  routes: $3
		  dead-after: 15s
	EOF
}

brctl addbr lan0
ip addr add 10.99.0.1/24 dev lan0
ip link set lan0 up
machine n1 11
machine n2 12
# (the nodes' own filters are loose; a strict one is to do as well)
in_ns n2 sysctl -qw net.ipv4.conf.all.rp_filter=1 net.ipv4.conf.default.rp_filter=1

etcd --data-dir /tmp/etcd --listen-client-urls http://10.99.0.1:2379 --advertise-client-urls http://10.99.0.1:2379 \
	--listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
	--initial-cluster default=http://127.0.0.1:2380 --log-level error >/tmp/etcd.log 2>&1 </dev/null &
etcd=$!
has_etcd()
{
	wget -q -O - http://10.99.0.1:2379/health | grep -q true
}
tap "etcd runs" within 60 has_etcd

# --- nodes ---

config n1 10.99.0.11 wireguard
config n2 fd99::12 wireguard
start n1
start n2
tap "n1's agent runs" started n1
tap "n2's agent runs" started n2
tap "n1 has a way to n2" within 40 state n1 '"ways":\{[^}]*"kind":"wireguard","routes":2'
tap "n2 has a way to n1" within 40 state n2 '"ways":\{[^}]*"kind":"wireguard","routes":2'
like "the other's block is routed into the device" "^10\.80\.[0-9]+\.0/24 dev n1-wg " wg_routes n1
wg_routes6()
{
	in_ns "$1" ip -6 route | grep "^fd61:80:.* dev $1-wg"
}
like "and that of IPv6" "^fd61:80::[0-9a-f:]+/120 dev n1-wg " wg_routes6 n1
like "whose packets are 80 bytes shorter than Ethernet's" "mtu 1420 " in_ns n1 ip link show dev n1-wg
like "the private key is root's alone" "^600 0:0$" stat -c '%a %u:%g' /run/ax/n1/wireguard.key

key_is_nowhere()
{
	local key

	key=$(cat /run/ax/n1/wireguard.key)
	{
		ax_at n1 status -o json
		ax_at n1 get nodes -o json
		cat /tmp/n1.log
		grep -rhaF "$key" /tmp/etcd
	} | grep -aF "$key"
	[ $? = 1 ]
}
tap "and neither logs nor lists nor etcd have it" key_is_nowhere

# --- apps ---

sniff vn1 >/tmp/sniffed 2>&1 </dev/null &
sniff=$!
within 5 grep -q listening /tmp/sniffed
mkdir -p /tmp/www
head -c 262144 /dev/urandom >/tmp/www/bytes
for mode in private host; do
	app n1 "c-$mode" --net $mode -- sleep 1000
	app n2 "tcp-$mode" --net $mode -- peer serve 0.0.0.0 7000 "tcp-$mode"
	app n2 "udp-$mode" --net $mode -- peer udp-serve 0.0.0.0 7001 "udp-$mode"
	app n2 "tcp6-$mode" --net $mode -- peer serve :: 7002 "tcp6-$mode"
	app n2 "udp6-$mode" --net $mode -- peer udp-serve :: 7003 "udp6-$mode"
	app n2 "web-$mode" --net $mode -- httpd -f -p 8080 -h /tmp/www
done
app n1 home --net private -- httpd -f -p 8080 -h /tmp/www
# (busybox's httpd has one socket, for both families)
app n1 home6 --net host -- peer serve :: 7002 home6
app n2 c-back --net private -- sleep 1000
tap "n1 knows n2's apps" within 30 knows n1 tcp-private tcp-host udp-private udp-host web-private web-host tcp6-private tcp6-host \
	udp6-private udp6-host
tap "n2 knows n1's" within 30 knows n2 c-private c-host home home6
addr6()
{
	ax_at "$1" get apps -o json "$2" | sed -n 's/.*"ip6": *"\([0-9a-f:]*\)".*/\1/p' | head -n 1
}
fetch()
{
	at "$1" "$2" wget -q -O - "http://$3:8080/bytes" | cmp - /tmp/www/bytes
}
for mode in private host; do
	me=$(addr n1 "c-$mode")
	for to in private host; do
		like "TCP from a $mode app to a $to one: both see real addresses" \
			"^tcp-$to peer=$me local=$(addr n2 "tcp-$to") asked=$(addr n2 "tcp-$to")$" \
			at n1 "$mode" peer get "$(addr n2 "tcp-$to")" 7000
		like "and by UDP" "^udp-$to hello peer=$me from=$(addr n2 "udp-$to")$" \
			at n1 "$mode" peer udp "$(addr n2 "udp-$to")" 7001 hello
		like "by IPv6 as well" "^tcp6-$to peer=$(addr6 n1 "c-$mode") local=$(addr6 n2 "tcp6-$to") asked=$(addr6 n2 "tcp6-$to")$" \
			at n1 "$mode" peer get "$(addr6 n2 "tcp6-$to")" 7002
		like "and by UDP" "^udp6-$to hello peer=$(addr6 n1 "c-$mode") from=$(addr6 n2 "udp6-$to")$" \
			at n1 "$mode" peer udp "$(addr6 n2 "udp6-$to")" 7003 hello
		tap "and 256 KiB come whole, by name" fetch n1 "$mode" "web-$to.ax.internal"
	done
done
tap "and the other way round" fetch n2 back home.ax.internal
like "by IPv6, too" "^home6 peer=$(addr6 n2 c-back) " at n2 back peer get "$(addr6 n1 home6)" 7002
like "a private app pings one of the other node" "1 packets received" \
	at n1 private ping -c 1 -W 5 "$(addr n2 tcp-private)"
like "and by IPv6" "1 packets received" at n1 private ping -6 -c 1 -W 5 "$(addr6 n2 tcp6-private)"
like "the kernel tells when they shook hands" '"handshake": *1[0-9]+' ax_at n1 get nodes -o json
only_wireguard()
{
	cat /tmp/sniffed
	# (neighbours are looked for by ICMPv6, and hosts join groups)
	grep -v -e listening -e '10\.99\.0\.1 ' -e ' 10\.99\.0\.1 ' -e 'ip 58$' -e ' ff02::' /tmp/sniffed >/tmp/between
	grep -q ' udp 51820$' /tmp/between && ! grep -v ' udp 51820$' /tmp/between
}
tap "between the nodes nothing has passed but WireGuard's UDP" only_wireguard
kill $sniff
wait $sniff
like "the doctor finds nothing in the way" "its last handshake was" ax_at n1 doctor --cluster

# --- who is none of them ---

counted()
{
	ax_at "$1" status -o json | sed -n "s/.*\"$2\": *\([0-9]*\).*/\1/p" | head -n 1
}
block=$(wg_routes n1 | sed 's/ .*//')
ip route add "$block" via 10.99.0.12
before=$(counted n2 fabric-wrong-source)
block6=$(wg_routes6 n1 | sed 's/ .*//')
ip addr add fd99::1/64 dev lan0
ip -6 route add "$block6" via fd99::12
within 10 ping -6 -c 1 fd99::12 # (addresses are not used at once)
for to in private host; do
	spoof "$(addr n1 c-private)" "$(addr n2 "udp-$to")" 7001 forged >/tmp/out.spoof
	spoof "$(addr6 n1 c-private)" "$(addr6 n2 "udp6-$to")" 7003 forged >>/tmp/out.spoof
done
like "a forged packet leaves" "^sent" cat /tmp/out.spoof
drops()
{
	echo "before: $before, now: $(counted n2 fabric-wrong-source)"
	[ "$(counted n2 fabric-wrong-source)" -ge $((before + 4)) ]
}
tap "an app's address by the plain network is not believed" within 5 drops

# --- nodes that cannot be peers ---

put()
{
	wget -q -O /dev/null --post-data "{\"key\": \"$(printf %s "$1" | base64 -w 0)\", \"value\": \"$(printf %s "$2" | base64 -w 0)\"}" \
		http://10.99.0.1:2379/v3/kv/put
}
# node NAME DIGIT MORE: it is at 10.99.0.77, and has the block 10.80.DIGIT.0/24
node()
{
	local id=$2$2$2$2$2$2$2$2

	id=$id$id$id$id
	put "/ax/east/nodes/$1" "{\"v\": 1, \"name\": \"$1\", \"id\": \"$id\", \"since\": 1, \"version\": \"0.1\", \"address\": \"10.99.0.77\"$3}"
	put "/ax/east/blocks/10.80.$2.0-24" "{\"v\": 1, \"prefix\": \"10.80.$2.0/24\", \"node\": \"$1\", \"id\": \"$id\"}"
}
public=$(ax_at n2 status -o json | tr -d ' \n' | sed 's/.*"wireguard":{\([^}]*\)}.*/\1/; s/.*"key":"\([^"]*\)".*/\1/')
node older 1 ""
node twin 2 ", \"wireguard\": {\"key\": \"$public\", \"port\": 51820}"
says()
{
	ax_at n1 status -o json | tee /tmp/said | grep -q "$1"
}
tap "a node without a key is no peer, and why is said" within 20 says "has no WireGuard key in the registry"
tap "nor is one with another's key" within 20 says "has the WireGuard key of node n2"
like "and the other keeps it" "^tcp-private peer=" at n1 private peer get "$(addr n2 tcp-private)" 7000

# --- what changes meanwhile ---

app n1 talker --net private -- peer chat "$(addr n2 tcp-private)" 7000 40 200
within 60 pgrep -f '^peer chat' # the agent has answered, and is not needed any more
key=$(cat /run/ax/n1/wireguard.key)
index=$(in_ns n1 ip link show dev n1-wg | sed 's/:.*//')
kill -9 "$agent_n1"
wait "$agent_n1"
usleep 1000000
start n1
tap "another agent takes it over" started n1 || tail -n 5 /tmp/n1.log
tap "with what it knows" within 40 state n1 '"kind":"wireguard","routes":2'
same_device()
{
	in_ns n1 ip link show dev n1-wg
	[ "$key" = "$(cat /run/ax/n1/wireguard.key)" ] && in_ns n1 ip link show dev n1-wg | grep -q "^$index: "
}
tap "the device and the key are the same" same_device
tap "a connection has gone on all the while, also when there was no agent" within 60 grep -q '^40 echoes$' /tmp/out.talker || cat /tmp/out.talker
in_ns n1 ip link del n1-wg
tap "a device that somebody has deleted is made again" within 20 wg_routes n1
again()
{
	at n1 private peer get "$(addr n2 tcp-private)" 7000 && at n1 private peer get "$(addr6 n2 tcp6-private)" 7002
}
tap "and leads there, by both families" within 20 again

kill -9 "$agent_n2"
wait "$agent_n2"
# (the twin is the only one with that key then)
no_way()
{
	! wg_routes n1 | grep -F "$block" && ! wg_routes6 n1
}
tap "a node that is dead has no way any more" within 60 no_way

# --- the end ---

gone()
{
	! in_ns "$1" ip link show dev "$1-wg" && ! in_ns "$1" ip route | grep '^10\.80\.[0-9.]*/' &&
		! in_ns "$1" ip -6 route | grep '^fd61:80:.*/'
}
kill "$agent_n1"
wait "$agent_n1"
config n1 10.99.0.11 none
start n1
tap "an agent with another way takes the device away" gone n1
kill "$agent_n1"
wait "$agent_n1"
for node in n1 n2; do
	tap "ax agent --flush on $node" ax_at $node agent --flush
	tap "nothing is left of the way there" gone $node
	tap "nor of the key" test ! -e /run/ax/$node
done
# shellcheck disable=SC2086 # a list
wait $pids
kill $etcd "$pid_n1" "$pid_n2"
wait $etcd "$pid_n1" "$pid_n2"
ip link del lan0
rm -rf /tmp/etcd
[ "$failures" = 0 ] || tail -n 30 /tmp/n1.log /tmp/n2.log
done_testing
