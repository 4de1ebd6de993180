#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# ax trace run: several probes with what each does, in one run.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/trace.sh"
need gcc jq bpftrace
build_probed

# script NAME...: of the script on stdin what it prints, $T/out, and $T/err
script() {
	cat >"$T/s.ax"
	"$AX" trace run "$T/s.ax" "$@" >"$T/out" 2>"$T/err" </dev/null
}

# --- several probes, in the order of their times ---

script -c "$PROBED" <<EOF
# calls of two functions, and their returns, beside a system call
BEGIN { print "begin" }
uprobe:$PROBED:asked      { print "asked %d" arg0 }
uprobe:$PROBED:answered   { print "answered %d" arg0 }
uprobe:$PROBED:count_up   { print "count_up %d" arg0:s32 }
uretprobe:$PROBED:count_up { print "-> %d" retval:s32 }
tracepoint:syscalls:sys_enter_clock_nanosleep { print "sleep" }
END { print "end" }
EOF
is "the script ends with its command" "$?" 0
is "all lines come in order" "$(tr '\n' ' ' <"$T/out")" \
	"begin count_up 1 -> 101 count_up 2 -> 103 count_up 3 -> 106 asked 1 asked 2 sleep answered 2 answered 1 answered 3 sleep end "
like "and nothing is lost" "$(tail -n 1 "$T/err")" '15 events, 15 received, 0 dropped'

# --- tables with names, and by what they are counted ---

script -o json -c "$PROBED" <<EOF
uprobe:$PROBED:outer { count by arg0:s32 as depths; count as calls }
uprobe:$PROBED:inner { count as calls; hist arg0:s32 as sizes; stats arg0:s32 by comm as sums }
uretprobe:$PROBED:leaf { hist retval:s32 linear 0,4,1 as results; latency as times }
EOF
table() {
	jq -c "objects | select(.name == \"$1\") | .table | $2" "$T/out"
}
is "counts by value" "$(table depths '[.[] | [.key["arg0"] // .key["arg0:s32"], .count]] | sort')" \
	'[[0,201],[1,201],[2,200]]'
is "two probes fill one table" "$(table calls 'map(.count) | add')" 1204
is "a histogram beside it" "$(table sizes '.[0].buckets | map(.count) | add')" 602
is "statistics beside it" "$(table sums '[.[0].count, .[0].sum, .[0].least, .[0].greatest]')" '[602,601,0,2]'
is "linear buckets" "$(table results '.[0].buckets | map(.count) | add')" 1208
is "times" "$(table times '.[0].buckets | map(.count) | add')" 1208
is "all are accounted for" "$(total <"$T/out")" "5426 5426 0"

# --- counts by registers, which are done without what a condition needs ---

build registers registers.c gcc -O1 "$SRC/registers.c" -o %o
script -o json -c "$BIN/registers" <<EOF
uprobe:$BIN/registers:sized {
	count by arg0:s8 arg1:u16 as quick;
	count by arg2 as whole;
	count by arg0:u8 arg1:s16 as two;
	count by arg0:u8 arg1:s16 arg2:s64 as three;
	count as none;
	set thread.last = 5;
	set global.last = nsecs;
}
uprobe:$BIN/registers:sized if thread.last == 5 && global.last > 0 {
	count by arg0:s8 arg1:u16 as quick_if;
	count by arg2 as whole_if;
	count by arg0:u8 arg1:s16 as two_if;
	count by arg0:u8 arg1:s16 arg2:s64 as three_if;
	count as none_if;
}
EOF
rows() {
	table "$1" 'map([([.key[]?] | map(tostring)), .count]) | sort'
}
for t in quick whole two three none; do
	is "a table by registers has the same lines under a condition: $t" "$(rows $t)" "$(rows ${t}_if)"
	is "and all calls: $t" "$(table $t 'map(.count) | add')" 303
done
is "parts of registers have their signs" \
	"$(table quick 'map([.key[]] | map(tonumber)) | map(select(. == [-3, 62536])) | length')" 1

# keys that are too long to be counted so, beside variables that are set so
script -o json -c "$PROBED" <<EOF
BEGIN { set global.depth = 1 }
uprobe:$PROBED:outer {
	set thread.last = 5;
	count by +0(%sp):string comm as long;
	count by arg0:s32 as depths
}
EOF
is "a variable is set beside long keys" "$(table long 'map(.count) | add') $(table depths 'map(.count) | add')" "602 602"

# --- variables and conditions ---

script -c "$PROBED" <<EOF
BEGIN { set global.limit = 2 }
uprobe:$PROBED:count_up if arg0:s32 > 0 {
	set global.calls += 1;
	set global.sum += arg0;
	set thread.began = nsecs;
	print "over" if global.calls > global.limit
}
uretprobe:$PROBED:count_up if thread.began {
	print "%d %s" retval:s32 comm;
	count if nsecs-thread.began > 0;
	set thread.began = 0
}
uretprobe:$PROBED:count_up if thread.began { print "not reached" }
uretprobe:$PROBED:count_up if retval:s32 == 103 { print "second" }
END { print "%d calls, sum %d" global.calls global.sum }
EOF
like "conditions have no types of their own" "$(cat "$T/err")" 's.ax:2'
script -c "$PROBED" <<EOF
BEGIN { set global.limit = 2 }
uprobe:$PROBED:count_up if arg0 > 0 {
	set global.calls += 1;
	set global.sum += arg0;
	set thread.began = nsecs;
	print "over" if global.calls > global.limit
}
uretprobe:$PROBED:count_up if thread.began {
	print "%d %s" retval:s32 comm;
	count if thread.began < nsecs as later;
	set thread.began = 0
}
uretprobe:$PROBED:count_up if thread.began { print "not reached" }
uretprobe:$PROBED:count_up if retval < 0 { print "never"; watch retval:s32 }
END { print "%d calls, sum %d" global.calls global.sum; show later }
EOF
is "variables of all and of threads" "$(tr -s '\n ' '  ' <"$T/out")" \
	"101 probed 103 probed over 106 probed 3 calls, sum 6 later: PROBE COUNT count_up 3 "

# a negative int is one in the condition of several actions, too
script -c "$PROBED" <<EOF
uretprobe:$PROBED:count_up if retval < 103 { print "%d" retval:s32; set global.n += 1 }
END { print "n=%d" global.n }
EOF
is "values have their types in conditions" "$(tr '\n' ' ' <"$T/out")" "101 n=1 "

# --- states, timers, two threads ---

script -o json -c "$PROBED" <<EOF
uprobe:$PROBED:asked    { print "%d" nsecs; arm busy; start wait on arg0 }
uprobe:$PROBED:answered when busy { latency since wait on arg0 as waits; print "answered %d" nsecs }
uprobe:$PROBED:answered if arg0 == 1 { disarm busy }
EOF
is "what is armed, until it is disarmed" "$(grep -c answered "$T/out")" 2
# the program sleeps 20 ms; how much longer it takes on a busy machine, the lines around it say
took=$(jq -s 'map(objects | .values.nsecs // empty) | max - min' "$T/out")
is "a time between two probes" \
	"$(table waits ".[0] | [(.buckets | map(.count) | add), .least >= 20000000, .greatest <= $took]")" "[2,true,true]"
is "an end without a beginning is none" "$(total <"$T/out")" "6 6 0"

script -c "$PROBED" <<EOF
BEGIN { arm first; arm second }
uprobe:$PROBED:asked when first { disarm first; print "first %d" arg0; count as firsts }
uprobe:$PROBED:asked when second if arg0 > 1 { print "second %d" arg0 if arg0; disarm second; set global.n += 1 }
END { print "%d" global.n; show firsts }
EOF
is "what disarms a clause is not in the way of its other actions" "$(tr -s '\n ' '  ' <"$T/out")" \
	"first 1 second 2 1 firsts: PROBE COUNT asked 1 "

script -c "$PROBED" <<EOF
uprobe:$PROBED:outer if arg0 == 2 { set thread.n += 1; set global.n += 1 }
uprobe:$PROBED:asked if arg0 == 1 { print "%d %d" thread.n global.n }
EOF
is "each thread has its own" "$(cat "$T/out")" "0 200"

# --- what happens at times, exit, clear ---

start=$SECONDS
script -d 20s <<EOF
every 50ms { set global.n += 1; print "tick %d" global.n; exit if global.n >= 3 }
END { print "%d" global.n }
EOF
is "every, and exit" "$(tr '\n' ' ' <"$T/out")" "tick 1 tick 2 tick 3 3 "
ok "exit ends it" test $((SECONDS - start)) -lt 15

script -c "$PROBED" <<EOF
uprobe:$PROBED:outer { count as all }
uprobe:$PROBED:asked if arg0 == 1 { clear all }
uprobe:$PROBED:asked if arg0 == 2 { set global.after = 1 }
uprobe:$PROBED:answered if global.after { count as after }
EOF
unlike "what is cleared is not shown" "$(cat "$T/out")" 'all:'
like "but accounted for" "$(tail -n 1 "$T/err")" '605 events, 605 received, 0 dropped'

script <<<'BEGIN { hist 5 linear -100,100,10; exit }'
like "buckets from below 0 on are of a signed value" "$(cat "$T/out")" '\[0, 10\) +1 '

# --- what is counted: places, and what happened ---

script -c "$PROBED" <<EOF
BEGIN { set global.n = 0 }
uprobe:$PROBED:outer { count; set global.n += 1; stats arg0; count by comm }
uprobe:$PROBED:inner if arg0 > 0 { count; count by comm }
uretprobe:$PROBED:leaf { latency }
END { show }
EOF
like "several actions at one place are at one place" "$(head -n 1 "$T/err")" ' 3 places probed by '
script <<<'BEGIN { print "hello"; exit }'
is "what only ends a script is no event" "$(cut -d ';' -f 1 "$T/err")" \
	"ax trace run: 0 places probed
1 event, 1 received, 0 dropped"
script -c "$PROBED" <<<"uprobe:$PROBED:outer { print \"%d\" arg0; exit }"
is "nothing is shown behind the end" "$(wc -l <"$T/out")" 1
like "which is said" "$(tail -n 1 "$T/err")" ' received, 0 dropped, 1 shown'
script -c "$PROBED" <<EOF
uprobe:$PROBED:answered { latency since wait }
uprobe:$PROBED:main if arg0 > 99999 { start wait }
EOF
like "an end without its beginning is no return" "$(tail -n 1 "$T/err")" '3 times the end came without its beginning'

# a program reads and writes in turn, while hundreds of places are attached one after the other
dd if=/dev/zero of=/dev/null bs=1 2>/dev/null &
busy=$!
script -o json -p "$busy" -d 50ms <<'EOF'
tracepoint:syscalls:sys_enter_[g-z]* { count as calls }
EOF
kill "$busy"
wait "$busy" 2>/dev/null
is "nothing counts before all places are there, nor after the first one is gone" \
	"$(table calls 'map(select((.probe // .key.probe) | test("sys_enter_(read|write)$")) | .count) | (length == 2) and (.[0] > 10) and (.[0] - .[1] <= 1) and (.[1] - .[0] <= 1)')" true

# --- more than there is room for ---

script -d 500ms -c 'dd if=/dev/zero of=/dev/null bs=1' <<EOF
tracepoint:syscalls:sys_enter_read { print "%s %s %s %s" comm comm comm comm }
tracepoint:syscalls:sys_enter_write { print "%s %s %s %s" comm comm comm comm }
END { print "the end" }
EOF
is "END's lines come, however many did not" "$(tail -n 1 "$T/out")" "the end"

# --- threads that end, and which the kernel leaves once more after that ---

cat >"$T/threads.c" <<'EOF'
#include <pthread.h>
static void *nothing(void *arg)
{
	return arg;
}
int main(void)
{
	for (int i = 0; i < 5000; i++) {
		pthread_t t;
		if (pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL))
			return 1;
	}
	return 0;
}
EOF
gcc -O1 -pthread -o "$T/threads" "$T/threads.c"
sets=
for i in {1..4}; do sets+="set thread.v$i = nsecs; "; done
script -c "$T/threads" <<<"tracepoint:sched:sched_switch { $sets }"
is "what threads had goes with them" "$(tail -n 1 "$T/err")" "0 events, 0 received, 0 dropped"

# a thread that executes goes on under its process's number, with what it had
cat >"$T/execs.c" <<'EOF'
#include <pthread.h>
#include <unistd.h>
static char **args;
__attribute__((noinline)) long mark(long n)
{
	__asm__ volatile("" ::: "memory");
	return n;
}
static void *execute(void *arg)
{
	mark(7);
	args[1] = "again";
	execv("/proc/self/exe", args);
	return arg;
}
int main(int argc, char **argv)
{
	pthread_t t;
	args = (char *[]){argv[0], 0, 0};
	if (argc > 1)
		return mark(0) != 0;
	mark(3);
	if (pthread_create(&t, NULL, execute, NULL) == 0)
		pthread_join(t, NULL);
	return 1;
}
EOF
gcc -O1 -pthread -o "$T/execs" "$T/execs.c"
script -f -c "$T/execs" <<EOF
uprobe:$T/execs:mark if arg0 == 0 { print "%d %d" thread.a thread.b }
uprobe:$T/execs:mark if arg0 == 3 { set thread.a = 3; set thread.b = 4 }
uprobe:$T/execs:mark if arg0 == 7 { set thread.a = arg0 }
EOF
is "a thread that executes keeps its variables" "$(cat "$T/out")" "7 0"

# --- texts and maps ---

script -c "$PROBED" <<EOF
BEGIN { set global.who = "nobody"; print "%s" global.who }
uprobe:$PROBED:count_up { set global.who = comm; set thread.last = global.who; set map.by[arg0] = "number" }
uprobe:$PROBED:asked if arg0 == 1 {
	print "%-8s|%s|%s" global.who map.by[arg0] map.by[4];
	count by global.who as names;
	print "the same" if global.who == "probed" && thread.last != "other" && map.by[4] == ""
}
END { print "%s" global.who; show names }
EOF
is "texts in variables" "$(tr -s '\n ' '  ' <"$T/out")" \
	"nobody probed |number| the same probed names: global.who COUNT probed 1 "
script -c "cat $T/no/such/$(printf '%0300d' 7)" <<'EOF'
tracepoint:syscalls:sys_enter_openat { set thread.name = filename:string }
tracepoint:syscalls:sys_exit_openat if ret < 0 { print "%s" thread.name; set thread.name = "" }
EOF
is "a text has 255 characters at most" "$(grep '/no/such/0' "$T/out" | tr -d '\n' | wc -c)" 255

script -o json -c "$PROBED" <<EOF
uprobe:$PROBED:outer { set map.calls[arg0] += 1; set map.last[arg0 % 2] = nsecs }
uprobe:$PROBED:asked if arg0 == 1 {
	print "%d %d %d" map.calls[0] map.calls[2] map.calls[77];
	set map.calls[2] = 0; print "%d %d" map.calls[2] map.calls[0] * 100 / 3 - 7 % 4;
	print "%d" map.calls[1] / map.calls[77];
	print "later" if map.last[1] && map.last[1] < nsecs
}
EOF
is "a map has a variable for each number" "$(jq -r '.text // empty' "$T/out" | tr '\n' ' ')" "201 200 0 0 6697 ? later "

cat >"$T/adds.c" <<'EOF'
#include <pthread.h>
__attribute__((noinline)) void hit(long n) { __asm__ volatile("" ::"r"(n) : "memory"); }
static void *work(void *arg)
{
	for (int i = 0; i < 20000; i++)
		hit(i % 3);
	return arg;
}
int main(void)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, work, NULL))
			return 1;
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}
EOF
gcc -O1 -pthread -o "$T/adds" "$T/adds.c"
script -c "$T/adds" <<EOF
uprobe:$T/adds:hit { set map.n[arg0] += 1 }
END { print "%d" map.n[0] + map.n[1] + map.n[2] }
EOF
is "threads add to one map at once" "$(cat "$T/out")" 80000

# of a map's stack, whose process is kept with it; what is allocated and given back comes to nothing
cat >"$T/pieces.c" <<'EOF'
#include <stdlib.h>
void *volatile kept[4];
__attribute__((noinline)) void keep(int i) { kept[i] = malloc(10000 + i); }
__attribute__((noinline)) void drop(int i) { free(kept[i]); }
int main(void)
{
	for (int i = 0; i < 4; i++)
		keep(i);
	drop(1);
	drop(2);
	return 0;
}
EOF
gcc -O1 -fno-omit-frame-pointer -o "$T/pieces" "$T/pieces.c"
script -o json -c "$T/pieces" <<'EOF'
uretprobe:libc.so.6:malloc if arg0@entry >= 10000 && arg0@entry < 10004 {
	set map.size[retval] = arg0@entry; set map.where[retval] = ustack; stats arg0@entry:s64 by ustack as left }
uprobe:libc.so.6:free if map.size[arg0] {
	stats (0 - map.size[arg0]):s64 by map.where[arg0]:ustack as left; set map.size[arg0] = 0 }
EOF
is "a call stack that was kept is the line of the same stack" "$(table left 'map([.count, .sum]) | sort')" \
	"[[1,10000],[1,10003],[2,0],[2,0]]"

# --- so many bytes as a value says, clocks, processes that are left out ---

printf 'begin\0end' >"$T/bytes"
script -o json -c "dd if=$T/bytes of=/dev/null bs=9 count=1" <<'EOF'
tracepoint:syscalls:sys_enter_write if count == 9 { watch text=buf:string[count] bytes=buf:buf[count] part=buf:string[count-7] }
EOF
is "a text of a length that is told" "$(jq -c 'objects | .values // empty | [.text, .part, .bytes]' "$T/out")" \
	'["begin\u0000end","be","626567696e00656e64"]'
script -d 20s -f -c 'sh -c "while :; do :; done"' <<'EOF'
profile:99 { count by comm as who; set global.n += 1; exit if global.n >= 10 }
profile:hz:50 { count as other }
END { show who }
EOF
like "a clock on each processor" "$(grep sh "$T/out")" '^sh +[0-9]+ *$'
script -c 'sleep 0.1' <<'EOF'
tracepoint:sched:sched_switch if comm == "sleep" { set map.off[prev_pid] = nsecs; set map.who[prev_pid] = comm }
tracepoint:sched:sched_switch anywhere if map.off[next_pid] {
	print "%s waited" map.who[next_pid] if nsecs - map.off[next_pid] > 90000000; set map.off[next_pid] = 0 }
tracepoint:sched:sched_switch if comm != "sleep" && comm != "ax" { print "not reached" }
EOF
is "what happens in other processes, for a clause that says so" "$(cat "$T/out")" "sleep waited"

# --- a static probe with the system calls beside it ---

cat >"$T/db.c" <<'EOF'
#include <fcntl.h>
#include <sys/sdt.h>
#include <unistd.h>
int main(void)
{
	char names[2][16] = {"/dev/null", "/nonexistent"}; /* in memory, for who looks at the call */
	for (volatile int i = 0; i < 3; i++) {
		int fd = open(names[i % 2], O_RDONLY);
		DTRACE_PROBE1(db, opened, fd >= 0);
		if (fd >= 0)
			close(fd);
	}
	return 0;
}
EOF
if gcc -O1 -o "$T/db" "$T/db.c" 2>/dev/null; then
	script -c "$T/db" <<-EOF
		tracepoint:syscalls:sys_enter_openat if filename == "/dev/null" || filename == "/nonexistent" {
			print "%s" filename; set thread.mine = 1 }
		tracepoint:syscalls:sys_exit_openat if thread.mine {
			print "error %d" ret if ret < 0; set thread.mine = 0 }
		usdt:$T/db:db:opened { print "opened=%d" arg0 }
	EOF
	is "a static probe and system calls" "$(tr '\n' ' ' <"$T/out")" \
		"/dev/null opened=1 /nonexistent error -2 opened=0 /dev/null opened=1 "
else
	skip "a static probe and system calls" "there is no sys/sdt.h"
fi

# --- refused with the place in the text ---

while IFS='|' read -r text says; do
	out=$("$AX" trace run -e "$text" -d 10ms 2>&1)
	like "with its place: $text" "$out" "$says"
done <<EOF
uprobe:$PROBED:no_such { count }|-e:1:.*no_such
tracepoint:sched:sched_switch { print "%d" comm }|-e:1:33: comm is a text
tracepoint:sched:sched_switch { count by nocomm }|-e:1:33: nocomm: .*no field
uprobe:$PROBED:leaf { count by arg0 as a } BEGIN { count by comm as a }|other keys than
uprobe:$PROBED:leaf { set global.x = comm; set global.x += 1 }|global.x is a text
uprobe:$PROBED:leaf { set global.x = comm; print "%d" global.x + 1 }|it is a text
tracepoint:sched:sched_process_exec { set global.x = filename }|expected :string behind it
uprobe:$PROBED:leaf { set map.x[comm] = 1 }|a number
uprobe:$PROBED:leaf { set map.x = 1 }|as in 'set map.since
uprobe:$PROBED:leaf { print "%d" map.x[arg0] }|map.x is never set
BEGIN { watch retval }|-e:1:15.*at a return
EOF

# --- other commands as scripts ---

# alike WHAT OPTIONS...: the script of a command prints the same as the command
alike() {
	local what=$1 theirs ours
	shift
	theirs=$("$AX" trace "$@" -o json -c "$PROBED" 2>/dev/null </dev/null | jq -cS 'select(.values or .table) | .values // .table' | sort | uniq -c)
	"$AX" trace show-script "$@" >"$T/show.ax" 2>"$T/err"
	ours=$("$AX" trace run "$T/show.ax" -o json -c "$PROBED" 2>>"$T/err" </dev/null | jq -cS 'select(.values or .table) | .values // .table' | sort | uniq -c)
	isnt_empty "$what" "$theirs"
	is "as a script: $what" "$ours" "$theirs"
}
isnt_empty() {
	[ -n "$2" ] || not_ok "$1" "the command printed nothing"
}
alike watch watch "uprobe:$PROBED:count_up" arg0:s32 'if arg0 != 2'
alike "watch, armed" watch "uprobe:$PROBED:leaf" arg0:s32 --armed-by "uprobe:$PROBED:outer if arg0 == 1" \
	--disarmed-by "uretprobe:$PROBED:outer" --per-thread
alike count count "uprobe:$PROBED:outer" by arg0:s32
alike "hist, linear" hist "uretprobe:$PROBED:leaf" retval:s32 -l 0,4,1
alike stats stats "uprobe:$PROBED:inner" arg0:s32 by comm
out=$("$AX" trace show-script latency "uprobe:$PROBED:asked on arg0 to uprobe:$PROBED:answered on arg0" -d 3s)
is "a time between two probes as a script" "$(tr -s '\n\t' '  ' <<<"$out")" \
	"# ax trace run -d 3000ms FILE uprobe:$PROBED:answered { latency since begun on arg0 } uprobe:$PROBED:asked { start begun on arg0 } "
start=$SECONDS
out=$("$AX" trace show-script count "uprobe:$PROBED:leaf" -i 50ms -n 2 >"$T/show.ax" &&
	"$AX" trace run "$T/show.ax" -d 20s 2>&1)
ok "intervals, and an end after as many" test $((SECONDS - start)) -lt 15
like "which are no events" "$out" '0 events, 0 received, 0 dropped'

# --- another opinion ---

bpftrace -e "uprobe:$PROBED:outer { @o[arg0] = count(); } uprobe:$PROBED:inner { @i = count(); }" \
	-c "$PROBED" >"$T/theirs" 2>"$T/theirs.err" </dev/null
script -o json -c "$PROBED" <<EOF
	uprobe:$PROBED:outer { count by arg0 as o }
	uprobe:$PROBED:inner { count as i }
EOF
is "bpftrace counts the same" \
	"$(table o '.[] | "@o[\(.key.arg0)]: \(.count)"' | tr -d '"' | sort) $(table i '"@i: \(.[0].count)"' | tr -d '"')" \
	"$(grep '^@o' "$T/theirs" | sort) $(grep '^@i' "$T/theirs")"

done_testing
