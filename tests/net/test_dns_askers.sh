#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Whom the agent's DNS answers, what it forwards for whom, and that one app's flood of queries loses
# none of another's.
# timeout: 240
. "$(dirname "$0")/lib.sh"
need dig
build_c dns_flood tcp

UPSTREAM=127.0.0.53
bg "$T/upstream.out" "$PYTHON" "$SRC/upstream.py" $UPSTREAM 5300 "$T/upstream.log"
wait_for "grep -q ready $T/upstream.out"
# config [HOST_ACCESS [FORWARD]]
config() {
	cat <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		  host_access: ${1:-true}
		  dns: {upstreams: [$UPSTREAM:5300], forward: ${2:-egress}}
		apps:
		  later: {ip: "10.77.3.1,fd77::3:1"}
	EOF
}
agent_start - < <(config)

# status ARGS...: what dig says by itself
status() {
	dig +tries=1 +time=20 "$@" 2>&1 | awk '/^;; ->>HEADER/ { sub(/,/, "", $6); print $6; n++ }
		END { if (!n) print "no answer" }'
}
# status_in APP'S OPTIONS -- ARGS...
status_in() {
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	in_app "${options[@]}" "$@" | awk '/^;; ->>HEADER/ { sub(/,/, "", $6); print $6; n++ }
		END { if (!n) print "no answer" }'
}
asked() {
	grep -c " $1" "$T/upstream.log"
}

# --- forwarding follows egress ---

for how in "" +tcp; do
	is "without egress a name outside does not exist $how" \
		"$(status_in -- dig +tries=1 +time=20 $how secret$how.example.test)" NXDOMAIN
	is "nor does an address $how" "$(status_in -- dig +tries=1 +time=20 $how -x 192.0.2.9)" NXDOMAIN
	is "with egress it does $how" \
		"$(status_in --egress -- dig +tries=1 +time=20 $how egress$how.example.test)" NOERROR
	is "in host mode, too $how" \
		"$(status_in --net host -- dig +tries=1 +time=20 $how host$how.example.test)" NOERROR
	is "the host's own programs are answered $how" \
		"$(status $how @10.77.0.1 later.ax.internal; status $how @fd77::1 later.ax.internal
			status $how @10.77.0.1 own$how.example.test)" $'NOERROR\nNOERROR\nNOERROR'
done
is "nothing of the app without egress has left" "$(asked secret; asked 9.2.0.192)" $'0\n0'
timed 999 in_app -- getent hosts www.example.test
is "glibc: a name outside is not there" "$STATUS" 2
like "and that at once ($TOOK ms)" "$TOOK" "^[0-9]{1,3}$"
ok "all may ask" ax config apply <(config true all)
is "with forward: all apps without egress ask outside" \
	"$(status_in -- dig +tries=1 +time=20 all.example.test)" NOERROR
ok "and no more" ax config apply <(config)
is "with forward: egress again they do not" \
	"$(status_in -- dig +tries=1 +time=20 again.example.test)" NXDOMAIN

# --- neighbours ---

bg /dev/null unshare -n sleep 600
LAN=$BG
wait_for "[ \"\$(readlink /proc/$LAN/ns/net)\" != \"\$(readlink /proc/self/ns/net)\" ] &&
	grep -q sleep /proc/$LAN/comm"
lan() {
	nsenter -t "$LAN" -n "$@"
}
ip link add lan0 type veth peer name lan1 netns /proc/$LAN/ns/net
ip addr add 198.51.100.1/24 dev lan0
ip addr add 2001:db8:1::1/64 dev lan0 nodad
ip link set lan0 up
lan sh -c "ip link set lo up; ip addr add 198.51.100.2/24 dev lan1
	ip addr add 2001:db8:1::2/64 dev lan1 nodad; ip link set lan1 up
	ip addr add 10.77.1.9/32 dev lan1
	ip route add 10.77.0.1/32 via 198.51.100.1 src 198.51.100.2
	ip route add fd77::1/128 via 2001:db8:1::1"
rp_filter=$(sysctl -n net.ipv4.conf.all.rp_filter)
sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.lan0.rp_filter=0
for to in "4 10.77.0.1" "6 fd77::1"; do # a port where nobody listens
	ok "a neighbour reaches the host: $to" wait_for "lan $BIN/tcp connect $to 9 | grep -q ECONNREFUSED"
done
for to in 10.77.0.1 fd77::1; do
	for how in "" +tcp; do
		is "a neighbour is not answered: $to $how" \
			"$(lan dig +tries=1 +time=1 $how @$to later.ax.internal 2>&1 |
				grep -c '^;; ->>HEADER')" 0
	done
done
run_app --egress --name gate --ip 10.77.1.9 -- sleep 1000
launched gate
lan dig +tries=1 +time=1 -b 10.77.1.9 @10.77.0.1 forged.example.test >/dev/null 2>&1
is "nor does anything leave for one that says that it is an app" "$(asked forged)" 0
stop_apps
sysctl -qw net.ipv4.conf.all.rp_filter="$rp_filter"
end "$LAN"
ip link del lan0 2>/dev/null # (without waiting for its other end)

# --- host_access: false ---

ok "host_access: false is applied" ax config apply <(config false)
is "the host is not answered" "$(status +time=1 @10.77.0.1 later.ax.internal)" "no answer"
for how in "" +tcp; do
	is "an app is $how" "$(status_in -- dig +tries=1 +time=20 $how later.ax.internal)" NOERROR
	is "so is one in host mode $how" \
		"$(status_in --net host -- dig +tries=1 +time=20 $how @192.0.2.99 later.ax.internal)" NOERROR
	is "and by IPv6 $how" \
		"$(status_in --net host -- dig +tries=1 +time=20 $how @2001:db8::99 later.ax.internal)" \
		NOERROR
done
is "one that does not connect its socket" \
	"$(in_app --net host -- "$PYTHON" -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
s.sendto(b"\0\7\1\0\0\1\0\0\0\0\0\0\5later\2ax\x08internal\0\0\1\0\1", ("192.0.2.99", 53))
print(s.recvfrom(512)[1])')" "('192.0.2.99', 53)"
run_app --net host -- "$PYTHON" -c 'import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 45000))
s.connect(("10.77.0.1", 53))
s.close()
print("closed", flush=True)
time.sleep(600)'
wait_for "grep -q closed $OUT"
is "who has a port that an app had is not taken for the app" \
	"$(status +time=1 -b 10.77.0.1#45000 @10.77.0.1 later.ax.internal)" "no answer"
stop_app "$APP"
# While an app has a port at one address of the host, it is another's at the next; and who asks from
# many ports takes none of others' away.
run_app --net host -- "$PYTHON" -c 'import os, socket, sys, time
QUERY = b"\0\7\1\0\0\1\0\0\0\0\0\0\5later\2ax\x08internal\0\0\1\0\1"
bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
bound.bind(("127.0.0.1", 45010))
any4 = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
any4.bind(("0.0.0.0", 0))
any6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
any6.bind(("::", 0))
socks = [(bound, "10.77.0.1"), (any4, "10.77.0.1"), (any6, "fd77::1")]
def ask():
	for s, to in socks:
		s.settimeout(20)
		s.send(QUERY)
		print("answer", len(s.recv(512)) > len(QUERY), flush=True)
for s, to in socks:
	s.connect((to, 53))
ask()
while not os.path.exists(sys.argv[1]):
	time.sleep(0.02)
ask()
time.sleep(600)' "$T/again"
asker=$APP asker_out=$OUT
wait_for "[ \$(grep -c answer $asker_out) -eq 3 ]"
is "sockets with ports of their own are answered" "$(xargs <"$asker_out")" \
	"answer True answer True answer True"
for from in 127.0.0.2 127.0.0.3; do
	is "who has an app's port at another address is not taken for the app" \
		"$(status +time=1 -b "$from#45010" @10.77.0.1 later.ax.internal)" "no answer"
done
is "an app asks from so many ports as it may have, and from no more" "$(in_app --net host -- prlimit --nofile=20000 "$PYTHON" -c '
import socket
kept = []
for i in range(10000):
	s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	s.bind(("127.0.0.1", 0))
	try:
		s.connect(("10.77.0.1", 53))
	except OSError as e:
		print(i, e.strerror)
		break
	kept.append(s)')" "8192 No buffer space available"
touch "$T/again"
wait_for "[ \$(grep -c answer $asker_out) -eq 6 ]"
is "the first one's are still answered" "$(tail -n 3 "$asker_out" | xargs)" \
	"answer True answer True answer True"
stop_app "$asker"
# of TCP: closed, and one that lets go of its port only
run_app --net host -- "$PYTHON" -c 'import ctypes, socket, struct, time
QUERY = b"\0\7\1\0\0\1\0\0\0\0\0\0\5later\2ax\x08internal\0\0\1\0\1"
kept = []
for port, keep in (45001, False), (0, True):
	s = socket.socket()
	s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
	s.settimeout(20)
	s.bind(("127.0.0.1", port))
	print("port", s.getsockname()[1])
	s.connect(("10.77.0.1", 53))
	s.sendall(struct.pack(">H", len(QUERY)) + QUERY)
	print("answer", len(s.recv(512)) > len(QUERY), flush=True)
	if keep:
		unspec = struct.pack("H14x", socket.AF_UNSPEC)
		print("free", ctypes.CDLL(None).connect(s.fileno(), unspec, len(unspec)))
		kept.append(s)
	else:
		s.close()
print("done", flush=True)
time.sleep(600)'
wait_for "grep -q done $OUT"
is "a host-mode app with a TCP port of its own is answered" \
	"$(grep -v port "$OUT" | tr '\n' ' ')" "answer True answer True free 0 done "
ports=$(awk '/^port/ { print $2 }' "$OUT")
for port in $ports; do
	is "who has a TCP port that an app had is not taken for the app" \
		"$(status +tcp +time=1 -b "127.0.0.1#$port" @10.77.0.1 later.ax.internal)" "no answer"
done
ok "host_access: true is applied" ax config apply <(config)
for port in $ports; do
	is "and is answered as the host" \
		"$(status +tcp -b "127.0.0.1#$port" @10.77.0.1 later.ax.internal)" NOERROR
done
stop_app "$APP"

# --- floods ---

for how in udp gso tcp; do
	n=100
	[ $how != tcp ] || n=10 # the test's upstream is slow with that many connections
	for options in --egress "--net host"; do
		# shellcheck disable=SC2086 # one or two words
		run_app $options -- "$BIN/dns_flood" $how 10.77.0.1 60
	done
	sleep 0.5
	is "two apps flood ($how), another one's lookups outside" \
		"$(TIME_LIMIT=50 in_app --egress -- "$PYTHON" "$SRC/lookups.py" 10.77.0.1 example.test $n)" \
		"lost 0 of $n"
	is "and of names that ax knows ($how)" \
		"$(TIME_LIMIT=50 in_app -- "$PYTHON" "$SRC/lookups.py" 10.77.0.1 later $n)" "lost 0 of $n"
	stop_apps
done
done_testing
