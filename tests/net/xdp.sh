# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Sourced after lib.sh by the tests of `ax xdp`: a peer behind a veth pair, and what the rules
# counted. Here: xc0 with 198.51.100.1, 2001:db8:2::1; the peer has eth0 with .2, ::2.

PEER_PID=

# new_netns: its process is $BG
new_netns() {
	bg /dev/null unshare -n sleep 1000
	wait_for "[ \"\$(readlink /proc/$BG/ns/net)\" != \"\$(readlink /proc/self/ns/net)\" ]"
}

peer() {
	nsenter -t "$PEER_PID" -n "$@"
}

HERE_MAC=02:00:00:00:00:01
PEER_MAC=02:00:00:00:00:02

# veth [NAME]: the pair, with static neighbours, so that no ARP comes in between what is counted
veth() {
	local name=${1:-xc0}
	veth_or_skip "$name" address $HERE_MAC type veth peer name eth0 address $PEER_MAC netns "$PEER_PID"
	sysctl -q "net.ipv6.conf.${name//.//}.accept_dad=0"
	ip addr add 198.51.100.1/24 dev "$name"
	ip -6 addr add 2001:db8:2::1/64 dev "$name" nodad
	ip link set "$name" up
	peer ip addr add 198.51.100.2/24 dev eth0
	peer ip -6 addr add 2001:db8:2::2/64 dev eth0 nodad
	peer ip link set eth0 up
	wait_for "ip -o link show $name | grep -q 'state UP'"
}

peer_host() {
	new_netns
	PEER_PID=$BG
	peer ip link set lo up
	veth "$@"
}

known_neighbours() {
	peer ip neigh replace 198.51.100.1 lladdr $HERE_MAC dev eth0
	peer ip neigh replace 2001:db8:2::1 lladdr $HERE_MAC dev eth0
	ip neigh replace 198.51.100.2 lladdr $PEER_MAC dev xc0
	ip neigh replace 2001:db8:2::2 lladdr $PEER_MAC dev xc0
}

packets() {
	"$PYTHON" "$SRC/packets.py" "$@"
}

xdp() {
	ax xdp "$@"
}

# count RULE [packets|bytes|limited|failed] [IFACE]
count() {
	xdp stats "${3:-xc0}" -o json |
		jq --arg r "$1" --arg k "${2:-packets}" '[.rules[] | select(.rule == $r)[$k]] | add // "no such rule"'
}

# reason NAME: of odd packets
reason() {
	xdp stats xc0 -o json | jq --arg r "$1" '.reasons[$r] // 0'
}

# xdp_done: the interface and the peer are gone
xdp_done() {
	ip link del xc0 2>/dev/null
	end "$PEER_PID"
	done_testing
}
