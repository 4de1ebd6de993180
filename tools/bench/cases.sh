# SPDX-License-Identifier: GPL-2.0-or-later
# What is measured. Sourced by run.sh, which set ax, bench, tmp, cpu, cpu_b, small, large.

on_cpu=("$bench" -c "$cpu" -t "$MILLISECONDS")
on_cpu_b=("$bench" -c "$cpu_b" -t "$MILLISECONDS")

# --- the other ways ---
# Tracking connections costs everything in its network namespace, so the ones that need nftables
# have their own.
baselines_up() {
	start_server plain-close "${on_cpu[@]}" server close 127.0.0.1 7001
	start_server plain-echo "${on_cpu[@]}" server echo 127.0.0.1 7002
	haproxy_up
	bridge_up
	routed_up nat 10.77.0 10.78.0
	publish_port nat 10.78.0.2 'nat*' 80:7002
	start_server_in natserver nat-echo "${on_cpu[@]}" server echo 7002
	routed_up fwd 10.77.0 10.78.0
	start_server_in fwdserver fwd-sink "${on_cpu[@]}" server sink 7003
}

# Twice: as a user starts it, wherever the scheduler puts it; and on the processor where the client
# and the server are, which is the best that can happen to it here: it never waits for a wake-up on
# another one.
haproxy_up() {
	haproxy_config 7005
	start haproxy haproxy -db -q -f "$tmp/haproxy-7005.cfg"
	haproxy_config 7006
	start haproxy-pinned taskset -c "$cpu" haproxy -db -q -f "$tmp/haproxy-7006.cfg"
	wait_for 10 "haproxy's answer" "$bench" -t 1 connect-rate 127.0.0.1 7005
	wait_for 10 "haproxy's answer" "$bench" -t 1 connect-rate 127.0.0.1 7006
}
haproxy_config() { # PORT [SERVER_PORT]
	cat >"$tmp/haproxy-$1.cfg" <<-CONFIG
		defaults
			mode tcp
			timeout connect 5s
			timeout client 30s
			timeout server 30s
		frontend in
			bind 127.0.0.1:$1
			default_backend out
		backend out
			server one 127.0.0.1:${2:-7001}
	CONFIG
}

# Client and server behind one bridge, in networks of their own: then the answers come back through
# the host without a masquerade, and without bridge filtering, which would cost still more.
bridge_up() {
	netns_add br
	in_netns br ip link add br0 type bridge
	in_netns br ip addr add 10.77.0.1/24 dev br0
	in_netns br ip addr add 10.78.0.1/24 dev br0
	in_netns br ip link set br0 up
	in_netns br sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.send_redirects=0 \
		net.ipv4.conf.br0.send_redirects=0
	veth_into br brclient 10.77.0.2 10.77.0.1 br0
	veth_into br brserver 10.78.0.2 10.78.0.1 br0
	publish_port br 10.78.0.2 br0 80:7001
	start_server_in brserver bridge-close "${on_cpu[@]}" server close 7001
	wait_for 10 "the bridge's forwarding" in_netns brclient "$bench" -t 1 connect-rate \
		10.77.0.1 80
}

# routed_up NAME CLIENT_NET SERVER_NET: two veth pairs, the kernel routes between them
routed_up() {
	netns_add "$1"
	in_netns "$1" sysctl -qw net.ipv4.ip_forward=1
	veth_into "$1" "$1client" "$2.2" "$2.1"
	veth_into "$1" "$1server" "$3.2" "$3.1"
}

# --- ax ---
host_small=("$ax" --instance "$small" run --net host)
private_small=("$ax" --instance "$small" run --net private)
host_large=("$ax" --instance "$large" run --net host)
host_client=("${host_small[@]}" --name client --ip 10.66.1.9 -- "${on_cpu[@]}")
private_client=("${private_small[@]}" --name client --ip 10.66.2.9 -- "${on_cpu[@]}")
private_client_b=("${private_small[@]}" --name client --ip 10.66.2.9 -- "${on_cpu_b[@]}")
large_client=("${host_large[@]}" --name client --ip 10.66.1.9 -- "${on_cpu[@]}")

ax_up() {
	awk -v n=10 -f "$here/config.awk" >"$tmp/small.yaml"
	start_agent "$small" "$tmp/small.yaml"
	start_server hclose "${host_small[@]}" --name hclose --ip 10.66.1.1 -- \
		"${on_cpu[@]}" server close 7001
	start_server hecho "${host_small[@]}" --name hecho --ip 10.66.1.2 -- \
		"${on_cpu[@]}" server echo 7002
	start_server pecho "${private_small[@]}" --name pecho --ip 10.66.2.1 -- \
		"${on_cpu[@]}" server echo 7002
	start_server psink "${private_small[@]}" --name psink --ip 10.66.2.2 -- \
		"${on_cpu[@]}" server sink 7003
}

# A second agent in a network namespace of its own, so that neither sees the other's addresses.
large_up() {
	local begin end
	netns_add large
	awk -v n=10 -f "$here/config.awk" >"$tmp/large.yaml"
	start_agent "$large" "$tmp/large.yaml" nsenter --net=/run/netns/large
	awk -v n="$DECLARED" -f "$here/config.awk" >"$tmp/large.yaml"
	begin=$(date +%s.%N)
	axi "$large" config apply "$tmp/large.yaml" >"$tmp/apply.out" 2>"$tmp/apply.err" ||
		die "config apply failed: $(tail -n 1 "$tmp/apply.err")"
	end=$(date +%s.%N)
	round=1
	record apply "$(echo "$begin $end" | awk '{printf "%.3f", $2 - $1}')"
	record rss "$(rss_mib "$agent_pid")"
	start_server_in large lclose "${host_large[@]}" --name hclose --ip 10.66.1.1 -- \
		"${on_cpu[@]}" server close 7001
	large_pid=$agent_pid
}

# The agent with the large config has nothing to do while the others are measured.
idle_begin() {
	sleep 1
	idle_since=$SECONDS
	idle_ticks=$(cpu_ticks "$large_pid")
	idle_wakeups=$(wakeups "$large_pid")
}
idle_end() {
	local left=$((IDLE - (SECONDS - idle_since)))
	[ "$left" -le 0 ] || sleep "$left"
	IDLE=$((SECONDS - idle_since))
	round=1
	record ticks $(($(cpu_ticks "$large_pid") - idle_ticks))
	idle_wakeups=$(($(wakeups "$large_pid") - idle_wakeups))
}

# --- one round of everything ---
# Neighbours in the list are compared with each other.
main_cases=(conn.plain conn.host conn.service conn.nat conn.haproxy conn.haproxypinned
	rr.plain rr.host rr.private rr.nat
	stream.private stream.fwd
	launch.host launch.unshare launch.private)
large_cases=(time.small time.large time.smallservice time.largeservice)

# one_round CASE...: every second round goes backwards, so that no case is always the earlier one
one_round() {
	local list=("$@") i n=$#
	for ((i = 0; i < n; i++)); do
		if ((round % 2)); then
			measure_case "${list[i]}"
		else
			measure_case "${list[n - 1 - i]}"
		fi
	done
}

measure_case() {
	case $1 in
	xdp.* | live.*) measure_xdp "$1" ;;
	syn.* | quiet.*) measure_challenge "$1" ;;
	trace.*) measure_trace "$1" ;;
	ways.*) measure_way "$1" ;;
	splice.*.plain | splice.*.unix) measure_splice "$1" ;;
	svc.web.haproxy | svc.web.nat) measure_services "$1" ;;
	svc.*) [ -z "$ax" ] || measure_services "$1" ;;
	expose.*.dnat | expose.*.proxy) measure_expose "$1" ;;
	expose.*) [ -z "$ax" ] || measure_expose "$1" ;;
	splice.*) [ -z "$ax" ] || measure_splice "$1" ;;
	*.plain | *.nat | *.fwd | *.haproxy* | *.unshare) measure_other "$1" ;;
	*) [ -z "$ax" ] || measure_ax "$1" ;;
	esac
}

measure_other() {
	case $1 in
	conn.plain) measure "$1" "${on_cpu[@]}" connect-rate 127.0.0.1 7001 ;;
	conn.nat) measure "$1" in_netns brclient "${on_cpu[@]}" connect-rate 10.77.0.1 80 ;;
	conn.haproxy) measure "$1" "${on_cpu[@]}" connect-rate 127.0.0.1 7005 ;;
	conn.haproxypinned) measure "$1" "${on_cpu[@]}" connect-rate 127.0.0.1 7006 ;;
	rr.plain) measure "$1" "${on_cpu[@]}" rr 127.0.0.1 7002 ;;
	rr.nat) measure "$1" in_netns natclient "${on_cpu[@]}" rr 10.77.0.1 80 ;;
	stream.fwd) measure "$1" in_netns fwdclient "${on_cpu_b[@]}" stream 10.78.0.2 7003 ;;
	launch.unshare) measure_launch "$1" unshare -n true ;;
	esac
}

measure_ax() {
	case $1 in
	conn.host) measure "$1" "${host_client[@]}" connect-rate 10.66.1.1 7001 ;;
	conn.service) measure "$1" "${host_client[@]}" connect-rate 10.66.3.1 80 ;;
	rr.host) measure "$1" "${host_client[@]}" rr 10.66.1.2 7002 ;;
	rr.private) measure "$1" "${private_client[@]}" rr 10.66.2.1 7002 ;;
	stream.private) measure "$1" "${private_client_b[@]}" stream 10.66.2.2 7003 ;;
	launch.host) measure_launch "$1" "${host_small[@]}" -- true ;;
	launch.private) measure_launch "$1" "${private_small[@]}" -- true ;;
	time.small) measure "$1" "${host_client[@]}" connect-time 10.66.1.1 7001 ;;
	time.smallservice) measure "$1" "${host_client[@]}" connect-time 10.66.3.1 80 ;;
	time.large) measure "$1" in_netns large "${large_client[@]}" connect-time 10.66.1.1 7001 ;;
	time.largeservice)
		measure "$1" in_netns large "${large_client[@]}" connect-time 10.66.3.1 80
		;;
	esac
}

# A namespace is taken down after its last process, and whoever changes a link or a route waits for
# that: not the next case.
measure_launch() { # CASE COMMAND...
	local name=$1
	shift
	sleep 0.3
	measure "$name" "$bench" -n 15 spawn-time -- "$@"
}

# --- the table's rows ---
row() { # WHAT UNIT AX_CASE COMPARED_WITH BASE_CASE DIRECTION TARGET
	local IFS=$'\t'
	echo "$*"
}
rows() {
	local plain='plain loopback' many="$DECLARED declared apps and services"
	row 'connect+accept+close, host mode' 1/s conn.host "$plain" conn.plain '>=' 0.95
	row 'connect+accept+close, service' 1/s conn.service "$plain" conn.plain '>=' 0.90
	row 'connect+accept+close, service' 1/s conn.service 'nftables DNAT on a bridge' \
		conn.nat '>=' 1.5
	row 'connect+accept+close, service' 1/s conn.service 'haproxy, TCP mode' conn.haproxy \
		'>=' 4
	row 'connect+accept+close, service' 1/s conn.service 'haproxy on the same processor' \
		conn.haproxypinned '>=' 4
	row '64-byte round trip p50, host mode' ns rr.host "$plain" rr.plain '<=' 1.02
	row '64-byte round trip p50, private' ns rr.private "$plain" rr.plain '<=' 1.15
	row '64-byte round trip p50, private' ns rr.private 'two veth pairs, nftables DNAT' \
		rr.nat '<=' 0.55
	row '64 KiB stream, private' Gbit/s stream.private 'two routed veth pairs' stream.fwd \
		'>=' 1.0
	row 'ax run --net host -- true' ns launch.host 'unshare -n true' launch.unshare '<=' 1.0
	row 'ax run -- true (private)' ns launch.private 'unshare -n true' launch.unshare '<=' 2.0
	row "connect time to an app, $many" ns time.large 'with 10' time.small '<=' 1.1
	row "connect time to a service, $many" ns time.largeservice 'with 10' \
		time.smallservice '<=' 1.1
	row "config apply, $many" s apply '' '' '<=' 2
	row 'resident memory of the agent then' MiB rss '' '' '<=' 64
	row "processor time of that agent, $IDLE s idle" ticks ticks '' '' '<=' 0
}
