#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 240
# beside others
# A node dies with 100 connections open: as long as it may come back they are let alone, then those through a
# service that says so are ended, all of them; new ones go to the other node's app, and nobody else's are touched.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
need python3 dig

# A server that sends its name and an echo of every line; one that counts its open connections.
cat >"$T/server.py" <<'PY'
import socket, sys, threading

def serve(c):
    c.sendall(sys.argv[1].encode() + b"\n")
    try:
        while d := c.recv(100):
            c.sendall(d)
    except OSError:
        pass
    c.close()

s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", 7000))
s.listen(256)
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
PY
# Opens connections until 50 lead to each of the two, and waits on all of them: a line of the file for each that
# has ended, with how.
cat >"$T/many.py" <<'PY'
import collections, errno, selectors, socket, sys

host, out = sys.argv[1:3]
held, names = selectors.DefaultSelector(), collections.Counter()
while min(names["first"], names["second"]) < 50:
    s = socket.create_connection((host, 80), timeout=20)
    name = s.makefile("rb").readline().decode().strip()
    if names[name] == 50:
        s.close()
        continue
    names[name] += 1
    held.register(s, selectors.EVENT_READ, name)
with open(out, "w", buffering=1) as f:
    print("open", dict(sorted(names.items())), file=f)
    while True:
        for key, _ in held.select():
            try:
                how = "data" if key.fileobj.recv(100) else "end"
            except OSError as e:
                how = errno.errorcode[e.errno]
            print(key.data, how, file=f)
            held.unregister(key.fileobj)
PY

CLUSTER=$'  routes: direct\n  dead-after: 3s'
MORE='services:
  shop: {ports: [{port: 80, target: 7000}], backends: [{app: web}], on-remove: destroy}'
nodes_with_ways 3
on n1
serve 7000 --name web -- "$PYTHON" "$T/server.py" first
on n2
serve 7000 --name web -- "$PYTHON" "$T/server.py" second
A2=$(node_addr n2 web)
ok "n3 has both backends" wait_for '[ "$(backends n3 shop | tr -cd ";")" = ";;" ]'
IP=$(ask n3 shop.ax.internal)
on n3
touch "$T/held.private" "$T/held.host"
chmod 666 "$T"/held.*
for mode in private host; do
	run_app --net $mode --name "many-$mode" -- "$PYTHON" "$T/many.py" "$IP" "$T/held.$mode"
done
for mode in private host; do
	ok "100 connections of a $mode app are open, 50 to each node" \
		wait_for -t 60 "grep -qF \"open {'first': 50, 'second': 50}\" '$T/held.$mode'"
done

# ended MODE: how those have ended that have
ended() { grep -v ^open "$T/held.$1" | sort | uniq -c | awk '{print $2, $3, $1}' | tr '\n' ';'; }

on n1
ip link set vn1 down
agent_kill9
NODE_AGENT[n1]=
ok "its lease ends" wait_for -t 60 'ax_in "${NODE_INST[n3]}" get nodes n1 -o json | jq -e ".[0].state == \"away\""'
ok "the service has lost its backend" wait_for -t 60 "[ \"\$(backends n3 shop)\" = 'n2 web $A2;' ]"
for mode in private host; do
	ok "then each of the 50 connections of the $mode app to it is ended" \
		wait_for -t 60 "[ \"\$(ended $mode)\" = 'first ECONNABORTED 50;' ]"
done
is "new ones go to the other node" "$(at n3 "$PYTHON" -c 'import socket, sys
for i in range(10): print(socket.create_connection((sys.argv[1], 80), timeout=20).makefile("rb").readline().decode().strip())' "$IP" | sort -u)" second
ip link set vn1 up
node_again n1
ok "it comes back" wait_for -t 60 '[ "$(backends n3 shop | tr -cd ";")" = ";;" ]'
for mode in private host; do
	is "nobody else's connection was touched ($mode)" "$(ended $mode)" "first ECONNABORTED 50;"
done

stop_apps
nodes_flush n1 n2 n3
nodes_end n1 n2 n3
done_testing
