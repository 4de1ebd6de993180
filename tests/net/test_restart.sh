#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# The agent may die at any moment: under load, in the middle of launches and of an apply; it may be
# replaced by another binary; ax run may be killed. Traffic goes on and nothing is left.
# timeout: 400
. "$(dirname "$0")/lib.sh"
need nginx wrk curl
build_c tcp many

config() {
	cat <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		services:
		  svc:
		    ip: 10.77.200.1,fd77::200:1
		    ports: ["80:8080"]
		    backends: [web]
	EOF
}
agent_start - < <(config)

# load NAME OPTIONS...: wrk in the background; load_result NAME checks that no request failed
load() {
	local name=$1
	shift
	run_app "$@"
	eval "LOAD_$name=$APP OUT_$name=$OUT"
}
load_result() {
	local load out
	eval "load=\$LOAD_$1 out=\$OUT_$1"
	wait "$load"
	if grep -q 'requests in' "$out" && ! grep -q 'Socket errors\|Non-2xx' "$out" &&
		[ "$(awk '/requests in/ { print $1 }' "$out")" -gt 500 ]; then
		pass "$2 ($(awk '/requests in/ { print $1 }' "$out") requests)"
	else
		not_ok "$2" "$(cat "$out")"
	fi
}

serve 8080 --name web --ip 10.77.1.1,fd77::1:1 -- nginx -c "$(nginx_conf web 1 '
	server { listen 8080; listen [::]:8080; location / { return 200 "hello\n"; } }')"
web=$APP
load keep --net private -- wrk -t1 -c8 -d6s http://svc/
load new --net host -- wrk -t1 -c4 -d6s -H 'Connection: close' http://10.77.200.1/
load direct --net private -- wrk -t1 -c4 -d6s -H 'Connection: close' "http://[fd77::1:1]:8080/"
sleep 0.7
agent_kill9
sleep 0.7
is "with the agent dead, a new connection works" \
	"$(curl -s --max-time 20 http://10.77.1.1:8080/)" hello
agent_again
sleep 0.5
agent_kill9
agent_again
cp "$AX" "$T/ax-new"
agent_stop
agent_again "$T/ax-new"
is "the agent now is the other binary" "$(readlink "/proc/$AGENT/exe")" "$T/ax-new"
is "it knows the app that ran before it" \
	"$(ax get apps -o json | jq -r '.[] | select(.name == "web") | .state + " " + .ip4')" \
	"running 10.77.1.1"
load_result keep "agent killed, restarted, upgraded: kept connections by service from a private app"
load_result new "agent killed, restarted, upgraded: new connections by service from a host-mode app"
load_result direct "agent killed, restarted, upgraded: new connections by IPv6 from a private app"
is "and the service works with the new agent" \
	"$(in_app -- curl -s --max-time 20 http://svc/)" hello
is "names too" "$(in_app -- getent ahostsv4 web | awk '{ print $1 }' | sort -u)" 10.77.1.1

# a child that the dead agent had forked still has the lock's descriptor
agent_kill9
(flock 9 && sleep 0.6) 9<>"/run/ax/$INST/lock" &
orphan=$!
sleep 0.1
agent_again
is "the next agent waits for the lock of a dead one" "$?" 0
wait "$orphan"

# launches between two running apps go on while no agent runs; new ones say what is wrong
run_app --ip 10.77.1.9 -- sh -c "while :; do curl -s --max-time 20 http://10.77.200.1/; sleep 0.1; done"
wait_for "grep -q hello $OUT"
agent_kill9
: >"$OUT"
sleep 0.5
like "an app connects by service while no agent runs" "$(tail -n 1 "$OUT")" hello
out=$(in_app -- true 2>&1)
is "ax run without an agent is an error of ax" "$?" 125
like "with a sentence that says so" "$out" "agent"
agent_again
stop_app "$APP"

# an app that ended while the agent was down
run_app --name brief --ip 10.77.1.8,fd77::1:8 -- sleep 100
launched brief
agent_kill9
stop_app "$APP"
run_app --net host --name x -- true
agent_again
wait_for "! ax get apps -o json | grep -q brief"
is "what ended while the agent was down is undone" \
	"$(ax get apps -o json | jq -r '.[] | select(.name == "brief") | .name')$(ip -o route show table all |
		grep -c '10\.77\.1\.8')" 0

# ax run killed
for mode in private host; do
	run_app --net $mode --name orphan --ip 10.77.1.7 -- "$BIN/tcp" listen 4 0.0.0.0 7000
	wait_for "listens $APP 7000"
	child=$(child_of $APP)
	kill -KILL $APP
	wait $APP 2>/dev/null
	if wait_for -t 0.5 "! alive $child"; then
		pass "$mode: kill -9 of ax run takes the app along"
	else
		like "$mode: the app goes on after kill -9 of ax run" \
			"$(in_app -- "$BIN/tcp" connect 4 10.77.1.7 7000)" "^peer="
		ok "$mode: ax stop ends it" ax stop orphan
	fi
	ok "$mode: it is undone" wait_for "! ax get apps -o json | grep -q orphan"
done
stop_app "$web"
APPS=()
leftovers "after all this nothing is left"

# the agent dies in the middle of launches
failures=
for round in 1 2 3 4 5 6 7 8 9 10; do
	pids=()
	for i in 1 2 3 4; do
		mode=private
		[ $((i % 2)) -eq 0 ] || mode=host
		timeout --foreground -k 1 20 "$AX" --instance "$INST" run --net $mode --name r$i -- true \
			>"$T/launch.$i" 2>&1 </dev/null &
		pids+=($!)
	done
	sleep 0.0$((RANDOM % 70 + 10))
	agent_kill9
	agent_again || failures+="round $round: the agent does not start; "
	for i in 0 1 2 3; do
		wait "${pids[$i]}"
		rc=$?
		if [ $rc -ne 0 ] && [ $rc -ne 125 ]; then
			failures+="round $round: status $rc: $(cat "$T/launch.$((i + 1))"); "
		fi
		[ $rc -ne 125 ] || grep -q . "$T/launch.$((i + 1))" || failures+="round $round: no sentence; "
	done
done
is "10 agents killed in the middle of launches: each launch works or says why not" "$failures" ""
leftovers "10 agents killed in the middle of launches: nothing is left"
is "and a launch works" "$(in_app -- echo fine)" fine

# the agent dies in the middle of an apply
many_apps() {
	config | sed '/^services:/,$d'
	echo "apps:"
	for i in $(seq "$1"); do
		echo "  d$i: {command: [sleep, '1000'], net: $([ $((i % 2)) -eq 0 ] && echo host || echo private)}"
	done
	echo "services:"
	for i in $(seq "$1"); do
		echo "  s$i: {ports: [80], backends: [d$i]}"
	done
}
config >"$T/none.yaml"
failures=
for round in 1 2 3 4 5 6; do
	many_apps 8 >"$T/many.yaml"
	cp "$T/many.yaml" "$T/$INST.yaml"
	timeout 20 "$AX" --instance "$INST" config apply "$T/many.yaml" >/dev/null 2>&1 &
	apply=$!
	sleep "0.$(printf %03d $((RANDOM % 150 + 5)))"
	agent_kill9
	wait $apply
	agent_again || failures+="round $round: the agent does not start; "
	wait_for "[ \$(ax get apps -o json | jq '[.[] | select(.state == \"running\")] | length') -eq 8 ]" ||
		failures+="round $round: $(ax get apps -o json | jq -c 'map([.name, .state])'); "
	[ "$(ax get services -o json | jq 'length')" -eq 8 ] ||
		failures+="round $round: $(ax get services -o json | jq -c 'map(.name)'); "
	cp "$T/none.yaml" "$T/$INST.yaml"
	ax config apply "$T/none.yaml" >/dev/null 2>&1 &
	apply=$!
	sleep 0.0$((RANDOM % 90 + 10))
	agent_kill9
	wait $apply
	agent_again || failures+="round $round: the agent does not start again; "
	wait_for "[ \$(ax get apps -o json | jq length) -eq 0 ]" ||
		failures+="round $round: left: $(ax get apps -o json | jq -c 'map([.name, .state])'); "
done
is "6 agents killed in the middle of an apply: the next one finishes it" "$failures" ""
leftovers "6 agents killed in the middle of an apply: nothing is left"

# connections outlive everything
run_app --name srv --ip 10.77.1.1 -- "$BIN/tcp" listen 6 :: 8080
wait_for "listens $APP 8080"
run_app --name web -- sleep 100
run_app -- "$BIN/tcp" connect 4 10.77.1.1 8080 -k 3
client=$APP out=$OUT
wait_for "grep -q you= $out"
agent_kill9
agent_again
agent_stop
agent_again
wait "$client"
is "one connection lives through a killed and a stopped agent" \
	"$(tail -n 1 "$out")" "echoed again"
done_testing
