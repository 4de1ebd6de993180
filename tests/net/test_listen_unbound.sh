#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# listen() without bind(): the kernel gives a port on the wildcard address, and the server is the app's
# all the same.
. "$(dirname "$0")/lib.sh"
need jq "$PYTHON"
agent_start

# Says its name, and to whoever connects who that is and where it was reached.
cat >"$T/listen.py" <<'EOF'
import socket, sys
family = socket.AF_INET6 if sys.argv[1] != "4" else socket.AF_INET
s = socket.socket(family)
if sys.argv[1] != "4":
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, sys.argv[1] == "6only")
s.listen()
print(*s.getsockname()[:2], flush=True)
while True:
    c, who = s.accept()
    print("accepted", who[0], c.getsockname()[0], flush=True)
    c.sendall(b"hello")
    c.close()
EOF
cat >"$T/ask.py" <<'EOF'
import socket, sys
try:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 20)
    print(s.recv(10).decode())
except OSError as e:
    print(e.strerror)
EOF
cat >"$T/own.py" <<'EOF'
import socket, sys
s = socket.socket(socket.AF_INET6)
s.listen()
port = s.getsockname()[1]
for to in "127.0.0.1", "::1":
    c = socket.create_connection((to, port), 20)
    s.accept()[0].sendall(b"own")
    print(c.recv(10).decode())
EOF

port_of() {
	awk 'NR == 1 { print $2 }' "$1"
}
# ask MODE ADDR PORT
ask() {
	in_app --net "$1" --ip 10.77.2.1,fd77::2:1 -- "$PYTHON" "$T/ask.py" "$2" "$3" 2>&1
}

for mode in private host; do
	for family in 4 6 6only; do
		wildcard=::
		[ $family != 4 ] || wildcard=0.0.0.0
		run_app --net $mode --name server --ip 10.77.1.1,fd77::1:1 -- "$PYTHON" "$T/listen.py" $family
		server=$APP out=$OUT
		what="$mode, IPv$family"
		ok "it listens ($what)" wait_for "[ -s $out ]"
		like "and sees what the kernel has given it ($what)" "$(cat "$out")" "^$wildcard [0-9]+$"
		port=$(port_of "$out")
		known=
		# (a private app's v6-only servers are known at both of its addresses)
		[ "$mode $family" = "host 6only" ] || known="10.77.1.1 $port"
		[ $family = 4 ] || known+=" fd77::1:1 $port"
		is "it is among the servers ($what)" \
			"$(ax get servers -o json | jq -r '.[] | "\(.address) \(.port)"' | sort | xargs)" "${known# }"
		for client in private host; do
			[ $family = 6only ] || is "a $client app reaches it ($what)" \
				"$(ask $client 10.77.1.1 "$port")" hello
			[ $family = 4 ] || is "a $client app reaches it by IPv6 ($what)" \
				"$(ask $client fd77::1:1 "$port")" hello
		done
		seen=
		[ $family = 6only ] || seen="10.77.2.1 10.77.1.1"
		[ $family = 4 ] || seen+=" fd77::2:1 fd77::1:1"
		is "it sees who asks, and its own address ($what)" \
			"$(awk '/accepted/ { sub(/^::ffff:/, "", $2); sub(/^::ffff:/, "", $3); print $2, $3 }' "$out" |
				sort -u | xargs)" "${seen# }"
		for to in 127.0.0.1 ::1; do
			like "a program outside ax does not get it at $to ($what)" \
				"$("$PYTHON" "$T/ask.py" $to "$port")" "refused|reset"
		done
		stop_app $server
		wait_for "[ -z \"\$(ax get servers -o name)\" ]"
	done
	is "it reaches itself by loopback ($mode)" "$(in_app --net $mode -- "$PYTHON" "$T/own.py" 2>&1)" \
		own$'\n'own
done

# made in a cgroup below the app's
is "in a cgroup of its own, too" "$(in_app --net host --name below -- sh -c '
	cg=$(sed -n "s/^0:://p" /proc/self/cgroup)
	mkdir -p "$0$cg/own" && echo $$ >"$0$cg/own/cgroup.procs" && exec "$1" "$2"' \
	"$CGROUP2" "$PYTHON" "$T/own.py" 2>&1)" own$'\n'own
done_testing
