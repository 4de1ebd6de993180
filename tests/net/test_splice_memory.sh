#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 500
# Connections whose ends may have little memory: both are in a control group whose sockets reach a
# limit of their own. They are not spliced, every byte arrives, and nobody is told that memory is short.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/splice.sh"
need jq bpftool
build_c talk ask

splice_agent </dev/null

# The first version of control groups counts sockets apart; the second one with all else, and ends
# processes at the limit: tests/vm/test_splice_memory.sh goes near it.
V1=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/self/mounts)
[ -n "$V1" ] || skip_all "sockets have no limit of their own here (control groups of the first version)"
LIMITED=$V1/$INST
mkdir "$LIMITED"

# limit_set LIMIT: what the sockets of who is in $LIMITED may take
limit_set() {
	echo "$1" >"$LIMITED/memory.kmem.tcp.limit_in_bytes"
	echo 0 >"$LIMITED/memory.kmem.tcp.max_usage_in_bytes"
}
most() { cat "$LIMITED/memory.kmem.tcp.max_usage_in_bytes"; }
cleanup_limited() {
	while read -r pid; do
		kill -9 "$pid"
	done <"$LIMITED/cgroup.procs"
	wait_for -t 10 "rmdir $LIMITED 2>/dev/null"
}

# limited COMMAND...: in that group
limited() {
	(
		echo $BASHPID >"$LIMITED/cgroup.procs"
		exec "$@"
	)
}

# under LIMIT OPTIONS...: a conversation whose sockets may take so much. (TCP drops what comes to a
# socket that gets no memory, and sends it again after pauses that double: 0.2 s to 25 s.)
under() {
	local limit=$1 what="sockets that may take $1 bytes" server out
	shift
	limit_set 1000000000
	limited "$AX" --instance "$INST" run --ip 10.77.1.1 --name talk -- \
		"$BIN/talk" server 4 0.0.0.0 7000 >"$T/server" 2>&1 &
	server=$!
	APPS+=("$server")
	wait_for -t 10 "grep -q ready $T/server"
	limit_set "$limit"
	splice_mark
	out=$(limited timeout -k 1 220 "$AX" --instance "$INST" run -- \
		"$BIN/talk" client 4 10.77.1.1 7000 -w $((4 * JOIN_MS)) -k 100 -i 40000 "$@" 2>&1)
	like "$what: every byte is where it should be" "$out" $'(^|\n)good [0-9]+$'
	is "$what: none of them is spliced" "$(($(joined) - MARK_JOINED))" 0
	ok "$what: they took nearly all of it" [ "$(most)" -gt $((limit - 65536)) ]
	is "$what: the server saw nothing odd" "$(cat "$T/server")" ready
	stop_app "$server"
}
under 600000 -n 4 -s 500000
under 400000 -n 3 -s 300000 -p
cleanup_limited
done_testing
