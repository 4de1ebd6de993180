#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# a processor each
# 1,000 connections at once and 100 children that connect; both ends see virtual IPs.
. "$(dirname "$0")/lib.sh"
build_c many
ulimit -n 4096

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  many:
    ip: 10.77.200.1,fd77::200:1
    ports: ["80:7000"]
    backends: [server]
EOF

# round SERVER-MODE CLIENT-MODE PROGRAM COUNT FAMILY ADDR PORT CLIENT-ADDRESS SEEN-ADDRESS
round() {
	local what="$4 $3: $1 server, $2 client, $6" out
	serve 7000 --net "$1" --ip 10.77.1.1,fd77::1:1 --name server -- \
		"$BIN/many" server 6 :: 7000 "$4" || {
		not_ok "$what"
		return
	}
	out=$(in_app --net "$2" --ip 10.77.1.9,fd77::1:9 -- "$BIN/many" "$3" "$5" "$6" "$7" "$4" 2>&1)
	if [ "$3" = client ]; then
		is "$what: all are open, every peer is who was asked" "$out" "connected $4 local $8=$4"
	else
		is "$what: every child got its echo, every peer is who was asked" "$out" \
			"children $4 good $4"
	fi
	wait_for "! alive $APP"
	is "$what: the server saw the client's address each time" "$(tail -n 1 "$OUT")" \
		"served $4 peers $9=$4"
	stop_app "$APP"
}

for server in private host; do
	for client in private host; do
		round $server $client client 1000 4 10.77.1.1 7000 10.77.1.9 "[::ffff:10.77.1.9]"
		round $server $client client 1000 4 10.77.200.1 80 10.77.1.9 "[::ffff:10.77.1.9]"
		round $server $client client 1000 6 fd77::200:1 80 "[fd77::1:9]" "[fd77::1:9]"
		round $server $client forks 100 4 10.77.200.1 80 10.77.1.9 "[::ffff:10.77.1.9]"
		round $server $client forks 100 6 fd77::1:1 7000 "[fd77::1:9]" "[fd77::1:9]"
	done
done
done_testing
