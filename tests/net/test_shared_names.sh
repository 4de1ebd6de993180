#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Apps that share a name, of which no config says anything, do what a declared service does: connects that
# wait get whoever listens first, and UDP sockets that are connected to one that has ended are ended.
. "$(dirname "$0")/lib.sh"
need jq
build_c tcp udp
agent_start

# --- waiting ---

# several MODE: apps of the name, of which the first has the address 10.77.1.1; the third listens once there is $T/go
several() {
	rm -f "$T/go"
	run_app --name web --net "$1" --ip 10.77.1.1,fd77::1:1 -- sleep 1000
	launched web
	run_app --name web --net "$1" -- sleep 1000
	run_app --name web --net "$1" -- sh -c \
		"while [ ! -e $T/go ]; do sleep 0.02; done; exec $BIN/tcp listen 6 :: 7000 third patient"
	wait_for '[ "$(ax get apps -o json | jq "[.[] | select(.name == \"web\" and .state == \"running\")] | length")" = 3 ]'
}

# waiters MODE: clients of the name's address; their pids in PIDS, what they print in OUTS
waiters() {
	local to
	PIDS=() OUTS=()
	for to in "4 10.77.1.1 7000" "4 10.77.1.1 7000 -n" "6 fd77::1:1 7000" "6 fd77::1:1 7000 -n" \
		"6 10.77.1.1 7000" "4 10.77.1.1 7000"; do
		# shellcheck disable=SC2086 # its words
		run_app --net "$1" --wait 60s -- "$BIN/tcp" connect $to
		PIDS+=("$APP") OUTS+=("$OUT")
	done
	for pid in "${PIDS[@]}"; do
		wait_for "child_of $pid"
	done
}

all_get() { # WHAT NAME
	local i
	for i in "${!PIDS[@]}"; do
		wait_for "! alive ${PIDS[$i]}"
		like "$1: connect $i" "$(cat "${OUTS[$i]}")" "^peer=.*(10.77.1.1|fd77::1:1).*:7000 local=.* $2 you="
	done
}

# (one that asks from the host's network gets past a private app to those in host mode alone)
for modes in "private private" "private host" "host host"; do
	client=${modes% *} server=${modes#* }
	several "$server"
	waiters "$client"
	wait_for "ax get apps -o json | jq -e '[.[] | select(.wait_ms)] | length >= 6'"
	is "$client clients, $server apps: nobody has failed, nor got anywhere" "$(cat "${OUTS[@]}")" ""
	touch "$T/go"
	all_get "$client clients, $server apps" third
	stop_apps
done

# a connection outlives the agent, and the owner of the address
several private
run_app --wait 60s -- "$BIN/tcp" connect 4 10.77.1.1 7000 -k 4
pid=$APP out=$OUT
wait_for "child_of $pid"
touch "$T/go"
wait_for "grep -q you= $out"
agent_kill9
agent_again
stop_app "${APPS[0]}"
wait_for "! alive $pid"
like "what has waited outlives the agent, and who has the address" "$(cat "$out")" "third you=.*echoed again"
stop_apps

# the wait is bounded
several private
timed 4999 in_app --wait 2s -- "$BIN/tcp" connect 4 10.77.1.1 7000
is "nobody listens: the wait is bounded" "$PRINTED" "error connect ECONNREFUSED"
like "about two seconds ($TOOK ms)" "$TOOK" "^(1[89][0-9][0-9]|[234][0-9][0-9][0-9])$"
stop_apps

# --- connected UDP ---

# asked FILE: who has answered last
asked() {
	grep -v error "$1" | tail -n 1
}
# all_have NAME: that one answers all of OUTS
all_have() {
	local out
	for out in "${OUTS[@]}"; do
		wait_for "[ \"\$(asked $out)\" = $1 ]" || return 1
	done
}
udp_server() { # MODE NAME [OPTIONS]
	serve 7001/udp --name web --net "$1" "${@:3}" -- "$BIN/udp" serve 4 0.0.0.0 7001 "$2"
}

for mode in private host; do
	udp_server $mode one --ip 10.77.1.1
	one=$APP
	udp_server $mode two
	two=$APP
	OUTS=() ALONE=()
	for client in private host; do
		for _ in 1 2 3; do
			run_app --net $client -- "$BIN/udp" follow 4 10.77.1.1 7001 120
			OUTS+=("$OUT")
		done
	done
	for out in "${OUTS[@]}"; do
		wait_for "grep -qE 'one|two' $out"
		[ "$(asked "$out")" = two ] || ALONE+=("$out")
	done
	stop_app "$two"
	ok "$mode apps: two has ended, its clients get one" all_have one
	is "$mode apps: those of one go on" "$(cat /dev/null "${ALONE[@]}" | grep -v one)" ""
	udp_server $mode two
	two=$APP
	stop_app "$one"
	ok "$mode apps: who has the address has ended, its clients get the other" all_have two
	udp_server $mode three
	agent_kill9
	stop_app "$two"
	agent_again
	ok "$mode apps: one that ended while no agent ran" all_have three
	stop_apps
done
done_testing
