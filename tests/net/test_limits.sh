#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 300
# What the machine does to an agent: a clock that jumps, few descriptors, files that nobody writes.
. "$(dirname "$0")/lib.sh"
need jq prlimit

# --- FIFOs and what a file asks for together ---

mkfifo "$T/fifo"
like "a check does not wait for a FIFO" "$(timeout 20 "$AX" config check "$T/fifo" 2>&1)" "is a FIFO"
like "but takes what a shell pipes" "$("$AX" config check <(default_config))" ": ok"
{
	echo "agent: {pool: {ipv4: 10.0.0.0/29}}"
	echo "apps: {a: {}, b: {}, c: {}, d: {}, e: {}, f: {}}"
} >"$T/pool.yaml"
like "a check finds that the pool is too small" "$("$AX" config check "$T/pool.yaml" 2>&1)" "agent.pool.ipv4 has addresses for: 5"

# --- the clock ---

build jump jump.c gcc "${CFLAGS_TEST[@]}" -shared -fPIC "$SRC/jump.c" -o %o
export JUMP=$T/jumped LD_PRELOAD=$BIN/jump
agent_start
ax run -d --name old -- sleep 1000 >/dev/null
ip link add xa0 type veth peer name xa1
echo "rules: [{proto: icmp, action: pass}]" >"$T/rules.yaml"
ok "a list" ax xdp load xa0 --rules "$T/rules.yaml"
touch "$JUMP"
ages() {
	ax get apps | awk 'NR > 1'
	ax status
	ax xdp status xa0
}
out=$(ages)
unlike "nothing is a year old when the clock jumps" "$out" "36[0-9]d"
like "since is the clock's" "$(($(date +%s) - $(ax get apps -o json | jq '.[0].since')))" "^-?[0-9]$|^[1-5][0-9]$"
agent_stop
agent_again
unlike "nor for the next agent" "$(ages)" "36[0-9]d"
unset JUMP LD_PRELOAD

# --- a kernel that does not say how many CPUs there may be ---

: >"$T/nothing"
mount --bind "$T/nothing" /sys/devices/system/cpu/possible
like "no number of CPUs is not taken for one: counters" "$(ax xdp stats xa0 2>&1)" "Invalid argument"
like "and tables" "$(ax xdp load xa1 --rules "$T/rules.yaml" 2>&1)" "Invalid argument"
umount /sys/devices/system/cpu/possible
ax xdp unload xa0 >/dev/null
ip link del xa0
ax stop old >/dev/null
agent_stop

# --- descriptors ---

APPS_N=120
{
	default_config
	echo "apps:"
	seq -f "  a%.0f: {command: [sleep, '1000'], net: host}" $APPS_N
} >"$T/apps.yaml"
lines=$(wc -l <"$T/$INST.log")
cp "$T/apps.yaml" "$T/$INST.yaml"
# an agent needs some 138 of its own, and as many again for whom it talks to
# (and none of whoever runs the tests: one with a high number would be of the agent's)
(
	for fd in "/proc/$BASHPID/fd"/*; do
		fd=${fd##*/}
		[ "$fd" -le 2 ] || [ "$fd" = 255 ] || eval "exec $fd>&-"
	done
	exec prlimit --nofile=256 "$AX" --instance "$INST" agent --config "$T/apps.yaml" >>"$T/$INST.log" 2>&1 </dev/null
) &
AGENT=$!
BACKGROUND+=("$AGENT")
running() { ax get apps -o json | jq '[.[] | select(.state == "running")] | length'; }
ok "$APPS_N apps start with few descriptors" wait_for -t 60 "[ \"\$(running)\" = $APPS_N ]"
ok "without a flood of lines" test "$(($(wc -l <"$T/$INST.log") - lines))" -le 5
refused=$(python3 - "/run/ax/$INST/control.sock" "/proc/$AGENT/fd" <<-'E'
	import os, select, socket, sys, time

	clients = []
	for i in range(200):
	    clients.append(socket.socket(socket.AF_UNIX))
	    clients[-1].connect(sys.argv[1])
	# who is in has asked for nothing, and is told nothing
	poll, told = select.poll(), 0
	for c in clients:
	    poll.register(c, select.POLLIN)
	while not told or poll.poll(500):
	    for fd, _ in poll.poll(500):
	        line = socket.socket(fileno=os.dup(fd)).recv(4096)
	        assert b"no descriptors left" in line, line
	        poll.unregister(fd)
	        told += 1
	# what the agent itself opens meanwhile is of those: the gate of splicing has a pipe, for seconds on a busy machine
	for _ in range(3600):
	    left = 256 - len(os.listdir(sys.argv[2]))
	    if left >= 32:
	        break
	    time.sleep(0.05)
	own = [n for n in os.listdir(sys.argv[2]) if int(n) >= 256 - 32]
	print(left >= 32 or f"{left} left, beyond: " + " ".join(os.readlink(f"{sys.argv[2]}/{n}") for n in own))
E
)
is "clients leave descriptors to the agent, and who finds none is told so" "$refused" True
default_config >"$T/none.yaml"
ok "and stop" ax config apply "$T/none.yaml"
wait_for -t 30 "[ \"\$(ax get apps -o name | grep -c .)\" = 0 ]"
agent_stop
out=$(prlimit --nofile=64 "$AX" --instance "$INST" agent --config "$T/apps.yaml" 2>&1)
like "with fewer than that an agent says so" "$out" "needs 256 descriptors"
is "in one line" "$(wc -l <<<"$out")" 1

done_testing
