#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Servers that start after their clients: connects wait for them, as long as was asked, not longer.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/late.sh"
build_c tcp udp

late_agent 60s

# the client starts, looks the name up, and waits; 0.8 s later the server starts
# shellcheck disable=SC2086 # $to: a family, an address, maybe a port
for client in private host; do
	for server in late latehost; do
		n=1 mode=private
		[ $server = late ] || n=2 mode=host
		addr=10.77.3.$n addr6=fd77::3:$n
		pids=() outs=()
		run_app --net $client --wait 60s -- sh -c \
			"addr=\$(getent ahostsv4 $server | head -n 1 | sed 's/ .*//'); echo \$addr
			$BIN/tcp connect 4 \$addr 7000"
		pids+=("$APP") outs+=("$OUT")
		for to in "4 $addr" "6 $addr6" "6 $addr" "4 $addr 7000 -n"; do
			set -- $to
			run_app --net $client --wait 60s -- "$BIN/tcp" connect "$1" "$2" 7000 ${4:+"$4"}
			pids+=("$APP") outs+=("$OUT")
		done
		for to in "4 10.77.200.$n" "6 fd77::200:$n"; do
			run_app --net $client -- "$BIN/tcp" connect $to 80
			pids+=("$APP") outs+=("$OUT")
		done
		sleep 0.8
		is "$client client of $server: nobody has failed before the server starts" \
			"$(cat "${outs[@]}")" "$addr"
		serve 7000 --name $server --net $mode -- "$BIN/tcp" listen 6 :: 7000 $server
		pid=$APP
		for i in "${!pids[@]}"; do
			wait_for "! alive ${pids[$i]}"
			if [ "$i" -eq 0 ]; then
				like "$client client of $server: connect by name" "$(cat "${outs[0]}")" \
					"^$addr.peer=$addr:7000 .*$server you="
			else
				like "$client client of $server: connect $i" "$(cat "${outs[$i]}")" \
					"^peer=.* $server you="
			fi
		done
		stop_app $pid
	done
done

# addresses of the pool that nobody has yet
for client in private host; do
	for mode in private host; do
		pids=() outs=()
		for to in "4 10.77.1.8" "6 fd77::1:8" "6 10.77.1.8" "4 10.77.1.8 -n"; do
			# shellcheck disable=SC2086 # its words
			set -- $to
			run_app --net $client --wait 60s -- "$BIN/tcp" connect "$1" "$2" 7000 ${3:+"$3"}
			pids+=("$APP") outs+=("$OUT")
		done
		run_app --net $client --wait 60s --labels zone=other -- "$BIN/tcp" connect 4 10.77.1.8 7000
		other=$APP other_out=$OUT
		sleep 0.8
		is "$client: an address that nobody has: nobody has failed" \
			"$(cat "${outs[@]}" "$other_out")" ""
		serve 7000 --net $mode --ip 10.77.1.8,fd77::1:8 -- "$BIN/tcp" listen 6 :: 7000 found
		pid=$APP
		for i in "${!pids[@]}"; do
			wait_for "! alive ${pids[$i]}"
			like "$client client, $mode server: connect $i to an address that comes" \
				"$(cat "${outs[$i]}")" "^peer=.* found you="
		done
		unlike "$client client, $mode server: policy holds for what comes" "$(cat "$other_out")" "peer="
		stop_app $other
		stop_app $pid
	done
	timed 2999 in_app --net $client --wait 1s -- "$BIN/tcp" connect 4 10.77.1.9 7000
	is "$client: an address that never comes" "$PRINTED" "error connect ETIMEDOUT"
	like "$client: about a second ($TOOK ms)" "$TOOK" "^([89][0-9][0-9]|[12][0-9][0-9][0-9])$"
	timed 999 in_app --net $client -- "$BIN/tcp" connect 4 10.77.1.9 7000
	like "$client: an address of nobody without --wait" "$PRINTED" "^error connect E[A-Z]*UNREACH$"
	like "$client: at once ($TOOK ms)" "$TOOK" "^[0-9]{1,3}$"
	timed 999 in_app --net $client --wait 60s -- "$BIN/tcp" connect 4 198.51.100.7 7000
	like "$client: an address outside" "$PRINTED" "^error connect E[A-Z]*UNREACH$"
	like "$client: is not waited for ($TOOK ms)" "$TOOK" "^[0-9]{1,3}$"
done

# names that nobody has yet; names outside do not wait
build_resolve
for client in private host; do
	pids=() outs=()
	# shellcheck disable=SC2016 # of the apps' shells
	for look in "getent ahostsv4 new" "getent ahostsv4 new.ax.internal" "getent hosts new" \
		"$BIN/resolve new v4" "$BIN/resolve new any"; do
		run_app --net $client --wait 60s -- sh -c "$look | grep -o '10\.77\.1\.7' | head -n 1"
		pids+=("$APP") outs+=("$OUT")
	done
	run_app --net $client --wait 60s -- sh -c \
		"exec $BIN/tcp connect 4 \$(getent ahostsv4 new | head -n 1 | sed 's/ .*//') 7000"
	pids+=("$APP") outs+=("$OUT")
	sleep 1.5
	is "$client: nobody has the name, and nobody has failed" "$(cat "${outs[@]}")" ""
	timed 9999 in_app --net $client --wait 60s -- getent hosts www.no.test
	is "$client: a name outside is not there" "$STATUS" 2
	like "$client: is not waited for ($TOOK ms)" "$TOOK" "^[0-9]{1,4}$"
	serve 7000 --name new --ip 10.77.1.7 -- "$BIN/tcp" listen 6 :: 7000 new
	pid=$APP
	for i in "${!pids[@]}"; do
		wait_for "! alive ${pids[$i]}"
		like "$client: then it is found ($i)" "$(cat "${outs[$i]}")" "^10.77.1.7$|^peer=10.77.1.7:7000"
	done
	stop_app $pid
	timed 3999 in_app --net $client --wait 2s -- getent hosts never
	is "$client: a name that never comes is not there" "$STATUS" 2
	like "$client: is waited for once ($TOOK ms)" "$TOOK" "^[23][0-9][0-9][0-9]$"
done

for client in private host; do
	timed 2999 in_app --net $client --wait 1s -- "$BIN/tcp" connect 4 10.77.3.1 7000
	like "$client: a server that never comes: the wait is bounded" "$PRINTED" \
		"^error connect (ECONNREFUSED|EHOSTUNREACH|ETIMEDOUT)$"
	like "$client: about a second ($TOOK ms)" "$TOOK" "^([89][0-9][0-9]|[12][0-9][0-9][0-9])$"
	timed 999 in_app --net $client -- "$BIN/tcp" connect 4 10.77.3.1 7000
	like "$client: without --wait it fails" "$PRINTED" "^error connect (ECONNREFUSED|EHOSTUNREACH)$"
	like "$client: at once ($TOOK ms)" "$TOOK" "^[0-9]{1,3}$"
	is "$client: a non-blocking connect to a server that never comes" \
		"$(in_app --net $client --wait 1s -- "$BIN/tcp" connect 4 10.77.3.1 7000 -n | sed 's/error connect \(ECONNREFUSED\|EHOSTUNREACH\|ETIMEDOUT\)/fails/')" fails
done

# Who listens by one family alone is not waited for by the other: a client that has both addresses goes on to
# the next one only when the first has failed. As long as a test waits (60 s) nobody else would let it go.
ok "a service that waits" ax service add duo --ip 10.77.3.9,fd77::3:9 -p 80:7000 -b only4 -b nobody --wait 60s
for mode in private host; do
	early=()
	for to in "fd77::3:8 7000" "fd77::3:9 80"; do
		# shellcheck disable=SC2086 # an address and a port
		run_app --net $mode --wait 60s -- "$BIN/tcp" connect 6 $to
		early+=("$APP $OUT")
	done
	serve 7000 --net $mode --name only4 --ip 10.77.3.8,fd77::3:8 -- "$BIN/tcp" listen 4 0.0.0.0 7000 only4
	server=$APP
	for client in "${early[@]}"; do
		ok "$mode: who waits is told when it listens by IPv4 alone" wait_for -t 40 "! alive ${client% *}"
		is "$mode: by a refusal" "$(cat "${client#* }")" "error connect ECONNREFUSED"
	done
	for to in "fd77::3:8 7000" "fd77::3:9 80"; do
		# shellcheck disable=SC2086 # an address and a port
		is "$mode: and who comes then, at $to" \
			"$(in_app --net $mode --wait 60s -- "$BIN/tcp" connect 6 $to)" "error connect ECONNREFUSED"
	done
	like "$mode: by IPv4 they get there" \
		"$(in_app --net $mode --wait 60s -- "$BIN/tcp" connect 4 10.77.3.9 80)" "^peer=10.77.3.9:80 .*only4 you="
	stop_app "$server"
done
ok "it goes" ax service del duo

# an app that runs but listens late
run_app --name late -- sh -c "sleep 1; exec $BIN/tcp listen 6 :: 7000 late"
launched late
like "a server that runs and listens late" \
	"$(in_app --wait 60s -- "$BIN/tcp" connect 4 10.77.3.1 7000)" "^peer=10.77.3.1:7000 .*late you="
stop_apps
done_testing
