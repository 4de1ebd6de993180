#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# quick
# Sockets of other kinds than most programs have: they get no further than policy lets them, and
# speak in nobody else's name.
. "$(dirname "$0")/lib.sh"
need "$PYTHON"
build_c udp

agent_start - <<-EOC
	agent:
	  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
	services:
	  svc: {ip: "10.77.200.1,fd77::200:1", ports: [80/udp], backends: [nobody]}
	apps:
	  later: {ip: "10.77.200.2,fd77::200:2"}
	policy:
	  rules:
	    - deny: {from: {role: guest}, to: {role: vault}}
EOC

# receive PROTOCOL PORT          prints what comes
# send PROTOCOL FAMILY ADDR PORT connect|sendto
# forge FAMILY SOURCE ADDR PORT SPORT OWN     a datagram from OWN with another source
# again FAMILY ADDR PORT         from a port of the kernel's choice, connected, with an option
# each ends with "sent" or the error's name
cat >"$T/sockets.py" <<'EOF'
import errno, socket, struct, sys
what, args = sys.argv[1], sys.argv[2:]
UDPLITE, MPTCP, IP_PKTINFO = 136, 262, 8
protocols = {"udplite": (socket.SOCK_DGRAM, UDPLITE), "mptcp": (socket.SOCK_STREAM, MPTCP)}
families = {"4": socket.AF_INET, "6": socket.AF_INET6}

def receive(protocol, port):
    kind, number = protocols[protocol]
    s = socket.socket(socket.AF_INET6, kind, number)
    s.bind(("::", int(port)))
    if kind == socket.SOCK_STREAM:
        s.listen()
    print("ready", flush=True)
    while True:
        if kind == socket.SOCK_STREAM:
            c, _ = s.accept()
            print(c.recv(100).decode(), flush=True)
        else:
            print(s.recv(100).decode(), flush=True)

def send(protocol, family, addr, port, how):
    kind, number = protocols[protocol]
    s = socket.socket(families[family], kind, number)
    s.settimeout(2)
    if how == "connect":
        s.connect((addr, int(port)))
        s.send(f"{protocol} {how}".encode())
    else:
        s.sendto(f"{protocol} {how}".encode(), (addr, int(port)))

def forge(family, source, addr, port, sport, own):
    s = socket.socket(families[family], socket.SOCK_DGRAM)
    s.bind((own, int(sport)))
    if family == "4":
        info = (socket.IPPROTO_IP, IP_PKTINFO,
                struct.pack("i4s4s", 0, socket.inet_aton(source), bytes(4)))
    else:
        info = (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO,
                socket.inet_pton(socket.AF_INET6, source) + struct.pack("i", 0))
    s.sendmsg([b"forged"], [info], 0, (addr, int(port)))

def again(family, addr, port):
    s = socket.socket(families[family], socket.SOCK_DGRAM)
    s.bind(("" if family == "4" else "::", 0))
    s.connect((addr, int(port)))
    level, name = (socket.IPPROTO_IP, socket.IP_TOS) if family == "4" else \
        (socket.IPPROTO_IPV6, socket.IPV6_TCLASS)
    s.sendmsg([b"again"], [(level, name, struct.pack("i", 8))])
    s.sendto(b"again", (addr, int(port)))

try:
    {"receive": receive, "send": send, "forge": forge, "again": again}[what](*args)
    print("sent")
except OSError as e:
    print(errno.errorcode.get(e.errno, "ETIMEDOUT"))
EOF

# from MODE ROLE ARG...: of the program above
from() {
	in_app --net "$1" --ip 10.77.1.9,fd77::1:9 --labels "zone=default,role=$2" -- \
		"$PYTHON" "$T/sockets.py" "${@:3}" 2>&1
}

# --- protocols ---

# vault MODE PROTOCOL: what it prints is in $OUT
vault() {
	run_app --net "$1" --ip 10.77.1.1,fd77::1:1 --labels zone=default,role=vault -- \
		"$PYTHON" "$T/sockets.py" receive "$2" 7000
	wait_for "grep -q '^[rE]' $OUT" || not_ok "the server comes up" "$(cat "$OUT")"
}

for server in private host; do
	vault $server udplite # a kernel that has none refuses it in both modes
	for client in private host; do
		for how in connect sendto; do
			from $client guest send udplite 4 10.77.1.1 7000 $how >"$T/sent"
			from $client guest send udplite 6 fd77::1:1 7000 $how >"$T/sent"
		done
		sleep 0.1
		unlike "UDP-Lite of a guest does not arrive: $client to $server" "$(cat "$OUT")" udplite
	done
	stop_app "$APP"
	vault $server mptcp
	for client in private host; do
		for to in "4 10.77.1.1" "6 fd77::1:1"; do
			# shellcheck disable=SC2086 # a family and an address
			like "MPTCP of a guest is refused: $client to $server, $to" \
				"$(from $client guest send mptcp $to 7000 connect)" "^(EACCES|EPROTONOSUPPORT|ENOPROTOOPT)$"
		done
	done
	unlike "and does not arrive" "$(cat "$OUT")" mptcp
	stop_app "$APP"
done
is "host mode has no UDP-Lite, which nothing would judge" \
	"$(from host other send udplite 4 10.77.1.1 7000 sendto)" EPROTONOSUPPORT

# --- names ---

dns=$(ax status -o json | jq -r .dns.address)
port=$(ax status -o json | jq -r .dns.port)
serve 7000/udp --ip 10.77.1.1,fd77::1:1 --labels zone=default -- "$BIN/udp" serve 6 :: 7000
private=$OUT
serve 7000/udp --net host --ip 10.77.1.2,fd77::1:2 --labels zone=default -- "$BIN/udp" serve 6 :: 7000
host=$OUT
for port in 53 "$port"; do
	for to in 10.77.1.1 10.77.1.2; do
		is "the agent's DNS address is the agent's, port $port to $to" \
			"$(from host other forge 4 "$dns" $to 7000 "$port" 10.77.1.9)" EADDRNOTAVAIL
	done
	is "the agent's DNS address is the agent's, port $port, IPv6" \
		"$(from host other forge 6 fd77::1 fd77::1:1 7000 "$port" fd77::1:9)" EADDRNOTAVAIL
done
for source in 10.77.1.1 10.77.200.1 10.77.200.2 10.77.99.99; do
	is "another's address is its own: $source" \
		"$(from host other forge 4 $source 10.77.1.1 7000 7001 10.77.1.9)" EADDRNOTAVAIL
done
is "an app may say its own address" \
	"$(from host other forge 4 10.77.1.9 10.77.1.1 7000 7001 10.77.1.9)" sent
ok "and that arrives" wait_for "grep -q '10.77.1.9.*:7001 forged' $private"
is "a socket that connects from a port of the kernel's choice sends with options, too" \
	"$(from host other again 4 10.77.1.1 7000)" sent
is "and by IPv6" "$(from host other again 6 fd77::1:1 7000)" sent
is "alone" "$(cat "$private" "$host" | grep -c forged)" 1
done_testing
