#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# a processor each
# Connects that wait, at the very moment at which a server ends, which begins anew soon: none of them is refused. (What
# was sent to the former may find nobody: who had waited was told so, and did not wait for the latter.)
. "$(dirname "$0")/lib.sh"

agent_start

for mode in host private; do
	n=300 # connects are made around each of so many ends
	# the shared address is the other one's, who does not listen
	run_app --net "$mode" --name pair --ip "10.77.1.1,fd77::1:1" -- sleep 1000
	sleeper=$APP
	start=$("$PYTHON" -c 'import time; print(time.monotonic() + 3)')
	run_app --net "$mode" --name pair --ip "10.77.1.2,fd77::1:2" -- "$PYTHON" "$SRC/begins.py" close "$start" $n
	server=$APP
	wait_for "grep -q listening $OUT"
	run_app --net "$mode" --name client --wait 20s -- \
		"$PYTHON" "$SRC/begins.py" connect "$start" $n 10.77.1.1 fd77::1:1 10.77.1.2 fd77::1:2
	wait "$APP"
	said=$(cat "$OUT")
	tries=${said##*tries }
	# (whom the server has let in before it ends is reset by its end)
	is "$mode: nobody is refused" "$(grep ": E" "$OUT" | grep -vE "ECONNRESET|EPIPE" | sort | uniq -c)" ""
	ok "$mode: $tries tries are enough to see it" test "${tries:-0}" -gt 200
	stop_app "$server"
	stop_app "$sleeper"
done
done_testing
