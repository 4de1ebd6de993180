#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Strategies of services, for apps and for programs outside ax: who gets how many connections.
. "$(dirname "$0")/lib.sh"
need "$PYTHON"
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
            s.close()
    held = [h for h in held if words[1] not in (h[1], "all")]
    time.sleep(0.4)  # until the servers have closed as well
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
	SAID=0
}

# say COMMAND: sets $GOT to the answer.
say() {
	echo "$*" >"$FIFO"
	SAID=$((SAID + 1))
	wait_for -t 30 "[ \$(wc -l <$OUT) -ge $SAID ]"
	GOT=$(sed -n "${SAID}p" "$OUT")
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
		EOF
	done
}
config >"$T/all.yaml"
agent_start "$T/all.yaml"
for i in 1 2; do
	serve 7000 --net private --ip 10.77.1.$i,fd77::1:$i --name p$i -- "$BIN/tcp" listen 6 :: 7000 p$i
	serve 7000 --net host --ip 10.77.2.$i,fd77::2:$i --name h$i -- "$BIN/tcp" listen 6 :: 7000 h$i
done

for where in private host outside; do
	for mode in p h; do
		n=$([ $mode = p ] && echo 1 || echo 2)
		for to in 10.77.20$n fd77::20$n; do
			sep=$([ "$to" = 10.77.20$n ] && echo . || echo :)
			client $where tcp "$to${sep}1" 80
			say open 6
			is "$where to ${mode}*, $to: in turn" "$GOT" "${mode}1=3 ${mode}2=3"
			client $where tcp "$to${sep}2" 80
			say open 8
			is "$where to ${mode}*, $to: by weight" "$GOT" "${mode}1=6 ${mode}2=2"
		done
	done
done
done_testing
