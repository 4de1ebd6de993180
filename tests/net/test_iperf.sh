#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# a processor each
# timeout: 300
# iperf3, TCP and UDP, both directions, in private and host mode, by address, name and service.
. "$(dirname "$0")/lib.sh"
need iperf3 jq
TIME_LIMIT=30

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  speed:
    ip: 10.77.200.1,fd77::200:1
    ports: [5201, 5201/udp]
    backends: [iperf]
EOF

# measure NAME MIN-BYTES CLIENT-MODE OPTIONS... (a TCP server stops counting when the client has sent
# all, of which the buffers of each stream may still hold some 10 MB)
measure() {
	local name=$1 min=$2 mode=$3 out
	shift 3
	out=$(in_app --net "$mode" -- iperf3 -J "$@" 2>&1)
	if jq -e --argjson min "$min" '(.error // "") == "" and
		((.end.sum_received.bytes // .end.sum.bytes) >= $min)' <<<"$out" >/dev/null; then
		pass "$name"
	else
		not_ok "$name" "$(jq -c '{error, end: .end.sum_received, udp: .end.sum}' <<<"$out" 2>/dev/null ||
			echo "$out" | head -n 20)"
	fi
}

# udp MODE CLIENT HOST... (a server that does not get the processor for a moment loses what its buffer
# does not hold)
udp() {
	local mode=$1 client=$2 host
	shift 2
	for host; do
		measure "iperf3 server in $mode mode: UDP from $client mode to $host" \
			100000 "$client" -c "$host" -u -b 100M -l 1400 -n 2M
		measure "iperf3 server in $mode mode: UDP reverse, $client mode, $host" \
			100000 "$client" -c "$host" -u -b 100M -l 1400 -n 2M -R
	done
}

for mode in private host; do
	serve 5201 --net $mode --ip 10.77.1.1,fd77::1:1 --name iperf -- iperf3 -s
	pid=$APP
	for client in private host; do
		for host in 10.77.1.1 fd77::1:1 iperf speed fd77::200:1; do
			measure "iperf3 server in $mode mode: TCP from $client mode to $host" \
				10000000 $client -c $host -n 32M
		done
		measure "iperf3 server in $mode mode: TCP reverse, $client mode, by service" \
			10000000 $client -c speed -n 32M -R
		measure "iperf3 server in $mode mode: 8 streams, $client mode, by service" \
			10000000 $client -c speed -n 128M -P 8
		udp $mode $client 10.77.1.1 10.77.200.1
		[ $mode = host ] || udp $mode $client iperf speed fd77::200:1
	done
	stop_app $pid
done

# iperf3's UDP server connects its socket to the client. In host mode a dual-stack socket sits on the
# IPv4 address and the kernel lets it connect to no IPv6 peer (ax-run(8), LIMITS): it has to be told the
# address.
serve 5201 --net host --ip 10.77.1.1,fd77::1:1 --name iperf -- iperf3 -s -B fd77::1:1
pid=$APP
for client in private host; do
	udp host $client fd77::1:1 fd77::200:1
done
stop_app $pid
done_testing
