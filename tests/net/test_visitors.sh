#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 300
# What is routed to a private app without egress from another machine: its answers leave for as long as the
# connection lives, whatever connections the app next door has with machines that help it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/outside.sh"
ip addr add 198.51.100.1/24 dev wan0
ip link set wan0 up
for i in 2 3; do outside ip addr add 198.51.100.$i/24 dev wan1; done
outside ip link set wan1 up
outside ip route add default via 198.51.100.1
wait_for 'ip link show wan0 | grep -q LOWER_UP'
agent_start
sysctl -qw net.ipv4.ip_forward=1

cat >"$T/pushes.py" <<-'EOP'
	import os, socket, sys, time
	l = socket.create_server(("0.0.0.0", 7000))
	print("listening", flush=True)
	c = l.accept()[0]
	print("accepted", flush=True)
	while not os.path.exists(sys.argv[1]):
	    time.sleep(0.1)
	c.sendall(b"pushed")
	c.recv(1)
EOP
run_app --ip 10.77.1.50 -- "$PYTHON" "$T/pushes.py" "$T/go"
victim=$OUT
wait_for "grep -q listening $victim"
bg "$T/visitor" outside "$PYTHON" -c 'import socket
s = socket.create_connection(("10.77.1.50", 7000), 20)
print("connected", flush=True)
s.settimeout(100)
print(s.recv(9), flush=True)'
ok "a visitor has a connection" wait_for "grep -q connected $T/visitor && grep -q accepted $victim"

run_app --ip 10.77.1.51 -- "$PYTHON" -c '
import socket
l = socket.create_server(("0.0.0.0", 7000), backlog=4096)
print("listening", flush=True)
while True:
    l.accept()[0].close()'
wait_for "grep -q listening $OUT"
is "the app next door has had many" "$(outside "$PYTHON" -c '
import socket, struct
n = 0
for host in ("198.51.100.2", "198.51.100.3"):
    for port in range(10000, 32000):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.bind((host, port))
        s.connect(("10.77.1.51", 7000))
        s.close()
        n += 1
print(n)')" 44000
touch "$T/go"
wait_for -t 30 "grep -qE \"b'|Error\" $T/visitor"
is "the app still reaches its visitor, who says nothing" "$(tail -n 1 "$T/visitor")" "b'pushed'"
stop_apps
sysctl -qw net.ipv4.ip_forward=0
done_testing
