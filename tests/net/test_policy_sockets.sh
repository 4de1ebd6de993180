#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
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
# wait FAMILY ADDR PORT          prints its port and what comes; port 0: the kernel's choice
# tell FAMILY ADDR PORT          one datagram
# ask FAMILY ADDR PORT           two questions from one socket, and whether both were answered
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

def wait(family, addr, port):
    s = socket.socket(families[family], socket.SOCK_DGRAM)
    s.bind((addr, int(port)))
    print("port", s.getsockname()[1], flush=True)
    while True:
        data, who = s.recvfrom(100)
        print(data.decode(), flush=True)
        s.sendto(b"answer", who)

def tell(family, addr, port):
    socket.socket(families[family], socket.SOCK_DGRAM).sendto(b"question", (addr, int(port)))

def ask(family, addr, port):
    s = socket.socket(families[family], socket.SOCK_DGRAM)
    s.settimeout(5)
    for _ in range(2):
        s.sendto(b"question", (addr, int(port)))
        s.recvfrom(100)

try:
    {"wait": wait, "tell": tell, "ask": ask, "receive": receive, "send": send, "forge": forge, "again": again}[what](*args)
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
stop_apps

# --- ports of clients: from the first on that the kernel gives to whoever asks for none ---

# waits NAME COMMAND...: $WAITS is its port, $OUT what it prints
waits() {
	wait_for "grep -q '^port' $OUT" || not_ok "$1 comes up" "$(cat "$OUT")"
	WAITS=$(awk '/^port/ {print $2}' "$OUT")
}

# tell MODE FAMILY ADDR PORT: a guest's datagram; to some it may not even be sent
tell() {
	from "$1" guest tell "$2" "$3" "$4" >>"$T/told" 2>&1
}

bg "$T/host4" "$PYTHON" "$T/sockets.py" wait 4 0.0.0.0 0
bg "$T/host6" "$PYTHON" "$T/sockets.py" wait 6 :: 0
OUT=$T/host4 waits "a daemon of the host"
HOST4=$WAITS
OUT=$T/host6 waits "a daemon of the host, dual-stack"
HOST6=$WAITS
run_app --net host --ip 10.77.1.1,fd77::1:1 --name peer --labels zone=default -- \
	"$PYTHON" "$T/sockets.py" wait 4 0.0.0.0 0
peer=$OUT
waits peer
peer_port=$WAITS
run_app --net host --ip 10.77.1.2,fd77::1:2 --name vault --labels zone=default,role=vault -- \
	"$PYTHON" "$T/sockets.py" wait 6 :: 0
vault=$OUT
waits vault
for mode in private host; do
	tell $mode 4 10.77.1.1 "$HOST4"
	tell $mode 4 10.77.1.1 "$HOST6" # a dual-stack wildcard
	tell $mode 6 fd77::1:1 "$HOST6"
	tell $mode 4 10.77.1.2 "$WAITS"
	tell $mode 6 fd77::1:2 "$WAITS"
	tell $mode 4 10.77.1.1 "$WAITS"
	tell $mode 6 fd77::1:1 "$WAITS"
	like "who may is answered by a socket at a client's port: $mode" \
		"$(from $mode guest ask 4 10.77.1.1 "$peer_port")" "^sent$"
	like "and who may is answered by a dual-stack one: $mode" \
		"$(from $mode other ask 4 10.77.1.2 "$WAITS")" "^sent$"
	like "by IPv6 as well: $mode" "$(from $mode other ask 6 fd77::1:2 "$WAITS")" "^sent$"
done
is "a wildcard socket of the host is not reached by an app's address" \
	"$(grep -v '^port' "$T/host4" "$T/host6")" ""
is "nor an app's by another app's address, or by who is denied it" \
	"$(grep -c question "$vault")" 8
is "each question of who may came once" "$(grep -c question "$peer")" 4
unlike "clients are no servers" "$(ax get servers)" ":($peer_port|$WAITS)\b"
stop_apps
done_testing
