#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Connects that wait, at the very moment at which somebody begins to listen: whoever has begun is reached, and
# nobody is refused in between. (Once a server was known before its socket was to be found: who came then to an address that
# apps share was refused.)
. "$(dirname "$0")/lib.sh"

agent_start

serve_late() {
	run_app --net "$1" --name pair -- "$PYTHON" "$SRC/begins.py" listen "$2" "$3"
}
monotonic() {
	"$PYTHON" -c 'import time; print(time.monotonic() + 3)'
}

for mode in host private; do
	n=800
	[ $mode = host ] || n=100
	# the shared address is the other one's, who does not listen
	run_app --net "$mode" --name pair --ip "10.77.1.1,fd77::1:1" -- sleep 1000
	sleeper=$APP
	start=$(monotonic)
	serve_late "$mode" "$start" $n
	server=$APP
	run_app --net "$mode" --name client --wait 20s -- "$PYTHON" "$SRC/begins.py" connect "$start" $n 10.77.1.1 fd77::1:1
	wait "$APP"
	said=$(cat "$OUT")
	tries=${said##*tries }
	is "$mode: nobody is refused" "$(sort <<<"${said%tries*}" | uniq -c | sed '/^ *1 *$/d')" ""
	ok "$mode: $tries tries are enough to see it" test "${tries:-0}" -gt 200
	stop_app "$server"
	stop_app "$sleeper"
done
done_testing
