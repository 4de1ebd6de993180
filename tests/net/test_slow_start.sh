#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Slow start: a backend that comes gets its share step by step; zones: who is far serves only when
# nobody near does; who does not listen gets nothing, and that is shown.
. "$(dirname "$0")/lib.sh"
need jq
build_c tcp

hits() { in_app -- "$PYTHON" "$SRC/hits.py" ask "$1" "$2"; }

# config SLOW-START ZONE
config() {
	cat <<-EOF2
		agent:
		  pool: {ipv4: $POOL4}
		  ${2:+zone: $2}
		services:
		  slow:
		    ip: 10.77.200.1
		    ports: ["80:8000"]
		    strategy: round-robin
		    slow-start: $1
		    backends: [s1, {app: s2, weight: 2}]
		    check: {type: tcp, every: 200ms, fall: 1, rise: 1}
		  zones:
		    ip: 10.77.200.2
		    ports: ["80:8000"]
		    strategy: round-robin
		    backends: [{app: s1, zone: a}, {app: s2, zone: b}]
		    check: {type: tcp, every: 200ms, fall: 1, rise: 1}
		  plain:
		    ip: 10.77.200.3
		    ports: ["80:8000"]
		    backends: [s1, quiet]
	EOF2
}
share() {
	ax get services -o json | jq -r --arg b "$1" '.[] | select(.name == "slow") |
		.backends[] | select(.app == $b) | if .state == "up" then .share // 100 else 0 end'
}
state() {
	ax get services -o json | jq -r --arg s "$1" --arg b "$2" '.[] | select(.name == $s) |
		.backends[] | select(.app == $b) | .state // "-"'
}
start_server() { serve 8000 --name "$1" --ip "$2" -- "$PYTHON" "$SRC/hits.py" serve 0.0.0.0 8000 "$1"; }

agent_start - < <(config 600s)
start_server s1 10.77.1.1
S1=$APP
wait_for '[ "$(share s1)" != 0 ]' # until it was looked at
is "whom a service begins with has its share at once" "$(share s1)" 100
start_server s2 10.77.1.2
S2=$APP
wait_for '[ "$(share s2)" != 0 ]'
is "who comes has a tenth" "$(share s2)" 10
is "of its weight" "$(hits 10.77.200.1 24)" "s1=20 s2=4"
like "which the table shows" "$(ax get services)" "s2 10.77.1.2 \(weight 2\) up 10%"

agent_kill9
agent_again
is "whom the next agent finds has its share" "$(share s2)" 100
is "that is" "$(hits 10.77.200.1 24)" "s1=8 s2=16"

config 8s >"$T/fast.yaml"
like "it is a key like others" "$(ax config apply --dry-run "$T/fast.yaml")" "slow-start 600000ms -> 8000ms"
ok "applied" ax config apply "$T/fast.yaml"
stop_app "$S2"
start_server s2 10.77.1.2
S2=$APP
seen=$(for _ in $(seq 400); do
	now=$(share s2)
	echo "$now"
	[ "$now" = 100 ] && break
	sleep 0.1
done | grep -vx 0 | sort -nu | tr '\n' ' ')
like "the share grows" "$seen" "^(10 )?[1-9]0 .*[4-9]0 .*100 $"
is "until it is full" "$(hits 10.77.200.1 24)" "s1=8 s2=16"

# who does not listen
run_app --name quiet --ip 10.77.1.3 -- sleep 1000
QUIET=$APP
ok "an app that does not listen is shown as silent" wait_for "[ \"\$(state plain quiet)\" = silent ]"
is "and gets nothing" "$(hits 10.77.200.3 10)" "s1=10"
is "one that listens is not" "$(state plain s1)" "-"

# zones
is "without a zone of its own all are near" "$(hits 10.77.200.2 10)" "s1=5 s2=5"
config 0 a >"$T/a.yaml"
like "a zone is a key of the agent" "$(ax config apply --dry-run "$T/a.yaml")" "agent.*zone"
ok "applied" ax config apply "$T/a.yaml"
is "who is near gets all" "$(hits 10.77.200.2 10)" "s1=10"
is "who is far is shown" "$(state zones s2)" far
config 0 b >"$T/b.yaml"
ok "another zone" ax config apply "$T/b.yaml"
is "others are near" "$(hits 10.77.200.2 10)" "s2=10"
stop_app "$S2"
is "when nobody near serves, the others do" "$(hits 10.77.200.2 10)" "s1=10"
start_server s2 10.77.1.2
S2=$APP
ok "and no longer" wait_for "[ \"\$(state zones s1)\" = far ]"
is "than they have to" "$(hits 10.77.200.2 10)" "s2=10"
kill -STOP "$(child_of "$S2")"
agent_kill9
agent_again
is "the next agent has the zone" "$(state zones s1)" far
kill -CONT "$(child_of "$S2")"

ok "ax service has the words" ax service add cli --port 80:8000 --backend s1,zone=a,weight=2 \
	--backend s2,zone=b --slow-start 1s
is "zones" "$(hits cli 10)" "s2=10"
ok "removed" ax service del cli
for app in "$S1" "$S2" "$QUIET"; do stop_app "$app"; done
for bad in "zone: 'a b'" "zone: ''" "zone: [a]"; do
	fails "refused: $bad" ax config check <(
		echo "services: {s: {ports: [80], backends: [{app: a, $bad}]}}")
done
done_testing
