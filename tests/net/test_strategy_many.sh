#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# least-connections among more backends than are compared for each connection.
. "$(dirname "$0")/lib.sh"
need "$PYTHON"

# The backends are addresses of this host, at all of which one program listens, that tells each
# client which one it got.
ip route add local 10.99.0.0/24 dev lo
cat >"$T/server.py" <<'EOF'
import socket
s = socket.create_server(("0.0.0.0", 7000), backlog=128)
print("listening", flush=True)
held = []
while True:
    c = s.accept()[0]
    c.sendall(c.getsockname()[0].encode() + b"\n")
    held.append(c)
EOF
bg "$T/server" "$PYTHON" "$T/server.py"
wait_for "grep -q listening $T/server"

# Opens connections, one after the other, and keeps them: how many backends got one, and how many
# the one that got most.
cat >"$T/client.py" <<'EOF'
import collections, socket, sys
held = [socket.create_connection((sys.argv[1], 80), 10) for _ in range(int(sys.argv[2]))]
got = collections.Counter(s.makefile().readline() for s in held)
print(len(got), max(got.values()))
EOF

# service NAME IP BACKEND'S WORDS: one with a hundred backends
service() {
	printf '  %s:\n    ip: %s\n    ports: ["80:7000"]\n    strategy: least-connections\n    backends:\n' "$1" "$2"
	for i in {1..100}; do
		echo "      - {address: 10.99.0.$i$3}"
	done
}
{
	printf 'agent:\n  pool: {ipv4: %s}\nservices:\n' "$POOL4"
	service equal 10.77.200.1 ''
	service weighted 10.77.200.2 ', weight: 2' | sed '$s/weight: 2/weight: 1/'
} >"$T/ax.yaml"
agent_start "$T/ax.yaml"

# Chance alone gives a hundred connections to 63 or 64 of a hundred backends, and to one of them 4.
spread() {
	local what=$1 backends most

	read -r backends most <<<"$(ax run --net host --egress -- "$PYTHON" "$T/client.py" "$2" 100)"
	ok "$what: most backends have one ($backends)" [ "$backends" -ge 76 ]
	ok "$what: and none has many ($most)" [ "$most" -le 3 ]
}
spread "all weigh the same" 10.77.200.1
spread "one weighs less" 10.77.200.2
done_testing
