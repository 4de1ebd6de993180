#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# An app in the host's network that a rule keeps out of what is exposed gets there by no other way: not
# where it has a server of its own at that number, nor when that is gone before its SYN comes, nor by
# addresses that the kernel takes for the exposed one.
. "$(dirname "$0")/lib.sh"
need ip jq "$PYTHON"
build_c tcp udp

HOST4=198.51.100.1
ip addr add $HOST4/32 dev lo
ip route add local 203.0.113.0/24 dev lo
agent_start

GUEST=(--net host --ip "10.77.1.9,fd77::1:9" --name guest --labels team=two --egress=all)
guest() {
	in_app "${GUEST[@]}" -- "$@" 2>&1
}

# lost.py ADDRESS PORT OTHERS: a connection to a server of its own that has no room for it, and that ends
# before the SYN comes once more; meanwhile so many others begin there. Prints what came of it.
cat >"$T/lost.py" <<'EOP'
import socket, sys
address, port, others = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
family = socket.AF_INET6 if ":" in address else socket.AF_INET

def begin():
    c = socket.socket(family)
    c.setblocking(False)
    c.connect_ex((address, port))
    return c

server = socket.create_server(("" if family == socket.AF_INET else "::", port), family=family, backlog=0)
first = socket.create_connection((address, port))
lost = [begin() for _ in range(1 + others)]
server.close()
lost[0].settimeout(30)
try:
    lost[0].send(b"")  # (waits until it is connected, or not)
    print("reached:", lost[0].recv(100).decode().strip())
except OSError as e:
    print(e.strerror or str(e))
EOP

# own.py ADDRESS PORT: what a server of its own is asked there
cat >"$T/own.py" <<'EOP'
import socket, sys
address, port = sys.argv[1], int(sys.argv[2])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
server = socket.create_server(("" if family == socket.AF_INET else "::", port), family=family)
client = socket.create_connection((address, port), timeout=20)
server.settimeout(5)
conn, _ = server.accept()
conn.sendall(b"its own")
print(client.recv(100).decode())
EOP

for mode in private host; do
	serve 7000 --net $mode --ip 10.77.1.1,fd77::1:1 --name vault --labels team=one \
		-p 127.0.0.1:9100:7000 -p "[::1]:9100:7000" -p $HOST4:9101:7000 -p 9102:7000 -- \
		"$BIN/tcp" listen 6 :: 7000 vault
	like "$mode: the host's programs reach what is exposed" "$("$BIN/tcp" connect 4 127.0.0.1 9100 2>&1)" "vault you="
	for to in 127.0.0.1 ::1; do
		is "$mode: an app's own server on the wildcard is found at $to before that" \
			"$(guest "$PYTHON" "$T/own.py" $to 9100)" "its own"
		is "$mode: a connection to it at $to that it did not live to see is refused" \
			"$(guest "$PYTHON" "$T/lost.py" $to 9100 0)" "Connection refused"
	done
	is "$mode: and so it is among thousands" \
		"$(guest sh -c "ulimit -n 20000; exec '$PYTHON' '$T/lost.py' 127.0.0.1 9100 12000")" "Connection refused"
	for to in "4 127.0.0.1 9100" "6 ::1 9100" "4 0.0.0.0 9100" "6 :: 9100" "6 ::ffff:0.0.0.0 9100" "4 $HOST4 9101" \
		"4 203.0.113.7 9102"; do
		# shellcheck disable=SC2086 # fields
		set -- $to
		like "$mode: who may not have it is refused at $2 port $3" \
			"$(guest "$BIN/tcp" connect "$1" "$2" "$3")" "^error connect (EACCES|ECONNREFUSED)"
	done
	like "$mode: and at the wildcard from the exposed address" \
		"$(guest "$BIN/tcp" connect 4 0.0.0.0 9101 -b $HOST4 0)" "^error connect (EACCES|ECONNREFUSED)"
	stop_apps

	serve 7000/udp --net $mode --ip 10.77.1.1,fd77::1:1 --name vault --labels team=one \
		-p 127.0.0.1:9100:7000/udp -p "[::1]:9100:7000/udp" -- "$BIN/udp" serve 6 :: 7000 vault
	like "$mode, UDP: the host's programs reach it" "$("$BIN/udp" ask connected 4 127.0.0.1 9100 2>&1)" " vault you="
	for way in connected sendto sendmsg; do
		for to in "4 127.0.0.1" "6 ::1" "4 0.0.0.0" "6 ::" "6 ::ffff:0.0.0.0"; do
			# shellcheck disable=SC2086 # fields
			set -- $to
			unlike "$mode, UDP: who may not have it does not at $2, $way" \
				"$(guest "$BIN/udp" ask $way "$1" "$2" 9100)" " vault you="
		done
	done
	stop_apps
done
done_testing
