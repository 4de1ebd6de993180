#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# a processor each
# timeout: 240
# Apps that the first connection starts: it waits, and so do those that come while the app ends. One
# start for many clients; a start that fails refuses who waits; the agent may die in each step.
. "$(dirname "$0")/lib.sh"
build_c tcp waiting

cat >"$T/count" <<EOF
#!/bin/sh
# an app that says when it is started
echo "\$1" >>"$T/started"
[ ! -e "$T/broken" ] || exit 3
exec "$BIN/tcp" listen 6 :: 7000 "\$1"
EOF
chmod +x "$T/count"
touch "$T/started"

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
apps:
  lazy:
    ip: 10.77.3.1,fd77::3:1
    command: [$T/count, lazy]
    start: on-connect
  lazyhost:
    ip: 10.77.3.2,fd77::3:2
    net: host
    command: [$T/count, lazyhost]
    start: on-connect
  short:
    ip: 10.77.3.3
    command: [$T/count, short]
    start: on-connect
    idle: 1s
  shorthost:
    ip: 10.77.3.4
    net: host
    command: [$T/count, shorthost]
    start: on-connect
    idle: 1s
  shy:
    ip: 10.77.3.5
    command: [$T/count, shy]
    labels: {zone: other}
    start: on-connect
  never:
    ip: 10.77.3.6
    command: [/no/such/program]
    start: on-connect
  unborn:
    ip: 10.77.3.7
    command: [$T/count, unborn]
    volumes: [/no/such/dir:/mnt]
    start: on-connect
services:
  svc:
    ip: 10.77.200.1,fd77::200:1
    ports: ["80:7000"]
    backends: [lazy]
  svchost:
    ip: 10.77.200.2,fd77::200:2
    ports: ["80:7000"]
    backends: [lazyhost]
  svcshort:
    ip: 10.77.200.3
    ports: ["80:7000"]
    backends: [short]
EOF

starts() {
	grep -cx "$1" "$T/started"
}

runs() {
	ax get apps -o json | jq -e --arg n "$1" '.[] | select(.name == $n and .state != "declared")' >/dev/null
}

# gone NAME: ends it, as a user would
gone() {
	ax stop "$1" >/dev/null
	wait_for "! runs $1"
}

is "nothing is started before somebody connects" "$(cat "$T/started")" ""
like "the app has its name and its address all the same" \
	"$(in_app -- getent ahostsv4 lazy | head -n 1)" "^10.77.3.1 "
is "asking for its name does not start it" "$(starts lazy)" 0

for client in private host; do
	for name in lazy lazyhost; do
		n=1
		[ $name = lazy ] || n=2
		before=$(starts $name)
		# shellcheck disable=SC2086 # $to: a family, an address, a port, maybe an option
		for to in "4 10.77.3.$n 7000" "6 fd77::3:$n 7000 -n" "4 10.77.200.$n 80 -n" "6 fd77::200:$n 80"; do
			like "$client client: connect $to starts $name" \
				"$(in_app --net $client -- "$BIN/tcp" connect $to)" " $name you="
			gone $name
		done
		is "$client client: $name was started once for each" "$(($(starts $name) - before))" 4
	done
done

# who starts an app is where no app's end, nor the agent's, reaches him, from the first of them on
in_app -- "$BIN/tcp" connect 4 10.77.3.1 7000 >/dev/null
like "its supervisor is in the instance's cgroup of them" \
	"$(grep ^0:: "/proc/$(ps -o ppid= -p "$(ax get apps -o json lazy | jq '.[0].pid')" | tr -d ' ')/cgroup")" \
	"/$INST/supervisors$"
gone lazy

# one start for many
before=$(starts lazy)
is "100 clients at a time: all are connected" \
	"$(in_app -- "$BIN/waiting" connect 4 10.77.3.1 7000 100 -n | grep -c ^connected)" 100
is "100 clients at a time: one start" "$(($(starts lazy) - before))" 1
like "a port that it does not serve is refused while it runs" \
	"$(in_app -- "$BIN/tcp" connect 4 10.77.3.1 7001)" "^error connect ECONNREFUSED$"
gone lazy

# A start that fails, before or after there is an app, is tried at longer and longer intervals, and why
# is said once.
is "somebody connects all the time to what does not start" "$(in_app -- "$PYTHON" -c '
import socket, time
end = time.time() + 6
while time.time() < end:
    for to in "10.77.3.6", "10.77.3.7":
        s = socket.socket()
        s.settimeout(0.3)
        s.connect_ex((to, 80))
        s.close()
    time.sleep(0.02)
print("asked")')" asked
for name in never unborn; do
	is "that $name does not start is said once" \
		"$(grep -c "the app $name does not start" "$T/$INST.log")" 1
	like "and so is why" "$(grep -c "^ax run: .*no/such" "$T/$INST.log")" '^2$'
done
# who may not reach it does not start it
like "who may not reach it is refused" "$(in_app -- "$BIN/tcp" connect 4 10.77.3.5 7000)" \
	"^error connect "
is "and does not start it" "$(starts shy)" 0

# idle
for name in short shorthost; do
	n=3
	[ $name = short ] || n=4
	run_app -- "$BIN/tcp" connect 4 10.77.3.$n 7000 -k 3
	pid=$APP out=$OUT
	wait_for "grep -q ' $name you=' $out"
	sleep 2
	ok "$name: as long as somebody is connected it runs" runs $name
	wait_for "! alive $pid"
	like "$name: and answers" "$(cat "$out")" "^peer="
	ok "$name: nobody is connected any more, and it is ended" wait_for "! runs $name"
	like "$name: the next one starts it again" "$(in_app -- "$BIN/tcp" connect 4 10.77.3.$n 7000)" \
		" $name you="
	wait_for "! runs $name"
	is "$name: it was started once for each" "$(starts $name)" 2
done

# connections at any moment of its end: none fails, none is lost
failed=0
for i in $(seq 20); do
	to="4 10.77.3.3 7000"
	[ $((i % 2)) = 0 ] || to="4 10.77.200.3 80"
	sleep 1.0$((i % 10))$((i % 7))
	# shellcheck disable=SC2086 # its words
	in_app -- "$BIN/tcp" connect $to | grep -q ' short you=' || failed=$((failed + 1))
done
is "connections while it ends: all are answered" $failed 0

# an app that cannot start
touch "$T/broken"
start=$((${EPOCHREALTIME/./} / 1000))
like "an app that does not come up: who waits is refused" \
	"$(in_app -- "$BIN/tcp" connect 4 10.77.3.1 7000)" "^error connect ECONNREFUSED$"
took=$((${EPOCHREALTIME/./} / 1000 - start))
like "at once ($took ms), and not when 30 s are over" "$took" "^[0-9]{1,4}$"
before=$(starts lazy)
like "the next one as well" "$(in_app -- "$BIN/tcp" connect 4 10.77.200.1 80)" "^error connect "
is "without another start: there is a pause" "$(starts lazy)" "$before"
like "who asks to wait does so" "$(
	run_app --wait 20s -- "$BIN/tcp" connect 4 10.77.3.1 7000
	sleep 0.3
	rm "$T/broken"
	wait_for "! alive $APP"
	cat "$OUT"
)" " lazy you="
rm -f "$T/broken"
gone lazy

# the agent dies, and comes back
run_app -- "$BIN/waiting" connect 4 10.77.3.1 7000 5 -n
pid=$APP out=$OUT
wait_for "runs lazy"
wait_for "! alive $pid"
agent_kill9
agent_again
like "after an agent that was killed: the app that it started is there" \
	"$(in_app -- "$BIN/tcp" connect 4 10.77.3.1 7000)" " lazy you="
is "and is not started twice" "$(tail -n 1 "$T/started") $(ax get apps -o json | jq '[.[] | select(.name == "lazy" and .state == "running")] | length')" \
	"lazy 1"
gone lazy

# one that is in use while the agent dies is ended by the next one
for n in 3 4; do
	name=short
	[ $n = 3 ] || name=shorthost
	run_app -- "$BIN/tcp" connect 4 10.77.3.$n 7000 -k 3
	pid=$APP out=$OUT
	wait_for "grep -q ' $name you=' $out"
	agent_kill9
	agent_again
	ok "$name: it is there, and runs, under the next agent" runs $name
	wait_for "! alive $pid"
	ok "$name: and is ended by it" wait_for "! runs $name"
done

# whoever connects meanwhile
run_app -- sh -c "touch $T/ready; while [ ! -e $T/go ]; do sleep 0.05; done; exec $BIN/tcp connect 4 10.77.3.1 7000"
pid=$APP out=$OUT
wait_for "[ -e $T/ready ]"
agent_kill9
touch "$T/go"
sleep 1
agent_again
wait_for "! alive $pid"
like "who connected while no agent ran waits for the next one, which starts the app" "$(cat "$out")" \
	" lazy you="
gone lazy
stop_apps
done_testing
