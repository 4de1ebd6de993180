#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax trace: each kind of wrong input gets one sentence, with hints of what was meant, and the right exit
# status; list and explain.
. "$(dirname "$0")/lib.sh"
need gcc jq

printf 'int work(int n) { return n + 1; }\nint main(void) { return work(1); }\n' >"$T/p.c"
gcc -O0 -o "$T/p" "$T/p.c" || bail_out "the test's program cannot be built"
P=$T/p
cat >"$T/lines.c" <<'EOF'
#include <stdio.h>
volatile int sink;
__attribute__((noinline)) int work(int n)
{
	int unused = n / 3;
	for (int i = 0; i < n; i++)
		sink = i;
	return n + 1;
}
int main(void)
{
	printf("%d\n", work(3));
	return 0;
}
EOF
gcc -O0 -g -o "$T/lines" "$T/lines.c"
gcc -O2 -g -o "$T/lines2" "$T/lines.c"

# refused STATUS REGEX ARGUMENTS...
refused() {
	local status=$1 regex=$2 out rc
	shift 2
	out=$(ax trace "$@" 2>&1)
	rc=$?
	is "status $status: ax trace $*" "$rc" "$status"
	like "  and says why" "$out" "$regex"
}

refused 2 "did you mean 'watch'" wach
refused 2 "say what to probe" watch
refused 2 "expected uprobe:FILE" watch uprobe
refused 2 "expected no -i" watch "uprobe:$P:work" -i 1s
refused 2 "expected -i with it" count "uprobe:$P:work" -n 3
refused 2 "two processes" count "uprobe:$P:work" -p 1 -c true
for time in 0s 0 0ms; do
	refused 2 "-d cannot be 0" watch "uprobe:$P:work" -d "$time"
done
refused 2 "-i cannot be 0" count "uprobe:$P:work" -i 0s
refused 2 "-d cannot be 0" run -e 'BEGIN { print "x" }' -d 0s
refused 2 "-d cannot be 0" flow "$P" work -d 0s
refused 2 "-d cannot be 0" exec -d 0s
refused 2 "give a whole number" watch "uprobe:$P:work" -p 1,x
refused 2 "a number missing" watch "uprobe:$P:work" -p 1,
refused 1 "no process 99999999" count "uprobe:$P:work" -p "$$,99999999"
refused 2 "one process" add some "uprobe:$P:work" -p "$$" -p 1
refused 2 "the opposite of" exec --alone -f -c true
refused 2 "no linear buckets" hist "uprobe:$P:work" arg0 -l 5,1,1
refused 2 "no return" latency tracepoint:sched:sched_switch
refused 2 "expected 'r'" latency "p:x $P:0x1190"
refused 2 "one on each side" latency "uprobe:$P:work" to
refused 2 "with it" count "uprobe:$P:work" --per-thread
refused 1 "no file" watch uprobe:/no/such:f
refused 1 "no function wrk; did you mean 'work'" watch "uprobe:$P:wrk"
refused 1 "no tracepoint" watch tracepoint:sched:nosuch
refused 1 "no process" watch "uprobe:$P:work" -p 99999999
refused 1 "cannot be executed" watch "uprobe:$P:work" -c nosuchcommand
refused 1 "no app" watch "uprobe:$P:work" --app nosuch
refused 1 "no cgroup" watch "uprobe:$P:work" --cgroup "$T"
refused 1 "cannot write" watch "uprobe:$P:work" -O "$T/no/such"
refused 1 "no file matches" list "usdt:$T/none*"
refused 1 "is a directory" list "uprobe:$T"
refused 1 "is a directory" watch "uprobe:$T:work"
refused 1 "lines\.c:1000 has no code: the last line that has is 14" watch "line:$T/lines:lines.c:1000" n
refused 1 "lines\.c:1 has no code: the next line that has is 4" watch "line:$T/lines:lines.c:1" n
refused 1 "did you mean 'sys_enter_openat'" watch tracepoint:syscalls:sys_enter_openatt
refused 1 "at 0x[0-9a-f]+: main\+0x2 is inside of an instruction" watch "uprobe:$T/lines:main+2"
if echo '#include <sys/sdt.h>' | gcc -E - >/dev/null 2>&1; then
	printf '#include <sys/sdt.h>\nint main(void) { DTRACE_PROBE(db, snapshot); return 0; }\n' >"$T/u.c"
	gcc -o "$T/u" "$T/u.c"
	refused 1 "did you mean 'snapshot'" watch "usdt:$T/u:db:snapsho"
else
	skip "did you mean 'snapshot'" "missing header sys/sdt.h"
fi
out=$(setpriv --reuid 65534 --clear-groups "$AX" trace watch uprobe:/bin/bash:readline 2>&1)
like "only root attaches" "$out" "only root"

is "list finds functions" "$(ax trace list "uprobe:$P:wor*")" "uprobe:$P:work"
is "in files of a glob" "$(ax trace list "uprobe:$T/?:wor*")" "uprobe:$P:work"
like "a tracepoint with its fields" "$(ax trace list tracepoint:syscalls:sys_enter_openat)" "filename"
is "list as JSON" "$(ax trace list "uprobe:$P:work" -o json | jq -r .probe)" "uprobe:$P:work"
out=$(ax trace explain "uprobe:$P:work" arg0 'if arg0 > 3')
like "explain tells the place" "$out" "\(work\+0x[0-9a-f]+\)"
like "its cost" "$out" "cost +(emulated|nop5|single-step)"
like "what it fetches" "$out" "arg0: u64, from rdi"
like "its condition" "$out" "only if +\(rdi > 3\)"
is "and as JSON" "$(ax trace explain "uprobe:$P:work" arg0 -o json | jq -r '.values[0].from')" rdi

out=$(ax trace explain "line:$T/lines2:lines.c:7" unused)
like "explain says that a variable is not there" "$out" "unused: nothing: (it is optimised away|what the debug data)"
is "also in JSON" \
	"$(ax trace explain "line:$T/lines2:lines.c:7" unused -o json | jq -r '.values[0] | .from == "" and (.gone | length > 0)' | sort -u)" true

out=$(ax trace explain kprobe:vfs_read)
if [[ -e /sys/bus/event_source/devices/kprobe ]]; then
	like "explain tells how kernel functions are probed" "$out" "attaches +as one kprobe_multi link"
else
	like "explain tells how kernel functions are probed" "$out" "attaches +(not at all|as one kprobe_multi)"
fi

done_testing
