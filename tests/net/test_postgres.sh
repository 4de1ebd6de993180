#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 300
# PostgreSQL behind a service, with pgbench: each transaction is counted, also while one of two servers drains, the
# agent is killed, and clients come from outside by an exposed port; and HAProxy in front of the service and behind it.
. "$(dirname "$0")/lib.sh"
need psql haproxy jq
PG=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
[ -n "$PG" ] || skip_all "missing program postgres"
AS=(setpriv --reuid=postgres --regid=postgres --clear-groups env HOME="$T/pg" LC_ALL=C)

install -d -o postgres -g postgres "$T/pg"
"${AS[@]}" "$PG/initdb" -D "$T/pg/one" --no-sync -A trust >"$T/initdb.out" 2>&1
printf 'host all all 0.0.0.0/0 trust\nhost all all ::/0 trust\n' >>"$T/pg/one/pg_hba.conf"
cp -a "$T/pg/one" "$T/pg/two"
mkdir -m 777 "$T/pg/one.run" "$T/pg/two.run"
cat >"$T/haproxy.cfg" <<-EOF
	defaults
	    mode tcp
	    timeout connect 10s
	    timeout client 60s
	    timeout server 60s
	listen db
	    bind 0.0.0.0:5433
	    server db 10.77.200.1:5432
EOF
agent_start - <<-EOF
	agent:
	  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
	services:
	  db: {ip: "10.77.200.1,fd77::200:1", ports: [5432], backends: [one, two], strategy: round-robin, expose: ["6432:5432"]}
	  front: {ip: 10.77.200.2, ports: ["5432:5433"], backends: [proxy, proxy2], strategy: round-robin}
EOF

# bench WHERE HOST PORT OPTIONS...: what pgbench says is in $SAID; WHERE: outside, or an app's mode
bench() {
	local where=(in_app --net "$1" --)
	[ "$1" != outside ] || where=(timeout 60)
	SAID=$(TIME_LIMIT=60 "${where[@]}" "${AS[@]}" "$PG/pgbench" -h "$2" -p "$3" -n "${@:4}" postgres 2>&1)
	STATUS=$?
}
# load MODE HOST: one in the background, which makes 400 connections
load() {
	run_app --net "$1" -- "${AS[@]}" "$PG/pgbench" -h "$2" -n -c 4 -t 100 -C -S postgres
	LOAD=$APP LOAD_OUT=$OUT
}
load_ends() {
	wait_for -t 60 "! alive $LOAD"
	wait "$LOAD"
	STATUS=$? SAID=$(cat "$LOAD_OUT")
}
# all_done WHAT TRANSACTIONS: exactly so many were made, and none failed
all_done() {
	is "$1" "$STATUS, $(sed -n 's/^number of transactions actually processed: //p
		s/^number of failed transactions: \([0-9]*\).*/\1/p' <<<"$SAID" | xargs)" "0, $2/$2 0"
	[ "$STATUS" = 0 ] || diag "$SAID"
}
# served NAME: how many transactions that server has made
served() {
	"${AS[@]}" "$PG/psql" -h "$T/pg/$1.run" -X -A -t -c \
		"select xact_commit from pg_stat_database where datname = 'postgres'" postgres
}
# goes_on NAME TRANSACTIONS: it makes so many more
goes_on() {
	local before
	before=$(served "$1")
	wait_for "! alive $LOAD || [ \"\$(served $1)\" -gt $((before + $2)) ]"
}

for mode in private host; do
	for name in one two; do
		serve 5432 --net $mode --name $name -- "${AS[@]}" "$PG/postgres" -D "$T/pg/$name" -h '*' \
			-k "$T/pg/$name.run" -c fsync=off -c max_connections=60
		wait_for "served $name"
		ok "$mode server $name: its tables" "${AS[@]}" "$PG/pgbench" -h "$T/pg/$name.run" -i -q postgres
	done
	for client in private host outside; do
		host=10.77.200.1 port=5432
		[ $client != outside ] || host=127.0.0.1 port=6432
		bench $client $host $port -c 6 -t 50
		all_done "$mode servers, $client client: each transaction" 300
		bench $client $host $port -c 4 -t 10 -C -S
		all_done "$mode servers, $client client: a connection for each" 40
	done
	bench private fd77::200:1 5432 -c 4 -t 50 -S
	all_done "$mode servers: by IPv6" 200

	# one drains and comes again, and the agent is killed meanwhile
	load $mode 10.77.200.1
	goes_on one 10
	ok "$mode servers: one drains" ax service drain db one
	agent_kill9
	agent_again
	goes_on two 20
	ok "$mode servers: and no more" ax service drain db one --undo
	load_ends
	all_done "$mode servers, one drains, the agent is killed: each transaction" 400

	# HAProxy asks the service, and is a service's backend itself
	serve 5433 --net $mode --name proxy -- haproxy -db -q -f "$T/haproxy.cfg"
	proxy=$APP
	for client in private host; do
		bench $client 10.77.200.2 5432 -c 6 -t 50 -S
		all_done "$mode HAProxy between two services, $client client" 300
	done
	load $mode 10.77.200.2
	goes_on two 10
	serve 5433 --net $mode --name proxy2 -- haproxy -db -q -f "$T/haproxy.cfg"
	ok "$mode HAProxy: the first of two drains" ax service drain front proxy
	load_ends
	all_done "$mode HAProxy, while one comes and one drains: each transaction" 400
	stop_app "$proxy"
	bench private 10.77.200.2 5432 -c 4 -t 10 -C -S
	all_done "$mode HAProxy: the other one alone" 40
	ok "$mode HAProxy: the first may come again" ax service drain front proxy --undo
	stop_apps
done
done_testing
