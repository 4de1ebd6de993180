#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Traces in CTF, as babeltrace2 reads them: of watch, of scripts, of probes that have names.
. "$(dirname "$0")/lib.sh"
need gcc babeltrace2 jq

[ -e /sys/bus/event_source/devices/uprobe ] || skip_all "missing kernel feature uprobes"
export LC_ALL=C

cat >"$T/prog.c" <<'EOF'
#include <stdio.h>
#include <stdlib.h>
enum colour { RED, GREEN };
struct point {
	int x, y;
	enum colour c;
};
__attribute__((noinline)) long paint(const struct point *p, enum colour c)
{
	__asm__ volatile("" : : "r"(p));
	return c;
}
__attribute__((noinline)) long work(long n, const char *s)
{
	__asm__ volatile("" : : "r"(s));
	return n * 2;
}
int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1;
	struct point p = {4, 5, GREEN};
	char text[64];

	paint(&p, RED);
	for (long i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "\"item\" %ld\\\n\xff", i);
		work(i - 1, text);
	}
	return 0;
}
EOF
gcc -g -O2 -o "$T/prog" "$T/prog.c" || { echo "Bail out! gcc failed"; exit 1; }
P=$T/prog

# reads DIR: into $T/read; what is complained of is printed
reads() {
	babeltrace2 --clock-seconds "$1" 2>"$T/complaints" >"$T/read"
	cat "$T/complaints"
}
# numbers FIELD: its values in what was read
numbers() {
	sed -n "s/.*{ $1 = \([-0-9]*\)[, ].*/\1/p" "$T/read" | tr '\n' ' '
}

# --- watch ---

before=$(date +%s)
out=$(ax trace watch "uprobe:$P:work" n=arg0:s64 arg0:x32 s=arg1:string 'arg1:buf[4]' struct=arg0+1 -o ctf -O "$T/watch" \
	-c "$P 5" 2>&1)
after=$(date +%s)
like "watch: the accounts" "$out" '5 events, 5 received, 0 dropped$'
is "it is read without a warning" "$(reads "$T/watch")" ""
is "all are there, in order" "$(numbers n)" "-1 0 1 2 3 "
first=$(head -n 1 "$T/read")
like "numbers as they were asked for" "$first" ' arg0 = 0xFFFFFFFF,'
like "strings" "$first" 's = "\\"item\\" 0\\\\\\n'
like "bytes" "$first" 'arg1 = \[ \[0\] = 0x22, \[1\] = 0x69, \[2\] = 0x74, \[3\] = 0x65 \]'
like "names" "$first" ' work: \{ pid = [0-9]+, tid = [0-9]+, cpu_id = [0-9]+, procname = "prog", unread = "" \}, \{ '
seconds=$(sed -n 's/^\[\([0-9]*\)\..*/\1/p;q' "$T/read")
ok "the time of day" test "$seconds" -ge "$((before - 1))" -a "$seconds" -le "$((after + 1))"

ax trace watch "uprobe:$P:work" arg0 'x=+0(0):u64' -o ctf -O "$T/unread" -c "$P 1" >"$T/out" 2>&1
is "what cannot be read is named" "$(reads "$T/unread"; sed -n 's/.*\(unread = "[^"]*"\).*/\1/p' "$T/read")" 'unread = "x"'
ax trace watch "uprobe:$P:work" ustack arg0:symbol -o ctf -O "$T/stack" -c "$P 1" >/dev/null 2>&1
is "call stacks are read" "$(reads "$T/stack")" ""
like "with names" "$(cat "$T/read")" 'ustack = \[ \[0\] = "work'

ax trace watch "uprobe:$P:paint" 'v=*p' c -o ctf -O "$T/types" -c "$P 1" >/dev/null 2>&1
is "values by their types" "$(reads "$T/types"; sed 's/.*, { //' "$T/read")" 'v = "{x=4, y=5, c=GREEN}", c = "RED" }'

# several kinds of events
ax trace watch 'tracepoint:syscalls:sys_enter_open*' -o ctf -O "$T/calls" -c "ls /" >"$T/out" 2>&1
is "tracepoints by a glob" "$(reads "$T/calls")" ""
is "as many as were received" "$(wc -l <"$T/read") events" \
	"$(sed -n 's/.* events, \([0-9,]*\) received.*/\1/p' "$T/out" | tr -d ,) events"
like "with their fields" "$(cat "$T/read")" ' syscalls:sys_enter_openat: .* filename = "/'

# --- what goes wrong ---

out=$(ax trace watch "uprobe:$P:work" -o ctf 2>&1)
is "without a directory" "$?" 2
like "it says what is missing" "$out" "-o ctf writes a directory: expected -O DIR"
out=$(cd "$T" && "$AX" trace watch "uprobe:$P:work" -o ctf -O - -c "$P 1" 2>&1)
is "standard output is none" "$?" 2
like "it says so" "$out" "directory, which cannot go to standard output: expected -O DIR"
ok "and makes none of that name" test ! -e "$T/-"
out=$(ax trace watch "uprobe:$P:work" -o ctf -O "$T/watch" -c "$P 1" 2>&1)
is "a directory that is not empty" "$?" 1
like "it says so" "$out" "'.*/watch' is not empty"
is "and leaves it alone" "$(reads "$T/watch"; numbers n)" "-1 0 1 2 3 "
ax trace watch "uprobe:$P:none" -o ctf -O "$T/again" -c "$P 1" >/dev/null 2>&1
ax trace watch "uprobe:$P:work" -o ctf -O "$T/again" -c "$P 1" >/dev/null 2>&1
is "after a mistake it is used by the next one" "$(reads "$T/again"; wc -l <"$T/read")" 1
mkdir "$T/small"
mount -t tmpfs -o size=64k none "$T/small"
out=$(ax trace watch "uprobe:$P:work" arg0 arg1:string -o ctf -O "$T/small/trace" -c "$P 5000" 2>&1)
is "no room" "$?" 1
like "is told" "$out" "the output could not be written: No space left on device"
is "what there was room for is read" "$(reads "$T/small/trace")" ""
umount "$T/small"

# --- what is lost ---

bg "$T/lost.out" "$AX" --instance "$INST" trace watch "uprobe:$P:work" arg0 arg1:string -o ctf -O "$T/lost"
TRACER=$BG
wait_for "grep -q probed '$T/lost.out'" || not_ok "ax trace watch starts" "$(cat "$T/lost.out")"
"$P" 10
kill -STOP "$TRACER"
"$P" 60000
kill -CONT "$TRACER"
kill -INT "$TRACER"
wait "$TRACER"
summary=$(grep dropped "$T/lost.out" | tr -d ,)
like "some are lost" "$summary" '^60010 events [0-9]+ received [1-9][0-9]* dropped'
lost=$(reads "$T/lost" | sed -n 's/.*racer discarded \([0-9]*\) event.*/\1/p' | awk '{ n += $1 } END { print n + 0 }')
is "the trace knows how many" "60010 events $(wc -l <"$T/read") received $lost dropped" "$summary"

# --- a writer that is killed ---

bg "$T/killed.out" "$AX" --instance "$INST" trace watch "uprobe:$P:work" arg0 -o ctf -O "$T/killed"
TRACER=$BG
wait_for "grep -q probed '$T/killed.out'" || not_ok "ax trace watch starts" "$(cat "$T/killed.out")"
"$P" 10
wait_for "[ \$(babeltrace2 '$T/killed' 2>/dev/null | wc -l) = 10 ]" || not_ok "it is read while it grows" "$(ls -l "$T/killed")"
kill -KILL "$TRACER"
wait "$TRACER" 2>/dev/null
is "what a killed one leaves is read" "$(reads "$T/killed")" ""
is "as far as it was written" "$(wc -l <"$T/read")" 10

# --- scripts ---

out=$(ax trace run -e "uprobe:$P:work { watch arg0; count by comm; print \"n=%d %s\" arg0 arg1:string }
END { print \"over\" }" -o ctf -O "$T/script" -c "$P 3" 2>&1)
like "a script's tables are printed" "$out" 'prog +3'
is "its records are read" "$(reads "$T/script")" ""
is "its lines are texts of events" "$(grep -c ' text = "n=[0-9-]* ' "$T/read") $(grep -c ' text = "over"' "$T/read")" "3 1"
is "beside what it watches" "$(grep -c 'work: .*{ arg0 = [0-9]* }' "$T/read")" 3
like "show-script keeps it" "$(ax trace show-script watch "uprobe:$P:work" -o ctf -O "$T/dir")" "-o ctf -O $T/dir FILE"

# --- probes that have names ---

ax trace add kept "uprobe:$P:work" n=arg0:s64 arg1:string --last 5 >/dev/null
ax trace add counted "uprobe:$P:work" --action count >/dev/null
"$P" 8
ax trace view kept --ctf "$T/kept" >/dev/null 2>&1
is "a named probe's records are read" "$(reads "$T/kept")" ""
is "the last ones" "$(numbers n)" "2 3 4 5 6 "
ax trace view kept -n 2 -o ctf -O "$T/kept2" >/dev/null 2>&1
is "only some" "$(reads "$T/kept2"; numbers n)" "5 6 "
out=$(ax trace view counted --ctf "$T/counted" 2>&1)
is "one that only counts" "$?" 2
like "it is said" "$out" "CTF has records, but 'counted' only counts"
out=$(ax trace view kept --ctf "$T/x" -o json 2>&1)
is "two formats" "$?" 2
bg "$T/follow.out" "$AX" --instance "$INST" trace view kept -f --ctf "$T/follow"
TRACER=$BG
wait_for "[ \$(babeltrace2 '$T/follow' 2>/dev/null | wc -l) = 5 ]" || not_ok "view -f starts" "$(cat "$T/follow.out")"
"$P" 2
wait_for "[ \$(babeltrace2 '$T/follow' 2>/dev/null | wc -l) = 7 ]" || not_ok "what comes is written" "$(ls -l "$T/follow")"
kill -INT "$TRACER"
wait "$TRACER"
is "followed: it is read" "$(reads "$T/follow"; numbers n)" "2 3 4 5 6 -1 0 "
ax trace rm kept counted >/dev/null

# --- what is no probe's ---

# of_both COMMAND...: its events as CTF and as JSON, one run each; and what CTF's reader complains of
of_both() {
	rm -rf "$T/both"
	as_ctf=$(ax trace "$@" -o ctf -O "$T/both" 2>&1)
	complaints=$(reads "$T/both")
	ax trace "$@" -o json -O "$T/json" 2>/dev/null
}
of_both exec -e -c "sh -c 'true \"a  b\"; exec ls / >/dev/null'"
is "exec: it is read" "$complaints" ""
is "exec: all that came, and in order" "$(sed -n 's/.* file = "\([^"]*\)".*/\1/p' "$T/read")" \
	"$(jq -r 'select(.event == "exec") | .file' "$T/json")"
like "exec: whose" "$(grep 'file = "[^"]*/ls"' "$T/read")" \
	' exec: \{ pid = [1-9][0-9]*, .*procname = "ls".*argv = \[ \[0\] = "ls", \[1\] = "/" \]'
like "exec: the accounts" "$as_ctf" "^$(wc -l <"$T/read") events, $(wc -l <"$T/read") received, 0 dropped"
cat >"$T/huge.py" <<'EOF'
import os
os.execv("/bin/true", ["true"] + [chr(1) * 100000] * 12)
EOF
of_both exec -c "$PYTHON $T/huge.py"
is "exec: a line of megabytes" "$complaints $(grep -c 'file = "/bin/true"' "$T/read")" " 1"
long=$(jq 'select(.file == "/bin/true") | [.argv[] | length] | add' "$T/json")
ok "exec: with all that is in it" test "$long" -gt 1000000 -a \
	"$(grep 'file = "/bin/true"' "$T/read" | grep -o '\\x01' | wc -l)" = "$((long - 4))"
of_both open -c "cat /etc/hostname /nonexistent"
is "open: it is read" "$complaints" ""
is "open: what failed and what did not" \
	"$(sed -n 's/.* name = "\(\/etc\/hostname\|\/nonexistent\)", flags = "O_RDONLY", \([a-z]*\) = .*/\1 \2/p' "$T/read" | xargs)" \
	"/etc/hostname fd /nonexistent error"
of_both tcp -c "$PYTHON -c 'import socket
l = socket.create_server((\"127.0.0.1\", 0))
c = socket.create_connection(l.getsockname())
c.sendall(b\"x\" * 1234)
a = l.accept()[0]
a.recv(2000)
c.close(); a.recv(1); a.close()'"
is "tcp: it is read" "$complaints" ""
like "tcp: a connection" "$(grep 'side = "client"' "$T/read")" \
	' tcp: .* local = "127.0.0.1", .*remote = "127.0.0.1", .*sent = 1234, received = 0, .*duration_ns = [1-9]'
of_both signals -c "sh -c 'trap : USR1; kill -USR1 \$\$'"
is "signals: it is read" "$complaints" ""
like "signals: which" "$(cat "$T/read")" ' signal: .*signal = "SIGUSR1", number = 10'
of_both flow "$P" work paint -c "$P 3"
is "flow: it is read" "$complaints" ""
is "flow: calls and returns in their order" "$(sed -n 's/.* \(entry\|return\): .*function = "\([a-z]*\)".*/\1 \2/p' "$T/read" | xargs)" \
	"$(jq -r 'select(.event) | "\(.event) \(.function)"' "$T/json" | xargs)"
like "flow: arguments" "$(cat "$T/read")" 'entry: .*function = "work", arguments_n = -1, arguments_s = "'
out=$(ax trace flow "$P" work --folded -o ctf -O "$T/x" -c "$P" 2>&1)
is "flow: a graph is none" "$?" 2
like "it is said" "$out" "no CTF: expected no -o ctf"
out=$(ax trace hypercall -o ctf -O "$T/x" 2>&1)
is "hypercall: a table is none" "$?" 2
like "it is said" "$out" "expected that with it"
out=$(ax trace exec -o ctf -c true 2>&1)
is "exec without a directory" "$?" 2
ok "nothing is left of those" test ! -e "$T/x"

done_testing
