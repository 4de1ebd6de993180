#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax trace: each kind of wrong input gets one sentence and the right exit status; list and explain.
. "$(dirname "$0")/lib.sh"
need gcc jq

printf 'int work(int n) { return n + 1; }\nint main(void) { return work(1); }\n' >"$T/p.c"
gcc -O0 -o "$T/p" "$T/p.c" || skip_all "no program can be built"
P=$T/p

# refused STATUS REGEX ARGUMENTS...
refused() {
	local status=$1 regex=$2 out rc
	shift 2
	out=$(ax trace "$@" 2>&1)
	rc=$?
	is "status $status: ax trace $*" "$rc" "$status"
	like "  and says why" "$out" "$regex"
}

refused 2 "did you mean 'watch'" wach
refused 2 "say what to probe" watch
refused 2 "expected uprobe:FILE" watch uprobe
refused 2 "expected no -i" watch "uprobe:$P:work" -i 1s
refused 2 "expected -i with it" count "uprobe:$P:work" -n 3
refused 2 "two processes" count "uprobe:$P:work" -p 1 -c true
refused 2 "no linear buckets" hist "uprobe:$P:work" arg0 -l 5,1,1
refused 2 "no return" latency tracepoint:sched:sched_switch
refused 2 "expected 'r'" latency "p:x $P:0x1190"
refused 2 "one on each side" latency "uprobe:$P:work" to
refused 2 "with it" count "uprobe:$P:work" --per-thread
refused 1 "no file" watch uprobe:/no/such:f
refused 1 "no function wrk; did you mean 'work'" watch "uprobe:$P:wrk"
refused 1 "no tracepoint" watch tracepoint:sched:nosuch
refused 1 "no process" watch "uprobe:$P:work" -p 99999999
refused 1 "cannot be executed" watch "uprobe:$P:work" -c nosuchcommand
refused 1 "no app" watch "uprobe:$P:work" --app nosuch
refused 1 "no cgroup" watch "uprobe:$P:work" --cgroup "$T"
refused 1 "cannot write" watch "uprobe:$P:work" -O "$T/no/such"
refused 1 "no file matches" list "usdt:$T/none*"
out=$(setpriv --reuid 65534 --clear-groups "$AX" trace watch uprobe:/bin/bash:readline 2>&1)
like "only root attaches" "$out" "only root"

is "list finds functions" "$(ax trace list "uprobe:$P:wor*")" "uprobe:$P:work"
is "in files of a glob" "$(ax trace list "uprobe:$T/?:wor*")" "uprobe:$P:work"
like "a tracepoint with its fields" "$(ax trace list tracepoint:syscalls:sys_enter_openat)" "filename"
is "list as JSON" "$(ax trace list "uprobe:$P:work" -o json | jq -r .probe)" "uprobe:$P:work"
out=$(ax trace explain "uprobe:$P:work" arg0 'if arg0 > 3')
like "explain tells the place" "$out" "\(work\+0x[0-9a-f]+\)"
like "its cost" "$out" "cost +(emulated|nop5|single-step)"
like "what it fetches" "$out" "arg0: u64, from rdi"
like "its condition" "$out" "only if +\(rdi > 3\)"
is "and as JSON" "$(ax trace explain "uprobe:$P:work" arg0 -o json | jq -r '.values[0].from')" rdi

done_testing
