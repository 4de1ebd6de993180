#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# a processor each
# timeout: 300
# What an app has written arrives, though it has ended before the other side reads it: for a program
# outside ax, at its own address and by a service whose last backend it was, and for apps.
. "$(dirname "$0")/lib.sh"
need socat

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  svc: {ip: 10.77.200.1, ports: ["80:7000"], backends: [once]}
EOF

for mode in private host; do
	for to in 10.77.6.1:7000 10.77.200.1:80; do
		serve 7000 --net $mode --name once --ip 10.77.6.1 -- \
			socat -u SYSTEM:'head -c 1000000 /dev/zero' TCP4-LISTEN:7000,reuseaddr
		# reads late and little at a time: most of it waits in the kernel when the app ends
		n=$(timeout 60 socat -u TCP4:$to,rcvbuf=20000 - | (sleep 1; wc -c))
		is "$mode mode: all of it arrives outside from $to" "$n" 1000000
		stop_apps
	done
done

# the same for another app, with what the server's socket takes at once
SEND='
import socket
s = socket.create_server(("10.77.1.1", 7000))
c, _ = s.accept()
c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
c.setblocking(False)
n = 0
try:
    while n < 1000000:
        n += c.send(bytes(50000))
except BlockingIOError:
    pass
print("sent", n, flush=True)
'
RECEIVE='
import socket, time
c = socket.create_connection(("10.77.1.1", 7000), 20)
time.sleep(1)
n = 0
while True:
    data = c.recv(65536)
    if not data:
        break
    n += len(data)
print("received", n)
'
for server in private host; do
	for client in private host; do
		serve 7000 --net $server --ip 10.77.1.1 --name brief -- "$PYTHON" -c "$SEND"
		received=$(in_app --net $client -- "$PYTHON" -c "$RECEIVE" 2>&1 | tail -n 1)
		sent=$(cat "$OUT")
		is "$server server that ends at once, $client client: everything arrives" "$received" \
			"received ${sent#sent }"
	done
done
done_testing
