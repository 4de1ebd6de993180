#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Apps in host mode that have addresses of one family ask the agent's DNS by the other one, too, from an
# address that is this host's: they are known all the same, and may ask for no more than they may; nor may
# who has asked for connections that begin later, or closes its sockets before the agent reads.
. "$(dirname "$0")/lib.sh"
need dig

UPSTREAM=127.0.0.53
bg "$T/upstream.out" "$PYTHON" "$SRC/upstream.py" $UPSTREAM 5300 "$T/upstream.log"
wait_for "grep -q ready $T/upstream.out"
config() {
	cat <<-EOC
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		  host_access: $1
		  dns: {upstreams: [$UPSTREAM:5300]}
		apps:
		  later: {ip: "10.77.3.1,fd77::3:1"}
	EOC
}
agent_start - < <(config true)

# What answers there are, or how it failed, of a socket that has no port before it connects.
cat >"$T/ask.py" <<'EOC'
import errno, os, socket, struct, sys, time

TCP_FASTOPEN_CONNECT, TCP_FASTOPEN_NO_COOKIE, IP_BIND_ADDRESS_NO_PORT = 30, 34, 24

def query(name):
    labels = b"".join(bytes([len(l)]) + l.encode() for l in name.split("."))
    return b"\0\7\1\0\0\1\0\0\0\0\0\0" + labels + b"\0\0\1\0\1"

def open_to(kind, address, deferred=False):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
    s.settimeout(10)
    if deferred:
        s.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)
        s.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)
    s.connect((address, 53))
    return s

# A place of a connection that was used is there again once the agent has read all that came by it.
def open_soon(address, deferred=False):
    for i in range(1000):
        try:
            return open_to(socket.SOCK_STREAM, address, deferred)
        except OSError as e:
            if e.errno != errno.ENOBUFS:
                raise
        time.sleep(0.02)
    raise TimeoutError("no place comes free")

def answer(s, name):
    tcp = s.type == socket.SOCK_STREAM
    q = query(name)
    s.sendall((struct.pack(">H", len(q)) if tcp else b"") + q)
    return s.recv(512)[5 if tcp else 3] & 15

def ask(name, addresses):
    for address in addresses:
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
            try:
                yield answer(open_to(kind, address), name)
            except OSError as e:
                yield e.strerror

def late(address):
    kept, late = [], []
    try:
        while True:
            kept.append(open_to(socket.SOCK_DGRAM, address))
    except OSError as e:
        yield e.strerror
    kept.pop().close()
    for i in range(4):
        try:
            late.append(open_to(socket.SOCK_STREAM, address, True))
        except OSError as e:
            yield e.strerror
    for s in late:
        yield answer(s, "evil.test")
    late[0].close()
    yield answer(open_soon(address), "evil.test")
    # connected, and never used: its place is there again
    for i in range(3):
        open_soon(address, True).close()
    yield answer(open_soon(address), "evil.test")

def hasty(go, address):
    print("ready", flush=True)
    while not os.path.exists(go):
        time.sleep(0.02)
    for i in range(50):
        s = open_to(socket.SOCK_DGRAM, address)
        s.send(query("hasty%d.test" % i))
        s.close()
    for i in range(30000):
        open_to(socket.SOCK_DGRAM, address).close()
    print("done", flush=True)
    time.sleep(600)

if sys.argv[1] == "hasty":
    hasty(*sys.argv[2:])
print(*(late(sys.argv[2]) if sys.argv[1] == "late" else ask(sys.argv[1], sys.argv[2:])))
EOC
asks() {
	local ip=$1
	shift
	in_app --net host --ip "$ip" --egress=www.good.test -- prlimit --nofile=20000 \
		"$PYTHON" "$T/ask.py" "$@" 2>&1
}

is "an app without IPv6 is told by IPv6 that a name outside does not exist" \
	"$(asks 10.77.5.5 evil.test fd77::1 2001:db8::99)" "3 3 3 3"
is "one without IPv4 by IPv4, and by IPv4 addresses of IPv6" \
	"$(asks fd77::55 evil.test 10.77.0.1 192.0.2.99 ::ffff:10.77.0.1)" "3 3 3 3 3 3"
is "and what ax knows they are told" "$(asks 10.77.5.5 later.ax.internal fd77::1 2001:db8::99)
$(asks fd77::55 later.ax.internal 10.77.0.1 192.0.2.99)" $'0 0 0 0\n0 0 0 0'
room="No buffer space available"
is "as many connections that begin later are promised as there is room for" \
	"$(asks 10.77.5.5 late fd77::1)" "$room $room $room $room 3 3 3"

# While the agent does not read, more sockets come and go than anybody keeps account of.
run_app --net host --ip 10.77.5.5 --egress=www.good.test -- "$PYTHON" "$T/ask.py" hasty "$T/go" fd77::1
wait_for "grep -q ready $OUT"
kill -STOP "$AGENT"
touch "$T/go"
wait_for -t 120 "grep -q done $OUT"
kill -CONT "$AGENT"
is "this host's own questions are answered after that" \
	"$(wait_for -t 60 'dig +tries=1 +time=2 @10.77.0.1 later.ax.internal | grep -q 10.77.3.1' && echo yes)" yes
stop_app "$APP"
is "nobody outside is asked" "$(cat "$T/upstream.log")" ""

ok "host_access: false is applied" ax config apply <(config false)
is "apps are answered by the other family, too, where this host is not" \
	"$(asks 10.77.5.5 later.ax.internal fd77::1)
$(asks fd77::55 later.ax.internal 10.77.0.1)" $'0 0\n0 0'
done_testing
