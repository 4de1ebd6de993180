#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# The tour of ax-trace-script(5), run as it is written there, and what it prints.
. "$(dirname "$0")/lib.sh"
need gcc
echo '#include <sys/sdt.h>' | gcc -E - >/dev/null 2>&1 || skip_all "missing header sys/sdt.h"
[ -e /sys/kernel/tracing/events/syscalls ] || mount -t tracefs tracefs /sys/kernel/tracing
[ -e /sys/kernel/tracing/events/syscalls ] || skip_all "missing kernel feature tracepoints of system calls"

tour_of "$TOP/tools/share/ax-trace-script.5" >"$T/commands"
ok "the tour has commands" test "$(grep -c '^ax trace run' "$T/commands")" -gt 8
mkdir "$T/work" "$T/path"
printf '#!/bin/sh\nexec "%s" --instance %s "$@"\n' "$AX" "$INST" >"$T/path/ax"
chmod +x "$T/path/ax"
{
	echo "set -eu; cd '$T/work'; PATH='$T/path':\$PATH"
	cat "$T/commands"
} >"$T/script"
bg "$T/out" timeout -k 1 90 bash "$T/script"
wait "$BG"
is "they all succeed" "$?" 0
[ "$FAILED" -eq 0 ] || diag "$(tail -n 30 "$T/out")"

says() {
	if grep -qE -- "$2" "$T/out"; then
		pass "$1"
	else
		not_ok "$1" "not in the output: $2"
	fi
}
says "a static probe beside system calls" '^opened 1: 0$'
is "in order" "$(grep -A1 'openat = -2' "$T/out" | tail -n 1)" "opened 1: 0"
says "its table" '^good:$'
says "END" '^done$'
says "intervals" '^calls:$'
says "the time between two probes" '^wait:$'
says "its times" ' times?: mean '
says "what is passed to a function" '^> opendir /$'
says "only inside of one" '^mallocs:$'
says "hello" '^hello world$'
says "a table of tracepoints" '^sched:sched_switch +[0-9]+$'
done_testing
