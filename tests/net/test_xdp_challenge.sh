#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 240
# `action challenge` with real programs: who comes in has answered a cookie, gets all of TCP that cookies can
# carry, and is not hindered by a flood of SYNs or of ACKs, of which the listening socket has nothing.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/net/xdp.sh
. "$(dirname "$0")/xdp.sh"
need ip ethtool jq curl nstat ss "$PYTHON"
build_c flood tcp

peer_host
known_neighbours
cookies() { # 0|1|2
	sysctl -qw net.ipv4.tcp_syncookies="$1"
}
stamps() { # 0|1|2
	sysctl -qw net.ipv4.tcp_timestamps="$1"
}
kernel() { # COUNTER: of the kernel's
	nstat -asz "TcpExt$1" | awk -v n="TcpExt$1" '$1 == n { n = 0; print $2 }'
}
load() { # [OPTION...]
	xdp load xc0 --rules "$T/list.yaml" "$@" 2>&1
}
doctor() {
	ax doctor xc0 --rules "$T/list.yaml" 2>&1 | tr -s '\n ' ' '
}
sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.xc0.rp_filter=0
ip route add 32.0.0.0/3 via 198.51.100.2 # nobody's: the kernel would answer them

head -c 8000000 /dev/urandom >"$T/file"
cat >"$T/web.py" <<'EOF'
import http.server, socket, socketserver, sys

class Handler(http.server.SimpleHTTPRequestHandler):
    def do_PUT(self):
        with open(sys.argv[1] + "/put", "wb") as f:
            left = int(self.headers["Content-Length"])
            while left:
                piece = self.rfile.read(min(left, 65536))
                left -= len(piece)
                f.write(piece)
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6

    def server_bind(self):  # without a look for names
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "here", 8000

Server(("::", 8000), lambda *a: Handler(*a, directory=sys.argv[1])).serve_forever()
EOF
bg "$T/web" "$PYTHON" "$T/web.py" "$T"
bg "$T/echo" "$PYTHON" "$SRC/state.py" echo 198.51.100.1 9000
wait_for 'ss -Hltn "sport = :8000" | grep -q . && grep -q ready "$T/echo"'

cat >"$T/list.yaml" <<'EOF'
rules:
  - {name: ask, proto: tcp, dport: [8000, 8001, 9000], action: challenge}
EOF

# --- what has to be so first ---
cookies 0
stamps 1
refused=$(load)
like "without cookies the list is refused" "$refused" \
	"challenge: the kernel makes no SYN cookies \(net.ipv4.tcp_syncookies=0\)"
like "and says what to do" "$refused" "sysctl -w net.ipv4.tcp_syncookies=2"
like "in a sentence" "$refused" \
	"SYNs that come in by xc0 would not be answered as this list says \(see above\): repair it"
is "nothing is loaded" "$(xdp status -o json | jq length)" 0
ok "it is repaired when that is asked for" load --fix
is "cookies for every SYN" "$(sysctl -n net.ipv4.tcp_syncookies)" 2
is "the time stamps are the administrator's" "$(sysctl -n net.ipv4.tcp_timestamps)" 1
like "ax doctor tells of them" "$(doctor)" "have neither window scaling nor SACK"
stamps 2
unlike "not any more" "$(doctor)" "have neither window scaling nor SACK"
like "but that every SYN is challenged" "$(doctor)" "every SYN is challenged"
cookies 1
like "or not" "$(doctor)" "a SYN is challenged only while its listening socket's queue is full"
cookies 2
like "a list for what leaves has none of it" \
	"$(xdp load xc0 --direction egress --rules "$T/list.yaml" 2>&1)" "who asks for connections here comes in"

# --- beside a balancer of another list, whose answers do not come in here ---
ip link add nat0 type veth peer name nat1
ip link set nat0 up
cat >"$T/nat.yaml" <<'EOF'
balancers:
  web: {mode: nat, backends: ["203.0.113.6:80"]}
rules:
  - {name: web, dst: 203.0.113.5, proto: tcp, dport: 80, action: balance web}
EOF
ok "a list with a NAT balancer" xdp load nat0 --mode generic --force --rules "$T/nat.yaml"
xdp unload xc0
beside=$(load)
is "does not keep this one out" "$?" 0
like "which says what became of that one's answers here" "$beside" \
	"tx-checksum: eth0, the other end, .* where the balancer of another list sends them on"
xdp unload nat0
ip link del nat0

# --- real traffic, offloads on ---
like "checksum offload is on" "$(peer ethtool -k eth0 | grep ^tx-checksumming)" "tx-checksumming: on"
fetches() { # ADDRESS
	rm -f "$T/got"
	peer curl -gsS --max-time 60 -o "$T/got" "http://$1:8000/file" && cmp "$T/file" "$T/got"
}
puts() { # ADDRESS
	rm -f "$T/put"
	peer curl -gsS --max-time 60 -T "$T/file" "http://$1:8000/put" && cmp "$T/file" "$T/put"
}
checksum_errors() {
	{
		nstat -asz
		peer nstat -asz
	} | awk '/InCsumErrors/ { n += $2 } END { print n + 0 }'
}
sent=$(kernel SyncookiesSent)
ok "curl gets a file whole" fetches 198.51.100.1
is "its SYN was answered by the list" "$(reason challenged)" 1
is "its cookie was right" "$(reason challenge-met)" 1
is "and the kernel took it" "$(kernel SyncookiesRecv)" 1
ok "by IPv6, too" fetches "[2001:db8:2::1]"
is "so it was" "$(reason challenged) $(reason challenge-met) $(kernel SyncookiesRecv)" "2 2 2"
ok "it sends one" puts 198.51.100.1
ok "by IPv6, too, it does" puts "[2001:db8:2::1]"
is "the kernel has made no answer itself" "$(kernel SyncookiesSent)" "$sent"
is "no cookie was wrong" "$(reason bad-cookie) $(kernel SyncookiesFailed)" "0 0"
is "no checksum was" "$(checksum_errors)" 0
is "nobody who is not there is answered" "$(reason challenge-other)" 0
peer curl -sS --max-time 5 "http://198.51.100.1:8001/" >"$T/curl" 2>&1
like "where nobody listens the kernel refuses" "$(cat "$T/curl")" "(refused|Couldn't connect|Could not connect)"
is "which is left to it" "$(reason challenge-other)" 1

# talk NAME: a connection that stays until $T/NAME.go is there
talk() {
	bg "$T/$1" nsenter -t "$PEER_PID" -n "$PYTHON" "$SRC/state.py" talk 198.51.100.1 9000 "$T/$1.go"
	talker=$BG
	wait_for "grep -q one '$T/$1' || ! kill -0 $talker"
}
talked() { # NAME: it talks on until its end
	touch "$T/$1.go"
	# shellcheck disable=SC2016 # wait_for sees it
	wait_for '! kill -0 $talker 2>/dev/null'
	xargs <"$T/$1"
}
here() { # what both ends say of it
	ss -Htnoi state established "sport = :9000"
}
there() {
	peer ss -Htnoi state established "dport = :9000"
}
scales() {
	grep -o 'wscale:[0-9,]*' | cut -d : -f 2
}
talk all
like "a connection has time stamps and SACK" "$(here)" "ts sack"
like "and so it has there" "$(there)" "ts sack"
mine=$(here | scales)
like "its windows are scaled" "$mine" '^[0-9]+,[0-9]+$'
is "both ends by the same" "$(there | scales)" "${mine#*,},${mine%,*}"
is "as without a list" "${mine#*,}" "$(
	"$PYTHON" - <<'EOF'
rmem = int(open("/proc/sys/net/ipv4/tcp_rmem").read().split()[2])
try:
    rmem = max(rmem, int(open("/proc/sys/net/core/rmem_max").read()))
except OSError:
    pass
print(min(14, max(0, rmem.bit_length() - 16)))
EOF
)"

# --- lists come and go ---
echo 'rules: [{name: other, proto: tcp, dport: 9000, action: challenge, log: yes}]' >"$T/other.yaml"
ok "another list in its place" xdp apply xc0 --rules "$T/other.yaml"
is "the connection goes on" "$(talked all)" "one two"
ok "the first one again" xdp apply xc0 --rules "$T/list.yaml"
ok "curl gets its file" fetches 198.51.100.1
like "explain says what becomes of a SYN" "$(xdp explain xc0 --packet 'tcp 198.51.100.2:5 > 198.51.100.1:8000 flags syn')" \
	"verdict +challenge"$'\n'".*its SYN is answered with a cookie \(challenged\)"
like "and of an ACK of nobody" "$(xdp explain xc0 --packet 'tcp 198.51.100.2:5 > 198.51.100.1:8000 flags ack')" \
	"verdict +drop"$'\n'".*it belongs to no connection, and its cookie is not right \(bad-cookie\)"

# --- time stamps that nobody can know ---
stamps 1
talk less
unlike "without stamps a connection has no SACK" "$(here)" "sack"
unlike "nor a scale" "$(here)" "wscale"
is "but it is one" "$(talked less)" "one two"
ok "so a file comes, too" fetches 198.51.100.1
stamps 2

# --- a flood of SYNs ---
asked=$(reason challenged)
flood() { # SECONDS
	peer "$BIN/flood" eth0 "$PEER_MAC" "$HERE_MAC" 198.51.100.1 8000 20000 "$1" ||
		{ [ $? = 3 ] && peer "$PYTHON" "$SRC/packets.py" send eth0 n=20000 proto=tcp flags=syn \
			src=32.1.2.3 dst=198.51.100.1 sport=7 dport=8000 dmac="$HERE_MAC" smac="$PEER_MAC"; }
}
flood_on() { # in turns: it lasts as long as it has to
	while [ ! -e "$T/enough" ]; do
		flood 1
	done
}
begin_flood() {
	rm -f "$T/enough"
	bg "$T/rate" flood_on
	flooder=$BG
	wait_for "[ \$(reason challenged) -gt $(($(reason challenged) + 5000)) ]"
}
end_flood() {
	touch "$T/enough"
	wait "$flooder"
}
waiting() {
	ss -Htn state syn-recv "sport = :8000" | wc -l
}
all_fetch() { # N
	local left=$1
	while [ $((left -= 1)) -ge 0 ]; do
		peer curl -gsS --max-time 60 -o /dev/null "http://198.51.100.1:8000/web.py" || return
	done
}
begin_flood
ok "clients connect during a flood of SYNs" all_fetch 30
is "of which the socket has nothing" "$(waiting)" 0
ok "a file comes whole" fetches "[2001:db8:2::1]"
end_flood
diag "$(($(reason challenged) - asked)) SYNs were answered, at $(xargs <"$T/rate") a second"
is "the kernel answered none of them" "$(kernel SyncookiesSent)" "$sent"
is "and dropped none" "$(kernel ListenOverflows) $(kernel TCPReqQFullDrop)" "0 0"

# --- a flood of ACKs ---
wrong=$(reason bad-cookie)
resets=$(nstat -asz TcpOutRsts | awk '$1 == "TcpOutRsts" { print $2 }')
talk acks
acks() { # KEY=VALUE...
	peer "$PYTHON" "$SRC/packets.py" send eth0 n=3000 proto=tcp dport=8000 dmac="$HERE_MAC" smac="$PEER_MAC" "$@"
}
ok "ACKs of nobody" acks flags=ack src=32.1.2.3 sport=5
ok "on IPv6" acks flags=ack src=2001:db8:2::9 dst=2001:db8:2::1 sport=5
ok "resets" acks flags=rst src=32.1.2.3 sport=5
is "are dropped and counted, each" "$(($(reason bad-cookie) - wrong))" 9000
is "nobody answers them" "$(nstat -asz TcpOutRsts | awk '$1 == "TcpOutRsts" { print $2 }')" "$resets"
is "a connection goes on under them" "$(talked acks)" "one two"
ok "and others come" all_fetch 5

# --- while there is room, the kernel's own way ---
cookies 1
talk room
like "with cookies when they are needed alone, TCP has all" "$(here)" "ts sack"
ok "since the SYN was the kernel's" test "$(reason challenge-idle)" -gt 0
is "it talks on" "$(talked room)" "one two"
begin_flood
ok "clients connect when the queue is full" all_fetch 30
ok "which then takes no more" test "$(waiting)" -le 16
end_flood
cookies 2

# --- ports that are an app's ---
agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4}
EOF
bg "$T/hosts" "$BIN/tcp" listen 6only :: 8001
wait_for 'ss -Hltn "sport = :8001" | grep -q .'
connect() { # 4|6
	timeout 5 nsenter -t "$PEER_PID" -n "$BIN/tcp" connect "$1" "$([ "$1" = 4 ] && echo 198.51.100.1 || echo 2001:db8:2::1)" 8001 2>&1
}
before=$(reason challenged)
like "who connects to the host's server" "$(connect 6)" "^peer="
is "is challenged" "$(reason challenged)" $((before + 1))
end "$BG"
serve 7000 --name behind -p 8001:7000 -- "$BIN/tcp" listen 4 0.0.0.0 7000
before="$(reason challenged) $(reason challenge-other)"
like "who connects to an exposed port" "$(connect 4)" "^peer="
is "is not, and what comes is left to the kernel" "$(reason challenged)" "${before% *}"
ok "as it counts" test "$(reason challenge-other)" -gt "${before#* }"
agent_stop

ok "unload" xdp unload xc0

# --- of a config ---
cookies 0
agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4}
xdp:
  interfaces:
    xc0:
      rules:
        - {name: ask, proto: tcp, dport: 8000, action: challenge}
EOF
is "an agent has the kernel make cookies for its list" "$(sysctl -n net.ipv4.tcp_syncookies)" 2
ok "clients come" all_fetch 3
is "by them" "$(reason challenge-met)" 3
agent_stop
ip route del 32.0.0.0/3
xdp_done
