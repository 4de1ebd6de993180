#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 400
# Spliced connections whose ends come to have little memory: both are in a control group whose sockets
# get a limit of their own and reach it. Every byte arrives, nobody is told that memory is short, and
# nobody sleeps for good who was told to wait for room. Sockets that have one already are not spliced.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/splice.sh"
need jq bpftool
build_c talk

# The first version of control groups counts sockets apart; the second one with all else, and ends
# processes at the limit: tests/vm/test_splice_memory.sh goes near it.
V1=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/self/mounts)
[ -n "$V1" ] || skip_all "sockets have no limit of their own here (control groups of the first version)"
LIMITED=$V1/$INST

splice_agent </dev/null
mkdir "$LIMITED"
in_group() { echo "$2" >"$LIMITED/memory.kmem.tcp.$1" 2>/dev/null; }
taken() { cat "$LIMITED/memory.kmem.tcp.usage_in_bytes"; }
short() { count 9 messages; } # AX_SPLICE_MEMORY
cleanup_limited() {
	while read -r pid; do
		kill -9 "$pid"
	done <"$LIMITED/cgroup.procs"
	wait_for "rmdir $LIMITED 2>/dev/null"
}

# limited COMMAND...: in that group
limited() {
	(
		echo $BASHPID >"$LIMITED/cgroup.procs"
		exec "$@"
	)
}

# Requests and answers only: two that send much at each other may stand still for good at such a limit,
# by TCP alone (ax-splice(7)).
talk_limited() {
	limited timeout -k 1 250 "$AX" --instance "$INST" run -- "$BIN/talk" client 4 10.77.1.1 7000 \
		-k 100 -i 40000 "$@"
}

in_group limit_in_bytes -1 # sockets are counted from now on
limited "$AX" --instance "$INST" run --ip 10.77.1.1 --name talk -- "$BIN/talk" server 4 0.0.0.0 7000 \
	>"$T/server" 2>&1 &
server=$!
APPS+=("$server")
wait_for "grep -q ready $T/server"

# --- a limit for those that are spliced ---

N=20
splice_mark
talk_limited -n $N -W "$T/enough" >"$T/client" 2>&1 &
client=$!
APPS+=("$client")
wait_for -t 30 "[ \$((\$(joined) - MARK_JOINED)) -ge $((2 * N)) ]"
ok "spliced sockets get no more memory than they have" wait_for 'in_group limit_in_bytes "$(taken)"'
ok "what they send goes by TCP then" wait_for -t 30 '[ "$(short)" -gt 1000 ]'
touch "$T/enough"
ok "they go on so" wait_for -t 200 "! alive $client"
like "every byte is where it should be" "$(cat "$T/client")" $'(^|\n)good '"$N"'$'
spliced "with memory, before" 100 $((2 * N))

# --- a limit from the beginning ---

in_group limit_in_bytes 1000000
splice_mark
like "sockets with a limit: every byte is where it should be" \
	"$(talk_limited -n 3 -w $((2 * JOIN_MS)) 2>&1)" $'(^|\n)good 3$'
not_spliced "sockets with a limit"
is "the server saw nothing odd" "$(cat "$T/server")" ready
stop_app "$server"
cleanup_limited
done_testing
