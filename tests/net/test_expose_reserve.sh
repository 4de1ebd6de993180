#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# A port that is exposed while connections of a former server still have it is kept from others as soon
# as these are gone. And who has ended keeps none from the next one, whom a script starts at once.
. "$(dirname "$0")/lib.sh"
need "$PYTHON"
build_c tcp
agent_start

# A server that says nothing of SO_REUSEADDR, and ends while a client is there; at the end the client
# goes first, so that nothing is left of it.
cat >"$T/former.py" <<'EOF'
import os, socket, sys, time
s = socket.socket(socket.AF_INET)
s.bind(("0.0.0.0", 8085))
s.listen()
c = socket.create_connection(("127.0.0.1", 8085))
kept, _ = s.accept()
s.close()
print("connected", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
c.close()
kept.recv(1)
kept.close()
print("gone", flush=True)
EOF
port_is_kept() {
	[ "$("$BIN/tcp" bind 4 0.0.0.0 8085)" = "error bind EADDRINUSE" ]
}

bg "$T/former" "$PYTHON" "$T/former.py" "$T/go"
wait_for "grep -q connected $T/former"
run_app --name web -p 8085:80 -- sleep 1000
ok "a port that only connections have is exposed" launched web
touch "$T/go"
wait_for "grep -q gone $T/former"
ok "and kept from others when these are gone" wait_for port_is_kept
stop_app "$APP"
ok "and free when the app is gone" wait_for "! port_is_kept"

# each ax run ends a moment before the agent hears of its app's end
for mode in private host; do
	failed=0
	for _ in $(seq 20); do
		in_app --net $mode -p 8086:80 -- true 2>"$T/again" || failed=$((failed + 1))
		in_app --net $mode -p 127.0.0.1:8086:81 -p 8087:80/udp -- true 2>"$T/again" || failed=$((failed + 1))
	done
	is "$mode: one after the other exposes the port: $(cat "$T/again")" $failed 0
done
done_testing
