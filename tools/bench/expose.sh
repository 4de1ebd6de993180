# SPDX-License-Identifier: GPL-2.0-or-later
# Ports of this machine by which a neighbour reaches servers (expose:), and what a container engine makes
# of them: DNAT by nftables, or a proxy. Sourced by run.sh.
#
# The way is the same for all: the neighbour is behind a veth pair, and so is the server, but for apps in
# host mode, which have no second one.

expose_cases=(expose.conn.private expose.conn.host expose.conn.dnat expose.conn.proxy
	expose.stream.private expose.stream.host expose.stream.dnat expose.stream.proxy
	expose.rr.private expose.rr.host expose.rr.dnat expose.rr.proxy)

# Ports of the machine: 80 and what follows are DNAT's (ax's, where ax is), 90 and what follows the proxy's.
expose_up() {
	local mode server
	routed_up dnat 10.77.0 10.78.0
	publish_port dnat 10.78.0.2 'dnat*' 80:7001 81:7002 82:7003
	server=0
	for mode in close echo sink; do
		server=$((server + 1))
		start_server_in dnatserver "dnat-$mode" "${on_cpu[@]}" server "$mode" 700$server
	done
	# streams that are paced (BBR) say how well the pace is guessed
	sysctl -qw net.ipv4.tcp_congestion_control=reno
	in_netns dnat sysctl -qw net.ipv4.tcp_congestion_control=reno
	in_netns dnatclient sysctl -qw net.ipv4.tcp_congestion_control=reno
	expose_proxy_up
	[ -n "$ax" ] || return 0
	netns_add neighbour
	ip link add neighbour type veth peer name eth0 netns neighbour
	ip addr add 10.76.0.1/24 dev neighbour
	ip link set neighbour up
	in_netns neighbour ip addr add 10.76.0.2/24 dev eth0
	in_netns neighbour ip link set eth0 up
	in_netns neighbour sysctl -qw net.ipv4.tcp_congestion_control=reno
	agents+=("$exposer")
	awk -v n=10 -f "$here/config.awk" >"$tmp/exposer.yaml"
	start_agent "$exposer" "$tmp/exposer.yaml"
	expose_serve private 80 10.66.4
	expose_serve host 90 10.66.5
}

expose_serve() { # MODE PORT ADDRESSES: the first of three ports
	local mode server=0
	for mode in close echo sink; do
		server=$((server + 1))
		start_server "exposed-$1-$mode" "$ax" --instance "$exposer" run --net "$1" --name "$1$mode" \
			--ip "$3.$server" -p $(($2 + server - 1)):700$server -- \
			"${on_cpu[@]}" server "$mode" 700$server
	done
}

expose_proxy_up() {
	local server
	{
		printf '%s\n' 'defaults' 'mode tcp' 'timeout connect 5s' 'timeout client 30s' 'timeout server 30s'
		for server in 1 2 3; do
			printf '%s\n' "listen p$server" "bind 10.77.0.1:9$((server - 1))" \
				"server s 10.78.0.2:700$server"
		done
	} >"$tmp/proxy.cfg"
	start proxy nsenter --net=/run/netns/dnat taskset -c "$cpu" haproxy -db -q -f "$tmp/proxy.cfg"
	wait_for 10 "the proxy's answer" in_netns dnatclient "$bench" -t 1 connect-rate 10.77.0.1 90
}

measure_expose() { # CASE
	local case=$1 what=$1 from=dnatclient at=10.77.0.1 port=80
	what=${what#expose.}
	what=${what%.*}
	case $case in
	*.private) from=neighbour at=10.76.0.1 ;;
	*.host) from=neighbour at=10.76.0.1 port=90 ;;
	*.proxy) port=90 ;;
	esac
	case $what in
	conn) measure "$case" in_netns "$from" "${on_cpu[@]}" connect-rate $at $port ;;
	rr) field=p99 measure "$case" in_netns "$from" "${on_cpu[@]}" rr $at $((port + 1)) ;;
	stream) measure "$case" in_netns "$from" "${on_cpu_b[@]}" stream $at $((port + 2)) ;;
	esac
}

expose_rows() {
	local mode
	for mode in private host; do
		row "connect+accept+close, $mode" 1/s expose.conn.$mode 'nftables DNAT' expose.conn.dnat '>=' 1.1
		row "connect+accept+close, $mode" 1/s expose.conn.$mode 'haproxy, TCP mode' expose.conn.proxy '>=' 2
		row "64 KiB stream, $mode" Gbit/s expose.stream.$mode 'nftables DNAT' expose.stream.dnat '>=' 1.1
		row "64 KiB stream, $mode" Gbit/s expose.stream.$mode 'haproxy, TCP mode' expose.stream.proxy '>=' 2
		row "64-byte round trip p99, $mode" ns expose.rr.$mode 'nftables DNAT' expose.rr.dnat '<=' 0.91
		row "64-byte round trip p99, $mode" ns expose.rr.$mode 'haproxy, TCP mode' expose.rr.proxy '<=' 0.5
	done
}
