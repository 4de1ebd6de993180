#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax stop of apps that do not want to end, and what becomes of one that is killed while it waits.
. "$(dirname "$0")/lib.sh"
need jq

agent_start

for mode in private host; do
	run_app --net $mode --name stubborn -- bash -c 'trap "" TERM; echo trapped
		while :; do sleep 0.1; done'
	wait_for "grep -q trapped $OUT"
	"$AX" --instance "$INST" stop --timeout 1 stubborn >/dev/null 2>&1 &
	stop=$!
	"$AX" --instance "$INST" stop --timeout 1 stubborn >"$T/stop" 2>&1 &
	second=$!
	ok "$mode: an app is being stopped" wait_for "ax get apps -o json |
		jq -e '.[] | select(.name == \"stubborn\" and .state == \"stopping\")'"
	kill -KILL $stop
	wait $stop 2>/dev/null
	is "$mode: ax stop was still waiting when it was killed" "$?" 137
	ok "$mode: the agent goes on" ax status
	wait $second
	is "$mode: another ax stop has its answer" "$?" 0
	ok "$mode: the app is gone" wait_for "! alive $APP"
	ok "$mode: and the agent is there" ax status
done

# the app's end and the clients' reach the agent at once, in this order
run_app --name stubborn -- bash -c 'trap "" TERM; echo trapped; while :; do sleep 0.1; done'
wait_for "grep -q trapped $OUT"
child=$(child_of "$APP") stops=()
for _ in 1 2 3; do
	stops+=("$("$AX" --instance "$INST" stop --timeout 30 stubborn >/dev/null 2>&1 & echo $!)")
done
wait_for "ax get apps -o json | jq -e '.[] | select(.name == \"stubborn\" and .state == \"stopping\")'"
sleep 0.3
kill -STOP "$AGENT"
kill -KILL "$child"
sleep 0.3
kill -KILL "${stops[@]}"
wait_for "! kill -0 ${stops[0]} && ! kill -0 ${stops[1]} && ! kill -0 ${stops[2]}"
kill -CONT "$AGENT"
ok "several killed while the app ends: the agent goes on" ax status
ok "the app is gone" wait_for "! alive $APP && ! ax get apps -o name | grep -q stubborn"
is "after all that it is the same agent" "$(ax status -o json | jq .pid)" "$AGENT"
done_testing
