#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# Clients of services that keep their backend: by their name and by their address, through changes,
# ends, time-outs and the agent's death; and datagrams that are chosen for one by one.
. "$(dirname "$0")/lib.sh"
need "$PYTHON" jq setpriv
build_c tcp udp

# ask.py HOW ADDR PORT N [SOURCE]: who answers N times, each once, in order ("a b", "error"). HOW: tcp, udp
# (connected), sendto (a new socket each time), or one (one socket, not connected).
cat >"$T/ask.py" <<'EOF'
import socket, sys
how, addr, port, n = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
family = socket.AF_INET6 if ":" in addr else socket.AF_INET
one = None
names = []
for _ in range(n):
    try:
        s = one or socket.socket(family, socket.SOCK_STREAM if how == "tcp" else socket.SOCK_DGRAM)
        s.settimeout(10)
        if len(sys.argv) > 5 and not one:
            s.bind((sys.argv[5], 0))
        if how == "one":
            one = s
        if how in ("tcp", "udp"):
            s.connect((addr, port))
            if how == "udp":
                s.send(b"?")
            names.append(s.recv(256).decode().split()[0])
        else:
            s.sendto(b"?", (addr, port))
            text, source = s.recvfrom(256)
            names.append(text.decode().split()[0] if source[:2] == (addr, port) else "from %s" % (source,))
        if not one:
            s.close()
    except OSError as e:
        names.append("error")
print(" ".join(sorted(set(names))))
EOF

services() {
	local mode proto=${2:-}
	for mode in p h; do
		n=$([ $mode = p ] && echo 1 || echo 2)
		cat <<-EOF
			  t$mode: {ip: "10.77.$n.1,fd77::$n:1", ports: ["80:7000"], $1, backends: [${mode}1, ${mode}2, ${mode}3]}
			  u$mode: {ip: "10.77.$n.2,fd77::$n:2", ports: ["80:7000/udp"], $1, $proto backends: [${mode}1, ${mode}2, ${mode}3]}
		EOF
	done
}
config() {
	printf 'agent:\n  pool: {ipv4: %s, ipv6: "%s"}\nservices:\n' "$POOL4" "$POOL6"
	services "$@"
}

config "strategy: round-robin, affinity: app" >"$T/first.yaml"
agent_start "$T/first.yaml"
# both MODE NAME: a server by TCP and UDP
both() {
	run_app --net "$1" --name "$2" -- sh -c "setpriv --pdeathsig TERM \"$BIN/udp\" serve 6 :: 7000 $2 & exec \"$BIN/tcp\" listen 6 :: 7000 $2"
	eval "$2=$APP"
	wait_for -t 30 "ax get servers -o json | jq -e '[.[] | select(.app == \"$2\")] | length >= 2'"
}
for i in 1 2 3; do
	both private p$i
	both host h$i
done

# who CLIENT MODE HOW ADDR [N]: as one app of that name
who() {
	ax run --net "$2" --name "$1" -- "$PYTHON" "$T/ask.py" "$3" "$4" 80 "${5:-5}" 2>&1
}

# everywhere: who serves one client, a line for each way
everywhere() {
	local mode n how addr tasks
	for mode in private host; do
		n=$([ $mode = private ] && echo 1 || echo 2)
		tasks=$(for how in tcp udp sendto one; do
			for addr in "10.77.$n." "fd77::$n:"; do
				[ $how = tcp ] && addr+=1 || addr+=2
				echo "echo $mode $how $addr \$($PYTHON $T/ask.py $how $addr 80 4)"
			done
		done)
		ax run --net $mode --name c -- sh -c "$tasks" 2>&1
	done
}

first=$(everywhere)
is "app: each time the same, by TCP and UDP, IPv4 and IPv6" "$(grep -cE ' [ph][123]$' <<<"$first")" 16
is "a second run of that name has the same" "$(everywhere)" "$first"
like "it is shown" "$(ax get services -o wide)" "tp .*app 180m"
# the connected and the others are one client
is "all of a client's datagrams go one way" \
	"$(awk '$2 != "tcp" { print $1, $3, $4 }' <<<"$first" | sort -u | wc -l)" 4

is "clients of other names are spread" "$(for i in 1 2 3 4 5 6; do who "c$i" private tcp 10.77.1.1 2; done |
	sort | uniq -c | awk '{ printf "%s ", $1 }')" "2 2 2 "

outside=$("$PYTHON" "$T/ask.py" tcp 10.77.1.1 80 3)
agent_kill9
is "without an agent" "$("$PYTHON" "$T/ask.py" tcp 10.77.1.1 80 3)" "$outside"
agent_again
is "by the next agent" "$(everywhere)" "$first"

# another strategy, another order, other weights, more backends: who has one keeps it
for change in "strategy: maglev" "strategy: least-connections" "strategy: random" "strategy: round-robin, wait: 1s"; do
	config "$change, affinity: app" | sed 's/\[\([ph]\)1, [ph]2, \([ph]\)3\]/[address: 10.77.99.99, \23, {app: \11, weight: 7}, {app: \12, weight: 2}]/;
		s/\[address: 10.77.99.99/[{address: 10.77.99.99}/' >"$T/change.yaml"
	ok "a change: $change" ax config apply "$T/change.yaml"
	is "moves nobody" "$(everywhere)" "$first"
done
ok "the first ones again" ax config apply "$T/$INST.yaml"

# its backend stops to listen: another one, and that one from then on
victim=$(who c private tcp 10.77.1.1)
stop_app "${!victim}"
second=$(who c private tcp 10.77.1.1)
like "its backend has ended: another one" "$second" "^p[123]$"
unlike "and not that" "$second" "$victim"
both private "$victim"
is "which it keeps when the first is back" "$(who c private tcp 10.77.1.1)" "$second"
ok "drain" ax service drain tp "$second"
third=$(who c private tcp 10.77.1.1)
unlike "who drains gets nothing new of its clients" "$third" "$second"
ok "undrain" ax service drain tp "$second" --undo
is "and does not get them back" "$(who c private tcp 10.77.1.1)" "$third"

# the time-out
ok "none" ax service add brief --ip 10.77.3.1 -p 80:7000 -b h1 -b h2 -b h3 --strategy round-robin --affinity src --affinity-timeout 1ms
got=$(for i in 1 2 3; do who c host tcp 10.77.3.1 1; done | sort | tr '\n' ' ')
is "after its time-out a client is chosen for anew" "$got" "h1 h2 h3 "
ok "a longer one" ax service set brief --affinity-timeout 60m
is "before it is not" "$(for i in 1 2 3; do who c host tcp 10.77.3.1 2; done | sort -u | wc -l)" 3
like "it is shown, too" "$(ax get services brief -o wide)" "src 60m"
is "by JSON" "$(ax get services brief -o json | jq -c '.[] | [.affinity, .affinity_timeout_ms]')" '["src",3600000]'

# by address: two of one address are one client, and programs outside ax have one, too
ok "src" ax service set brief --affinity src
is "one address, two names" "$(for i in 1 2 3; do ax run --ip 10.77.50.1 --name "n$i" -- "$PYTHON" "$T/ask.py" tcp 10.77.3.1 80 2; done | sort -u | wc -l)" 1
for source in 127.0.0.1 127.0.0.2 127.0.0.3; do
	is "outside: $source has one" "$("$PYTHON" "$T/ask.py" tcp 10.77.3.1 80 5 $source | wc -w)" 1
done
is "outside: each his own" "$(for i in 1 2 3; do "$PYTHON" "$T/ask.py" tcp 10.77.3.1 80 1 127.0.0.$i; done | sort -u | wc -l)" 3
is "outside: private backends" "$("$PYTHON" "$T/ask.py" tcp 10.77.1.1 80 5 | wc -w)" 1
is "outside: by UDP" "$("$PYTHON" "$T/ask.py" udp 10.77.1.2 80 5 | wc -w)" 1

ok "app" ax service set brief --affinity app
# many clients outside ax fill their share of the service, and no more
before=$(for i in 1 2 3; do who "c$i" host tcp 10.77.3.1 1; done; "$PYTHON" "$T/ask.py" tcp 10.77.3.1 80 1 127.0.0.2)
"$PYTHON" - 10.77.3.1 <<'EOF'
import socket, struct, sys
for i in range(17000):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.bind(("127.1.%d.%d" % (i >> 8, i & 255), 0))
    s.connect((sys.argv[1], 80))
    s.close()
EOF
is "their share is full, and no more" "$(ax get services brief -o json | jq '.[].clients >= 16384 and .[].clients < 16500')" true
is "who was there keeps his" "$(for i in 1 2 3; do who "c$i" host tcp 10.77.3.1 1; done; "$PYTHON" "$T/ask.py" tcp 10.77.3.1 80 1 127.0.0.2)" "$before"
is "whoever finds no room goes one way, too" "$("$PYTHON" "$T/ask.py" tcp 10.77.3.1 80 5 127.9.9.9 | wc -w)" 1
is "an app still gets one" "$(for i in 1 2 3; do who late host tcp 10.77.3.1 2; done | sort -u | wc -l)" 1
ok "other strategy" ax service set brief --strategy random
is "which it keeps" "$(for i in 1 2 3; do who late host tcp 10.77.3.1 2; done | sort -u | wc -l)" 1

ok "none: without the time-out that it has" ax service set brief --affinity none
is "it has none" "$(ax get services brief -o json | jq -c '.[] | [.affinity, .affinity_timeout_ms]')" "[null,null]"
ok "and again" ax service set brief --affinity app
is "with the usual one" "$(ax get services brief -o json | jq '.[].affinity_timeout_ms')" 10800000
like "none with one is a mistake" "$(ax service set brief --affinity none --affinity-timeout 1s 2>&1)" "affinity-timeout without affinity"

# --- datagrams ---

config "strategy: round-robin" "udp: per-send," >"$T/send.yaml"
ok "per send" ax config apply "$T/send.yaml"
for mode in private host; do
	n=$([ $mode = private ] && echo 1 || echo 2)
	for addr in "10.77.$n.2" "fd77::$n:2"; do
		is "$mode: each datagram of a socket for itself, by $addr" "$(who c $mode one "$addr" 6 | wc -w)" 3
	done
done
config "strategy: round-robin" "udp: affinity," >"$T/send.yaml"
ok "not per send" ax config apply "$T/send.yaml"
is "a socket stays" "$(who c private one 10.77.1.2 6 | wc -w)" 1
is "per send, by the command" "$(ax service add usend --ip 10.77.3.2 -p 80:7000/udp -b h1 -b h2 -b h3 --strategy round-robin --udp per-send &&
	who c host one 10.77.3.2 6 | wc -w)" 3

# --- one app asks for more than its share ---

{
	config "strategy: round-robin" "udp: affinity,"
	seq 0 4199 | awk '{ printf "  many%d: {ip: 10.217.%d.%d, ports: [\"80:7000/udp\"], affinity: app, backends: [h1, h2, h3]}\n",
		$1, 100 + $1 / 200, $1 % 200 + 1 }'
} >"$T/many.yaml"
ok "4,200 services" ax config apply "$T/many.yaml"
clients() {
	ax get services -o json | jq '[.[] | select(.name | startswith("many")) | .clients] | add'
}
# (in one run: another one of that name has a share of its own)
greedy=$(ax run --net host --name greedy -- sh -c "$PYTHON -c '
import socket
for i in range(4200):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect((\"10.217.%d.%d\" % (100 + i // 200, i % 200 + 1), 80))
' && $PYTHON $T/ask.py sendto 10.217.120.200 80 5")
is "one app asks for all: it has its share, and no more" "$(clients)" 4096
like "where it finds no room it goes one way" "$greedy" "^h[123]$"
is "another one has a share of its own" "$(who other host udp 10.217.120.200 2 | wc -w) $(clients)" "1 4097"
ok "they go" ax config apply "$T/send.yaml"

# --- what is said of mistakes ---
like "a word that is none" "$(ax service set brief --affinity client 2>&1)" "none, app or src|affinity"
like "a time-out of nothing" "$(ax service add what -b h1 --affinity-timeout 1s 2>&1)" "affinity"
ok "what was added goes" ax service del brief usend
done_testing
