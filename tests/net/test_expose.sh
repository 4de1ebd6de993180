#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 240
# Exposed ports: programs on other machines, and on this one, reach apps of both modes at the host's
# addresses and are seen with their own; whose port it is; what stays when the agent dies.
. "$(dirname "$0")/lib.sh"
need ip jq curl "$PYTHON" nginx
build_c tcp udp

config() {
	cat <<-EOF2
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		  host_access: ${1:-true}
		${2:-}
	EOF2
}

# --- neighbours: one on a link of its own, one behind a bridge ---

# neighbour NAME: a network namespace, whose process is in $NAME
neighbour() {
	unshare -n sleep 1000 &
	BACKGROUND+=("$!")
	printf -v "$1" %s "$!"
	wait_for "[ \"\$(readlink /proc/$!/ns/net)\" != \"\$(readlink /proc/self/ns/net)\" ]"
	nsenter -t "$!" -n sh -c "sysctl -qw net.ipv6.conf.default.accept_dad=0; ip link set lo up"
}
on() {
	local pid=$1
	shift
	timeout 10 nsenter -t "$pid" -n "$@"
}
RP_FILTER=$(sysctl -n net.ipv4.conf.all.rp_filter)
sysctl -qw net.ipv4.conf.all.rp_filter=1 net.ipv4.conf.default.rp_filter=1 \
	net.ipv6.conf.default.accept_dad=0
neighbour ROUTED
neighbour BRIDGED
ip link add n0 type veth peer name eth0 netns "$ROUTED" || skip_all "missing kernel feature veth"
ip addr add 198.51.100.1/24 dev n0
ip addr add 2001:db8:1::1/64 dev n0 nodad
ip link set n0 mtu 1400 up
on "$ROUTED" sh -c "ip addr add 198.51.100.2/24 dev eth0; ip addr add 2001:db8:1::2/64 dev eth0 nodad
	ip link set eth0 mtu 1400 up
	ip route add default via 198.51.100.1; ip -6 route add default via 2001:db8:1::1"
ip link add br0 type bridge
ip link add n1 master br0 type veth peer name eth0 netns "$BRIDGED"
ip addr add 203.0.113.1/24 dev br0
ip addr add 2001:db8:2::1/64 dev br0 nodad
ip link set n1 up
ip link set br0 up
on "$BRIDGED" sh -c "ip addr add 203.0.113.2/24 dev eth0; ip addr add 2001:db8:2::2/64 dev eth0 nodad
	ip link set eth0 up; ip route add default via 203.0.113.1
	ip -6 route add default via 2001:db8:2::1"
wait_for 'ip link show n0 | grep -q LOWER_UP && ip link show br0 | grep -q LOWER_UP'
agent_start - < <(config)

# reach WHAT PORT: from both neighbours, by both families, with their own addresses
reach() {
	local what=$1 port=$2 to
	for to in "ROUTED 4 198.51.100.1 198.51.100.2" "ROUTED 6 2001:db8:1::1 2001:db8:1::2" \
		"BRIDGED 4 203.0.113.1 203.0.113.2" "BRIDGED 6 2001:db8:2::1 2001:db8:2::2"; do
		# shellcheck disable=SC2086 # fields
		set -- $to
		like "$what: a client $1 at $3" \
			"$(on "${!1}" "$BIN/tcp" connect "$2" "$3" "$port" 2>&1)" "^peer=.* you=\[?(::ffff:)?$4\]?:"
	done
}
# from_host WHAT PORT LOOPBACK4 LOOPBACK6: what clients of this host are seen as
from_host() {
	local what=$1 port=$2 loop4=$3 loop6=$4 to
	for to in "4 127.0.0.1 $loop4" "6 ::1 $loop6" "4 198.51.100.1 198.51.100.1" \
		"6 2001:db8:1::1 2001:db8:1::1"; do
		# shellcheck disable=SC2086 # fields
		set -- $to
		like "$what: this host by $2" "$(timeout 5 "$BIN/tcp" connect "$1" "$2" "$port" 2>&1)" \
			"^peer=.* you=\[?(::ffff:)?$3\]?:"
	done
}

# --- host mode, TCP ---

serve 80 --net host --name host --ip 10.77.1.1,fd77::1:1 -p 8080:80 -- "$BIN/tcp" listen 6 :: 80 hello
reach "host mode" 8080
from_host "host mode" 8080 127.0.0.1 ::1
stop_apps
sysctl -qw net.ipv4.conf.all.rp_filter="$RP_FILTER"
ip link del br0
end "$ROUTED"
end "$BRIDGED"
wait_for "! ip link show n0 && ! ip link show n1"
done_testing
