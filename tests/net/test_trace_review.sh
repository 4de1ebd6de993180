#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax trace: what a user of other tracers tripped over: hints of near names, directories, lines behind
# the last, variables that are not there, stacks of commands that end at once.
. "$(dirname "$0")/lib.sh"
need gcc jq

cat >"$T/p.c" <<'END_OF_C'
#include <stdio.h>
volatile int sink;
__attribute__((noinline)) int work(int n)
{
	int unused = n * n;
	for (int i = 0; i < n; i++)
		sink = i;
	return n + 1;
}
int main(void)
{
	printf("%d\n", work(3));
	return 0;
}
END_OF_C
gcc -O0 -g -fno-omit-frame-pointer -o "$T/p" "$T/p.c" && gcc -O2 -g -o "$T/p2" "$T/p.c" ||
	skip_all "no program can be built"
P=$T/p

refused() {
	local regex=$1 out rc
	shift
	out=$(timeout 10 "$AX" trace "$@" 2>&1)
	rc=$?
	is "refused: ax trace $*" "$rc" 1
	like "  and says why" "$out" "$regex"
}

refused "is a directory" list "uprobe:$T"
refused "is a directory" watch "uprobe:$T:work"
refused "p\.c:1000 has no code: the last line that has is 14" watch "line:$P:p.c:1000" n
refused "p\.c:1 has no code: the next line that has is 4" watch "line:$P:p.c:1" n
refused "did you mean 'sys_enter_openat'" watch tracepoint:syscalls:sys_enter_openatt
refused "at 0x[0-9a-f]+: main\+0x2 is inside of an instruction" watch "uprobe:$P:main+2"
if echo '#include <sys/sdt.h>' | gcc -E - >/dev/null 2>&1; then
	printf '#include <sys/sdt.h>\nint main(void) { DTRACE_PROBE(db, snapshot); return 0; }\n' >"$T/u.c"
	gcc -o "$T/u" "$T/u.c"
	refused "did you mean 'snapshot'" watch "usdt:$T/u:db:snapsho"
else
	skip "did you mean 'snapshot'" "missing header sys/sdt.h"
fi

out=$(ax trace explain "line:$T/p2:p.c:7" unused)
like "explain says that a variable is not there" "$out" "unused: nothing: (it is optimised away|what the debug data)"
is "also in JSON" \
	"$(ax trace explain "line:$T/p2:p.c:7" unused -o json | jq -r '.values[0] | .from == "" and (.gone | length > 0)' | sort -u)" true

out=$(ax trace explain kprobe:vfs_read)
if [[ -e /sys/bus/event_source/devices/kprobe ]]; then
	like "explain tells how kernel functions are probed" "$out" "attaches +as one kprobe_multi link"
else
	like "explain tells how kernel functions are probed" "$out" "attaches +(not at all|as one kprobe_multi)"
fi

# the command lives for about a millisecond
named=0
for _ in 1 2 3 4 5; do
	out=$(ax trace count "uprobe:$P:work" ustack -c "$P" 2>/dev/null)
	[[ $out == *"main+0x"*" (p)"* ]] && named=$((named + 1))
done
ok "a command's own functions have names in stacks" test "$named" -ge 4

# code that has destructors, but throws nothing itself: they run also when a thread is cancelled
cat >"$T/x.cc" <<'END_OF_C'
#include <pthread.h>
#include <stdio.h>
volatile int now = 1;
struct guard { ~guard() { puts("destroyed"); fflush(stdout); } };
extern "C" __attribute__((noinline)) void leaf() { if (now) pthread_exit(nullptr); }
extern "C" __attribute__((noinline)) void mid() { guard g; leaf(); asm volatile(""); }
static void *thread(void *) { mid(); return nullptr; }
int main()
{
	pthread_t t;
	return pthread_create(&t, nullptr, thread, nullptr) || pthread_join(t, nullptr);
}
END_OF_C
if g++ -O1 -o "$T/x" "$T/x.cc" -lpthread 2>/dev/null && [[ $("$T/x") == destroyed ]]; then
	is "destructors run under a uretprobe" \
		"$(ax trace count "uretprobe:$T/x:[lm][ei][ad]*" -O /dev/null -c "$T/x" 2>/dev/null)" destroyed
else
	skip "destructors run under a uretprobe" "no C++ compiler"
fi

done_testing
