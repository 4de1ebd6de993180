#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Returns: calls that never do, exceptions and destructors on their way through a probed function.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/trace.sh"
need gcc g++ jq
build_probed_load
p=$PROBED_LOAD

# --- calls that never return ---

out=$(trace_json latency "uretprobe:$p:left" -c "$p leave 1")
is "calls that never return leave room for others" "$(total <<<"$out")" "100 100 0"

out=$(trace_json latency "uretprobe:$p:left" --armed-by "uprobe:$p:at" -c "$p leave 1")
is "returns before anything is armed do not lack their entries" \
	"$(jq -c 'select(.emitted != null) | [.emitted, .unmatched]' <<<"$out")" "[0,null]"

# --- calls that are nested deeply ---

build flow flow.c gcc -std=gnu11 -D_GNU_SOURCE -O0 -g -pthread -Wall "$SRC/flow.c" -o %o
for what in count latency; do
	is "returns that the kernel does not tell are counted: $what" "$(trace_json "$what" "uretprobe:$BIN/flow:deep" \
		-c "$BIN/flow deep 200" | jq -cs '.[-1] | [.emitted, .received, .dropped, .too_deep]')" "[64,64,0,137]"
done
like "and said" "$(ax trace count "uretprobe:$BIN/flow:deep" retval -c "$BIN/flow deep 64" 2>&1)" \
	"64 events, 64 received, 0 dropped; 1 return not seen, of calls more than 64 deep"
# one that stays keeps its own account, which is read from the kernel later
agent_start
ok "a probe is added" ax trace add nested "uretprobe:$BIN/flow:deep" --action count
is "no return lacks yet" "$(ax trace view nested -o json | jq -cs '.[-1] | [.emitted, .dropped, .too_deep]')" "[0,0,null]"
"$BIN/flow" deep 200 >"$T/said"
is "its returns that the kernel does not tell are counted" \
	"$(ax trace view nested -o json | jq -cs '.[-1] | [.emitted, .counted, .dropped, .too_deep]')" "[64,64,0,137]"
like "and said, too" "$(ax trace view nested 2>&1)" "137 returns not seen, of calls more than 64 deep"
ok "it goes" ax trace rm nested

# --- exceptions ---

cat >"$T/throws.cc" <<'EOF'
#include <cstdio>
#include <stdexcept>
#define PROBED __attribute__((noinline))
PROBED int maybe(int n)
{
	if (n == 3)
		throw std::runtime_error("three");
	__asm__ volatile("" ::: "memory");
	return n * 2;
}
PROBED int tries(int n)
{
	try {
		return maybe(n) + 1;
	} catch (const std::exception &e) {
		return -1;
	}
}
int main()
{
	for (int i = 0; i < 6; i++)
		printf("%d\n", tries(i));
}
EOF
g++ -O1 -o "$T/throws" "$T/throws.cc"
out=$(trace_json watch "uretprobe:$T/throws:maybe" v=retval:s32 -c "$T/throws >$T/said")
is "an exception passes a probed function" "$(paste -sd ' ' "$T/said")" "1 3 5 -1 9 11"
is "whose other returns are seen" "$(values v <<<"$out")" "0 2 4 8 10"
out=$(trace_json latency "uretprobe:$T/throws:maybe" -c "$T/throws")
is "times of those that return" "$(total <<<"$out")" "5 5 0"
cat >"$T/space.cc" <<'EOF'
#define PROBED __attribute__((noinline))
namespace app {
PROBED int twice(int n) { __asm__ volatile("" ::: "memory"); if (n > 100) throw n; return 2 * n; }
[[noreturn]] PROBED void never() { throw 1; }
}
int main()
{
	try { return app::twice(0) + app::twice(1) - 2; } catch (int) { app::never(); }
}
EOF
g++ -O1 -o "$T/space" "$T/space.cc"
out=$(ax trace count "uretprobe:$T/space:app::*" -c "$T/space" 2>&1)
like "of many, those without a return are said to be left out" "$out" "1 place probed.*; 1 left out"
like "and the others seen" "$out" "2 events, 2 received"
like "explain tells which, and why" "$(ax trace explain "uretprobe:$T/space:app::*")" \
	"never.*refused +it has no return of its own"
like "setjmp is left alone" "$(ax trace count uretprobe:libc.so.6:setjmp retval 2>&1)" \
	"needs its return address as it is"

# --- destructors ---

# code that has destructors, but throws nothing itself: they run also when a thread is cancelled
cat >"$T/x.cc" <<'EOF'
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
EOF
if g++ -O1 -o "$T/x" "$T/x.cc" -lpthread 2>/dev/null && [[ $("$T/x") == destroyed ]]; then
	is "destructors run under a uretprobe" \
		"$(ax trace count "uretprobe:$T/x:[lm][ei][ad]*" -O /dev/null -c "$T/x" 2>/dev/null)" destroyed
else
	skip "destructors run under a uretprobe" "no C++ compiler"
fi
done_testing
