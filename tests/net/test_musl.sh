#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Static musl programs: TCP, UDP, and musl's resolver (all nameservers at once, no nsswitch).
. "$(dirname "$0")/lib.sh"
need musl-gcc
build_c tcp tcp-musl udp-musl
build_resolve

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  both:
    ip: 10.77.200.1,fd77::200:1
    ports: [7000, 7000/udp]
    backends: [server]
  four:
    ip: 10.77.200.4
    ports: [7000]
    backends: [server]
EOF

# shellcheck disable=SC2086 # $to: a family, an address, maybe a port
for mode in private host; do
	serve 7000 --net $mode --ip 10.77.1.1,fd77::1:1 --name server -- "$BIN/tcp-musl" listen 6 :: 7000
	pid=$APP
	for client in private host; do
		for to in "4 10.77.1.1" "6 fd77::1:1" "6 10.77.1.1" "4 10.77.200.1" "6 fd77::200:1"; do
			like "musl server in $mode, client in $client mode, connect to $to" \
				"$(in_app --net $client -- "$BIN/tcp-musl" connect $to 7000 2>&1)" \
				"^peer=\[?(::ffff:)?${to#* }\]?:7000 .*server you="
		done
	done
	stop_app $pid
	serve 7000/udp --net $mode --ip 10.77.1.1,fd77::1:1 --name server -- "$BIN/udp-musl" serve 6 :: 7000
	pid=$APP
	for client in private host; do
		ok "musl UDP server in $mode, client in $client mode, by service" \
			in_app --net $client -- "$BIN/udp-musl" ask sendto 4 10.77.200.1 7000
	done
	stop_app $pid
done

# addresses FAMILY-OF-LOOKUP NAME MODE: what getaddrinfo answers, sorted
addresses() {
	in_app --net "$3" -- "$BIN/resolve" "$2" "$1" 2>&1 | sort -u | tr '\n' ' '
}
for mode in private host; do
	is "musl getaddrinfo in $mode mode: A and AAAA" "$(addresses any both $mode)" \
		"10.77.200.1 fd77::200:1 "
	is "musl getaddrinfo in $mode mode: A only" "$(addresses v4 both $mode)" "10.77.200.1 "
	is "musl getaddrinfo in $mode mode: AAAA only" "$(addresses v6 both $mode)" "fd77::200:1 "
	is "musl getaddrinfo in $mode mode: with the domain" \
		"$(addresses any both.ax.internal $mode)" "10.77.200.1 fd77::200:1 "
	is "musl getaddrinfo in $mode mode: a name without an IPv6 address" \
		"$(addresses any four $mode)" "10.77.200.4 "
	fails "musl getaddrinfo in $mode mode: a name that does not exist" \
		in_app --net $mode -- "$BIN/resolve" nobody.ax.internal any
done
done_testing
