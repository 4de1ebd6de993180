#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 400
# Real programs over spliced connections: redis with pipelines, PostgreSQL, a Java selector, Node.js,
# nginx with wrk and curl, iperf3. What they answer is checked.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/splice.sh"
need jq bpftool redis-server redis-benchmark java node nginx wrk curl iperf3 psql
build_c talk replay
PG=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
[ -n "$PG" ] || skip_all "missing program postgres"

SECONDS_OF_LOAD=4
[ -z "${AX_TEST_QUICK:-}" ] || SECONDS_OF_LOAD=3
splice_agent </dev/null

# --- redis ---

# Each of its tests has connections of its own.
redis_benchmark() {
	local out requests=$((SECONDS_OF_LOAD * 400000))
	out=$(TIME_LIMIT=60 in_app --net "$1" -- redis-benchmark -h 10.77.1.1 -n $requests -c 10 -P 16 \
		-t set,get --csv 2>&1)
	if [ "$(grep -c '^"\(SET\|GET\)",' <<<"$out")" -eq 2 ] && ! grep -qi error <<<"$out"; then
		pass "redis, client in $1 mode: redis-benchmark -P 16"
	else
		not_ok "redis, client in $1 mode: redis-benchmark -P 16" "$out"
	fi
}
serve 6379 --ip 10.77.1.1 --name redis -- redis-server --port 6379 --bind 0.0.0.0 \
	--protected-mode no --save "" --appendonly no --dir "$T"
redis=$APP
for mode in private host; do
	seed=$RANDOM
	"$PYTHON" "$SRC/redis_script.py" $seed "$T/requests" "$T/answers"
	splice_mark
	go=()
	if [ "$SPLICE" != off ]; then
		go=("$T/true")
		until_true '[ $(($(redirected) - MARK)) -ge 100 ]'
	fi
	like "redis, client in $mode mode: each answer to pipelines of seed $seed is right" \
		"$(TIME_LIMIT=90 in_app --net $mode -- "$BIN/replay" 4 10.77.1.1 6379 "$T/requests" \
			"$T/answers" $((SECONDS_OF_LOAD * 1000)) "${go[@]}" 2>&1)" "^replayed [0-9]+ times$"
	[ ${#go[@]} -eq 0 ] || done_until
	spliced "redis, pipelines, client in $mode mode" 100
	[ $mode = private ] || continue
	splice_mark
	redis_benchmark $mode
	spliced "redis-benchmark -P 16, client in $mode mode" 1000 20
done
stop_app "$redis"

# --- PostgreSQL ---

AS=(setpriv --reuid=postgres --regid=postgres --clear-groups env HOME="$T/pg" LC_ALL=C)
SQL=("${AS[@]}" "$PG/psql" -X -q -A -t -v ON_ERROR_STOP=1 -h 10.77.1.2)
install -d -o postgres -g postgres "$T/pg"
"${AS[@]}" "$PG/initdb" -D "$T/pg/data" --no-sync -A trust >"$T/initdb.out" 2>&1
echo "host all all 10.77.0.0/16 trust" >>"$T/pg/data/pg_hba.conf"
serve 5432 --ip 10.77.1.2 --name pg -- "${AS[@]}" "$PG/postgres" -D "$T/pg/data" -h 0.0.0.0 -k "$T/pg" \
	-c fsync=off -c max_connections=50
postgres=$APP
ok "PostgreSQL: pgbench fills its tables" in_app -- "${AS[@]}" "$PG/pgbench" -i -q -h 10.77.1.2
splice_mark
out=$(in_app -- "${AS[@]}" "$PG/pgbench" -h 10.77.1.2 -c 6 -j 2 -T $SECONDS_OF_LOAD -M prepared 2>&1)
like "PostgreSQL: no transaction of pgbench fails" "$out" "number of failed transactions: 0 "
spliced "PostgreSQL: pgbench" 200 12
done=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' <<<"$out")
is "PostgreSQL: all transactions that pgbench counted are there, and their sums are alike" \
	"$(in_app -- "${SQL[@]}" -c "select (select count(*) from pgbench_history),
		(select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history),
		(select sum(tbalance) from pgbench_tellers) = (select sum(delta) from pgbench_history),
		(select sum(bbalance) from pgbench_branches) = (select sum(delta) from pgbench_history)" 2>&1)" \
	"$done|t|t|t"
# rows of one connection: small ones for a while, large ones then, and what the server makes of them
{
	for i in $(seq 400); do
		echo "select $i, pg_sleep(0.005);"
	done
	for i in $(seq 8); do
		echo "select string_agg(md5(n::text || '$i'), '') from generate_series(1, 60000) n;"
	done
} >"$T/rows.sql"
chmod 644 "$T/rows.sql"
splice_mark
out=$(TIME_LIMIT=60 in_app -- "${SQL[@]}" -f "$T/rows.sql" 2>&1 | grep -v '^[0-9]*|$' | md5sum)
spliced "PostgreSQL: psql" 20
is "PostgreSQL: results of some MB are right" "$out" "$(for i in $(seq 8); do
	seq 60000 | "$PYTHON" -c "import hashlib, sys
print(''.join(hashlib.md5((n.strip() + '$i').encode()).hexdigest() for n in sys.stdin))"
done | md5sum)"
stop_app "$postgres"

# --- Java, Node.js ---

# echo_server WHAT PORT MODE COMMAND...: talks to a server that echoes, private and in host mode
echo_server() {
	local what=$1 port=$2 mode=$3 pid out
	shift 3
	serve "$port" --net "$mode" --ip 10.77.1.3 --name echo -- "$@"
	pid=$APP out=$OUT
	splice_mark
	JOINS=10 talk "$what in $mode mode" --net "$mode" -- 4 10.77.1.3 "$port" -e -n 5 -w $JOIN_MS -k 30 \
		-s 20000000
	spliced "$what in $mode mode" 200 10
	ECHO=$pid
	is "$what in $mode mode met no error" "$(grep -v ^ready "$out")" ""
}
JAVA=(java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -Xmx128m)
for mode in private host; do
	echo_server "a Java selector" 7000 $mode "${JAVA[@]}" "$SRC/Selector.java" 7000
	stop_app "$ECHO"
	echo_server "Node.js" 7000 $mode node "$SRC/splice_node.js"
	stop_app "$ECHO"
done

# wrk_load WHAT URL: no request of the load fails
wrk_load() {
	local out
	out=$(in_app -- wrk -t1 -c20 -d${SECONDS_OF_LOAD}s "$2" 2>&1)
	if grep -q 'requests in' <<<"$out" && ! grep -q 'Socket errors\|Non-2xx' <<<"$out"; then
		pass "$1: wrk gets $(awk '/requests in/ { print $1 }' <<<"$out") answers"
	else
		not_ok "$1: wrk" "$out"
	fi
}
serve 80 --ip 10.77.1.3 --name node -- node "$SRC/splice_node.js"
splice_mark
wrk_load "Node.js" http://10.77.1.3/3000
spliced "Node.js with wrk" 500 40
splice_mark
is "Node.js: bodies of all sizes up to 2,000, and of a MiB, are right" \
	"$(TIME_LIMIT=60 in_app -- curl -sS --rate 700/s --max-time 30 "http://10.77.1.3/[1-2000]" \
		"http://10.77.1.3/104857[1-6]" | md5sum)" \
	"$("$PYTHON" -c 'import sys
body = bytes((i * 2654435761 & 0xffffffff) >> 24 for i in range(1 << 20))
for n in [*range(1, 2001), *range(1048571, 1048577)]:
	sys.stdout.buffer.write(body[:n])' | md5sum)"
spliced "Node.js with curl" 200
stop_app "$APP"

# --- nginx ---

conf=$(nginx_conf web 2 "sendfile on;
	server { listen 80; root $T/nginx.web; location = /hello { return 200 \"hello\\n\"; } }")
head -c 64K /dev/urandom >"$T/nginx.web/64k"
serve 80 --net host --ip 10.77.1.4 --name nginx -- nginx -c "$conf"
for path in hello 64k; do
	splice_mark
	wrk_load "nginx /$path" "http://10.77.1.4/$path"
	spliced "nginx /$path with wrk" 500 40
done
splice_mark
is "nginx: a file, a thousand times over one connection, is right" \
	"$(TIME_LIMIT=60 in_app -- curl -sS --rate 500/s --max-time 30 "http://10.77.1.4/64k?[1-1000]" | md5sum)" \
	"$(for _ in $(seq 1000); do cat "$T/nginx.web/64k"; done | md5sum)"
spliced "nginx with curl" 100
stop_app "$APP"

# --- iperf3 ---

# iperf SECONDS [OPTIONS]
iperf() {
	local out
	# shellcheck disable=SC2086
	out=$(in_app --net host -- iperf3 -J -c 10.77.1.5 -t "$1" ${2:-} 2>&1)
	is "iperf3 ${2:-client to server}, $1 s" \
		"$(jq '(.error // "") == "" and .end.sum_received.bytes > 1000000' <<<"$out")" true
}
serve 5201 --ip 10.77.1.5 --name iperf -- iperf3 -s
iperf 2 '-P 4 -l 300'
# Of itself it writes 128 KiB at a time, and its streams join, on a busy machine later. (With a file to
# send, -F, it is not exact by TCP either.)
for options in '' '-R' '--bidir'; do
	splice_mark
	for seconds in 2 4 8 16; do
		iperf $seconds "$options"
		if [ "$SPLICE" = off ] || [ $(($(redirected) - MARK)) -ge 100 ]; then
			break
		fi
	done
	spliced "iperf3 ${options:-client to server}" 100
done
stop_app "$APP"
done_testing
