#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 300
# A UDP socket that an app in host mode has connected to somebody whom a new rule forbids is ended, as what others
# send is refused: by both families, through a service, to outside ax, also if its server has connected to it as well,
# and when the agent starts with such a rule. Who may goes on, and so does TCP.
. "$(dirname "$0")/lib.sh"
need ip jq "$PYTHON"
build_c udp

OUT4=198.51.100.1
ip addr add $OUT4/32 dev lo
cat >"$T/config" <<EOC
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  shop: {ip: "10.77.200.1,fd77::200:1", ports: ["80:7000/udp"], backends: [vault]}
EOC
agent_start "$T/config"

# talk.py KIND ADDRESS PORT [INTERFACE]: asks every 50 ms by one socket, and prints when what comes of it changes: who
# answers, or an error, after which it connects anew.
cat >"$T/talk.py" <<'EOP'
import errno, socket, sys, time
kind, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
s, said = None, None
while True:
    try:
        if not s:
            s = socket.socket(family, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
            if len(sys.argv) > 4:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, sys.argv[4].encode())
            s.settimeout(20)
            s.connect((address, port))
        s.send(b"question\n")
        now = s.recv(200).decode().split()[0]
    except OSError as e:
        now = errno.errorcode.get(e.errno, "nothing")
        s.close()
        s = None
    if now != said:
        print(now, flush=True)
        said = now
    time.sleep(0.05)
EOP

# pairs.py PORT NAME: answers each client by a socket of its own that is connected to it
cat >"$T/pairs.py" <<'EOP'
import select, socket, sys
port, name = int(sys.argv[1]), sys.argv[2].encode()

def sock(family):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind(("::" if family == socket.AF_INET6 else "", port))
    return s

first = [sock(socket.AF_INET), sock(socket.AF_INET6)]
all = list(first)
while True:
    for s in select.select(all, [], [])[0]:
        try:
            data, who = s.recvfrom(200)
            if s in first:
                s = sock(s.family)
                s.connect(who[:2])
                all.append(s)
            s.send(name)
        except OSError as e:
            print(e.strerror, flush=True)
            if s in all and s not in first:
                all.remove(s)
EOP

# talk NAME MODE ROLE ARGUMENT...: what it prints is in $T/NAME
talk() {
	run_app --net "$2" --name "$1" --labels "zone=default,role=$3" --egress=all -- "$PYTHON" "$T/talk.py" "${@:4}"
	ln -sf "$OUT" "$T/$1"
	wait_for "grep -q . '$OUT'"
}
# lines NAME: all that it printed
lines() {
	xargs <"$T/$1"
}

ALL="4 6 service service6 pairs pairs6 outside bound"
begin() {
	local role
	serve 7000/udp --net host --name vault --ip 10.77.1.1,fd77::1:1 --labels zone=default,role=vault -- \
		"$BIN/udp" serve 6 :: 7000 vault
	serve 7001/udp --net host --name pairs --ip 10.77.1.2,fd77::1:2 --labels zone=default,role=vault -- \
		"$PYTHON" "$T/pairs.py" 7001 pairs
	bg /dev/null "$BIN/udp" serve 4 $OUT4 7002 outside
	OUTSIDE=$BG
	for role in guest friend; do
		talk $role-4 host $role udp 10.77.1.1 7000
		talk $role-6 host $role udp fd77::1:1 7000
		talk $role-service host $role udp 10.77.200.1 80
		talk $role-service6 host $role udp fd77::200:1 80
		talk $role-pairs host $role udp 10.77.1.2 7001
		talk $role-pairs6 host $role udp fd77::1:2 7001
		talk $role-outside host $role udp $OUT4 7002
		talk $role-bound host $role udp 10.77.1.2 7001 lo
	done
}
# server WAY: whom they hear
server() {
	case $1 in
	pairs* | bound) echo pairs ;;
	outside) echo outside ;;
	*) echo vault ;;
	esac
}
# judged WHAT: the guests are told, and nobody else
judged() {
	local way
	for way in $ALL; do
		ok "$1: a guest that connects anew is refused: $way" wait_for "tail -n 1 '$T/guest-$way' | grep -qx EACCES"
		like "$1: its socket has ended: $way" "$(lines "guest-$way")" \
			"^$(server "$way") ((ECONNABORTED|EDESTADDRREQ|ECONNREFUSED) )?EACCES\$"
		is "$1: who may goes on: $way" "$(lines "friend-$way")" "$(server "$way")"
	done
}
end_all() {
	stop_apps
	end "$OUTSIDE"
}

begin
ok "a rule about others" ax policy add others deny --from role=nobody --to role=vault
ok "one that only counts" ax policy add watch audit --from role=guest
is "end nothing" "$(for way in $ALL; do lines "guest-$way"; done | sort | uniq -c | xargs)" "1 outside 3 pairs 4 vault"
ok "one about guests" ax policy add vaults deny --from role=guest --to role=vault --first
ok "and one about the outside" ax policy add world deny --from role=guest --to $OUT4 --first
judged "by a command"
like "the log says so" "$(cat "$T/$INST.log")" "UDP sockets? of apps in host mode had to be ended"
ok "they go" ax policy del others watch vaults world
for way in $ALL; do
	ok "and guests are back: $way" wait_for "tail -n 1 '$T/guest-$way' | grep -qx $(server "$way")"
done
end_all

# by a config, while an agent runs and while none does
{
	cat "$T/config"
	cat <<-EOC
		policy:
		  rules:
		    - deny: {from: {role: guest}, to: {role: vault}}
		    - deny: {from: {role: guest}, to: $OUT4}
	EOC
} >"$T/strict"
begin
ok "a config" ax config apply "$T/strict"
judged "by a config"
end_all
ok "the former one" ax config apply "$T/config"
begin
agent_kill9
cp "$T/strict" "$T/$INST.yaml"
agent_again
judged "by the next agent"
end_all

# TCP: what is open goes on, what begins is refused
ok "the former one again" ax config apply "$T/config"
serve 7003 --net host --name vault --ip 10.77.1.1 --labels zone=default,role=vault -- "$PYTHON" -c '
import socketserver
class H(socketserver.StreamRequestHandler):
    def handle(self):
        while self.rfile.readline():
            self.wfile.write(b"vault\n")
socketserver.ThreadingTCPServer(("", 7003), H).serve_forever()'
talk tcp host guest tcp 10.77.1.1 7003
ok "a rule about TCP, too" ax policy add vaults deny --from role=guest --to role=vault
talk late host guest tcp 10.77.1.1 7003
is "a new connection is refused" "$(lines late)" EACCES
is "TCP that is open goes on" "$(lines tcp)" vault
ok "it goes" ax policy del vaults
done_testing
