#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# What a trace needs before anything happens: little more than its programs and the records that wait,
# since of the kernel's types it reads no more than it asks for.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/trace.sh"
need gcc
build_probed
P=$PROBED

# at_most WHAT KIB COMMAND...: the peak of `ax trace COMMAND...`, once it has attached
at_most() {
	local what=$1 most=$2 peak
	shift 2
	: >"$T/said"
	bg "$T/said" "$AX" --instance "$INST" trace "$@"
	wait_for "grep -q probed '$T/said'" || diag "ax trace $1 does not start: $(cat "$T/said")"
	peak=$(awk '/^VmHWM/ { print $2 }' "/proc/$BG/status")
	end "$BG"
	ok "$what needs at most $most KiB: ${peak:-?}" test "${peak:-$((most + 1))}" -le "$most"
}
at_most "a watch" 12288 watch "uprobe:$P:leaf" arg0
at_most "a count" 8192 count "uprobe:$P:leaf" by arg0
at_most "a script of probes on entries and returns" 12288 run -e "uprobe:$P:leaf { print \"leaf\"; set thread.began = nsecs }
	uretprobe:$P:leaf if thread.began { hist nsecs-thread.began as times; set thread.began = 0 }"
done_testing
