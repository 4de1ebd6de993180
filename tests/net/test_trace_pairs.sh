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

# --- times ---

out=$(trace_json latency "uprobe:$p:asked" on arg0 to "uprobe:$p:answered" on arg0 -c "$p")
is "times between two probes by a value" "$(total <<<"$out")" "2 2 0"
is "are as long as they were" "$(jq -s '[.[0].table[].buckets[] | select(.count > 0) | .greatest] | min >= 10000000' \
	<<<"$out")" true
out=$(trace_json latency "uretprobe:$p:outer" by arg0@entry:s32 -c "$p")
is "recursive calls by their argument" "$(total <<<"$out")" "602 602 0"
done_testing
