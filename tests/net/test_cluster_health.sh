#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Backends on other nodes: each is checked on its own node alone, and every node leaves out at once who is
# down, drains or is about to end there, and says where and why; also after etcd could not be reached.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
need dig
build_c tcp

# At port 7000 a server that sends its name, at 7001 one that notes who asks, and whose status is what a file
# says. It does not end by SIGTERM.
cat >"$T/server.py" <<'PY'
import os, signal, socket, sys, threading

name, mood = sys.argv[1:3]
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(mood + ".pid", "w") as pid:
    pid.write(str(os.getpid()))

def greet(c, peer):
    c.sendall(name.encode() + b" you=\n")
    c.sendall(c.recv(100))

def judge(c, peer):
    c.recv(4096)
    with open(mood + ".askers", "a") as askers:
        print(peer[0], file=askers)
    c.sendall(b"HTTP/1.1 %s X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % open(mood, "rb").read(3))

def answered(answer, c, peer):
    c.settimeout(5)
    try:
        answer(c, peer)
    except OSError:
        pass
    c.close()

def serve(port, answer):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("0.0.0.0", port))
    s.listen(64)
    while True:
        threading.Thread(target=answered, args=(answer, *s.accept())).start()

threading.Thread(target=serve, args=(7001, judge)).start()
serve(7000, greet)
PY
mood() {
	echo "$2" >"$T/$1.new"
	mv "$T/$1.new" "$T/$1"
}
for i in first second; do
	mood $i 200
	: >"$T/$i.askers"
	: >"$T/$i.pid"
	chmod 666 "$T/$i.askers" "$T/$i.pid"
done

CLUSTER='  routes: direct'
MORE='services:
  front: {ports: [{port: 80, target: 7000}], backends: [{app: web}], check: {type: http, port: 7001, every: 200ms, fall: 3, rise: 1}}
  even: {ports: [{port: 80, target: 7000}], backends: [{app: web}], strategy: least-connections}'
nodes_with_ways 3
on n1
serve 7000 --name web -- "$PYTHON" "$T/server.py" first "$T/first"
on n2
serve 7000 --name web -- "$PYTHON" "$T/server.py" second "$T/second"
A1=$(node_addr n1 web) A2=$(node_addr n2 web)

# are NODE STATE STATE: those of the two, up or down or the like
are() {
	[ "$(backends "$1" front)" = "n1 web $A1 $2;n2 web $A2 $3;" ]
}
why() {
	ax_in "${NODE_INST[$1]}" get services front -o json | jq -r '.[0].backends[] | select(.node == "n1").why // "none"'
}

# --- checks ------------------------------------------------------------------------------------------------

for i in 1 2 3; do
	ok "n$i has both backends, which are checked" wait_for "are n$i up up"
done
ok "they are asked" wait_for '[ "$(wc -l <"$T/first.askers")" -gt 5 ] && [ "$(wc -l <"$T/second.askers")" -gt 5 ]'
is "each by one node alone" "$(sort -u "$T/first.askers" | wc -l) $(sort -u "$T/second.askers" | wc -l)" "1 1"
mood first 503
for i in 1 2 3; do
	ok "one that fails on its node is down for n$i" wait_for "are n$i down up"
done
is "nobody is sent there from another node" "$(answers n3 front 80 10)" second
like "the reason is shown with the node" "$(ax_in "${NODE_INST[n3]}" get services front -o wide)" "web $A1 on n1 down.*web $A1: .*503"
mood second 500
ok "when all are down a service fails at once" wait_for '[ "$(answers n3 front 80)" = "error connect EHOSTUNREACH" ]'
mood first 200
mood second 200
ok "who is up again is a backend again everywhere" wait_for '[ "$(answers n3 front 80 20)" = "first second" ] && are n2 up up'

# --- who has the fewest connections -----------------------------------------------------------------------

# The server sends its name and then waits (for 5 s); how many of 20 connections that stay open each gets,
# and of as many more when the first one's of those are ended
cat >"$T/held.py" <<'PY'
import collections, socket, sys, time

def more(n):
    held = []
    for i in range(n):
        s = socket.create_connection((sys.argv[1], 80), timeout=5)
        held.append((s.recv(100).split()[0].decode(), s))
    return held

def counted(held):
    return " ".join("%s=%d" % x for x in sorted(collections.Counter(name for name, s in held).items()))

held = more(20)
print(counted(held))
for name, s in held:
    if name == "first":
        s.sendall(b"x")
        s.recv(1)
        s.close()
time.sleep(0.2)
print(counted(more(10)))
PY
is "connections go to the node with the fewest of this node's" \
	"$(at n3 "$PYTHON" "$T/held.py" "$(ask n3 even.ax.internal)" | tr '\n' ' ')" "first=10 second=10 first=10 "

# --- drain -------------------------------------------------------------------------------------------------

on n2
ok "a backend is drained on its node" ax service drain front web
ok "and on the others" wait_for 'are n3 up draining && [ "$(answers n3 front 80 10)" = first ]'
ok "until that is undone" ax service drain front web --undo
ok "everywhere" wait_for 'are n3 up up'
on n3
ok "a node drains another's backend" ax service drain front "$A1"
is "for itself" "$(backends n3 front)" "n1 web $A1 draining;n2 web $A2 up;"
is "alone" "$(backends n2 front)" "n1 web $A1 up;n2 web $A2 up;"
ok "it takes it back" ax service drain front "$A1" --undo

# --- what its node does not check --------------------------------------------------------------------------

on n1
sed '/^services:/,$d' "$T/$INST.yaml" >"$T/bare.yaml"
mood first 503
ok "one is down" wait_for 'are n3 down up'
ok "its node gives up the service" ax config apply "$T/bare.yaml"
ok "it counts as up, and the reason says so" wait_for 'why n3 | grep -q "not checked: its node has no service of this name"'
ok "it gets connections" wait_for '[ "$(answers n3 front 80 20)" = "first second" ]'
mood first 200
ok "the service comes back" ax config apply "$T/$INST.yaml"
ok "with its check" wait_for 'are n3 up up'

# --- etcd away ---------------------------------------------------------------------------------------------

kill -STOP "$ETCD"
mood first 503
ok "while etcd is away its own node leaves it out" wait_for 'are n1 down up'
is "others go on with what they know" "$(backends n3 front)" "n1 web $A1 up;n2 web $A2 up;"
kill -CONT "$ETCD"
ok "and hear of it when it is back" wait_for -t 60 'are n3 down up'
mood first 200
ok "and of its end" wait_for 'are n3 up up'

# --- about to end ------------------------------------------------------------------------------------------

on n1
ax stop web --timeout 60s >"$T/stop" 2>&1 &
STOP=$!
ok "who is about to end gets nothing from other nodes" wait_for '[ "$(backends n3 front)" = "n2 web $A2 up;" ]'
is "though it listens" "$(answers n3 front 80 10)" second
kill -KILL "$(cat "$T/first.pid")"
wait "$STOP"

on n2
kill -KILL "$(cat "$T/second.pid")"
stop_apps
nodes_flush n1 n2 n3
nodes_end n1 n2 n3
done_testing
