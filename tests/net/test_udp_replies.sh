#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# What unconnected UDP sockets have asked through services is kept for each of them: whoever asks a lot
# makes no other's answer come from a stranger.
. "$(dirname "$0")/lib.sh"
need "$PYTHON"

services=$(for i in $(seq 2 65); do
	echo "  s$i: {ip: \"10.77.201.$i\", ports: [\"9000:$((7000 + i))/udp\"], backends: [echo]}"
done)
agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  asked:
    ip: 10.77.200.1,fd77::200:1
    ports: ["9000:7000/udp"]
    backends: [slow]
$services
EOF

# Answers the first datagram, once it is told to.
cat >"$T/slow.py" <<'EOF'
import os, socket, sys, time
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind(("::", 7000))
print("ready", flush=True)
asked = [s.recvfrom(100) for _ in range(2)]
print("asked", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
for data, who in asked:
    s.sendto(data, who)
time.sleep(1000)
EOF
cat >"$T/ask.py" <<'EOF'
import socket
for family, to in (socket.AF_INET, "10.77.200.1"), (socket.AF_INET6, "fd77::200:1"):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(100)
    s.sendto(b"?", (to, 9000))
    globals()[to] = s
for to in "10.77.200.1", "fd77::200:1":
    print(globals()[to].recvfrom(100)[1][:2], flush=True)
EOF
for mode in private host; do
	rm -f "$T/answer"
	serve 7000/udp --net host --name slow -- "$PYTHON" "$T/slow.py" "$T/answer"
	slow=$APP slow_out=$OUT
	run_app --net $mode --name asker -- "$PYTHON" "$T/ask.py"
	asker=$APP asker_out=$OUT
	ok "two questions are asked ($mode)" wait_for "grep -q asked $slow_out"
	is "another app asks from 100,000 sockets ($mode)" "$(TIME_LIMIT=90 in_app --net $mode -- "$PYTHON" -c '
import socket
for _ in range(100000):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(b"!", ("10.77.200.1", 9000))
    s.close()
print("all")')" all
	touch "$T/answer"
	wait_for -t 30 "! alive $asker"
	is "the answers come from whom was asked ($mode)" "$(cat "$asker_out")" \
		"('10.77.200.1', 9000)"$'\n'"('fd77::200:1', 9000)"
	stop_app "$slow"
done

# of one socket's own questions the last 48 are known
serve 7002/udp --net host --name echo -- "$PYTHON" -c '
import select, socket
socks = []
for i in range(65, 1, -1):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("0.0.0.0", 7000 + i))
    socks.append(s)
while True:
    for s in select.select(socks, [], [])[0]:
        data, who = s.recvfrom(100)
        s.sendto(data, who)'
for mode in private host; do
	is "one socket asks many services at once, and many one after the other ($mode)" \
		"$(in_app --net $mode -- "$PYTHON" -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(10)
def ask(many):
    for to in many:
        s.sendto(b"?", (to, 9000))
    return sorted(many) == sorted(s.recvfrom(100)[1][0] for _ in many)
all = [f"10.77.201.{i}" for i in range(2, 66)]
print(ask(all[:48]), all and [ask([to]) for to in all].count(True), ask(all[16:]))')" \
		"True 64 True"
done
done_testing
