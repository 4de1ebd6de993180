#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax is killed while the kernel puts probes into a program that runs, or takes them out: none of them
# stays there.
. "$(dirname "$0")/lib.sh"
need gcc python3

# 3000 functions: that takes the kernel some tenths of a second
python3 - >"$T/many.c" <<'EOF'
print("#include <unistd.h>")
for i in range(3000):
	print('__attribute__((noinline)) int fn%d(int x) { __asm__ volatile("" ::: "memory"); return x + %d; }' % (i, i))
print("int (*all[])(int) = {", ",".join("fn%d" % i for i in range(3000)), "};")
print("int main(void) { for (;;) pause(); }")
EOF
gcc -O1 -o "$T/many" "$T/many.c"
cat >"$T/changed.py" <<'EOF'
# changed.py PID FILE: how many bytes of its code are not those of the file
import sys
pid, path = sys.argv[1:]
for line in open("/proc/%s/maps" % pid):
	fields = line.split()
	if fields[1] == "r-xp" and fields[-1] == path:
		start, end = (int(x, 16) for x in fields[0].split("-"))
		with open("/proc/%s/mem" % pid, "rb") as mem, open(path, "rb") as file:
			mem.seek(start)
			file.seek(int(fields[2], 16))
			print(sum(a != b for a, b in zip(mem.read(end - start), file.read(end - start))))
EOF
bg "$T/null" "$T/many"
many=$BG
changed() {
	python3 "$T/changed.py" "$many" "$T/many"
}

wait_for '[ "$(changed)" = 0 ]'
for delay in 0.002 0.005 0.01; do
	: >"$T/out"
	bg "$T/out" "$AX" --instance "$INST" trace count "uprobe:$T/many:fn*"
	tracer=$BG
	wait_for "grep -q 'Ctrl-C ends' '$T/out'"
	is "probes are in the program that runs" "$(changed)" 3000
	kill -INT "$tracer"
	sleep "$delay"
	kill -KILL "$tracer"
	wait "$tracer" 2>/dev/null
	ok "and none is left when ax is killed $delay s after it was to end" wait_for '[ "$(changed)" = 0 ]'
done
for delay in 0.04 0.08 0.15; do
	bg "$T/null" "$AX" --instance "$INST" trace count "uprobe:$T/many:fn*"
	sleep "$delay"
	kill -KILL "$BG"
	wait "$BG" 2>/dev/null
	ok "none is left when ax is killed $delay s after its start" wait_for '[ "$(changed)" = 0 ]'
done

# --- its helpers ---

: >"$T/out"
bg "$T/out" "$AX" --instance "$INST" trace count "uprobe:$T/many:fn1"
tracer=$BG
wait_for "grep -q 'Ctrl-C ends' '$T/out'"
ok "the process that waited for the kernel's first grace period is gone while the trace goes on" \
	wait_for -t 60 '[ -z "$(ps -o pid= --ppid "$tracer")" ]'
ok "which does go on" kill -0 "$tracer"
kill -INT "$tracer"
wait "$tracer" 2>/dev/null
end "$many"
done_testing
