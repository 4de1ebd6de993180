#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What packets of nobody, in any number, do to those who have connections.
. "$(dirname "$0")/lib.sh"
need "$PYTHON" bpftool
build_c tcp

agent_start - <<-EOC
	agent:
	  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
	services:
	  private:
	    ip: 10.77.200.1
	    ports: ["80:7000"]
	    backends: [inner]
	  hosted:
	    ip: 10.77.200.2
	    ports: ["80:7000"]
	    backends: [outer]
	    strategy: least-connections
EOC
serve 7000 --name inner -- "$BIN/tcp" listen 4 0.0.0.0 7000
serve 7000 --net host --name outer -- "$BIN/tcp" listen 4 0.0.0.0 7000

# flood COUNT: segments that belong to no connection, two from each of COUNT sources
flood() {
	"$PYTHON" - "$1" <<-'EOP'
		import socket, struct, sys
		s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
		dst = socket.inet_aton("10.77.200.2")
		for i in range(int(sys.argv[1])):
		    src = struct.pack(">I", 0xc6120000 + i // 50000)
		    tcp = struct.pack(">HHIIBBHHH", 10000 + i % 50000, 80, 1, 1, 80, 16, 512, 0, 0)
		    total = src + dst + struct.pack(">BBH", 0, 6, 20) + tcp
		    n = sum(struct.unpack(">16H", total))
		    n = (n & 0xffff) + (n >> 16)
		    n = ~((n & 0xffff) + (n >> 16)) & 0xffff
		    tcp = tcp[:16] + struct.pack(">H", n) + tcp[18:]
		    ip = struct.pack(">BBHHHBBH", 69, 0, 40, i & 0xffff, 0, 64, 6, 0) + src + dst
		    for _ in range(2):
		        s.sendto(ip + tcp, ("10.77.200.2", 0))
	EOP
}

mkfifo "$T/go"
"$PYTHON" - "$T/go" >"$T/client" 2>&1 <<-'EOP' &
	import socket, sys
	c = [socket.create_connection(("10.77.200.1", 80), 5) for _ in range(20)]
	for s in c:
	    s.recv(256)
	print("connected", flush=True)
	open(sys.argv[1]).read()
	good = 0
	for s in c:
	    try:
	        s.send(b"still there\n")
	        good += s.recv(256) == b"still there\n"
	    except OSError as e:
	        print(e)
	print(good, "of", len(c), "go on")
EOP
client=$!
ok "a program outside ax has connections to private servers" wait_for "grep -q connected $T/client"
ok "others send it segments of no connection" flood 50000
is "they take no room among the connections that are translated" \
	"$(bpftool map dump pinned "/sys/fs/bpf/$INST/map_flows" | grep -c key)" 40
echo >"$T/go"
wait "$client"
is "all of them go on" "$(tail -n 1 "$T/client")" "20 of 20 go on"
done_testing
