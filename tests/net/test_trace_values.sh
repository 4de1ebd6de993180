#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# What probes read of memory: data of the program, pages that were not touched yet or have to be
# waited for, conditions on what cannot be fetched, values whose types differ.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/trace.sh"
need gcc jq
build_probed
build_probed_load

# --- memory ---

p=$PROBED
is "a global variable" "$(trace_json watch "uprobe:$p:count_up" v=@counter:s32 -c "$p" | values v)" \
	"100 101 103"
is "a page that nobody has touched yet" \
	"$(trace_json watch "uprobe:$p:constant" v=arg0:string -c "$p" | values v)" "nobody has read this"
like "a variable that is not there" "$(ax trace watch "uprobe:$p:count_up" @conter:s32 -c "$p" 2>&1)" \
	"has no symbol conter"

# --- what is true or false ---

cat >"$T/truth.c" <<'END'
#include <stdbool.h>
__attribute__((noinline)) bool odd(int n, bool asked) { __asm__ volatile("" : "+r"(n)); return asked && n & 1; }
int main(void) { int k = 0; for (int i = 0; i < 4; i++) k += odd(i, i != 3); return k != 1; }
END
gcc -g -O1 -o "$T/truth" "$T/truth.c"
is "parameters are true or false" "$(trace_json watch "uprobe:$T/truth:odd" -c "$T/truth" | jq -c 'select(.values) | .values.asked' | xargs)" \
	"true true true false"
like "in lines, too" "$(ax trace watch "uprobe:$T/truth:odd if n == 3" -c "$T/truth" 2>&1)" " n=3 asked=false"
like "and what is returned" "$(ax trace watch "uretprobe:$T/truth:odd if retval == true" -c "$T/truth" 2>&1)" " retval=true"$'\n'"1 event"
like "they are keys" "$(ax trace count "uprobe:$T/truth:odd by asked" -c "$T/truth" 2>&1)" "true +3"$'\n'"false +1"
like "and are asked for by the words" "$(ax trace count "uprobe:$T/truth:odd if asked == false" -c "$T/truth" 2>&1)" "1 event"
is "numbers, too" "$(trace_json watch "uprobe:$T/truth:odd" b=arg1:bool -c "$T/truth" | jq -c 'select(.values) | .values.b' | xargs)" "true true true false"

# --- what cannot be shown is not left out in silence ---

cat >"$T/missed.c" <<'END'
__attribute__((noinline)) int f(int n, double _Complex c, int last) { __asm__ volatile("" : "+r"(n)); return n + (int)__real__ c + last; }
int main(void) { return f(1, 2, 3) != 6; }
END
gcc -g -O1 -o "$T/missed" "$T/missed.c"
out=$(ax trace watch "uprobe:$T/missed:f" -c "$T/missed" 2>&1)
like "it has a place in the line" "$out" " n=1 c=<.*> last=3"
like "and a line of its own" "$out" ": c is not shown: "

# --- memory that has to be waited for ---

p=$PROBED_LOAD
# (16,000 records of 330 bytes: room for all of them, however long others keep the reader from the processors)
out=$(trace_json watch "uprobe:$p:named" s=arg0:string n=arg1:s64 --buffer 8 -c "$p names 1000")
is "8 threads, strings in pages that are not there: all are received" "$(total <<<"$out")" \
	"16000 16000 0"
is "each string is that of its call" "$(jq -s 'map(.values // empty |
	if .n < 0 then .s == "" else .s == ([97 + .n] | implode) * 299 end) | [length, all]' -c \
	<<<"$out")" "[16000,true]"
# (whoever reads is stopped meanwhile)
printf 'kill -STOP $PPID; %s names 300; kill -CONT $PPID\n' "$p" >"$T/flood"
flood()
{
	trace_json watch "uprobe:$p:named" s=arg0:string n=arg1:s64 -f --buffer "$1" -c "sh $T/flood" | total
}
like "what has no room is dropped, and that is said" "$(flood 1)" '^4800 [1-9][0-9]* [1-9][0-9]*$'
is "with more room nothing is" "$(flood 4)" "4800 4800 0"
like "a buffer of no power of two" "$(ax trace watch "uprobe:$p:named" --buffer 3 -c "$p few 1" 2>&1)" \
	"^ax trace watch: --buffer 3: expected a power of two from 1 to 1024"

# On kernels from 6.13 on this is where programs found the stack of another one.
out=$(trace_json watch "uprobe:$p:named" s=arg0:string n=arg1:s64 -c "$p slow 1")
if [ "$(jq -s '.[-1].status' <<<"$out")" = 77 ]; then
	skip "probes that wait do not disturb others" "missing kernel feature userfaultfd"
else
	is "probes that wait do not hold up others" "$(total <<<"$out")" "1006 1006 0"
	is "and have what they waited for" "$(jq -s '[.[].values // empty |
		select(.s != (if .n == 1 then "slow" else "fast" end))] | length' <<<"$out")" 0
fi

# --- memory of programs, seen from the kernel ---

is "the kernel's own tracepoints read a program's strings as ftrace does" \
	"$(trace_json watch tracepoint:raw_syscalls:sys_enter f=args.args[1]:string \
		'if id == 257 && f == "/dev/null"' -c "cat /dev/null" | values f)" "/dev/null"
n=tracepoint:syscalls:sys_enter_clock_nanosleep
# (some versions of sleep add the last nanosecond)
like "members behind a system call's pointers are the program's" \
	"$(trace_json watch "$n" v='rqtp->tv_nsec' \
		'if rqtp->tv_nsec >= 7812500 && rqtp->tv_nsec <= 7812501' -c "sleep 0.0078125" |
		values v)" '^781250[01]$'

# --- conditions and types ---

out=$(trace_json watch "uprobe:$p:at" n=arg1 'if arg0 == 0 || *arg0 == 3' -c "$p few 1")
is "what cannot be fetched does not matter where the other side decides" \
	"$(jq -rs 'map(.values.n // empty) | join(" ")' <<<"$out")" "1 2"
out=$(trace_json watch "uprobe:$p:at" n=arg1 'if arg0 && *arg0 != 3' -c "$p few 1")
is "and else is not true" "$(jq -rs 'map(.values.n // empty) | join(" ")' <<<"$out")" 3
is "what cannot be fetched is counted as that, and not as 0" "$(trace_json count "uprobe:$p:at" '*arg0:s64' \
	arg0:string arg1 -c "$p few 1" | jq -cs '[.[0].table[].key | [.[]]] | sort')" \
	'[[null,null,1],[3,"\u0003",2],[4,"\u0004",3]]'
like "in text, too" "$(ax trace count "uprobe:$p:at" '*arg0 + 1' by arg0:string -c "$p few 1" 2>&1)" " +\? +\? +1"
out=$(trace_json count "uprobe:$p:one_*" x -c "$p few 1" | head -n 1)
is "a value that is a text in one place and a number in another" \
	"$(jq -c '[.table[] | [.key.x, .count]] | sort' <<<"$out")" \
	'[[-1,1],[0,1],[1,1],["a text longer",1],["a text longer than a word",2]]'

# --- many tracepoints with records, which are detached by several threads ---

out=$(trace_json count 'tracepoint:syscalls:sys_*_clock_*' -c "sleep 0.01")
is "each tracepoint of a glob is counted" "$(jq -cs '.[0].table | map(.probe | select(endswith("clock_nanosleep"))) | unique' \
	<<<"$out")" '["syscalls:sys_enter_clock_nanosleep","syscalls:sys_exit_clock_nanosleep"]'
is "and nothing is lost when they end" "$(total <<<"$out" | awk '{ print $1 == $2, $3 }')" "1 0"
done_testing
