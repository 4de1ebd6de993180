#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# The tour of ax-trace(8), run as it is written there, and what it prints.
. "$(dirname "$0")/lib.sh"
need gcc python3 babeltrace2
# What the kernel has is asked by a mount of this test's own, and then there is none, as on a machine
# that was just started: ax has to do without.
mkdir "$T/tracefs"
mount -t tracefs tracefs "$T/tracefs"
[ -e "$T/tracefs/events/syscalls" ]
asked=$?
while read -r at; do
	umount -l "$at"
done < <(awk '$3 == "tracefs" { print $2 }' /proc/self/mounts)
[ "$asked" = 0 ] || skip_all "missing kernel feature tracepoints of system calls"
ok "no tracefs is mounted" test "$(awk '$3 == "tracefs"' /proc/self/mounts | wc -l)" = 0

tour_of "$TOP/tools/share/ax-trace.8" >"$T/commands"
ok "the tour has commands" test "$(wc -l <"$T/commands")" -gt 40
# `ax` is this build's with this test's instance
mkdir "$T/work" "$T/path"
printf '#!/bin/sh\nexec "%s" --instance %s "$@"\n' "$AX" "$INST" >"$T/path/ax"
chmod +x "$T/path/ax"
{
	echo "set -eu; cd '$T/work'; PATH='$T/path':\$PATH"
	cat "$T/commands"
} >"$T/script"
# What is left when the script did not come to its end; nothing otherwise.
undo() {
	local rc=$?

	"$AX" --instance "$INST" trace rm snapshots >/dev/null 2>&1
	return "$rc"
}
trap 'undo; on_exit' EXIT
bg "$T/out" timeout -k 1 90 bash "$T/script"
wait "$BG"
is "they all succeed" "$?" 0
[ "$FAILED" -eq 0 ] || diag "$(tail -n 30 "$T/out")"

# says WHAT PATTERN: a line of the output has it
says() {
	if grep -qE -- "$2" "$T/out"; then
		pass "$1"
	else
		not_ok "$1" "not in the output: $2"
	fi
}
says "watch" ' add arg0=4 arg1="even"$'
is "only what the condition wants" "$(grep -cE ' add arg0=[01] ' "$T/out")" 0
says "the accounts" '^3 events, 3 received, 0 dropped$'
says "a line of ftrace" " add_entry %ip=0x[0-9a-f]+ %di=0x4\$"
says "count of static probes" '^ +0 +34$'
says "hist" '^\[32, 64\) +[0-9]+ \|@'
says "stats" '^odd +50 +170450 +3409 +4 +9950$'
says "latency" '^1,000 events, 1,000 received, 0 dropped$'
says "variables of a line" ' n=4 why="even" sum=14$'
says "whole structs" 'it=\{why="because", color=BLUE, flags=READ.EXEC, at=\{x=2, y=-0.1\}, list=.1, 2, 3.\}$'
says "enums that are counted by" '^BLUE +READ.EXEC +2$'
says "registers" 'regs=\{ax=0x.*, flags=0x'
says "system calls by name" '^exit_group +1$'
says "a trace in CTF" ' add: \{ pid = [0-9]+, .*procname = "db", unread = "" \}, \{ arg0 = 4, arg1 = "even" \}$'
says "and of a probe that has a name" ' db:snapshot: \{ pid = .* \}, \{ arg0 = [0-2], arg1 = "(odd|even)" \}$'
says "steps" ' 5 add\+0x[0-9a-f]+ \(db\) db.c:11  call 0x[0-9a-f]+  sp=0x'
says "steps by lines" ' 3 add\+0x[0-9a-f]+ \(db\) db.c:14  sum=2$'
says "flow goes in" '  -> add n=1 why="odd"$'
says "flow comes out" '  <- add = 4  \['
says "exec" 'ls /$'
says "list" '^uprobe:\./db:add  long int add\(int n, const char \*why\)  db\.c:9$'
says "where a static probe's arguments are" '^usdt:\./db:db:snapshot arg0:s32@%'
says "what a line has" '^    const char \*why  parameter, (in|at) %'
says "a counter at a variable's value" '^db\.c:13\(add\) +1$'
says "all lines of a file" '^db\.c:12\(add\) +7$'
says "profile" '% -        db              add \(db\)$'
says "explain" '^  instruction +[a-z]'
says "view" 'db:snapshot arg0=1 arg1="even"$'
says "ls" '^snapshots +disabled +watch +5 +0 '
is "nothing is left" "$("$AX" --instance "$INST" trace ls -o json)" "[]"
is "the kernel's verifier and libraries are not heard of" "$(grep -c '^libbpf' "$T/out")" 0
done_testing
