#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# Backends of another zone serve a port as long as no near one listens there: an app that is near, and serves
# something else or has not begun, keeps nobody from them.
. "$(dirname "$0")/lib.sh"
need jq
build_c tcp udp

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
  zone: here
services:
  svc:
    ip: 10.77.200.1,fd77::200:1
    ports: ["80:7000", "81:7001", "80:7000/udp"]
    strategy: round-robin
    backends: [{app: near, zone: here}, {app: far, zone: there}]
  fixed:
    ip: 10.77.200.2
    ports: ["80:7000"]
    strategy: round-robin
    backends: [{address: 10.77.1.1, zone: here}, {app: far, zone: there}]
EOF

# answers PORT [ADDR FAMILY]: which servers answer ten connections
answers() {
	in_app -- sh -c "for i in 1 2 3 4 5 6 7 8 9 10; do
		$BIN/tcp connect ${3:-4} ${2:-10.77.200.1} $1; done" 2>&1 |
		sed 's/^peer=.* \([a-z]*\) you=.*/\1/' | sort -u | paste -sd ' '
}
# state APP: of its backends, in each family
state() {
	ax get services -o json svc |
		jq -r --arg n "$1" '[.[0].backends[] | select(.app == $n) | .state // "-"] | join(" ")'
}
datagram() {
	in_app -- "$BIN/udp" ask sendto 4 10.77.200.1 80 2>&1
}

for mode in private host; do
	go=$T/go.$mode stop=$T/stop.$mode
	serve 7000 --name far --net $mode -- "$BIN/tcp" listen 6 :: 7000 far
	is "$mode: nobody else is there" "$(answers 80)" far

	# it listens elsewhere, at 7001, the target of the other port
	run_app --name near --ip 10.77.1.1,fd77::1:1 --net $mode -- sh -c \
		"$BIN/tcp listen 6 :: 7001 other & until [ -e $go ]; do sleep 0.02; done
		$BIN/tcp listen 6 :: 7000 near & pid=\$!; until [ -e $stop ]; do sleep 0.02; done
		kill \$pid; wait"
	launched near
	ok "$mode: a near one has the port to itself where it listens" wait_for '[ "$(answers 81)" = other ]'
	is "$mode: and keeps nobody from the far one where it does not" \
		"$(answers 80) $(answers 80 fd77::200:1 6)" "far far"
	is "$mode: by its address, too" "$(answers 80 10.77.200.2 4)" far
	is "$mode: what is shown of the far one" "$(state far)" "- -"

	touch "$go"
	ok "$mode: from when it listens it is the only one" \
		wait_for '[ "$(answers 80) $(answers 80 fd77::200:1 6)" = "near near" ]'
	ok "$mode: by its address, too" wait_for '[ "$(answers 80 10.77.200.2 4)" = near ]'

	# (and an agent that starts meanwhile finds it so)
	agent_kill9
	agent_again
	is "$mode: under the next agent, too" "$(answers 80)" near

	touch "$stop"
	ok "$mode: when it does so no more, the far one serves" \
		wait_for '[ "$(answers 80) $(answers 80 10.77.200.2 4)" = "far far" ]'
	ax stop near >/dev/null # all of its processes
	stop_apps

	serve 7000/udp --name far --net $mode -- "$BIN/udp" serve 6 :: 7000 far
	run_app --name near --ip 10.77.1.1 --net $mode -- sh -c "until [ -e $stop.udp ]; do sleep 0.02; done
		exec $BIN/udp serve 4 0.0.0.0 7000 near"
	launched near
	like "$mode: datagrams go to the far one, too" "$(datagram)" "^from=10.77.200.1:80 far you="
	touch "$stop.udp"
	ok "$mode: until the near one has the port" wait_for '[[ $(datagram) == *" near you="* ]]'
	stop_apps
done
done_testing
