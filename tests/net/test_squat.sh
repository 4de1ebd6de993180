#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Addresses are their owners': before they are given out (IP_FREEBIND takes no privilege), while they
# are used, and after the owner has gone and somebody holds on to its socket.
. "$(dirname "$0")/lib.sh"
need jq setpriv unshare
build_c squat udp tcp

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  svc:
    ip: 10.99.0.1
    ports: ["80"]
    backends: [nobody]
apps:
  later: {ip: 10.99.0.2}
EOF

for mode in private host; do
	for proto in tcp udp; do
		# shellcheck disable=SC2086 # $what: a family and an address
		for what in "4 10.77.0.50" "6 10.77.0.50" "6 fd77::50" "4 10.99.0.1" "4 10.99.0.2"; do
			is "$mode app: nobody binds what is not given out yet, $proto $what" \
				"$(in_app --net $mode -- "$BIN/squat" bind $proto $what 7000)" \
				"error bind EADDRNOTAVAIL"
		done
	done
	is "$mode app: what is not ax's may be bound as ever" \
		"$(in_app --net $mode -- "$BIN/squat" bind tcp 4 192.0.2.1 7000)" bound
done

# in a namespace of its own making an app can have any address: nobody else's packet gets there
run_app --net host -- unshare -n "$BIN/squat" hold tcp 4 7000 10.77.1.1
wait_for "grep -q holds $OUT"
run_app --net host -- unshare -n "$BIN/squat" hold udp 6 7000 fd77::1:1
wait_for "grep -q holds $OUT"
run_app --net host --ip 10.77.1.1,fd77::1:1 --name victim -- sleep 100
launched victim
is "whoever listens in such a namespace is not taken for the address's owner" \
	"$(ax get servers -o json | jq -c '[.[] | .app]')" "[]"
stop_apps
done_testing
