#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Whom the answers to UDP clients reach: apps that share an address, and clients whose ports the
# machine takes from an unusual range.
. "$(dirname "$0")/lib.sh"
need setpriv jq
build_c udp

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  usvc:
    ip: 10.77.200.1,fd77::200:1
    ports: ["9000:7000/udp"]
    backends: [echo]
EOF

# An app that owns an address that others share asks from that address: every answer is its own. A
# server's socket sticks to one backend, so it takes several sockets to see answers go astray; all of
# them would answer the right one of two with a probability of 2^-8.
PORTS="7000 7001 7002 7003 7004 7005 7006 7007"
# shellcheck disable=SC2086 # $PORTS: a list
for server in private host; do
	serve 7000/udp --net $server --ip 10.77.1.1,fd77::1:1 --name echo -- sh -c "
		for port in ${PORTS#* }; do setpriv --pdeathsig TERM $BIN/udp serve 6 :: \$port & done
		exec $BIN/udp serve 6 :: 7000"
	echo=$APP
	wait_for "[ \$(grep -c bound $OUT) -eq 8 ]"
	for mode in private host; do
		for method in connected sendto sendmmsg; do
			rm -f "$T/go"
			run_app --net $mode --name pair --ip 10.77.5.1,fd77::5:1 -- sh -c "
				while [ ! -e $T/go ]; do sleep 0.05; done
				timeout 10 $BIN/udp ask $method 4 $(printf '10.77.1.1 %s ' $PORTS) &&
				timeout 10 $BIN/udp ask $method 6 $(printf 'fd77::1:1 %s ' $PORTS) && echo all"
			owner=$APP out=$OUT
			launched pair
			run_app --net $mode --name pair -- sleep 100
			second=$APP
			wait_for "ax get services -o json | jq -e '.[] | select(.name == \"pair\")'"
			touch "$T/go"
			wait_for "! alive $owner"
			is "$server server: the $mode owner of a shared address gets all answers, $method" \
				"$(tail -n 1 "$out")" all
			is "$server server: it asked from the shared address, $mode, $method" \
				"$(grep -o 'you=[^ ]*' "$out" | sed 's/:[0-9]*$//' | sort | uniq -c |
					awk '{ printf "%s=%s ", $2, $1 }')" \
				"you=[::ffff:10.77.5.1]=8 you=[fd77::5:1]=8 "
			stop_app $owner
			stop_app $second
		done
	done
	stop_app $echo
done

# where the ports of clients begin is the machine's choice
agent_stop
sysctl -qw net.ipv4.ip_local_port_range="10000 20000"
agent_again
# shellcheck disable=SC2086 # $to: a family, an address, maybe a port
for server in private host; do
	serve 7000/udp --net $server --ip 10.77.1.1,fd77::1:1 --name echo -- "$BIN/udp" serve 6 :: 7000
	for client in private host; do
		for method in sendto sendmmsg; do
			for to in "4 10.77.1.1 7000" "4 10.77.200.1 9000" "6 fd77::200:1 9000"; do
				ok "client ports from 10000: $server server, $client client, $method, $to" \
					in_app --net $client --ip 10.77.1.9,fd77::1:9 -- "$BIN/udp" ask $method $to
			done
		done
	done
	like "the client's port was one of these ($server)" \
		"$(in_app --net host --ip 10.77.1.9 -- "$BIN/udp" ask sendto 4 10.77.1.1 7000)" \
		"you=\[::ffff:10.77.1.9\]:1[0-9]{4} "
	stop_app $APP
done
done_testing
