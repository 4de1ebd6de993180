# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Sourced after lib.sh by tests of balancers: links from here to named network namespaces.

# link NAME SUBNET NAMESPACE: 10.SUBNET.1 is here, .2 there
link() {
	local v6=${2//./:}
	ip link add "$1" type veth peer name eth0 netns "$3"
	ip addr add "10.$2.1/24" dev "$1"
	ip addr add "fd0$v6::1/64" dev "$1" nodad
	ip link set "$1" up
	ip -n "$3" addr add "10.$2.2/24" dev eth0
	ip -n "$3" addr add "fd0$v6::2/64" dev eth0 nodad
	ip -n "$3" link set eth0 up
	ip -n "$3" route add default via "10.$2.1"
	ip -n "$3" -6 route add default via "fd0$v6::1"
}
