#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# redis-server with redis-benchmark, in private and host mode, by address, name and service.
. "$(dirname "$0")/lib.sh"
need redis-server redis-benchmark redis-cli

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  kv:
    ip: 10.77.200.1,fd77::200:1
    ports: [6379]
    backends: [redis]
EOF

# bench CLIENT-MODE HOST
bench() {
	local out
	out=$(in_app --net "$1" -- redis-benchmark -h "$2" -p 6379 -n 2000 -c 20 -P 4 -t ping,set,get \
		--csv 2>&1)
	if [ "$(grep -c '^"\(PING_INLINE\|PING_MBULK\|SET\|GET\)",' <<<"$out")" -eq 4 ] &&
		! grep -qi error <<<"$out"; then
		pass "$3"
	else
		not_ok "$3" "$out"
	fi
}

for mode in private host; do
	serve 6379 --net $mode --ip 10.77.1.1,fd77::1:1 --name redis -- redis-server --port 6379 \
		--bind 0.0.0.0 :: --protected-mode no --save "" --appendonly no --dir "$T"
	pid=$APP
	for client in private host; do
		for host in 10.77.1.1 fd77::1:1 redis kv 10.77.200.1 fd77::200:1; do
			bench $client $host "redis in $mode mode: redis-benchmark in $client mode by $host"
		done
	done
	like "redis in $mode mode sees its client's address" \
		"$(in_app --ip 10.77.1.9 -- redis-cli -h kv client list 2>&1)" \
		"addr=10.77.1.9:[0-9]+ laddr=10.77.1.1:6379"
	is "redis in $mode mode keeps what it is given" \
		"$(in_app -- sh -c 'redis-cli -h kv set key value; redis-cli -h redis get key' 2>&1)" \
		"OK"$'\n'"value"
	stop_app $pid
done
done_testing
