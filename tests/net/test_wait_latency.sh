#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 240
# Connects that wait are there soon after listen(), however long they have waited: TCP's own tries
# come a second apart by then, or further.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/late.sh"
build_c waiting

late_agent 60s

# latencies FILE LISTENED: in ms, sorted
latencies() {
	awk -v t="$2" '/^connected/ { printf "%.1f\n", ($2 - t) / 1e6 }' "$1" | sort -n
}

COUNT=100
SOON="^[1-7]?[0-9]{1,2}\." # in ms; of a busy machine: 50 is what is to be had

# check NAME CLIENT SERVER FAMILY ADDRESS PORT [-n]: the clients have waited for some seconds when
# the server listens.
check() {
	local name=$1 client=$2 server=$3 family=$4 addr=$5 port=$6 out all pid
	shift 6
	run_app --net "$client" --wait 60s -- "$BIN/waiting" connect "$family" "$addr" "$port" $COUNT "$@"
	pid=$APP out=$OUT
	wait_for "grep -q waits $out"
	sleep "$WAITED"
	is "$name: all wait" "$(grep -cv waits "$out")" 0
	run_app --name "$server" --net "$MODE" -- "$BIN/waiting" listen 6 :: 7000
	wait_for "! alive $pid"
	is "$name: all are connected" "$(grep -c ^connected "$out")" $COUNT
	all=$(latencies "$out" "$(awk '/^listens/ { print $2 }' "$OUT")")
	diag "$name: median $(sed -n $((COUNT / 2))p <<<"$all") ms, last $(tail -n 1 <<<"$all") ms after listen()"
	like "$name: the last before TCP would try again" "$(tail -n 1 <<<"$all")" "$SOON"
	stop_app "$APP"
}

WAITED=2.2 # TCP would try again 0.8 s later, and not at the same time as another
for client in private host; do
	for server in late latehost; do
		n=1 MODE=private
		[ $server = late ] || n=2 MODE=host
		check "$client client, $server, IPv4, epoll" $client $server 4 10.77.3.$n 7000 -n
		check "$client client, $server, IPv6, blocking" $client $server 6 fd77::3:$n 7000
		check "$client client, service of $server, IPv4, blocking" $client $server 4 10.77.200.$n 80
		check "$client client, service of $server, IPv6, epoll" $client $server 6 fd77::200:$n 80 -n
	done
done

# the agent may be gone while they wait, and comes back before the server: it finds them
run_app --wait 60s -- "$BIN/waiting" connect 4 10.77.3.1 7000 10 -n
pid=$APP out=$OUT
wait_for "grep -q waits $out"
agent_kill9
sleep $WAITED
agent_again
run_app --name late -- "$BIN/waiting" listen 6 :: 7000
wait_for "! alive $pid"
all=$(latencies "$out" "$(awk '/^listens/ { print $2 }' "$OUT")")
like "after an agent that was killed: the last of 10 before TCP would try again" "$(tail -n 1 <<<"$all")" \
	"$SOON"
stop_apps

# the first of the name has the address, and serves nothing; then there is a second, who does: from
# then on the address is both's, and what waits for it is brought to who serves
for client in private host; do
	run_app --net $client --wait 60s -- "$BIN/waiting" connect 4 10.77.3.2 7000 10 -n
	pid=$APP out=$OUT
	run_app --net $client --wait 60s -- "$BIN/waiting" connect 6 fd77::3:2 7000 10
	pid6=$APP out6=$OUT
	wait_for "grep -q waits $out && grep -q waits $out6"
	run_app --name latehost --net host -- sleep 1000
	wait_for "ax get apps | grep -q '^latehost .*running'"
	run_app --name latehost --net host -- "$BIN/waiting" listen 6 :: 7000
	wait_for "! alive $pid && ! alive $pid6"
	is "$client client, second of latehost: all are connected" \
		"$(cat "$out" "$out6" | grep -c ^connected)" 20
	stop_apps
done
done_testing
