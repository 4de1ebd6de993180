#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# Many services that go at once: of all that was connected through them the sockets are ended, in both modes, from this
# host and through exposed ports, whoever asks next is answered soon, and those of other services go on.
. "$(dirname "$0")/lib.sh"
need jq "$PYTHON"
build_c udp

MANY=4000
services() {
	printf 'agent:\n  pool: {ipv4: %s, ipv6: "%s"}\nservices:\n' "$POOL4" "$POOL6"
	echo '  stays: {ip: "10.77.9.1,fd77::9:1", ports: ["80:7000/udp"], backends: [server]}'
	[ "$1" = 0 ] || echo '  shown: {ip: 10.77.9.2, ports: ["80:7000/udp"], backends: [server], expose: ["8080:80/udp"]}'
	seq 1 "$1" | awk '{ printf "  many%d: {ip: \"10.217.%d.%d,fd77::a:%x\", ports: [\"80:7000/udp\"], backends: [server]}\n",
		$1, $1 / 250, $1 % 250 + 1, $1 }'
}
services $MANY >"$T/many.yaml"
services 0 >"$T/few.yaml"
agent_start "$T/many.yaml"

# follow NAME MODE FAMILY ADDRESS [PORT]: a client that stays connected; what it prints is in $T/NAME
follow() {
	if [ "$2" = outside ]; then
		bg "$T/$1" "$BIN/udp" follow "$3" "$4" "${5:-80}" 200
	else
		run_app --net "$2" -- "$BIN/udp" follow "$3" "$4" "${5:-80}" 200
		ln -s "$OUT" "$T/$1"
	fi
	wait_for "grep -q server '$T/$1'"
}

for mode in private host; do
	serve 7000/udp --net $mode --name server -- "$BIN/udp" serve 6 :: 7000 server
	for client in private host; do
		follow gone4.$mode.$client $client 4 10.217.0.2
		follow gone6.$mode.$client $client 6 fd77::a:fa0
		follow stays.$mode.$client $client 4 10.77.9.1
	done
	follow shown.$mode outside 4 127.0.0.1 8080
	ok "$mode: they go" ax config apply "$T/few.yaml"
	ok "$mode: who asks next is answered" ax service add next --ip 10.77.9.3 -p 80 -b server
	for client in private host; do
		for family in 4 6; do
			ok "$mode: a $client client of one that is gone is told, IPv$family" \
				wait_for "grep -q '^error' '$T/gone$family.$mode.$client'"
		done
		is "$mode: a $client client of another one goes on" "$(cat "$T/stays.$mode.$client")" server
	done
	ok "$mode: next goes" ax service del next
	ok "$mode: they come again" ax config apply "$T/many.yaml"
	stop_apps
done
done_testing
