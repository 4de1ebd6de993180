#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 300
# A private app's connection to a name outside outlives the address that it was let to: also when another
# app begins more connections than anybody keeps account of, and when rules change, but for those about it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/outside.sh"
ip addr add 198.51.100.1/24 dev wan0
ip link set wan0 up
for i in 2 3; do outside ip addr add 198.51.100.$i/24 dev wan1; done
outside ip link set wan1 up
outside ip route add default via 198.51.100.1
bg "$T/echo" nsenter -t "$OUTSIDE" -n "$PYTHON" -c '
import socket, threading
def serve(c):
    while data := c.recv(100):
        c.sendall(data)
s = socket.create_server(("0.0.0.0", 443), backlog=64)
print("listening", flush=True)
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()'
bg "$T/names.out" "$PYTHON" "$SRC/names.py" 127.0.0.53 5300 "$T/names.log" 1 www.good.test=198.51.100.2
wait_for "grep -q ready $T/names.out && grep -q listening $T/echo"
# (host_access is another way for what a connection of this host's could be)
agent_start - <<EOC
agent:
  pool: {ipv4: $POOL4}
  host_access: false
  dns: {upstreams: ["127.0.0.53:5300"], keep: 1s}
EOC

cat >"$T/long.py" <<'EOC'
import os, socket, sys, time

s = socket.create_connection(("www.good.test", 443))
s.settimeout(10)
s.sendall(b"x")
s.recv(1)
print("connected", flush=True)
for go in sys.argv[1:]:
    while not os.path.exists(go):
        time.sleep(0.1)
    try:
        s.sendall(b"y")
        print("got", s.recv(1).decode(), flush=True)
    except OSError as e:
        print("lost:", e, flush=True)
EOC
run_app --name victim --egress="*.good.test:443" -- "$PYTHON" "$T/long.py" "$T/go" "$T/on" "$T/last"
victim=$OUT
wait_for "grep -q connected $victim"
ok "the address is forgotten" wait_for -t 60 "ax policy explain victim 198.51.100.2:443 | grep -q refused"

# More than there is room for, from all ports and to several.
is "another app begins many connections" "$(in_app --name flood --egress=198.51.100.3 -- \
	prlimit --nofile=20000 "$PYTHON" -c '
import socket
n = 0
for port in (9, 10):
    kept = []
    for i in range(14000):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("198.51.100.3", port))
        kept.append(s)
        n += 1
    del kept
print(n)')" 28000
touch "$T/go"
# went N WORD TEXT: its nth try
went() {
	wait_for "[ \"\$(grep -cE '^(got|lost)' $victim)\" = $1 ]"
	like "$3" "$(tail -n 1 "$victim")" "^$2"
}
went 1 got "the first one's connection goes on"
ok "a rule about others comes" ax policy add others deny --from flood --to 198.51.100.2 --first
touch "$T/on"
went 2 got "it goes on"
ok "one about itself does" ax policy add shut deny --from victim --to 198.51.100.2 --first
touch "$T/last"
went 3 lost "it ends"
for rule in others shut; do ax policy del $rule >"$T/deleted" 2>&1; done
done_testing
