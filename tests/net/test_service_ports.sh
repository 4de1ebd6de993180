#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Programs outside ax reach a service with a private backend and the backend itself, from whatever
# port: neither takes the other's answers, and the backend's health check fails by none of it. Nobody's
# datagrams or SYNs end connections that are open.
# MIXED: how many direct and service connections are made, half of them by IPv6: 20000, so that it does
# not take long; MIXED=1000000 is how many were asked for that have to do without a wrong answer.
# timeout: 300
. "$(dirname "$0")/lib.sh"
need ip jq "$PYTHON"
build_c storm
MIXED=${MIXED:-20000}

ports() {
	timeout --foreground -k 1 100 "$PYTHON" "$SRC/service_ports.py" "$@"
}
agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  shop: {ip: 10.77.200.1, ports: [80:7000, 80:7000/udp], backends: [{app: one}]}
  quick:
    ip: 10.77.200.2,fd77::200:2
    ports: [80:7001]
    backends: [{app: fast}]
    check: {type: tcp, every: 1s, timeout: 1s, fall: 1} # whatever else the machine does
EOF
bg "$T/events" "$AX" --instance "$INST" events -f -o json
serve 7000 --name one --ip 10.77.1.1 -- "$PYTHON" "$SRC/service_ports.py" serve 7000

is "no wrong answer in connections from the same ports to the service and to its backend" \
	"$(ports mix 10.77.200.1:80 10.77.1.1:7000 600 2>&1)" 0

# states: of the backend's two addresses; downs: each time that a check found one down
states() {
	ax get services -o json | jq -r '.[] | select(.name == "quick") | .backends | map(.state) | join(" ")'
}
downs() {
	jq -c 'select(.event == "health" and .service == "quick" and .state == "down")' <"$T/events"
}
serve 7001 --name fast --ip 10.77.1.2,fd77::1:2 -- "$BIN/storm" serve 7001
# storm uses its ports again at once
nsenter -t "$(child_of "$APP")" -n sysctl -qw net.ipv4.tcp_max_tw_buckets=0
ok "the checks find the backend" wait_for '[ "$(states)" = "up up" ]'
# beside NAME COMMAND...: whether no check fails meanwhile
beside() {
	local before
	events_told "$T/events"
	before=$(downs | wc -l)
	"${@:2}"
	events_told "$T/events"
	is "$1" "$(downs | tail -n "+$((before + 1))")" ""
}
very_many() {
	is "nor in very many" "$("$BIN/storm" mix 10.77.200.2 80 10.77.1.2 7001 "$((MIXED / 2))" 2>&1)" 0
	is "nor by IPv6" "$("$BIN/storm" mix fd77::200:2 80 fd77::1:2 7001 "$((MIXED / 2))" 2>&1)" 0
}
load() {
	for ip in 10.77.200.2 fd77::200:2; do
		is "under load $ip answers all" "$("$BIN/storm" load "$ip" 80 2 2>&1)" "0 many"
	done
}
beside "no check of the backend fails meanwhile" very_many
beside "no check of the backend fails under load" load
wait_for '[ "$(states)" = "up up" ]'
before=$(downs | wc -l)
nsenter -t "$(child_of "$APP")" -n ip route add blackhole 10.77.0.1
ok "one that fails is told of" wait_for '[ "$(downs | wc -l)" -gt "$before" ]'
nsenter -t "$(child_of "$APP")" -n ip route del blackhole 10.77.0.1
ok "and that it is well again" wait_for '[ "$(states)" = "up up" ]'

# keep NAME: connections that are open
keep() {
	bg "$T/$1" "$PYTHON" "$SRC/service_ports.py" keep 10.77.200.1:80 50 "$T/go.$1"
	wait_for "[ -s '$T/$1' ]"
}
went_on() {
	touch "$T/go.$1"
	wait_for -t 40 "[ \$(wc -l <'$T/$1') = 2 ]"
	xargs <"$T/$1"
}
keep datagrams
ports datagrams 10.77.1.1 70000
ports datagrams 10.77.200.1 70000
is "datagrams from outside end no connection" "$(went_on datagrams)" "50 50"
keep syns
ports syns 10.77.200.1:80 80000
is "nor do SYNs of nobody" "$(went_on syns)" "50 50"
is "and new ones are made" "$(ports mix 10.77.200.1:80 10.77.1.1:7000 50 2>&1)" 0

# as many SYNs as this machine can make, for as long as it takes to connect anew beside them
keep storm
bg "$T/rate" "$BIN/storm" syns 10.77.200.1 80 6
flood=$BG
is "new clients connect during a flood" "$(ports mix 10.77.200.1:80 10.77.1.1:7000 50 2>&1)" 0
ok "all of it" alive "$flood"
wait "$flood"
diag "SYNs a second: $(<"$T/rate")"
is "which ends no connection either" "$(went_on storm)" "50 50"
is "and afterwards new ones are made" "$(ports mix 10.77.200.1:80 10.77.1.1:7000 50 2>&1)" 0
stop_apps
done_testing
