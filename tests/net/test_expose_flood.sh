#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# a processor each
# timeout: 240
# What packets from addresses of nobody, in any number, do to those who have connections by exposed ports.
. "$(dirname "$0")/lib.sh"
need ip "$PYTHON" bpftool
build_c udp storm

unshare -n sleep 1000 &
NEAR=$!
BACKGROUND+=("$NEAR")
wait_for "[ \"\$(readlink /proc/$NEAR/ns/net)\" != \"\$(readlink /proc/self/ns/net)\" ]"
veth_or_skip n0 type veth peer name eth0 netns "$NEAR"
ip addr add 198.51.100.1/24 dev n0
ip link set n0 up
on() {
	timeout "$1" nsenter -t "$NEAR" -n "${@:2}"
}
on 5 sh -c "ip link set lo up; ip addr add 198.51.100.2/24 dev eth0; ip link set eth0 up
	ip route add default via 198.51.100.1"
wait_for 'ip link show n0 | grep -q LOWER_UP'
agent_start
for mode in private host; do
	serve 7000 --net $mode --name "tcp$mode" -p "$([ $mode = host ] && echo 81 || echo 80):7000" -- \
		"$BIN/storm" serve 7000
	serve 7000/udp --net $mode --name "udp$mode" -p "$([ $mode = host ] && echo 81 || echo 80):7000/udp" -- \
		"$BIN/udp" serve 4 0.0.0.0 7000
done

# datagrams COUNT: to both ports, each from another end
datagrams() {
	on 100 "$PYTHON" - "$1" <<-'EOP'
		import socket, struct, sys
		s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
		dst = socket.inet_aton("198.51.100.1")
		for i in range(int(sys.argv[1])):
		    src = struct.pack(">I", 0xc6120000 + i // 50000)
		    udp = struct.pack(">HHHH", 10000 + i % 50000, 80 + i % 2, 12, 0) + b"abcd"
		    ip = struct.pack(">BBHHHBBH", 69, 0, 32, i & 0xffff, 0, 64, 17, 0) + src + dst
		    s.sendto(ip + udp, ("198.51.100.1", 0))
	EOP
}

mkfifo "$T/go"
on 200 "$PYTHON" - "$T/go" >"$T/client" 2>&1 <<-'EOP' &
	import socket, sys
	c = [socket.create_connection(("198.51.100.1", 80 + i % 2), 20) for i in range(40)]
	for s in c:
	    s.send(b"one")
	    s.recv(256)
	u = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(10)]
	for i, s in enumerate(u):
	    s.settimeout(20)
	    s.connect(("198.51.100.1", 80 + i % 2))
	    s.send(b"one")
	    first = s.recv(256)
	print("connected", flush=True)
	open(sys.argv[1]).read()
	good = 0
	for s in c:
	    try:
	        s.send(b"still there\n")
	        good += s.recv(256) == b"still there\n"
	    except OSError as e:
	        print(e)
	for s in u:
	    try:
	        s.send(b"two")
	        good += b"two" in s.recv(256)
	    except OSError as e:
	        print(e)
	print(good, "of", len(c) + len(u), "go on")
EOP
client=$!
ok "a neighbour has connections by the exposed ports" wait_for -t 30 "grep -q connected $T/client"
for port in 80 81; do
	like "it is flooded with SYNs at port $port" "$(on 30 "$BIN/storm" syns 198.51.100.1 $port 3 2>&1)" "^[0-9]"
done
ok "and with datagrams" datagrams 150000
is "no connection has lost its place among those that are open" \
	"$(bpftool map dump pinned "/sys/fs/bpf/$INST/map_flows" | grep -c key)" 40
echo >"$T/go"
wait "$client"
is "all of them go on" "$(tail -n 1 "$T/client")" "50 of 50 go on"
ok "and new ones are let in" on 30 "$PYTHON" -c 'import socket
s = socket.create_connection(("198.51.100.1", 80), 20)
s.send(b"new")
assert s.recv(9) == b"new"'
stop_apps

# --- what is routed to a private app itself, which has no egress ---

sysctl -qw net.ipv4.ip_forward=1
ip route add 198.18.0.0/15 via 198.51.100.2
cat >"$T/pushes.py" <<-'EOP'
	import socket, sys
	l = socket.create_server(("0.0.0.0", 7000))
	print("listening", flush=True)
	c = l.accept()[0]
	print("accepted", flush=True)
	open(sys.argv[1]).read()
	c.sendall(b"pushed")
	c.recv(1)
EOP
run_app --ip 10.77.1.50 -- "$PYTHON" "$T/pushes.py" "$T/go"
wait_for "grep -q listening $OUT"
on 200 "$PYTHON" -c 'import socket
s = socket.create_connection(("10.77.1.50", 7000), 20)
print("connected", flush=True)
s.settimeout(60)
print(s.recv(9), flush=True)' >"$T/visitor" 2>&1 &
visitor=$!
ok "a visitor has a connection" wait_for "grep -q connected $T/visitor && grep -q accepted $OUT"
# beginnings N: a SYN, and what would answer its answer, of clients that are not there
beginnings() {
	on 100 "$PYTHON" - "$1" <<-'EOP'
		import socket, struct, sys

		def checksum(data):
		    total = sum(struct.unpack(f">{len(data) // 2}H", data))
		    total = (total >> 16) + (total & 0xFFFF)
		    return ~(total + (total >> 16)) & 0xFFFF

		s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
		dst = socket.inet_aton("10.77.1.50")
		for i in range(int(sys.argv[1])):
		    src = struct.pack(">I", 0xC6120000 + i)
		    ip = struct.pack(">BBHHHBBH", 69, 0, 40, 1, 0, 64, 6, 0) + src + dst
		    for flags, ack in ((2, 0), (16, i)):
		        tcp = struct.pack(">HHIIBBHHH", 10000 + i % 50000, 7000, 1, ack, 80, flags, 65535, 0, 0)
		        check = checksum(src + dst + struct.pack(">BBH", 0, 6, 20) + tcp)
		        s.sendto(ip + tcp[:16] + struct.pack(">H", check) + tcp[18:], ("10.77.1.50", 0))
	EOP
}
ok "the app is flooded with beginnings" beginnings 40000
like "which all came" "$(bpftool map dump pinned "/sys/fs/bpf/$INST/map_newcomers" | grep -c key)" "^1[0-9]{4}$"
echo >"$T/go"
wait "$visitor"
is "the app still reaches its visitor, who says nothing" "$(tail -n 1 "$T/visitor")" "b'pushed'"
stop_apps
end "$NEAR"
sysctl -qw net.ipv4.ip_forward=0
ip link del n0 2>/dev/null # (without waiting for its other end)
done_testing
