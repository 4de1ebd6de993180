#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# ax trace -f: processes that are started, several of -p, and files that they come to later: libraries
# that are opened, programs that were replaced, and those of another root directory.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/trace.sh"
need babeltrace2 gcc gdb jq make python3

cat >"$T/p.c" <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) long work(long n, const char *s)
{
	__asm__ volatile("" ::: "memory");
	return n + s[0];
}
static void *thread(void *arg)
{
	for (long i = 0; i < 5; i++)
		work(100 + i, "thread");
	return arg;
}
/* p N US: calls, each followed by so many microseconds; p threads */
int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 3;
	pthread_t t;
	for (long i = 0; i < n; i++) {
		work(i, "hello");
		if (argc > 2)
			usleep((useconds_t)atol(argv[2]));
	}
	if (argc > 1 && !n && !pthread_create(&t, NULL, thread, NULL))
		pthread_join(t, NULL);
	return 0;
}
END
P=$T/p
gcc -O1 -pthread -o "$P" "$T/p.c" || bail_out "the test's program cannot be built"

# counts PROBE OPTIONS...: how often it happened
counts() {
	local probe=$1
	shift
	trace_json count "$probe" "$@" </dev/null | jq -s '.[-1].emitted'
}

# --- processes that are started ---

is "without -f, only the command's own process" "$(counts "uprobe:$P:work" -c "sh -c '$P 2; true'")" 0
is "with it, those that it starts" "$(counts "uprobe:$P:work" -f -c "sh -c '$P 2; $P 3; true'")" 5
is "their children, and threads" \
	"$(counts "uprobe:$P:work" --follow -c "bash -c '($P 2; sh -c \"$P 1; $P threads; true\") & $P 1 & wait'")" 9
for i in {1..50}; do
	printf 't%d:\n\t%s %d\n' "$i" "$P" "$i"
done >"$T/Makefile"
is "all of make's" "$(counts "uprobe:$P:work" -f -c "make -s -j4 -f $T/Makefile $(echo t{1..50})")" 1275
bg "$T/null" sh -c "while :; do $P 1; done"
is "and nobody else's" "$(counts "uprobe:$P:work" -f -c "sh -c '$P 3; $P 4; true'")" 7
end "$BG"
out=$(trace_json count tracepoint:raw_syscalls:sys_enter by comm -f -c "sh -c '$P 1; true'")
is "tracepoints, too" "$(jq -s '[.[0].table[] | select(.key.comm == "p") | .count] | add > 5' <<<"$out")" true
out=$("$AX" trace flow "$P" work -f -c "sh -c '$P 1; $P 1; true'" 2>/dev/null)
is "calls of two processes" "$(grep -c ' p .*-> work' <<<"$out")" 2
"$AX" trace run -e "uprobe:$P:work { set global.n += 1 } END { print \"%d\" global.n }" -f -c "sh -c '$P 3; $P 4; true'" \
	>"$T/out" 2>"$T/err"
is "a script" "$(cat "$T/out")" 7
is "a probe on the end of processes sees that of those it follows" \
	"$(counts tracepoint:sched:sched_process_exit -f -c "sh -c '$P 1; $P 1; true'")" 3
is "stats, hist, latency" "$(trace_json latency "uprobe:$P:work" -f -c "sh -c '$P 2; $P 3; true'" |
	jq -s '.[0].table[0].buckets | map(.count) | add')" 5

# what runs already, and what that has started
bg "$T/null" sh -c "$P 1000000 1000; true"
shell=$BG
wait_for "pgrep -P $shell"
child=$(pgrep -P "$shell")
like "children that there are already" "$(counts "uprobe:$P:work" -f -p "$shell" -d 300ms)" '^[1-9]'
is "but not without -f" "$(counts "uprobe:$P:work" -p "$shell" -d 300ms)" 0

# --- several processes ---

bg "$T/null" "$P" 1000000 1000
first=$BG
bg "$T/null" "$P" 1000000 1000
second=$BG
bg "$T/null" "$P" 1000000 1000
other=$BG
pids() {
	trace_json count "uprobe:$P:work" by pid -d 300ms "$@" | jq -sc '.[0].table | map(.key.pid) | sort'
}
is "several processes" "$(pids -p "$first,$second")" "$(jq -nc "[$first,$second]|sort")"
is "each with its own option" "$(pids -p "$first" -p "$second" -p "$first")" "$(jq -nc "[$first,$second]|sort")"
is "one of them with a child" "$(pids -f -p "$first" -p "$shell")" "$(jq -nc "[$first,$child]|sort")"
bg "$T/ends" "$AX" --instance "$INST" trace count "uprobe:$P:work" -p "$first,$second"
tracer=$BG
wait_for "grep -q 'Ctrl-C ends' '$T/ends'"
end "$first"
ok "one that ends does not end it" alive "$tracer"
end "$second"
ok "the last one does" wait_for "! alive $tracer"
like "and all is accounted for" "$(tail -n 1 "$T/ends")" ' received, 0 dropped$'
end "$other"
kill "$child"
end "$shell"
is "exec of several" "$("$AX" trace exec -p "$$" -p "$BASHPID" -d 100ms 2>&1 | grep -c 'received, 0 dropped')" 1

bg "$T/thread" python3 -c 'import threading, time
def run():
	print(threading.get_native_id(), flush=True)
	time.sleep(100)
threading.Thread(target=run).start()'
wait_for '[ -s "$T/thread" ]'
thread=$(<"$T/thread")
like "a thread is no process" "$(ax trace count tracepoint:sched:sched_switch -p "$$,$thread" -d 1ms 2>&1)" \
	"$thread is a thread of process $BG: expected the process"
like "nor is one stepped" "$(ax trace step "uprobe:$P:work" -p "$thread" -d 1ms 2>&1)" \
	"$thread is a thread of process $BG: expected the process"
end "$BG"

# --- from within a pid namespace ---

in_namespace() {
	unshare -pf --mount-proc "$@" 2>"$T/err" </dev/null
}
out=$(in_namespace "$AX" trace exec -o json -c "sh -c '$P 1; true'")
is "exec in a pid namespace" "$(jq -sr '[.[] | select(.argv) | .argv[0]] | last' <<<"$out")" "$P"
out=$(in_namespace "$AX" trace open "$T/none" -o json -c "cat $T/none")
is "open" "$(jq -sr '[.[] | select(.name)] | length' <<<"$out")" 1
in_namespace sh -c "$P 200 10000 & exec $AX trace count uprobe:$P:work -p \$! -p 1 -d 300ms" >"$T/out"
like "several processes" "$(tail -n 1 "$T/err")" '^[1-9][0-9]* events, '
in_namespace "$AX" trace count "uprobe:$P:work" -f -c "sh -c '$P 2; $P 3; true'" >"$T/out"
is "children" "$(tail -n 1 "$T/err")" '5 events, 5 received, 0 dropped'
out=$(in_namespace sh -c "sh -c '$P 2000 10000; true' & exec $AX trace open -o json /etc/ld.so.cache -p \$! -d 300ms")
like "a process that runs there" "$out" '"emitted":'

# --- files that come later ---

cat >"$T/lib.c" <<'END'
__attribute__((noinline)) int answer(int n, const char *s)
{
	__asm__ volatile("" ::: "memory");
	return n + s[0];
}
END
mkdir "$T/libs"
gcc -g -O1 -shared -fPIC -o "$T/libs/libaxtest.so" "$T/lib.c"
cat >"$T/open.py" <<'END'
# open.py LIBRARY FILE: calls its function until there is the file
import ctypes, os, sys, time
answer = ctypes.CDLL(sys.argv[1]).answer
n = 0
while not os.path.exists(sys.argv[2]):
	answer(n, b"x")
	n += 1
	time.sleep(0.005)
for i in range(7):
	answer(1000 + i, b"y")
END

is "a library that is opened later, by its path" \
	"$(counts "uprobe:$T/libs/libaxtest.so:answer" 'if arg0 >= 1000' -f -c "sh -c 'python3 $T/open.py $T/libs/libaxtest.so $T/p; true'")" 7

# later OPTIONS...: traces the program until ax says that it has put probes into its library
later() {
	rm -f "$T/go" "$T/later" "$T/later.err"
	"$AX" --instance "$INST" trace "$@" -f -o json -c "sh -c 'python3 $T/open.py $T/libs/libaxtest.so $T/go; true'" \
		>"$T/later" 2>"$T/later.err" </dev/null &
	BACKGROUND+=("$!")
	wait_for "grep -qE 'place more|places more|no probes' '$T/later.err'"
	touch "$T/go"
	wait "$!"
}
later count uprobe:libaxtest.so:answer 'if arg0 >= 1000'
is "by its name" "$(jq -s '.[-1].emitted' "$T/later")" 7
like "which is said" "$(cat "$T/later.err")" "there is no libaxtest.so yet.*1 place more, in $T/libs/libaxtest.so of process [0-9]+"
later watch uretprobe:libaxtest.so:answer retval n@entry s@entry:string 'if n@entry >= 1000'
is "with the values of its entry" "$(jq -c 'select(.values) | .values | [.retval, .["n@entry"], .["s@entry"]]' "$T/later" | tail -n 1)" \
	'[1127,1006,"y"]'
later count uprobe:libaxtest.so:answer 'if n >= 1000' by s:string comm
is "by texts" "$(jq -sc '.[0].table[0] | [.key.s, .key.comm, .count]' "$T/later")" '["y","python3",7]'
later run -e 'uprobe:libaxtest.so:answer if arg0 >= 1000 { count as calls; print "%d %s" n s:string; set thread.t = nsecs }
	uretprobe:libaxtest.so:answer if thread.t { latency as times; set thread.t = 0 }'
is "in a script" "$(jq -sc '[.[] | select(.name) | [.name, (.table[0].count // (.table[0].buckets | map(.count) | add))]] | sort' "$T/later")" \
	'[["calls",7],["times",7]]'
later count uprobe:libaxtest.so:nosuch
like "what is not there is said" "$(cat "$T/later.err")" "no probes in $T/libs/libaxtest.so of process [0-9]+: .*no function nosuch"

rm -f "$T/go"
(wait_for "grep -q 'place more' '$T/ctf.err'" && touch "$T/go") &
ax trace watch uprobe:libaxtest.so:answer n s:string 'if n >= 1000' -f -o ctf -O "$T/ctf" \
	-c "sh -c 'python3 $T/open.py $T/libs/libaxtest.so $T/go; true'" >"$T/out" 2>"$T/ctf.err"
wait "$!"
is "as CTF" "$(babeltrace2 "$T/ctf" | grep -c 'n = 100[0-6], s = "y"')" 7

# --- a program that is replaced ---

cp "$P" "$T/served"
cp "$P" "$T/new"
bg "$T/served.out" "$AX" --instance "$INST" trace count "uprobe:$T/served:work" 'if arg0 < 1000000' -f \
	-c "sh -c 'while [ ! -e $T/end ]; do $T/served 1 1000; done; $T/served 5; true'" -o json
wait_for "grep -q 'Ctrl-C ends' '$T/served.out'"
mv "$T/new" "$T/served"
ok "a program that was replaced is found" wait_for "grep -q '1 place more, in $T/served of process' '$T/served.out'"
touch "$T/end"
wait "$BG"
like "and counted with the old one" "$(grep '^{"table' "$T/served.out" | jq -c '.table | map([.probe, .count > 5])')" \
	'^\[\["work",true\]\]$'

# One that takes the path while ax reads the old one: no probes for the old one's places go into it.
cp "$P" "$T/swapped"
ln "$T/swapped" "$T/old"
cp /bin/true "$T/new"
out=$(timeout 60 gdb -q -batch -ex 'break session_attach' -ex run -ex "shell mv $T/new $T/swapped" -ex continue \
	--args "$AX" --instance "$INST" trace count "uprobe:$T/swapped:work" -c "$T/old 3" 2>&1 </dev/null)
like "a program that is replaced while ax reads it" "$out" '3 events, 3 received, 0 dropped'

# A new file mostly gets the number of the one that was deleted before.
bg "$T/reused.out" "$AX" --instance "$INST" trace count "uprobe:$T/reused:work" 'if arg0 >= 2' -f -o json \
	-c "sh -c 'cp /bin/true $T/first; $T/first; rm $T/first; cp $P $T/reused
		while [ ! -e $T/end2 ]; do $T/reused 1 1000; done; $T/reused 5; true'"
ok "a file with the number of a deleted one is found" \
	wait_for "grep -q '1 place more, in $T/reused of process' '$T/reused.out'"
touch "$T/end2"
wait "$BG"
is "and seen" "$(tail -n 1 "$T/reused.out" | jq -c .emitted)" 3
bg "$T/links.out" "$AX" --instance "$INST" trace count "uprobe:$T/link[12]:work" 'if arg0 >= 2' -f -o json \
	-c "sh -c 'cp $P $T/link1; ln -s link1 $T/link2
		while [ ! -e $T/end3 ]; do $T/link2 1 1000; done; $T/link1 5; $T/link2 5; true'"
wait_for "grep -q '1 place more, in $T/link1 of process' '$T/links.out'"
touch "$T/end3"
wait "$BG"
is "calls of a file with two names are counted once" "$(tail -n 1 "$T/links.out" | jq -c .emitted)" 6

# --- one of another root directory, as in a container ---

mkdir -p "$T/root$T"
cp "$P" "$T/root$T/p"
ldd "$P" | grep -o '/[^ ]*' | while read -r file; do
	mkdir -p "$T/root${file%/*}"
	cp "$file" "$T/root$file"
done
bg "$T/root.out" "$AX" --instance "$INST" trace count "uprobe:$P:work" 'if arg0 >= 5' -f \
	-c "sh -c 'unshare -m chroot $T/root $P 20 100000; true'" -o json
wait "$BG"
like "a program of another root" "$(cat "$T/root.out")" "1 place more, in .*/root$T/p of process"
like "is seen" "$(tail -n 1 "$T/root.out")" '"emitted":([5-9]|1[0-9]),'
bg "$T/null" unshare -m chroot "$T/root" "$P" 100000 1000
inside=$BG
bg "$T/null" "$P" 100000 1000
wait_for "[ \"\$(readlink /proc/$inside/root)\" = '$T/root' ]"
is "and each process's own files, of several" "$(pids -f -p "$BG,$inside")" "$(jq -nc "[$BG,$inside]|sort")"
end "$inside"
end "$BG"

done_testing
