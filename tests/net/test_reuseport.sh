#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Servers whose sockets share a port (SO_REUSEPORT: nginx, haproxy, and whatever is reloaded without
# a gap): whichever of them goes, the others are reached at all addresses of the app.
. "$(dirname "$0")/lib.sh"
need jq
build_c udp

agent_start
A4=10.77.1.1 A6=fd77::1:1

reached() { # by another app in host mode
	in_app --net host -- bash -c "exec 3<>/dev/tcp/$1/7000" 2>&1
}
asked() {
	in_app --net host -- "$BIN/udp" ask sendto "$([[ $1 == *:* ]] && echo 6 || echo 4)" "$1" 7000 2>&1
}
checks() { # MODE WHAT LINES
	wait_for "[ \$(wc -l <$OUT) = $3 ]"
	like "$1 app, $2: its own servers answer on loopback" "$(tail -n 1 "$OUT")" \
		": 127.0.0.1 ok ::1 ok$"
	for to in $A4 $A6; do
		is "$1 app, $2: TCP clients get to $to" "$(reached "$to")" ""
		# the agent hands sk_lookup a UDP socket that is left a little later
		ok "$1 app, $2: datagrams get to $to" wait_for "asked $to | grep -q here"
	done
}

for mode in private host; do
	run_app --net $mode --ip $A4,$A6 --name group -- "$PYTHON" "$SRC/group.py" 7000 4
	launched group
	checks $mode "four sockets" 1
	group=$(child_of "$APP")
	for n in 3 2 1; do
		kill -USR1 "$group"
		checks $mode "the newest closed, $n left" $((5 - n))
	done
	kill -USR2 "$group"
	checks $mode "a new one, and the oldest closed" 5
	is "$mode app: one server stands for the group" \
		"$(ax get servers -o json | jq 'map(select(.app == "group")) | length')" 4
	stop_apps
	is "$mode app: when it has ended, none is left" "$(ax get servers -o json | jq length)" 0
done
done_testing
