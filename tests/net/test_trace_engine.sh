#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# What probes have from each other and from memory: states, times between two probes, data of the
# program, pages that were not touched yet, call stacks.
. "$(dirname "$0")/lib.sh"
need gcc g++ jq

cat >"$T/prog.c" <<'EOF'
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define PROBED __attribute__((noinline, noclone))
#define HERE __asm__ volatile("" ::: "memory")
int counter = 100;
static const char untouched[8192] __attribute__((aligned(4096))) = "nobody has read this";
static jmp_buf out;
PROBED int leaf(int n) { HERE; return n + 1; }
PROBED int inner(int n) { HERE; return leaf(n) + leaf(n + 1); }
PROBED int outer(int n) { HERE; return n ? outer(n - 1) + inner(n) : inner(0); }
PROBED void leaves(int n) { HERE; leaf(n); longjmp(out, 1); }
PROBED int count_up(int n) { HERE; return counter += n; }
PROBED const char *constant(const char *s) { HERE; return s + 1; }
PROBED void asked(long id) { HERE; (void)id; }
PROBED void answered(long id) { HERE; (void)id; }
static void *thread(void *arg)
{
	for (int i = 0; i < 100; i++)
		outer(2);
	return arg;
}
int main(void)
{
	pthread_t t[2];
	for (int i = 1; i <= 3; i++)
		count_up(i);
	constant(untouched);
	leaf(1);
	outer(1);
	leaf(2);
	if (!setjmp(out))
		leaves(3);
	leaf(4);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, thread, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	asked(1);
	asked(2);
	usleep(20000);
	answered(2);
	answered(1);
	answered(3);
	usleep(400000); /* so that it can still be asked what is where in it */
	return 0;
}
EOF
gcc -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread -o "$T/prog" "$T/prog.c"
p=$T/prog
trace() {
	ax trace "$@" 2>&1
}
json() {
	ax trace "$@" -o json 2>"$T/json.err"
}
values() { # NAME: of the records on stdin, in one line
	jq -rs "map(.values // empty | .[\"$1\"]) | join(\" \")"
}
total() { # of the last line
	jq -rs '.[-1] | "\(.emitted) \(.received) \(.dropped)"'
}

# --- memory ---

is "a global variable" "$(json watch "uprobe:$p:count_up" v=@counter:s32 -c "$p" | values v)" \
	"100 101 103"
is "a page that nobody has touched yet" \
	"$(json watch "uprobe:$p:constant" v=arg0:string -c "$p" | values v)" "nobody has read this"
like "a variable that is not there" "$(trace watch "uprobe:$p:count_up" @conter:s32 -c "$p")" \
	"has no symbol conter"

# --- states ---

# leaf() is called by inner() only, three times in outer(1) ... and outside of it
out=$(json count "uprobe:$p:leaf" --per-thread --armed-by "uprobe:$p:outer" \
	--disarmed-by "uretprobe:$p:outer" -c "$p")
is "in each thread, with recursion" "$(total <<<"$out")" "1204 1204 0"
is "from some moment on" "$(json watch "uprobe:$p:leaf" v=arg0:s32 --armed-by "uprobe:$p:leaves" \
	--disarmed-by "uprobe:$p:outer" -c "$p" | values v)" "3 4"

# --- times ---

out=$(json latency "uprobe:$p:asked" on arg0 to "uprobe:$p:answered" on arg0 -c "$p")
is "times between two probes by a value" "$(total <<<"$out")" "2 2 0"
is "are as long as they were" "$(jq -s '[.[0].table[].buckets[] | select(.count > 0) | .greatest] | min >= 10000000' \
	<<<"$out")" true
out=$(json latency "uretprobe:$p:outer" by arg0@entry:s32 -c "$p")
is "recursive calls by their argument" "$(total <<<"$out")" "602 602 0"

# --- call stacks ---

out=$(json count "uprobe:$p:leaf" ustack -c "$p" | head -n 1)
is "functions on call stacks have names" \
	"$(jq -r '[.table[].key.ustack[] | sub("[+ ].*"; "")] | unique | map(select(. == ("inner", "leaf", "leaves", "main", "outer", "thread"))) | join(" ")' \
		<<<"$out")" "inner leaf leaves main outer thread"
is "each way to a function is counted" "$(jq '[.table[].count] | add' <<<"$out")" 1208

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
out=$(json watch "uretprobe:$T/throws:maybe" v=retval:s32 -c "$T/throws >$T/said")
is "an exception passes a probed function" "$(paste -sd ' ' "$T/said")" "1 3 5 -1 9 11"
is "whose other returns are seen" "$(values v <<<"$out")" "0 2 4 8 10"
out=$(json latency "uretprobe:$T/throws:maybe" -c "$T/throws")
is "times of those that return" "$(total <<<"$out")" "5 5 0"
like "setjmp is left alone" "$(trace count uretprobe:libc.so.6:setjmp retval)" \
	"needs its return address as it is"
done_testing
