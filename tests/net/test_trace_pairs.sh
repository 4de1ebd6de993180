#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# What probes have from each other: states that one puts others in, and times between two.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/trace.sh"
need gcc jq
build_probed
p=$PROBED

# --- states ---

# leaf() is called by inner() only, three times in outer(1) ... and outside of it
out=$(trace_json count "uprobe:$p:leaf" --per-thread --armed-by "uprobe:$p:outer" \
	--disarmed-by "uretprobe:$p:outer" -c "$p")
is "in each thread, with recursion" "$(total <<<"$out")" "1204 1204 0"
is "from some moment on" "$(trace_json watch "uprobe:$p:leaf" v=arg0:s32 --armed-by "uprobe:$p:leaves" \
	--disarmed-by "uprobe:$p:outer" -c "$p" | values v)" "3 4"


sleeping=tracepoint:syscalls:sys_enter_clock_nanosleep
is "a tracepoint that is disarmed by itself counts once for each time it is armed" \
	"$(trace_json count "$sleeping" --armed-by "uprobe:$p:asked" --disarmed-by "$sleeping" -c "$p" |
		total)" "1 1 0"
is "a function that is armed and disarmed by itself counts each time" \
	"$(trace_json count "uprobe:$p:asked" --armed-by "uprobe:$p:asked" --disarmed-by "uprobe:$p:asked" \
		-c "$p" | total)" "2 2 0"

# --- times ---

out=$(trace_json latency "uprobe:$p:asked" on arg0 to "uprobe:$p:answered" on arg0 -c "$p")
is "times between two probes by a value" "$(total <<<"$out")" "2 2 0"
is "are as long as they were" "$(jq -s '[.[0].table[].buckets[] | select(.count > 0) | .greatest] | min >= 10000000' \
	<<<"$out")" true
out=$(trace_json latency "uretprobe:$p:outer" by arg0@entry:s32 -c "$p")
is "recursive calls by their argument" "$(total <<<"$out")" "602 602 0"
# two pairs at once: of the probes, and of the function's entry and return
out=$(trace_json latency "uprobe:$p:count_up" on arg0 to "uretprobe:$p:count_up" on arg0@entry -c "$p")
is "times that end at a return, by what its entry had" "$(total <<<"$out")" "3 3 0"
out=$(trace_json latency "uprobe:$p:count_up" to "uretprobe:$p:count_up" by arg0@entry:s32 -c "$p")
is "and of each of these" "$(jq -c 'arrays // .table // empty | map(.key[]) | sort' <<<"$out")" "[1,2,3]"
out=$(trace_json latency "uretprobe:$p:count_up" on arg0@entry to "uprobe:$p:count_up" on arg0-1 -c "$p")
is "times that begin at a return" "$(total <<<"$out")" "2 2 0"

# probed sleeps 20 ms and then 400 ms
between='map(.table // empty) | .[0][0] | [.buckets[].count, .least >= 20000000, .least < 400000000] | @json'
is "from one time that a function is called to the next one" \
	"$(trace_json latency uprobe:libc.so.6:usleep to uprobe:libc.so.6:usleep -c "$p" | jq -rs "$between")" \
	"[1,true,true]"
is "from one time of a tracepoint to the next one" \
	"$(trace_json latency "$sleeping" to "$sleeping" -c "$p" | jq -rs "$between")" "[1,true,true]"
# another place than that of the entry, if that could be: it is where its name says
is "also if one of them needs the exact instruction" \
	"$(trace_json latency uprobe:libc.so.6:usleep to "uprobe:libc.so.6:usleep if %ip != 0 && %r12 != 1" \
		-c "$p" | jq -rs "$between")" "[1,true,true]"
switch=tracepoint:sched:sched_switch
bg "$T/off.err" "$AX" --instance "$INST" trace latency "$switch" on prev_pid if 'prev_comm == "probed"' to "$switch" on next_pid \
	if 'next_comm == "probed"' -o json -O "$T/off"
wait_for 'grep -q "probed by" "$T/off.err"'
"$p"
end "$BG"
is "how long a process was off the processor" "$(jq -rs '.[0].table[0] | [([.buckets[].count] | add) >= 2, .greatest >= 400000000,
	.unit, .least <= .p50, .p50 <= .p90, .p90 <= .p99, .p99 <= .greatest, .mean < .greatest] | @json' \
	"$T/off")" '[true,true,"ns",true,true,true,true,true]'
like "in text, with unit, mean and quantiles" "$(ax trace latency "$sleeping" to "$sleeping" -c "$p" 2>&1)" \
	"NANOSECONDS.*1 time: mean [0-9.]+ms, 50% up to [0-9.]+ms, 90% .*least .*greatest"
like "what is a word and a field, too, is not taken for the one or the other" \
	"$(ax trace latency tracepoint:sched:sched_wakeup on pid to "$switch" on next_pid 2>&1)" \
	"has a field 'pid'.*expected args.pid"
done_testing
