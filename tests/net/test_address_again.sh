#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# The address of an app that has ended is the next one's at once, whatever TCP still does with the
# last one's connections: LAST-ACK and FIN-WAIT-1 to a client that says nothing more, TIME-WAIT.
. "$(dirname "$0")/lib.sh"
need ss jq "$PYTHON"
agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
apps:
  declared:
    ip: 10.77.2.1,fd77::2:1
EOF

# Serves without SO_REUSEADDR, as programs do that never had to share a port with their past. What it
# does with a connection is in its argument.
cat >"$T/server.py" <<'EOF'
import socket, sys, time
what = sys.argv[1]
s = socket.socket(socket.AF_INET6)
s.bind(("::", 7000))
s.listen()
print("listens", flush=True)
kept = []
while True:
    c, _ = s.accept()
    kept.append(c)
    if what == "hello":
        c.sendall(b"hello")
        c.close()
    elif what == "last-ack":
        print("got", len(c.recv(1)), flush=True)
    elif what == "fin-wait":
        c.setblocking(False)
        try:
            while True:
                c.send(bytes(65536))
        except BlockingIOError:
            print("got", 0, flush=True)
    else:
        c.close()
        print("got", 0, flush=True)
EOF
cat >"$T/client.py" <<'EOF'
import socket, sys, time
s = socket.create_connection((sys.argv[1], 7000), 20)
if sys.argv[2] == "last-ack":
    s.shutdown(socket.SHUT_WR)
elif sys.argv[2] == "time-wait":
    s.recv(1)
    s.close()
time.sleep(1000)
EOF

# states WHERE: the states of the sockets of port 7000 there, but of those that listen
states() {
	if [ "$1" = host ]; then
		ss -Htn state all "sport = :7000"
	fi | awk '$1 != "LISTEN" { print $1 }' | sort -u | xargs
}

for mode in private host; do
	for what in last-ack fin-wait time-wait; do
		for to in 10.77.1.1 fd77::1:1; do
			name="$mode, $what, $to"
			serve 7000 --net $mode --name old --ip 10.77.1.1,fd77::1:1 -- \
				"$PYTHON" "$T/server.py" $what
			old=$APP out=$OUT
			run_app --name client -- "$PYTHON" "$T/client.py" $to $what
			client=$APP
			wait_for "grep -q got $out"
			# from now on it says nothing more
			[ $what = time-wait ] ||
				nsenter -t "$(child_of "$client")" -n ip link set eth0 down
			# (the client closes a moment after the server, and has nobody to tell any more if that is gone by then)
			[ $mode,$what,$to != host,time-wait,10.77.1.1 ] || wait_for "states host | grep -q TIME-WAIT"
			own_child "$old" && kill -KILL "$(child_of "$old")"
			wait_for "! alive $old"
			[ $mode = private ] || [ $to = fd77::1:1 ] ||
				wait_for "states host | grep -qE 'LAST-ACK|FIN-WAIT-1|TIME-WAIT'"
			[ $mode = private ] || [ $to = fd77::1:1 ] ||
				like "the kernel is not done with the last one ($name)" "$(states host)" "LAST-ACK|FIN-WAIT-1|TIME-WAIT"
			run_app --net $mode --name new --ip 10.77.1.1,fd77::1:1 -- "$PYTHON" "$T/server.py" hello
			new=$APP
			ok "the next one listens there at once ($name)" wait_for "grep -q listens $OUT" ||
				diag "$(cat "$OUT")"
			for from in private host; do
				is "and serves a $from client ($name)" "$(in_app --net $from -- "$PYTHON" -c "
import socket
print(socket.create_connection(('$to', 7000), 20).recv(10).decode())" 2>&1)" hello
			done
			stop_app $client
			stop_app $new
		done
	done
done

# Whose address the config gives, too: he shares it with nobody, and no service of both comes to be,
# in which the last one would stay.
for mode in private host; do
	for i in 1 2; do
		name="$mode, start $i of a declared app"
		serve 7000 --net $mode --name declared -- "$PYTHON" "$T/server.py" fin-wait
		server=$APP out=$OUT
		is "it has its address ($name)" "$(ax get apps -o json | jq -r '.[] | select(.name == "declared") | .ip4')" \
			10.77.2.1
		is "and is no service ($name)" "$(ax get services | grep -c declared)" 0
		run_app --name client -- "$PYTHON" "$T/client.py" 10.77.2.1 fin-wait
		client=$APP
		ok "it is reached ($name)" wait_for "grep -q got $out"
		nsenter -t "$(child_of "$client")" -n ip link set eth0 down
		own_child "$server" && kill -KILL "$(child_of "$server")"
		wait_for "! alive $server"
		stop_app "$client"
	done
done
done_testing
