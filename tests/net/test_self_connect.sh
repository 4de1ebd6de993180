#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# A socket that TCP connects to itself, through a service that counts connections: it is counted
# once, and no more when it is closed.
. "$(dirname "$0")/lib.sh"
need bpftool jq

# Connects from the very address to which the service leads; says what happened, and stays until it is
# told to close.
cat >"$T/self.py" <<'EOF'
import os, socket, sys, time
addr, own, port, go = sys.argv[1:5]
family = socket.AF_INET6 if ":" in addr else socket.AF_INET
s = socket.socket(family, socket.SOCK_STREAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((own, int(port)))
s.connect((addr, 80))
s.send(b"me")
print(s.recv(2).decode(), flush=True)
while not os.path.exists(go):
    time.sleep(0.02)
s.close()
print("closed", flush=True)
time.sleep(1000)
EOF

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  mirror:
    ip: 10.77.200.1,fd77::200:1
    ports: ["80:7000"]
    strategy: least-connections
    backends: [narcissus]
EOF

open_conns() {
	bpftool map dump pinned "/sys/fs/bpf/$INST/map_open_conns" -j |
		jq '[.[].formatted.value // 0] | add // 0'
}

no_app() {
	[ -z "$(ax get apps -o name)" ]
}

# What is accepted is looked up as well once a program outside ax has used a service that counts.
for outside in no yes; do
	if [ $outside = yes ]; then
		serve 7000 --net host --name narcissus -- "$PYTHON" -m http.server 7000
		ok "a program outside ax connects" curl -sS -o /dev/null --max-time 20 http://10.77.200.1/
		ok "and counts no more" wait_for "[ \"\$(open_conns)\" = 0 ]"
		stop_app "$APP"
		wait_for no_app
	fi
	for mode in private host; do
		for to in "10.77.200.1 10.77.5.1" "fd77::200:1 fd77::5:1"; do
			rm -f "$T/go"
			# shellcheck disable=SC2086 # $to: two words
			run_app --net $mode --name narcissus --ip 10.77.5.1,fd77::5:1 -- \
				"$PYTHON" "$T/self.py" $to 7000 "$T/go"
			what="$mode, ${to%% *}, others: $outside"
			wait_for "grep -q me $OUT"
			is "a socket connects to itself ($what)" "$(cat "$OUT")" me
			is "it counts once ($what)" "$(open_conns)" 1
			touch "$T/go"
			wait_for "grep -q closed $OUT"
			ok "closed, it counts no more ($what)" wait_for "[ \"\$(open_conns)\" = 0 ]"
			stop_app "$APP"
			wait_for no_app
		done
	done
done
done_testing
