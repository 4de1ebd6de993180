#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 300
# Datagrams in fragments by exposed ports, and their answers: apps of both modes, and services; a way
# that is narrower than the app's; fragments of others; no agent.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/net/xdp.sh
. "$(dirname "$0")/xdp.sh"
need ip jq "$PYTHON"

peer_host
agent_start - <<EOF2
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
  host_access: false
services:
  both: {ports: ["90:7000/udp"], backends: [{app: web}], expose: ["8090:90/udp"]}
EOF2
ask() {
	peer timeout 30 "$PYTHON" "$SRC/balance.py" query udp "$1" "$2" "$3" "$4" | cut -d ' ' -f 1,3- | sort | uniq -c | xargs
}

for mode in private host; do
	serve 7000/udp --net $mode --name web --ip 10.77.1.1,fd77::1:1 -p 8080:7000/udp -- \
		"$PYTHON" "$SRC/balance.py" serve web 7000
	for to in 198.51.100.1 2001:db8:2::1; do
		is "$mode: datagrams of 4,000 bytes, $to" "$(ask $to 8080 4000 12)" "12 web whole"
		is "$mode: of 30,000, $to" "$(ask $to 8080 30000 12)" "12 web whole"
		is "$mode: by a service, $to" "$(ask $to 8090 4000 12)" "12 web whole"
	done
	agent_kill9
	is "$mode: without an agent" "$(ask 198.51.100.1 8080 4000 12)" "12 web whole"
	agent_again
	is "$mode: with the next one" "$(ask 198.51.100.1 8080 4000 12)" "12 web whole"
	stop_apps
done

# a narrower way: the first answer is lost, and the app told what fits, by IPv6 where this host forwards it
FORWARDING=$(sysctl -n net.ipv6.conf.all.forwarding)
sysctl -qw net.ipv6.conf.all.forwarding=1
ip link set xc0 mtu 1400
peer ip link set eth0 mtu 1400
for mode in private host; do
	serve 7000/udp --net $mode --name web --ip 10.77.1.2,fd77::1:2 -p 8080:7000/udp -- \
		"$PYTHON" "$SRC/balance.py" serve web 7000
	for to in 198.51.100.1 2001:db8:2::1; do
		ask $to 8080 4000 1 >/dev/null
		is "$mode: a narrow way, $to" "$(ask $to 8080 4000 12)" "12 web whole"
	done
	stop_apps
done
sysctl -qw net.ipv6.conf.all.forwarding="$FORWARDING"
agent_stop
done_testing
