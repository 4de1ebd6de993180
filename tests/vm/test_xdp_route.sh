# SPDX-License-Identifier: GPL-2.0-or-later
# kernel: 6.1
# `action route` on this kernel, between real VLANs, too: the machine is a router between two worlds.
. "${0%/*}/lib.sh"

# world NAME: a namespace with the far end of the pair NAME0; sets its process and the far end
world()
{
	unshare -n sh -c "ip link set lo up; echo >/tmp/$1; exec sleep 600" &
	process=$!
	eventually 5 test -e "/tmp/$1"
	ip link add "$1" type veth
	far=$(cd /sys/class/net && echo veth*) # busybox's ip takes no name for it
	ip link set "$far" netns "$process"
	ip link set "$1" up
	nsenter -t "$process" -n ip link set "$far" up
}
in_west()
{
	nsenter -t "$west" -n "$@"
}
in_east()
{
	nsenter -t "$east" -n "$@"
}
# what scripts before this one have left
ip link del w0 2>/dev/null
ip link del e0 2>/dev/null
world w0
west=$process west_far=$far
world e0
east=$process east_far=$far
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/ipv6/conf/all/forwarding

ip addr add 10.1.0.1/24 dev w0
ip addr add 10.2.0.1/24 dev e0
ip addr add 2001:db8:1::1/64 dev w0
ip addr add 2001:db8:2::1/64 dev e0
in_west ip addr add 10.1.0.2/24 dev "$west_far"
in_east ip addr add 10.2.0.2/24 dev "$east_far"
in_west ip addr add 2001:db8:1::2/64 dev "$west_far"
in_east ip addr add 2001:db8:2::2/64 dev "$east_far"
vconfig add w0 5 >/dev/null
vconfig add e0 7 >/dev/null
in_west vconfig add "$west_far" 5 >/dev/null
in_east vconfig add "$east_far" 7 >/dev/null
ip addr add 10.3.0.1/24 dev w0.5
ip addr add 10.4.0.1/24 dev e0.7
in_west ip addr add 10.3.0.2/24 dev "$west_far.5"
in_east ip addr add 10.4.0.2/24 dev "$east_far.7"
ip link set w0.5 up
ip link set e0.7 up
in_west ip link set "$west_far.5" up
in_east ip link set "$east_far.7" up
in_west ip route add 10.2.0.0/24 via 10.1.0.1
in_west ip route add 10.4.0.0/24 via 10.1.0.1
in_west ip route add 2001:db8:2::/64 via 2001:db8:1::1
in_east ip route add 10.1.0.0/24 via 10.2.0.1
in_east ip route add 10.3.0.0/24 via 10.2.0.1
in_east ip route add 2001:db8:1::/64 via 2001:db8:2::1

in_east peer udp-serve :: 9000 server >/tmp/out.server 2>&1 </dev/null &
listening()
{
	grep -q listening /tmp/out.server
}
eventually 10 listening

routed() # SIDE
{
	ax xdp stats "$1" | awk '$1 == "routed" { n = $2 } END { print n + 0 }'
}
# crosses ADDRESS: answers come, and both lists routed (the kernel resolves next hops first, and has its
# turn every 5 seconds, which are few packets here)
crosses()
{
	local w e i=0

	w=$(routed w0)
	e=$(routed e0)

	while [ "$i" -lt 10 ]; do
		i=$((i + 1))
		timeout 3 nsenter -t "$west" -n peer udp "$1" 9000 word | tee /tmp/answer
		grep -q '^server word' /tmp/answer || return 1
		[ "$(routed w0)" -gt "$w" ] && [ "$(routed e0)" -gt "$e" ] && return
		usleep 300000
	done
	ax xdp stats w0
	ax xdp stats e0
	ax doctor w0
	return 1
}

cat >/tmp/route.yaml <<'EOF'
rules:
  - {name: way, action: route, checksum: recompute}
EOF
for side in w0 e0; do
	tap "load on $side" ax xdp load $side --rules /tmp/route.yaml --fix
done
# with programs they take frames from XDP (their names may be one)
tap "a program in the west" in_west ax xdp load "$west_far"
tap "a program in the east" in_east ax --instance east xdp load "$east_far"
for side in w0 e0; do
	tap "apply on $side" ax xdp apply $side --rules /tmp/route.yaml --fix
done
like "ax doctor says where packets are routed" "packets are routed to e0" ax doctor w0

tap "IPv4" crosses 10.2.0.2
tap "IPv6" crosses 2001:db8:2::2
tap "to a VLAN" crosses 10.4.0.2
in_west ip route del 10.2.0.0/24
in_west ip route del 10.4.0.0/24
in_west ip route add 10.2.0.0/24 via 10.3.0.1
in_west ip route add 10.4.0.0/24 via 10.3.0.1
tap "from a VLAN" crosses 10.2.0.2
tap "from a VLAN to a VLAN" crosses 10.4.0.2
like "a tag is put on" "becomes +vlan 7 udp 10.1.0.2:5 > 10.4.0.2:9" \
	ax xdp explain w0 --packet 'udp 10.1.0.2:5 > 10.4.0.2:9'
like "a tag is taken off" "becomes +udp 10.3.0.2:5 > 10.2.0.2:9" \
	ax xdp explain w0 --packet 'vlan 5 udp 10.3.0.2:5 > 10.2.0.2:9'
like "the last router is the kernel" "route-ttl" \
	ax xdp explain w0 --packet 'udp 10.1.0.2:5 > 10.2.0.2:9 ttl 1'
like "who is not there is asked for by it" "route-neighbour" \
	ax xdp explain w0 --packet 'udp 10.1.0.2:5 > 10.2.0.77:9'
tap "unload" ax xdp unload w0
tap "unload" ax xdp unload e0
in_west ax xdp unload "$west_far"
in_east ax --instance east xdp unload "$east_far"
kill "$west" "$east"
done_testing
