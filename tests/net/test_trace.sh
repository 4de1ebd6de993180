#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# quick
# ax trace watch, count, hist, stats, latency on programs built here: values, options, accounting.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/trace.sh"
need gcc jq script

cat >"$T/p.c" <<'END'
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) long work(long n, const char *s)
{
	__asm__ volatile("" ::: "memory");
	return n * 2 + s[0];
}
__attribute__((noinline)) int outer(int n)
{
	__asm__ volatile("" ::: "memory");
	return (int)work(n % 5, "hello") + 1;
}
int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 10, sum = 0;
	for (long i = 0; i < n; i++) {
		sum += outer((int)i);
		if (argc > 3)
			usleep(1000);
	}
	return sum == 1 ? 99 : argc > 2 ? atoi(argv[2]) : 0;
}
END
P=$T/p
gcc -O2 -o "$P" "$T/p.c" || bail_out "the test's program cannot be built"

summary() {
	tail -n 1 <<<"$1"
}

# --- records -----------------------------------------------------------------------------------
out=$(ax trace watch "uprobe:$P:work" arg0 arg1:string -c "$P 3" 2>&1)
like "a record has its values with their names" "$out" \
	'[0-9]+:[0-9]+:[0-9.]+ +[0-9]+ p +work arg0=2 arg1="hello"'
is "every event is accounted for" "$(summary "$out")" "3 events, 3 received, 0 dropped"
out=$(ax trace watch "uprobe:$P:work" arg0 arg1:string -c "$P 3" -o json 2>/dev/null)
is "JSON has the same" "$(jq -c 'select(.values) | [.probe, .comm, .values]' <<<"$out" | tail -n 1)" \
	'["work","p",{"arg0":2,"arg1":"hello"}]'
is "JSON ends with the accounting" "$(jq -c 'select(.emitted) | [.emitted,.received,.dropped,.status]' \
	<<<"$out")" '[3,3,0,0]'
out=$(ax trace watch "uprobe:$P:work" arg0 if "arg0 == 4" -c "$P 10" 2>&1)
is "a condition is no event when it is false" "$(summary "$out")" "2 events, 2 received, 0 dropped"
out=$(ax trace watch "uprobe:$P:work" arg0 -n 2 -c "$P 500 0 slowly" 2>&1)
is "-n ends it" "$(grep -c ' arg0=' <<<"$out")" 2
out=$(ax trace watch "uretprobe:$P:work" retval -c "$P 2" 2>&1)
like "a return value" "$out" "work retval=106"
ok "-O writes to a file" ax trace watch "uprobe:$P:work" arg0 -c "$P 20" -O "$T/out"
is "which has all records" "$(grep -c ' arg0=' "$T/out")" 20
ax trace count "uprobe:$P:work" -c "$P 5 3" >/dev/null 2>&1
is "the command's exit status is reported" "$?" 3

# --- tables --------------------------------------------------------------------------------------
out=$(ax trace count "uprobe:$P:work" arg0 -c "$P 100000" 2>&1)
is "100,000 calls are exactly 100,000 events" "$(summary "$out")" \
	"100,000 events, 100,000 received, 0 dropped"
is "counted by value" "$(grep -Ec '^ +[0-4] +20000$' <<<"$out")" 5
out=$(ax trace count "uprobe:$P:[wo][ou][rt][ke]*" -c "$P 50" -o json 2>/dev/null)
is "a glob counts each function" \
	"$(jq -c 'select(.table) | [.table[] | {(.probe): .count}] | add' <<<"$out" | jq -cS .)" \
	'{"outer":50,"work":50}'
out=$(ax trace hist "uprobe:$P:outer" arg0 -c "$P 100" 2>&1)
like "a histogram in powers of two" "$out" '\[32, 64\) +32 \|@+ +\|'
out=$(ax trace hist "uprobe:$P:outer" arg0 -l 0,100,25 -c "$P 100" -o json 2>/dev/null)
is "a linear one" "$(jq -c 'select(.table) | [.table[0].buckets[] | [.least,.greatest,.count]]' <<<"$out")" \
	'[[0,24,25],[25,49,25],[50,74,25],[75,99,25]]'
out=$(ax trace stats "uprobe:$P:outer" arg0 -c "$P 101" -o json 2>/dev/null)
is "statistics" "$(jq -c 'select(.table) | .table[0] | [.count,.sum,.mean,.least,.greatest]' <<<"$out")" \
	'[101,5050,50,0,100]'
out=$(ax trace latency "uprobe:$P:outer" -c "$P 100" -o json 2>/dev/null)
is "each call's time is measured" "$(jq 'select(.table) | [.table[0].buckets[].count] | add' <<<"$out")" 100
is "which is neither nothing nor a second" \
	"$(jq 'select(.table) | .table[0].buckets[0] | .least > 100 and .least < 1000000000' <<<"$out")" true
out=$(ax trace latency "uprobe:$P:outer" to "uprobe:$P:work" -c "$P 100" 2>&1)
is "the time from one probe to another" "$(summary "$out")" "100 events, 100 received, 0 dropped"
out=$(ax trace count "uprobe:$P:work" --armed-by "uprobe:$P:outer if arg0 == 7" -c "$P 10" 2>&1)
is "nothing counts before the arming probe" "$(summary "$out")" "3 events, 3 received, 0 dropped"
out=$(ax trace hist 'uretprobe:libc.so.6:malloc' 'arg0@entry' -c '/bin/ls /usr/bin' 2>&1 >/dev/null)
like "what malloc is asked for" "$out" "[1-9][0-9,]* events, [0-9,]+ received, 0 dropped"
build_probed_load
out=$(trace_json count "uprobe:$PROBED_LOAD:number" arg0 -c "$PROBED_LOAD numbers 70000")
is "what a full table has no line for is counted" "$(total <<<"$out")" "70000 65536 4464"

# --- whose, and how long ---------------------------------------------------------------------------
bg "$T/null" "$P" 100000 0 slowly
pid=$BG
out=$(ax trace count "uprobe:$P:work" by pid -p "$pid" -d 500ms -o json 2>/dev/null)
is "-p is this process alone" "$(jq 'select(.table) | [.table[].key.pid] | unique[]' <<<"$out")" "$pid"
out=$(ax trace count "uprobe:$P:work" -p "$pid" -i 300ms -n 2 2>&1)
is "-i and -n: as many tables" "$(grep -c '^PROBE' <<<"$out")" 2
cp "$P" "$T/new"
cp "$P" "$T/runs"
bg "$T/null" "$T/runs" 100000 0 slowly
mv "$T/new" "$T/runs"
for file in "$T/runs" "/proc/$BG/exe"; do
	like "what a process runs is found, though another file has its path by now: ${file##*/}" \
		"$(ax trace count "uprobe:$file:work" -p "$BG" -d 0.3 2>&1)" "[1-9][0-9]* events, [1-9]"
done
rm "$T/runs"
like "or none" "$(ax trace count "uprobe:$T/runs:work" -p "$BG" -d 0.3 2>&1)" "[1-9][0-9]* events, [1-9]"
end "$BG"
mkdir "$CGROUP2/$INST-t"
out=$(ax trace count "uprobe:$P:work" --cgroup "$CGROUP2/$INST-t" -d 300ms 2>&1)
is "--cgroup: not those outside" "$(summary "$out")" "0 events, 0 received, 0 dropped"
echo "$pid" >"$CGROUP2/$INST-t/cgroup.procs"
out=$(ax trace count "uprobe:$P:work" --cgroup "$CGROUP2/$INST-t" -d 300ms 2>&1)
like "those inside" "$(summary "$out")" "^[1-9][0-9]* events"
end "$pid"
wait_for "rmdir '$CGROUP2/$INST-t'"
"$AX" trace count "uprobe:$P:work" >"$T/later" 2>&1 </dev/null &
tracer=$!
BACKGROUND+=("$tracer")
wait_for "grep -q 'Ctrl-C ends' '$T/later'"
"$P" 7
"$P" 8
kill -INT "$tracer"
wait "$tracer"
is "Ctrl-C ends well" $? 0
is "later processes are seen, and it ends with the summary" "$(tail -n 1 "$T/later")" \
	"15 events, 15 received, 0 dropped"
# as timeout(1) does: to the process, and then to its group; what is attached is taken away meanwhile
for i in 1 2 3 4 5; do
	: >"$T/twice" # of the last one
	"$AX" trace count "uprobe:$P:work" >"$T/twice" 2>&1 </dev/null &
	tracer=$!
	BACKGROUND+=("$tracer")
	wait_for "grep -q 'Ctrl-C ends' '$T/twice'"
	kill -TERM "$tracer"
	sleep 0.005
	kill -TERM "$tracer" 2>/dev/null
	wait "$tracer"
	is "a signal that comes twice ends well ($i)" "$? $(tail -n 1 "$T/twice")" "0 0 events, 0 received, 0 dropped"
done
out=$(unshare -pf --mount-proc "$AX" trace count "uprobe:$PROBED_LOAD:at" pid -c "$PROBED_LOAD few 1" -o json 2>&1)
like "in a pid namespace the command is found by its number there" "$out" '"emitted":3'
like "which is what is shown" "$out" '"pid":[1-9]\b'

# a command goes when there is nobody left who traces it
cp "$P" "$T/piped"
runs_piped() {
	[ -n "$(find /proc/[0-9]*/exe -maxdepth 0 -lname "$T/piped" 2>/dev/null)" ]
}
ax trace watch "uprobe:$T/piped:work" -c "$T/piped 1000000 0 slowly" 2>/dev/null | head -n 1 >"$T/one"
is "whoever has seen enough" "$(wc -l <"$T/one")" 1
ok "ends the command, too" wait_for '! runs_piped'
bg "$T/null" "$AX" --instance "$INST" trace watch "uprobe:$T/piped:work" -c "$T/piped 1000000 0 slowly"
wait_for runs_piped
kill -KILL "$BG"
ok "as does who kills ax" wait_for '! runs_piped'

mkdir "$T/many"
cp "$P" "$T/many/a"
cp "$P" "$T/many/b"
ln -s a "$T/many/c"
echo "no program" >"$T/many/d"
bg "$T/many.out" "$AX" --instance "$INST" trace count "uprobe:$T/many/*:work" -o json
wait_for "grep -q 'Ctrl-C ends' '$T/many.out'"
"$T/many/a" 2
"$T/many/b" 3
end "$BG"
is "names of files may be globs" "$(grep '^{"table' "$T/many.out" | jq -c '[.table[] | [.probe, .count]] | sort')" \
	'[["a:work",2],["b:work",3]]'
like "no file of that glob" "$(ax trace count "uprobe:$T/none*:work" -c true 2>&1)" "no file matches"

# --- Debian's programs -------------------------------------------------------------------------------
"$AX" trace watch 'uretprobe:/bin/bash:readline' retval:string if 'retval' >"$T/rl" 2>&1 </dev/null &
tracer=$!
BACKGROUND+=("$tracer")
wait_for "grep -q 'Ctrl-C ends' '$T/rl'"
{
	sleep 0.5
	printf 'echo said %s\n' "$INST"
	sleep 0.5
	printf 'exit\n'
} | timeout 10 script -qec 'bash --norc -i' /dev/null >/dev/null 2>&1
kill -INT "$tracer"
wait "$tracer"
like "what people type into bash" "$(cat "$T/rl")" "readline retval=\"echo said $INST\""
out=$(ax trace watch 'tracepoint:syscalls:sys_enter_openat' filename 'if flags & 0x40' \
	-c "touch $T/made" 2>&1)
like "a tracepoint with a field and a condition" "$out" "filename=\"$T/made\""

done_testing
