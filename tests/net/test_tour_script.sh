#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# The tour of ax-trace-script(5), run as it is written there, and what it prints.
. "$(dirname "$0")/lib.sh"
need gcc
echo '#include <sys/sdt.h>' | gcc -E - >/dev/null 2>&1 || skip_all "missing header sys/sdt.h"
[ -e /sys/kernel/tracing/events/syscalls ] || mount -t tracefs tracefs /sys/kernel/tracing
[ -e /sys/kernel/tracing/events/syscalls ] || skip_all "missing kernel feature tracepoints of system calls"

tour_run ax-trace-script.5 40

tour_says "a static probe beside system calls" '^opened 1: 0$'
is "in order" "$(grep -A1 'openat = -2' "$T/out" | tail -n 1)" "opened 1: 0"
tour_says "its table" '^good:$'
tour_says "END" '^done$'
tour_says "intervals" '^calls:$'
tour_says "the time between two probes" '^wait:$'
tour_says "its times" ' times?: mean '
tour_says "what is passed to a function" '^> opendir /$'
tour_says "only inside of one" '^mallocs:$'
tour_says "hello" '^hello world$'
tour_says "a table of tracepoints" '^sched:sched_switch +[0-9]+$'
done_testing
