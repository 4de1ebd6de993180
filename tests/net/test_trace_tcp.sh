#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax trace tcp: connections with their bytes, times, names, and how they ended.
. "$(dirname "$0")/lib.sh"
need jq curl ss

trace() {
	"$AX" --instance "$INST" trace tcp "$@" 2>&1
}
# field FILE FILTER: of all that ended, in their order
field() {
	jq -r "select(.event == \"tcp\") | $2" "$1"
}
# tracing FILE OPTION...: in the background, until it is at work
tracing() {
	local file=$1
	shift
	bg "$file.out" "$AX" --instance "$INST" trace tcp -O "$file" "$@"
	TRACER=$BG
	wait_for "grep -q attached $file.out" || not_ok "ax trace tcp starts" "$(cat "$file.out")"
}
tracing_ends() { # PID...
	local pid
	for pid; do
		kill -INT "$pid"
		wait "$pid"
	done
}

# --- every end, byte by byte ---

for address in 127.0.0.1 ::1; do
	trace -o json -O "$T/json" -c "$PYTHON $SRC/tcpends.py $address 7001"
	is "$address: all ends are seen" "$(field "$T/json" '"\(.side) \(.end)"' | sort)" \
		"client closed
client closed by peer
client refused
client reset
server closed
server closed by peer
server reset by peer"
	for expected in "client closed 1000 10" "server closed by peer 10 1000" \
		"client closed by peer 7 3000" "server closed 3000 7" "client reset 5 6" \
		"server reset by peer 6 5" "client refused 0 0"; do
		ok "$address: bytes: $expected" grep -qx "$expected" <(field "$T/json" \
			'"\(.side) \(.end) \(.sent) \(.received)"')
	done
	is "$address: addresses and ports" "$(field "$T/json" \
		'select(.side == "client") | "\(.local) \(.local_port > 0 or .end == "refused") \(.remote) \(.remote_port)"' |
		sort -u)" "$address true $address 7001"
	is "$address: a server's port" "$(field "$T/json" 'select(.side == "server") | .local_port' |
		sort -u)" 7001
	is "$address: whose they are" "$(field "$T/json" .comm | sort -u | grep -c python3)" 1
	is "$address: each has a round trip time" "$(field "$T/json" \
		'select(.end != "refused" and .rtt_us > 0 and .rtt_us < 1000000) | 1' | wc -l)" 6
	is "$address: and lasted" "$(field "$T/json" \
		'select(.duration_ns > 1000 and .duration_ns < 1e10) | 1' | wc -l)" 7
	is "$address: all came" "$(jq -c 'select(.emitted) | [.emitted, .received, .dropped]' "$T/json")" \
		"[7,7,0]"
done

out=$(trace --live -c "$PYTHON $SRC/tcpends.py 127.0.0.1 7001")
like "each state: it listens" "$out" "127.0.0.1:7001 +CLOSE -> LISTEN"
like "each state: it connects" "$out" "-> 127.0.0.1:7001 +SYN_SENT -> ESTABLISHED"
like "each state: it closes" "$out" "FIN_WAIT2 -> CLOSE: closed after [0-9.]+[mu]?s, 1000 sent, 10 received"

# --- whose: a server that was there, its workers, a filter ---

mkdir "$T/www"
head -c 3000000 /dev/urandom >"$T/www/big"
truncate -s 60M "$T/www/huge" # more than the sockets' buffers take
bg "$T/http.out" "$PYTHON" -m http.server 7002 --bind 127.0.0.1 --directory "$T/www"
server=$BG
wait_for "curl -s -o /dev/null http://127.0.0.1:7002/big"
tracing "$T/all" -o json
all=$TRACER
tracing "$T/mine" -o json -p "$server"
mine=$TRACER
curl -s -o /dev/null http://127.0.0.1:7002/big
bg "$T/curl.out" curl -s -o /dev/null --limit-rate 1000 http://127.0.0.1:7002/huge
slow=$BG
wait_for "ss -Htn state established '( dport = :7002 )' | grep -q 7002"
tracing "$T/late" -o json
late=$TRACER
tracing_ends "$all" "$mine" "$late"
kill "$slow"
# other tests may have connections at the same time, in their own namespaces
ours=".pid == $slow or .pid == $server"
is "both ends, of the client and the server" "$(field "$T/all" \
	'select((.local_port == 7002 or .remote_port == 7002) and .end != "open" and .sent + .received > 3000000) | "\(.side) \(.comm) \(.sent > 3000000) \(.received > 3000000)"' |
	sed 's/python3[.0-9]*/python3/' | sort -u)" "client curl false true
server python3 true false"
is "those that are open still" "$(field "$T/all" \
	"select($ours) | "'select(.end == "open") | "\(.side) \(.comm)"' |
	sed 's/python3[.0-9]*/python3/' | sort)" "client curl
server python3"
is "of one process, by the listener that it had" "$(field "$T/mine" \
	'"\(.side) \(.pid) \(.end)"' | sed 's/closed by peer/closed/' | sort)" "server $server closed
server $server open"
is "one that was there before is said to be" "$(field "$T/late" \
	"select($ours) | "'select(.older and .side == "unknown") | .comm' | sed 's/python3[.0-9]*/python3/' | sort)" \
	"curl
python3"
for i in all mine late; do
	is "all came ($i)" "$(jq -c 'select(.emitted) | .emitted == .received and .dropped == 0' "$T/$i")" true
done
end "$server"

# one that its process has closed, while the peer takes nothing
trace -o json -O "$T/json" -c "$PYTHON -c '
import socket
l = socket.create_server((\"127.0.0.1\", 7004))
c = socket.create_connection((\"127.0.0.1\", 7004))
a, _ = l.accept()
c.setblocking(False)
try:
    while True:
        c.send(b\"x\" * 65536)
except BlockingIOError:
    pass
c.close()
import os, time
if os.fork():
    time.sleep(0.3)
else:
    time.sleep(2)'"
is "one that no process has any more" "$(field "$T/json" \
	'select(.side == "client") | "\(.end) \(.from) \(.sent > 100000)"')" "open FIN_WAIT1 true"
is "all came, with those" "$(jq -c 'select(.emitted) | [.emitted, .received, .dropped]' "$T/json")" "[2,2,0]"

# --- retransmits ---

# (An acknowledgement that is lost is not sent again, and two packets that are lost are sent as one
# if the kernel may.)
sysctl -qw net.ipv4.tcp_retrans_collapse=0
if nft -f - 2>"$T/nft" <<-END; then
	table inet lossy {
		chain in {
			type filter hook input priority 0
			tcp dport 7003 meta length > 200 numgen inc mod 7 == 3 counter drop
		}
	}
END
	bg "$T/sink.out" "$PYTHON" -c '
import socket
l = socket.create_server(("127.0.0.1", 7003))
while True:
    c, _ = l.accept()
    while c.recv(65536):
        pass
    c.close()'
	sink=$BG
	wait_for "ss -Htnl 'sport = :7003' | grep -q 7003"
	trace -o json -O "$T/json" -c "$PYTHON -c '
import socket
c = socket.create_connection((\"127.0.0.1\", 7003))
c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for i in range(100):
    c.sendall(b\"x\" * 500)
c.shutdown(socket.SHUT_WR)
c.recv(1)'"
	dropped=$(nft -j list table inet lossy | jq '[.. | .counter? // empty | .packets] | add')
	sent=$(field "$T/json" .sent) again=$(field "$T/json" .retransmits)
	diag "$dropped packets were dropped, $again retransmitted"
	is "what arrived in the end" "$sent" 50000
	ok "retransmitted packets are counted" test "$dropped" -gt 0 -a "$again" -ge "$dropped"
	nft delete table inet lossy
	end "$sink"
else
	skip "retransmitted packets are counted" "missing kernel feature nft numgen ($(head -n 1 "$T/nft"))"
fi

# --- apps of ax: their names, in whatever network they are ---

agent_start - <<-EOF
	agent:
	  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
	services:
	  pool: {ip: 10.77.200.1, ports: ["80:80"], strategy: round-robin, backends: [b1, b2]}
EOF
serve 80 --name web --ip 10.77.1.1 -- "$PYTHON" -m http.server 80 --directory "$T/www"
serve 80 --name hostweb --net host --ip 10.77.1.2 -- "$PYTHON" -m http.server 80 \
	--bind 0.0.0.0 --directory "$T/www"
serve 80 --name b1 --ip 10.77.1.3 -- "$PYTHON" -m http.server 80 --directory "$T/www"
serve 80 --name b2 --ip 10.77.1.4 -- "$PYTHON" -m http.server 80 --directory "$T/www"
tracing "$T/apps"
tracer=$TRACER
tracing "$T/web" -o json --app web
web=$TRACER
tracing "$T/json" -o json
in_app --name cli --ip 10.77.2.1 -- curl -s -o /dev/null http://web/big
in_app --name cli --ip 10.77.2.1 --net host -- curl -s -o /dev/null http://10.77.1.2/big
for i in 1 2; do
	in_app --name cli -- curl -s -o /dev/null http://pool/big
done
tracing_ends "$tracer" "$web" "$TRACER"
out=$(<"$T/apps")
like "a client in a network of its own" "$out" \
	" curl +cli +cli\(10.77.2.1:[0-9]+\) +-> web\(10.77.1.1:80\) .* 2.9M "
like "its server" "$out" " web +web\(10.77.1.1:80\) +<- .*10.77.2.1:[0-9]+.* 2.9M "
like "apps in the host's network" "$out" \
	" curl +cli +cli\(10.77.2.1:[0-9]+\) +-> hostweb\(10.77.1.2:80\) .* 2.9M "
like "a service, and the backend behind it" "$out" \
	" curl +cli .* -> pool\(10.77.200.1:80\)>10.77.1.[34]:80 "
is "only those of one app" "$(field "$T/web" '"\(.app) \(.local_name) \(.side)"' | sort -u)" \
	"web web server"
is "the service by its name" "$(field "$T/json" 'select(.service) | "\(.service) \(.service_name) \(.service_port)"' |
	sort -u)" "10.77.200.1 pool 80"
stop_apps
agent_stop

fails "a word too many" "$AX" trace tcp word
done_testing
