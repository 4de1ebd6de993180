#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# The commands in README.md's section about tracing, run as they are written there. Those that go on until
# they are interrupted are, once they have shown something.
. "$(dirname "$0")/lib.sh"
need gcc make perf babeltrace2 script "$PYTHON"
mkdir "$T/tracefs"
mount -t tracefs tracefs "$T/tracefs" || skip_all "missing kernel feature tracefs"
[ -e "$T/tracefs/events/raw_syscalls" ] && [ -e "$T/tracefs/events/sched/sched_switch" ]
asked=$?
umount "$T/tracefs"
[ "$asked" = 0 ] || skip_all "missing kernel feature tracepoints of system calls"

# What the commands take for given: a program with its source, a record of perf, and something to build.
mkdir "$T/work" "$T/path"
cd "$T/work" || exit 1
printf '#!/bin/sh\nexec "%s" --instance %s "$@"\n' "$AX" "$INST" >"$T/path/ax"
chmod +x "$T/path/ax"
cat >db.c <<'END'
#include <stdlib.h>
__attribute__((noinline)) long add(int n, const char *why)
{
	__asm__ volatile("" : : "r"(why) : "memory");
	return n * 2;
}
int main(int argc, char **argv)
{
	long sum = 0;
	for (int i = 0; i < (argc > 1 ? atoi(argv[1]) : 5); i++)
		sum += add(i, i % 2 ? "odd" : "even");
	return sum == 1;
}
END
gcc -g -O1 -o db db.c || bail_out "the test's program cannot be built"
printf 'all: one two\none two: db.c\n\tcp db.c $@\n' >Makefile
recorded=
if perf record -q -e cpu-clock -o perf.data -- ./db 1000 2>"$T/perf"; then
	recorded=1
fi

awk '/^## / { on = $0 == "## Tracing" } on && /^    / { print substr($0, 5) }' "$TOP/README.md" >"$T/commands"
ok "README.md has commands" test "$(wc -l <"$T/commands")" -ge 10

# begin COMMAND: it runs as a shell runs it, with what it prints in $OUT. (timeout would give a signal twice.)
begin() {
	N=$((${N:-0} + 1))
	OUT=$T/out.$N
	bg "$OUT" env PATH="$T/path:$PATH" timeout --foreground -k 1 80 bash -c "exec $(without_comment "$1")"
}
# ended COMMAND STATUS
ended() {
	is "$(without_comment "$1"): it succeeds" "$2" 0
	[ "$2" = 0 ] || diag "$(tail -n 20 "$OUT")"
}
without_comment() {
	awk '{ sub(/ *#.*/, ""); print }' <<<"$1"
}
# whole COMMAND: one that ends by itself
whole() {
	begin "$1"
	wait "$BG"
	ended "$1" "$?"
}
# interrupted COMMAND CONDITION: one that ends when it is told to, which it is when that holds
interrupted() {
	begin "$1"
	ok "$(without_comment "$1"): it shows something" wait_for -t 60 "$2"
	kill -TERM "$BG"
	wait "$BG"
	ended "$1" "$?"
}
shows() {
	ok "and shows $1" grep -qE -- "$1" "$OUT"
}
type_something() {
	wait_for -t 60 "grep -q 'Ctrl-C ends' '$OUT'" || return
	printf 'echo what is typed\nexit\n' | timeout 20 script -qc '/bin/bash --norc --noprofile -i' /dev/null >/dev/null
	grep -q 'retval="echo what is typed"' "$OUT"
}

EVENTS='^[0-9,]+ events, [0-9,]+ received, [0-9,]+ dropped$'
while IFS= read -r -u 8 command; do
	case $command in
	*readline*)
		interrupted "$command" type_something
		shows 'retval="exit"$'
		shows "$EVENTS"
		;;
	*"count tracepoint:raw_syscalls"*)
		whole "$command"
		shows '^ax +[0-9,]+$'
		shows "$EVENTS"
		;;
	*"hist "*)
		whole "$command"
		shows '\) +[0-9,]+ \|@'
		;;
	*" flow ./db"*)
		whole "$command"
		shows '-> add n=1 why="odd"$'
		shows '<- add = 2 '
		;;
	*"trace exec"*)
		whole "$command"
		shows 'wc -l$'
		;;
	*"trace profile"*svg*)
		whole "$command"
		ok "and writes a picture" "$PYTHON" -c 'import sys, xml.dom.minidom as d
assert d.parse(sys.argv[1]).documentElement.tagName == "svg"' busy.svg
		;;
	*ctf*)
		interrupted "$command" '[ -n "$(find DIR -type f -size +8k)" ]'
		ok "and babeltrace2 reads it" sh -c "babeltrace2 DIR >'$T/read' && grep -q 'sched:sched_switch' '$T/read'"
		;;
	*"perfdata events"*)
		if [ -n "$recorded" ]; then
			whole "$command"
			shows ' SAMPLE '
		else
			skip "$(without_comment "$command")" "missing kernel feature: perf record $(tail -n 1 "$T/perf")"
		fi
		;;
	*"trace build"*)
		whole "$command"
		ok "and the build has run" test -e one -a -e two
		for then in $(sed -n 's/.*# then: //p' <<<"$command" | tr -d ,.); do
			whole "ax trace build $then out.trace"
		done
		;;
	*"trace run"*)
		interrupted "$command" 'grep -qE "^ax +[0-9,]+$" "$OUT"'
		shows "$EVENTS"
		;;
	*) whole "$command" ;;
	esac
done 8<"$T/commands"
done_testing
