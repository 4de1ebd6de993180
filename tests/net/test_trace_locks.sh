#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax trace locks: who waits for a mutex, how long, and where that is called.
. "$(dirname "$0")/lib.sh"
need jq
build tallied tallied.c gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-omit-frame-pointer \
	-fno-optimize-sibling-calls -pthread "$SRC/tallied.c" -o %o
build tallied_fast tallied.c gcc -std=gnu11 -D_GNU_SOURCE -O2 -g -fomit-frame-pointer \
	-fno-optimize-sibling-calls -pthread "$SRC/tallied.c" -o %o

trace() {
	"$AX" --instance "$INST" trace locks "$@" 2>&1
}
totals() {
	jq -c 'select(.emitted) | [.emitted == .received, .dropped]' "$T/json"
}
# at FILTER: of the waits of waits_here()
at() {
	jq -c "select(.stack and any(.stack[]; startswith(\"waits_here+\"))) | $1" "$T/json"
}

for program in tallied tallied_fast; do
	trace -o json -O "$T/json" -c "$BIN/$program locks 4 500"
	is "$program: all wait at one place for one mutex" "$(at '.waits >= 4' | sort | uniq -c | tr -s ' ')" " 1 true"
	is "$program: together as long as it was held" "$(at '.time_ns > 1200000000 and .longest_ns > 300000000')" true
	is "$program: times are those of the histogram" "$(at '.waits == ([.histogram[].count] | add)')" true
	is "$program: through the C library" "$(at 'any(.stack[]; test("^(__GI_)?_*pthread_mutex_lock\\+.*libc"))')" true
	is "$program: and on to the thread's beginning" "$(at 'any(.stack[]; startswith("waiter+"))')" true
	is "$program: all is accounted for" "$(totals)" '[true,0]'
done
out=$(trace --top 1 --hist -c "$BIN/tallied locks 2 300")
like "in text" "$out" $'^[0-9.]+m?s in [0-9]+ waits \\(at most [0-9]+ms\\) for 0x[0-9a-f]+ of [0-9]+ tallied\n .*(lll_lock_wait\\+0x|0x[0-9a-f]+ .libc).*\n .*pthread_mutex_lock\\+0x'
like "and how the times are distributed" "$out" $'\n    from [0-9.]+[num]?s +[0-9]+ \\|@'
trace --least 100ms -o json -O "$T/json" -c "$BIN/tallied locks 4 500"
is "short waits are left out" "$(jq -r 'select(.stack) | .longest_ns > 100000000' "$T/json" | sort -u)" true
trace -o json -O "$T/json" -c "sleep 0.1"
is "nothing waits for a mutex" "$(jq -c 'select(.emitted != null) | [.emitted, .dropped]' "$T/json")" "[0,0]"
trace --all -o json -O "$T/json" -c "$BIN/tallied locks 2 300"
ok "others that wait, if they are wanted" \
	jq -es 'any(.[].stack | select(.); any(.[]; startswith("main+")) and all(.[]; test("mutex") | not))' "$T/json"
fails "a word too many" "$AX" trace locks word
done_testing
