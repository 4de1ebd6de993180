#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# Strategies of services, for apps and for programs outside ax: who gets how many connections.
. "$(dirname "$0")/lib.sh"
need setpriv "$PYTHON"
build_c tcp udp

# A client that does what it is told and keeps its connections: lines of
#   open N [ADDR]   N connections, one after the other: how many each server got, or an errno
#   try N           N connections that are closed at once, without blocking
#   close NAME      all connections to this server, "all" of them
# come from a FIFO, and a line of output answers each.
cat >"$T/client.py" <<'EOF'
import collections, errno, select, socket, sys, time
proto, addr, port, fifo = sys.argv[1:5]
family = socket.AF_INET6 if ":" in addr else socket.AF_INET
held = []

def connect(block=True):
    s = socket.socket(family, socket.SOCK_DGRAM if proto == "udp" else socket.SOCK_STREAM)
    s.settimeout(5)
    try:
        if not block:
            s.setblocking(False)
            r = s.connect_ex((addr, int(port)))
            if r == errno.EINPROGRESS:
                if not select.select([], [s], [], 0.1)[1]:
                    return s, "waits"
                r = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if r:
                return s, errno.errorcode[r]
            s.settimeout(5)
        else:
            s.connect((addr, int(port)))
        if proto == "udp":
            s.send(b"?")
        return s, s.recv(256).decode().split()[0]
    except OSError as e:
        return s, errno.errorcode.get(e.errno, "timeout")

def end(s):
    if proto == "tcp":
        try:  # until the server has closed as well
            s.shutdown(socket.SHUT_WR)
            while s.recv(256):
                pass
        except OSError:
            pass
    s.close()

def command(words):
    global held
    if words[0] == "open":
        new = [connect() for _ in range(int(words[1]))]
        held += new
        return collections.Counter(name for _, name in new)
    if words[0] == "try":
        seen = collections.Counter()
        for _ in range(int(words[1])):
            s, name = connect(False)
            seen[name] += 1
            s.close()
            time.sleep(0.02)
        return seen
    for s, name in held:
        if words[1] in (name, "all"):
            end(s)
    held = [h for h in held if words[1] not in (h[1], "all")]
    return {}

while True:
    with open(fifo) as f:
        for line in f:
            got = command(line.split())
            print(" ".join(f"{k}={got[k]}" for k in sorted(got)) or "done", flush=True)
EOF

# client WHERE PROTO ADDR PORT: starts one: private, host (apps) or outside. $CLIENT is its pid.
client() {
	local where=$1
	shift
	FIFO=$T/fifo.$RANDOM$RANDOM
	mkfifo "$FIFO"
	if [ "$where" = outside ]; then
		OUT=$FIFO.out
		bg "$OUT" "$PYTHON" "$T/client.py" "$@" "$FIFO"
		CLIENT=$BG
	else
		run_app --net "$where" --egress -- "$PYTHON" "$T/client.py" "$@" "$FIFO"
		CLIENT=$APP
	fi
	SAID=0 SAYS=$OUT
}

# bye: ends the client, its connections first.
bye() {
	say close all
	end "$CLIENT"
}

# say COMMAND: sets $GOT to the answer.
say() {
	echo "$*" >"$FIFO"
	SAID=$((SAID + 1))
	wait_for -t 30 "[ \$(wc -l <$SAYS) -ge $SAID ]"
	GOT=$(sed -n "${SAID}p" "$SAYS")
}

config() {
	cat <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		services:
	EOF
	# of private and of host-mode backends
	for mode in p h; do
		n=$([ $mode = p ] && echo 1 || echo 2)
		cat <<-EOF
			  turns$mode:
			    ip: 10.77.20$n.1,fd77::20$n:1
			    ports: ["80:7000"]
			    strategy: round-robin
			    backends: [${mode}1, ${mode}2]
			  shares$mode:
			    ip: 10.77.20$n.2,fd77::20$n:2
			    ports: ["80:7000"]
			    strategy: round-robin
			    backends: [{app: ${mode}1, weight: 3}, ${mode}2]
			  least$mode:
			    ip: 10.77.20$n.3,fd77::20$n:3
			    ports: ["80:7000", "53:7001/udp"]
			    expose: ["808$n:80"]
			    strategy: least-connections
			    backends: [${mode}1${1:-, ${mode}2}]
			  leastshares$mode:
			    ip: 10.77.20$n.4,fd77::20$n:4
			    ports: ["80:7000"]
			    strategy: least-connections
			    backends: [{app: ${mode}1, weight: 3}, ${mode}2]
			  hash$mode:
			    ip: 10.77.20$n.5,fd77::20$n:5
			    ports: ["80:7000", "53:7001/udp"]
			    strategy: maglev
			    backends: [${mode}1${1:-, ${mode}2}]
			  named$mode:
			    ip: 10.77.20$n.6,fd77::20$n:6
			    ports: ["80:7000"]
			    strategy: maglev
			    hash: app
			    backends: [${mode}1, ${mode}2]
		EOF
	done
	# of backends whose connections fail: refused, no route, no answer, and one that is not there
	cat <<-EOF
		  refused: {ip: 10.77.203.1, ports: [80], strategy: least-connections,
		    backends: [{address: "10.77.2.1:7000"}, {address: "127.0.0.1:7999"}]}
		  unroutable: {ip: 10.77.203.2, ports: [80], strategy: least-connections,
		    backends: [{address: "10.77.2.1:7000"}, {address: "192.0.2.1:7000"}]}
		  silent: {ip: 10.77.203.3, ports: [80], strategy: least-connections,
		    backends: [{address: "10.77.2.1:7000"}, {address: "198.51.100.1:7000"}]}
		  down: {ip: 10.77.203.4, ports: ["80:7000"], strategy: least-connections,
		    backends: [h1, h2, idle]}
	EOF
}
config "" >"$T/all.yaml"
agent_start "$T/all.yaml"
for i in 1 2; do
	for mode in private host; do
		n=$([ $mode = private ] && echo 1 || echo 2)
		name=${mode:0:1}$i
		serve 7000 --net $mode --ip "10.77.$n.$i,fd77::$n:$i" --name "$name" -- sh -c \
			"setpriv --pdeathsig TERM $BIN/udp serve 6 :: 7001 $name & exec $BIN/tcp listen 6 :: 7000 $name patient"
	done
	SERVER=$APP
done
wait_for '[ "$(ax get servers -o json | jq "map(select(.proto == \"udp\")) | length")" -ge 8 ]'

# least WHAT CLIENT'S ARGUMENTS... A B: connections that are held, closed and opened again.
least() {
	local what=$1 a=${*: -2:1} b=${*: -1}
	shift
	client "${@:1:$#-2}"
	say open 6
	is "$what: the fewest, all equal" "$GOT" "$a=3 $b=3"
	say close "$a"
	say open 3
	is "$what: the fewest, one is behind" "$GOT" "$a=3"
	say close "$b"
	say open 5
	is "$what: the fewest, one is behind, then equal" "$GOT" "$a=1 $b=4"
	bye
}

for where in private host outside; do
	for mode in p h; do
		n=$([ $mode = p ] && echo 1 || echo 2)
		for to in 10.77.20$n fd77::20$n; do
			sep=$([ "$to" = "10.77.20$n" ] && echo . || echo :)
			client $where tcp "$to${sep}1" 80
			say open 6
			is "$where to ${mode}*, $to: in turn" "$GOT" "${mode}1=3 ${mode}2=3"
			bye
			client $where tcp "$to${sep}2" 80
			say open 8
			is "$where to ${mode}*, $to: by weight" "$GOT" "${mode}1=6 ${mode}2=2"
			bye
			a=${mode}1 b=${mode}2
			least "$where to ${mode}*, $to" $where tcp "$to${sep}3" 80 $a $b
			[ $where = outside ] ||
				least "$where to ${mode}*, $to, UDP" $where udp "$to${sep}3" 53 $a $b
			client $where tcp "$to${sep}4" 80
			say open 8
			is "$where to ${mode}*, $to: the fewest for their weight" "$GOT" "$a=6 $b=2"
			bye
			client $where tcp "$to${sep}5" 80
			say open 6
			like "$where to ${mode}*, $to: by the client's address" "$GOT" "^${mode}[12]=6\$"
			bye
		done
	done
done

# --- by exposed ports, whose connections count like others ---

for mode in p h; do
	n=$([ $mode = p ] && echo 1 || echo 2)
	for to in 127.0.0.1 ::1; do
		least "by an exposed port to ${mode}*, $to" outside tcp $to "808$n" "${mode}1" "${mode}2"
	done
	client outside tcp 127.0.0.1 "808$n"
	say open 4
	first=$CLIENT first_fifo=$FIFO first_says=$SAYS
	is "${mode}*: by an exposed port" "$GOT" "${mode}1=2 ${mode}2=2"
	say close "${mode}1"
	client private tcp "10.77.20$n.3" 80
	say open 2
	is "${mode}*: an app that asks for the service knows of those" "$GOT" "${mode}1=2"
	bye
	CLIENT=$first FIFO=$first_fifo SAYS=$first_says SAID=2
	bye
done

# --- Maglev: clients by their addresses ---

# all_clients FILE: which backend each of many addresses gets, as apps and as programs outside.
all_clients() {
	local n
	for n in {1..12}; do
		ax run --net "$1" --ip "10.77.50.$n" -- "$BIN/tcp" connect 4 10.77.201.5 80 2>&1 |
			grep -oE "p[12] you=" | cut -c1-2
	done
}
all_clients private >"$T/private"
all_clients host >"$T/host"
is "an app gets the same backend in both modes" "$(cat "$T/private")" "$(cat "$T/host")"
is "and clients are divided among the backends" "$(sort -u "$T/private" | xargs)" "p1 p2"
config " " >"$T/one.yaml"
ok "a backend goes" ax config apply "$T/one.yaml"
all_clients private >"$T/one"
is "and all clients go to the other" "$(sort -u "$T/one")" "p1"
ok "it comes back" ax config apply "$T/all.yaml"
all_clients private >"$T/again"
is "and has its clients back" "$(cat "$T/again")" "$(cat "$T/private")"

# --- and by their names ---

# by_name FILE NAME...: which backend apps of those names get, each from two addresses and in both modes
by_name() {
	local file=$1 name n mode
	shift
	for name; do
		n=50
		for mode in private host; do
			n=$((n + 1))
			echo "$name $(ax run --net $mode --ip 10.77.51.$n --name "$name" -- \
				"$BIN/tcp" connect 4 10.77.201.6 80 2>&1 | grep -oE "p[12] you=" | cut -c1-2)"
		done
	done | sort -u >"$file"
}
by_name "$T/named" {a..l}
is "hash: app: each name has one backend, whatever address and mode it has" "$(wc -l <"$T/named")" 12
is "and names are divided among the backends" "$(cut -d ' ' -f 2 "$T/named" | sort -u | xargs)" "p1 p2"
like "it is shown" "$(ax get services namedp)" "maglev by app"
like "another strategy has no hash" \
	"$(ax service add odd -p 80 -b p1 --strategy random --hash app 2>&1)" "strategy: maglev"
like "nor do clients that keep their backend by their address" \
	"$(ax service add odd -p 80 -b p1 --strategy maglev --hash app --affinity src 2>&1)" "affinity: app or none"

# --- somebody reads events, for which connections are looked at as well ---

bg "$T/events" "$AX" --instance "$INST" events
events_told "$T/events"
least "private to p*, with events" private tcp 10.77.201.3 80 p1 p2
least "outside to h*, with events" outside tcp 10.77.202.3 80 h1 h2
end "$BG"

# --- what fails leaves no count ---
# Chance decides among equals, so of 24 tries less than two go to the failing one with a probability
# of 2^-19; if one left a count behind, at most that one would.

ip route add 198.51.100.0/24 dev lo # to nobody
for what in "refused ECONNREFUSED" "unroutable ENETUNREACH" "silent waits"; do
	case $what in
	refused*) addr=10.77.203.1 ;;
	unroutable*) addr=10.77.203.2 ;;
	silent*) addr=10.77.203.3 ;;
	esac
	client host tcp "$addr" 80
	say try 24
	like "${what% *}: a connect that fails leaves no count" "$GOT" \
		"^${what#* }=([2-9]|1[0-9]|2[0-2]) h1=|^h1=([2-9]|1[0-9]|2[0-2]) ${what#* }="
	bye
done
run_app --ip 10.77.2.9 --name idle -- sleep 1000
client private tcp 10.77.203.4 80
say open 6
is "a backend where nobody listens is passed over, and the others share" "$GOT" "h1=3 h2=3"
bye

# --- counts stand ---

client host tcp 10.77.202.3 80
say open 4
is "even" "$GOT" "h1=2 h2=2"
say close h2
first=$CLIENT
client host tcp 10.77.202.3 80
say open 2
is "two apps see the same counts" "$GOT" "h2=2"
kill -KILL "$(child_of "$first")" "$(child_of "$CLIENT")"
wait_for "! alive $first && ! alive $CLIENT"
sleep 0.5
client host tcp 10.77.202.3 80
say open 6
is "an app that was killed leaves no count" "$GOT" "h1=3 h2=3"
say close h1
config "" >"$T/all.yaml"
config " " >"$T/one.yaml"
ok "a backend leaves the list" ax config apply "$T/one.yaml"
say open 1
is "and gets nothing" "$GOT" "h1=1"
ok "and comes back" ax config apply "$T/all.yaml"
say open 2
is "with the connections that are still open to it" "$GOT" "h1=2"
agent_kill9
agent_again
say open 2
is "they are known after the agent was killed" "$GOT" "h1=1 h2=1"
bye

# --- servers and forks ---

stop_app "$SERVER"
client host tcp 10.77.202.3 80
say open 4
is "one server" "$GOT" "h1=4"
serve 7000 --net host --ip 10.77.2.2,fd77::2:2 --name h2 -- "$BIN/tcp" listen 6 :: 7000 h2 patient
say open 4
is "one that starts gets what comes" "$GOT" "h2=4"
stop_app "$APP"
wait_for "[ \$(ss -Htn state close-wait dst 10.77.2.2 | wc -l) = 4 ]"
serve 7000 --net host --ip 10.77.2.2,fd77::2:2 --name h2 -- "$BIN/tcp" listen 6 :: 7000 h2 patient
say open 3
is "one that ended has no connections when it starts again" "$GOT" "h2=3"
bye
done_testing
