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

# What is left when the script did not come to its end; nothing otherwise.
undo() {
	local rc=$?

	"$AX" --instance "$INST" trace rm snapshots >/dev/null 2>&1
	return "$rc"
}
trap 'undo; on_exit' EXIT
tour_run ax-trace.8 40

tour_says "watch" ' add arg0=4 arg1="even"$'
is "only what the condition wants" "$(grep -cE ' add arg0=[01] ' "$T/out")" 0
tour_says "the accounts" '^3 events, 3 received, 0 dropped$'
tour_says "a line of ftrace" " add_entry %ip=0x[0-9a-f]+ %di=0x4\$"
tour_says "count of static probes" '^ +0 +34$'
tour_says "hist" '^\[32, 64\) +[0-9]+ \|@'
tour_says "stats" '^odd +50 +170450 +3409 +4 +9950$'
tour_says "latency" '^1,000 events, 1,000 received, 0 dropped$'
tour_says "variables of a line" ' n=4 why="even" sum=14$'
tour_says "whole structs" 'it=\{why="because", color=BLUE, flags=READ.EXEC, at=\{x=2, y=-0.1\}, list=.1, 2, 3.\}$'
tour_says "enums that are counted by" '^BLUE +READ.EXEC +2$'
tour_says "registers" 'regs=\{ax=0x.*, flags=0x'
tour_says "system calls by name" '^exit_group +1$'
tour_says "a trace in CTF" ' add: \{ pid = [0-9]+, .*procname = "db", unread = "" \}, \{ arg0 = 4, arg1 = "even" \}$'
tour_says "and of a probe that has a name" ' db:snapshot: \{ pid = .* \}, \{ arg0 = [0-2], arg1 = "(odd|even)" \}$'
tour_says "steps" ' 5 add\+0x[0-9a-f]+ \(db\) db.c:11  call 0x[0-9a-f]+  sp=0x'
tour_says "steps by lines" ' 3 add\+0x[0-9a-f]+ \(db\) db.c:14  sum=2$'
tour_says "flow goes in" '  -> add n=1 why="odd"$'
tour_says "flow comes out" '  <- add = 4  \['
tour_says "exec" 'ls /$'
tour_says "list" '^uprobe:\./db:add  long int add\(int n, const char \*why\)  db\.c:9$'
tour_says "where a static probe's arguments are" '^usdt:\./db:db:snapshot arg0:s32@%'
tour_says "what a line has" '^    const char \*why  parameter, (in|at) %'
tour_says "a counter at a variable's value" '^db\.c:13\(add\) +1$'
tour_says "all lines of a file" '^db\.c:12\(add\) +7$'
tour_says "profile" '% -        db              add \(db\)$'
tour_says "explain" '^  instruction +[a-z]'
tour_says "view" 'db:snapshot arg0=1 arg1="even"$'
tour_says "ls" '^snapshots +disabled +watch +5 +0 '
is "nothing is left" "$("$AX" --instance "$INST" trace ls -o json)" "[]"
is "the kernel's verifier and libraries are not heard of" "$(grep -c '^libbpf' "$T/out")" 0
done_testing
