#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# Each byte of spliced connections, by its position: a gigabyte both ways with pauses and odd sizes,
# thousands of pairs at once, readers that stall, too little memory; and what is seen of an end, or
# the agent, that is killed in the middle.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/splice.sh"
need jq bpftool
build_c talk
ulimit -n 20000

GIGABYTE=1000000000 PAIRS=8300
[ -z "${AX_TEST_QUICK:-}" ] || GIGABYTE=100000000 PAIRS=500

splice_agent <<EOF
services:
  talksvc:
    ip: 10.77.200.1,fd77::200:1
    ports: ["70:7000"]
    backends: [talk, htalk]
EOF

serve 7000 --ip 10.77.1.1,fd77::1:1 --name talk -- "$BIN/talk" server 6 :: 7000
TALK=$APP TALK_OUT=$OUT
serve 7000 --net host --ip 10.77.1.2,fd77::1:2 --name htalk -- "$BIN/talk" server 6 :: 7000
HTALK=$APP HTALK_OUT=$OUT

serve 7000 --ip 10.77.1.3 --name edges -- "$BIN/talk" server 6 :: 7000 -E
EDGES_OUT=$OUT

# --- bytes ---

splice_mark
JOINS=2 talk "a gigabyte both ways, private, with pauses" -- 4 10.77.1.1 7000 -w $JOIN_MS -k 20 -s $GIGABYTE -p
spliced "a gigabyte both ways, private" 500
for mode in private host; do
	splice_mark
	JOINS=6 talk "in and out of redirecting, $mode, IPv4" --net $mode -- \
		4 10.77.1.2 7000 -n 3 -w $JOIN_MS -k 20 -s $((GIGABYTE / 50)) -m -p
	spliced "in and out of redirecting, $mode, IPv4" 300 6
	splice_mark
	JOINS=10 talk "readers that wait for edges, $mode" --net $mode -- 4 10.77.1.3 7000 -n 5 -w $JOIN_MS -k 100 \
		-s $((GIGABYTE / 50)) -E -m
	spliced "readers that wait for edges, $mode" 300 10
	splice_mark
	JOINS=6 talk "by service, level-triggered, $mode, IPv6" --net $mode -- \
		6 fd77::200:1 70 -n 3 -w $JOIN_MS -k 20 -s $((GIGABYTE / 50)) -l
	spliced "by service, level-triggered, $mode, IPv6" 300 6
done

# --- a reader that does not read ---

# queued WHAT OPTIONS...: the client's connection to htalk, whose buffer for receiving is the bound
queued() {
	local what=$1 out sent unsent memory buffer
	shift
	: >"$HTALK_OUT"
	splice_mark
	out=$(in_app --net host -- "$BIN/talk" client 4 10.77.1.2 7000 -w $JOIN_MS -k 20 "$@" 2>&1)
	like "$what: every byte is there in the end" "$out" $'(^|\n)good 1$'
	spliced "$what" 20
	read -r _ sent _ unsent < <(grep ^queued <<<"$out")
	read -r _ memory _ buffer < <(grep ^memory "$HTALK_OUT")
	if [ "$((sent - unsent))" -le $((2 * buffer)) ] && [ "$memory" -le $((2 * buffer)) ]; then
		pass "$what: it holds no more than twice its buffer ($((sent - unsent)) of $buffer)"
	else
		not_ok "$what: it holds no more than twice its buffer" "$out $(grep ^memory "$HTALK_OUT")"
	fi
}
queued "a stalled reader" -q 1500 -s 50000000
queued "a stalled reader with a buffer of 128 KiB" -q 1500 -s 20000000 -b 65536

# --- an end is killed ---

# What the other end of a killed process sees: bytes that were on the way may be there or not.
ENDS='EOF|ECONNRESET|EPIPE'
N=20
for mode in private host; do
	address=10.77.3.1
	[ $mode = private ] || address=10.77.3.2
	splice_mark
	serve 7000 --net $mode --ip $address --name victim -- "$BIN/talk" server 4 0.0.0.0 7000
	victim=$APP
	run_app --net $mode -- "$BIN/talk" client 4 $address 7000 -n $N -w $JOIN_MS -k 20 -s 100000000000
	client=$APP out=$OUT
	wait_for "grep -q '^under way' $out"
	sleep 0.3
	kill -KILL "$(child_of "$victim")"
	ok "$mode: a server is killed: its clients end soon" wait_for "grep -q ^good $out"
	like "$mode: and all see what TCP shows" "$(grep ^good "$out" | sed -E "s/ ($ENDS)=/ +/g" |
		awk '{ n = 0; for (i = 3; i <= NF; i++) n += $i; print $2, n }')" "^0 $N$"
	spliced "$mode: a server is killed" 100 $((2 * N))
	stop_app "$client"
	stop_app "$victim"

	splice_mark
	serve 7000 --net $mode --ip $address --name victim -- "$BIN/talk" server 4 0.0.0.0 7000
	victim=$APP out=$OUT
	run_app --net $mode -- "$BIN/talk" client 4 $address 7000 -n $N -w $JOIN_MS -k 20 -s 100000000000
	client=$APP
	wait_for "grep -q '^under way' $OUT"
	sleep 0.3
	kill -KILL "$(child_of "$client")"
	ok "$mode: a client is killed: its server sees $N ends" \
		wait_for "[ \"\$(grep -cE '^end ($ENDS)\$' $out)\" = $N ]"
	is "$mode: and nothing else" "$(grep -cvE "^(end ($ENDS)|ready)\$" "$out")" 0
	spliced "$mode: a client is killed" 100 $((2 * N))
	stop_app "$client"
	stop_app "$victim"
done

# --- the agent is killed ---

splice_mark
run_app --ip 10.77.4.1 -- "$BIN/talk" client 4 10.77.1.1 7000 -n 4 -w $JOIN_MS -k 20 -s $((GIGABYTE / 4)) -p
client=$APP out=$OUT
wait_for "grep -q ^warm $out"
agent_kill9
sent=$(passed)
[ "$SPLICE" = off ] || [ -n "${AX_TEST_QUICK:-}" ] ||
	ok "without an agent, members go on by TCP" wait_for "[ \$(passed) -gt $sent ]"
agent_again
ok "the agent is killed in the middle: the connections end" wait_for -t 60 "grep -q ^good $out"
like "the agent is killed in the middle: every byte is right" "$(cat "$out")" $'(^|\n)good 4$'
stop_app "$client"
spliced "the agent is killed in the middle" 1000 8
splice_mark
JOINS=8 talk "under the next agent" -- 4 10.77.1.1 7000 -n 4 -w $JOIN_MS -k 20 -s 1000000
spliced "under the next agent" 100 8

# --- thousands ---

splice_mark
full() {
	[ "$(ax status -o json | jq .counters.splice_full)" -gt 0 ]
}
until=true # an app has places for 8,192 of its own: the rest finds none, all being there
[ -n "${AX_TEST_QUICK:-}" ] || until=full
UNTIL=$until talk "$PAIRS pairs at once" --net host -- 4 10.77.1.2 7000 -n $PAIRS -w 2500 -k 30 -s 20000
spliced "$PAIRS pairs at once" $((2 * PAIRS)) $((2 * PAIRS * 9 / 10))
[ "$SPLICE" = off ] || [ -n "${AX_TEST_QUICK:-}" ] || ok "who finds his app's places taken is counted" full

is "no server saw anything odd" "$(grep -hvE '^(ready|memory .*)$' "$TALK_OUT" "$HTALK_OUT" "$EDGES_OUT")" ""
stop_app $TALK
stop_app $HTALK
done_testing
