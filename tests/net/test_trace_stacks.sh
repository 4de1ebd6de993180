#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Call stacks: each way to a function, with names, also of commands that end at once.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/trace.sh"
need gcc jq
build_probed
p=$PROBED

out=$(trace_json count "uprobe:$p:leaf" ustack -c "$p" | head -n 1)
is "functions on call stacks have names" \
	"$(jq -r '[.table[].key.ustack[] | sub("[+ ].*"; "")] | unique | map(select(. == ("inner", "leaf", "leaves", "main", "outer", "thread"))) | join(" ")' \
		<<<"$out")" "inner leaf leaves main outer thread"
is "each way to a function is counted" "$(jq '[.table[].count] | add' <<<"$out")" 1208

cat >"$T/p.c" <<'EOF'
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
EOF
gcc -O0 -g -fno-omit-frame-pointer -o "$T/p" "$T/p.c"
# the command lives for about a millisecond
named=0
for _ in 1 2 3 4 5; do
	out=$(ax trace count "uprobe:$T/p:work" ustack -c "$T/p" 2>/dev/null)
	[[ $out == *"main+0x"*" (p)"* ]] && named=$((named + 1))
done
ok "a command's own functions have names in stacks" test "$named" -ge 4

# --- by function ---

out=$(trace_json count tracepoint:timer:hrtimer_start by function:symbol -f -c 'sh -c "sleep 0.01; sleep 0.01"')
is "a function of the kernel is the same for all processes" \
	"$(jq -c '.table // empty | map(select(.key.function == "hrtimer_wakeup")) | [length, .[0].count >= 2]' <<<"$out")" "[1,true]"

# --- a function that has no frame pointer, but something else in its register ---

if [ "$(uname -m)" = x86_64 ]; then
	cat >"$T/odd.c" <<'EOF'
#include <time.h>
static void rest(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}
/* a pointer to two numbers, of which the second would be an address to return to; as a caller's
 * frame it leads to another one */
__asm__("	.data\n"
	"	.align 8\n"
	"first:	.quad second, 0x989680\n"
	"second: .quad 0, first\n"
	"	.text\n"
	"	.globl leaf, caller\n"
	"	.type leaf, @function\n"
	"	.type caller, @function\n"
	"leaf:	nop\n"
	"	ret\n"
	"	.size leaf, . - leaf\n"
	"caller: push %rbp\n"
	"	lea first(%rip), %rbp\n"
	"	call leaf\n"
	"	pop %rbp\n"
	"	ret\n"
	"	.size caller, . - caller\n");
void caller(void);
int main(void)
{
	rest();
	caller();
	rest();
	return 0;
}
EOF
	gcc -O1 -o "$T/odd" "$T/odd.c" || exit 1
	is "what is no code is no frame of a stack" \
		"$(trace_json watch "uprobe:$T/odd:leaf" ustack -c "$T/odd" | jq -c 'select(.values) | [.values.ustack[] | sub("[+ ].*"; "")]')" \
		'["leaf","caller"]'
	is "nor of a table's" \
		"$(trace_json count "uprobe:$T/odd:leaf" by ustack -c "$T/odd" | jq -c 'select(.table) | [.table[].key.ustack[] | sub("[+ ].*"; "")]' | head -n 1)" \
		'["leaf","caller"]'
fi

# --- programs without frame pointers, through a library that has none either ---

cat >"$T/sorts.c" <<'EOF'
#include <stdlib.h>
#include <time.h>
volatile int sink;
__attribute__((noinline)) int leaf(int x)
{
	sink = x;
	return x + 1;
}
static int by_value(const void *a, const void *b)
{
	int n = leaf(*(const int *)a);

	return n - *(const int *)b - 1;
}
__attribute__((noinline)) int sorted(void)
{
	int v[] = {3, 1, 2};

	qsort(v, 3, sizeof(*v), by_value);
	return v[0];
}
int main(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
	for (int i = 0; i < 10; i++)
		sink += sorted();
	nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
	return 0;
}
EOF
gcc -O2 -fomit-frame-pointer -o "$T/sorts" "$T/sorts.c" || exit 1
# The names of its functions on the call stack of each record, a line each.
own_names()
{
	jq -r 'select(.values) | .values.ustack |
		[.[] | sub("[+ ].*"; "") | select(IN("leaf", "by_value", "sorted", "main"))] | join(" ")'
}
is "callers are found without frame pointers, for each record" \
	"$(trace_json watch "uprobe:$T/sorts:leaf" ustack -c "$T/sorts" | own_names | sort | uniq -c |
		awk '{print ($1 >= 20), $2, $3, $4, $5}')" "1 leaf by_value sorted main"
is "from a function's return, too" \
	"$(trace_json watch "uretprobe:$T/sorts:leaf" ustack -n 1 -c "$T/sorts" | own_names)" "by_value sorted main"
is "from a system call, too" \
	"$(trace_json watch tracepoint:syscalls:sys_enter_clock_nanosleep ustack -n 1 -c "$T/sorts" | own_names)" main
is "in scripts, too" \
	"$(ax trace run -c "$T/sorts" -e "uprobe:$T/sorts:leaf { print \"%s\" ustack }" 2>/dev/null |
		grep -oE 'leaf|by_value|sorted|main' | head -n 4 | tr '\n' ' ')" "leaf by_value sorted main "
is "frame pointers alone do not lead there" \
	"$(trace_json watch "uprobe:$T/sorts:leaf" ustack --stack fp -n 1 -c "$T/sorts" | own_names | grep -c main)" 0

# --- the kernel's ---

for where in sched:sched_wakeup syscalls:sys_enter_openat; do
	is "call stacks of the kernel begin where the probe is: $where" "$(trace_json watch "tracepoint:$where" kstack \
		-d 0.3 -c "sh -c 'sleep 0.01 | cat'" | jq -rs '[.[].values.kstack // empty | .[0]] |
		[length > 0, any(test("bpf|perf"))] | @json')" "[true,false]"
done
done_testing
