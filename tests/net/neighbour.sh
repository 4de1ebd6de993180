# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Sourced after lib.sh by the scripts about clients on another machine at the host's own network, who know the way to
# virtual IPs.

# LAN becomes the process whose network namespace is the neighbour's: 198.51.100.2 and 2001:db8:1::2 at lan1, the host's
# end is lan0 with 1. This host forwards, until neighbour_end.
neighbour_begin() {
	bg /dev/null unshare -n sleep 1000
	LAN=$BG
	wait_for "[ \"\$(readlink /proc/$LAN/ns/net)\" != \"\$(readlink /proc/self/ns/net)\" ] &&
		grep -q sleep /proc/$LAN/comm"
	veth_or_skip lan0 type veth peer name lan1 netns "/proc/$LAN/ns/net"
	ip addr add 198.51.100.1/24 dev lan0
	ip addr add 2001:db8:1::1/64 dev lan0 nodad
	ip link set lan0 up
	nsenter -t "$LAN" -n sh -c "ip link set lo up; ip addr add 198.51.100.2/24 dev lan1
		ip addr add 2001:db8:1::2/64 dev lan1 nodad; ip link set lan1 up
		ip route add 10.77.0.0/16 via 198.51.100.1; ip route add fd77::/64 via 2001:db8:1::1"
	NEIGHBOUR_SYSCTLS=$(sysctl net.ipv4.ip_forward net.ipv6.conf.all.forwarding net.ipv4.conf.all.rp_filter | tr -d ' ')
	sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 \
		net.ipv4.conf.lan0.rp_filter=0
}

neighbour_end() {
	# shellcheck disable=SC2086 # a list
	sysctl -qw $NEIGHBOUR_SYSCTLS
}
