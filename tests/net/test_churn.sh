#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# a processor each
# timeout: 240
# 10,000 connections are open through a service while its backends come, go and drain, and the agent is killed
# in each step: how many of them fail, and how many of those that are made meanwhile. Exactly: none, but
# for those of a backend that ends.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/stall.sh"
need "$PYTHON" jq

# echo.py NAME PORT: says its name to whoever connects, and then what they say
cat >"$T/echo.py" <<'EOF'
import resource, select, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
s = socket.socket(socket.AF_INET6)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("::", int(sys.argv[2])))
s.listen(4096)
s.setblocking(False)
poll, conns = select.epoll(), {}
poll.register(s, select.EPOLLIN)
while True:
    for fd, _ in poll.poll():
        if fd == s.fileno():
            try:
                while True:
                    c, _ = s.accept()
                    c.send(sys.argv[1].encode() + b"\n")
                    conns[c.fileno()] = c
                    poll.register(c, select.EPOLLIN)
            except BlockingIOError:
                continue
        try:
            data = conns[fd].recv(64)
            if data:
                conns[fd].send(data)
                continue
        except OSError:
            pass
        conns.pop(fd).close()
EOF

# hold.py ADDR N FIFO OUT: N connections; then, for each line "go" of the FIFO, asks by all of them once; and
# makes new ones all the time. Answers each line with "NAME=N... failed=N new=N newfailed=N" (and forgets who
# has failed).
cat >"$T/hold.py" <<'EOF'
import collections, os, resource, select, socket, struct, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
addr, n, fifo, out = sys.argv[1], int(sys.argv[2]), sys.argv[3], open(sys.argv[4], "w", buffering=1)

def connect():
    s = socket.create_connection((addr, 80), 20)
    return s, s.recv(64).decode().strip()

held = [connect() for _ in range(n)]
# closed by a reset: what one has to say to a server that is gone would keep its network for a minute
for s, _ in held:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
new = bad = 0
lines = os.fdopen(os.open(fifo, os.O_RDWR), "rb", buffering=0) # (its own writer: it has no end)
waits = select.poll()
waits.register(lines, select.POLLIN)
print("ready", file=out)
while True:
    while not new or not waits.poll(5): # (one at least each time)
        try:
            s, name = connect()
            s.send(b"?")
            if s.recv(8) != b"?":
                raise OSError
            s.close()
        except OSError:
            bad += 1
        new += 1
    lines.read(3)
    left, failed = [], 0
    for s, name in held:
        try:
            s.send(b"?")
        except OSError:
            pass
    for s, name in held:
        try:
            if s.recv(8) != b"?":
                raise OSError
            left.append((s, name))
        except OSError:
            failed += 1
            s.close()
    held = left
    names = collections.Counter(name for _, name in held)
    print(" ".join(f"{k}={names[k]}" for k in sorted(names)), f"failed={failed} new={new and 1} newfailed={bad}", file=out)
    new = bad = 0
EOF

agent_start
for i in 1 2 3; do
	serve 7000 --net private --name p$i -- "$PYTHON" "$T/echo.py" p$i 7000
	serve 7000 --net host --name h$i -- "$PYTHON" "$T/echo.py" h$i 7000
	[ $i != 1 ] || ends=$APP
done
ok "a service" ax service add shop --ip 10.217.91.1 -p 80:7000 -b p1 -b p2 -b h1 -b h2 --strategy round-robin
declare -A client
said=()
for mode in private host; do
	mkfifo "$T/$mode.go"
	run_app --net $mode --name "client$mode" -- "$PYTHON" "$T/hold.py" 10.217.91.1 5000 "$T/$mode.go" "$T/$mode.out"
	client[$mode]=$APP
	said+=("$OUT")
done
# opened MODE: each connection of it, or its client is gone
opened() {
	grep -qs ready "$T/$1.out" || ! alive "${client[$1]}"
}
wait_for -t 90 "opened private && opened host"
if ! ok "10,000 are open" sh -c "grep -q ready $T/private.out && grep -q ready $T/host.out"; then
	diag "a client has not begun, or not opened its 5,000: $(tail -n 3 "${said[@]}")"
	done_testing
fi

# all: what both clients say of their connections
all() {
	local mode
	STEP=$(($(wc -l <"$T/private.out") + 1))
	for mode in private host; do
		# (without a reader nobody would ever open it)
		timeout 20 sh -c 'echo go >"$1"' sh "$T/$mode.go"
	done
	for mode in private host; do
		wait_for -t 60 "[ \$(wc -l <$T/$mode.out) -ge $STEP ]"
		sed -n "${STEP}p" "$T/$mode.out"
	done | awk '{ for (i = 1; i <= NF; i++) { split($i, p, "="); n[p[1]] += p[2] } }
		END { for (k in n) print k "=" n[k] }' | sort | tr '\n' ' '
}
first=$(all)
like "each backend has a part, and none has failed" "$first" "^failed=0 h1=[0-9]+ h2=[0-9]+ new=2 newfailed=0 p1=[0-9]+ p2=[0-9]+ $"
is "together they have all" "$(grep -o '[ph][12]=[0-9]*' <<<"$first" | awk -F= '{ n += $2 } END { print n }')" 10000

# step WHAT COMMAND...: with an agent that is killed while it does it (or just before it answers)
step() {
	local what=$1
	shift
	(ax "$@" >/dev/null 2>&1) &
	wait $!
	is "$what" "$(all)" "$first"
	(ax "$@" >/dev/null 2>&1) &
	local pid=$!
	agent_kill9
	wait $pid
	is "$what: the agent is killed" "$(all)" "$first"
	agent_again
	ax "$@" >/dev/null 2>&1
	is "$what: and comes back" "$(all)" "$first"
}
step "backends come" service set shop -b p1 -b p2 -b p3 -b h1 -b h2 -b h3
step "one drains" service drain shop p1
step "one is not in the list any more" service set shop -b p2 -b p3 -b h2 -b h3
step "all are others" service set shop -b p3 -b h3 --strategy least-connections
step "and back" service set shop -b p1 -b p2 -b p3 -b h1 -b h2 -b h3 --strategy random
# one that ends takes its own with it, and no others
ok "one drains" ax service drain shop h1
stop_app "$ends"
part=$(grep -o 'h1=[0-9]*' <<<"$first")
left=${first/"$part "/}
is "one ends" "$(all)" "${left/failed=0/failed=${part#*=}}"
is "and no more" "$(all)" "$left"

# on-remove: what is left ends with the service, and nobody waits for that
ok "they are to end" ax service set shop --on-remove destroy
waiting_begins
# a drain's deadline, first
part=$(sed -n 's/.*p2=\([0-9]*\).*/\1/p' <<<"$left")
ok "one drains, and not for long" ax service drain shop p2 --deadline 100ms
ok "what is open then is ended" wait_for -t 60 "grep -q 'service shop: p2 has drained, $part connections had to be ended' $T/$INST.log"
ok "the service goes" ax service del shop
whole=$(grep -o '[ph][12]=[0-9]*' <<<"$left" | awk -F= '{ n += $2 } END { print n }')
rest=$((whole - part))
ok "all of them are ended" wait_for -t 60 "grep -q 'service shop: $rest connections .* had to be ended' $T/$INST.log"
waiting_ends "nobody waited for it"
like "their programs were told" "$(all)" "^failed=$whole "
done_testing
