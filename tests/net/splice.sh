# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Sourced after lib.sh by the scripts that have programs talk over spliced connections.
# AX_TEST_SPLICE is the word of the agent's config: with off, nothing is spliced, and all else must
# end alike; forced is also for kernels whose FIONREAD is wrong for members.

SPLICE=${AX_TEST_SPLICE:-forced}
# shellcheck disable=SC2034 # for those who source this
JOIN_MS=1500 # in which the agent makes members of a connection with requests and answers

# splice_agent: the config's other sections come from stdin
splice_agent() {
	agent_start - <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		  splice: $SPLICE
		$(cat)
	EOF
	# on a machine with much else to do the kernel is tried for long
	[ "$SPLICE" = off ] || wait_for -t 100 "! ax doctor | grep -q 'being tried'"
}

# count NUMBER FIELD: of the programs' counters (enum ax_splice_count), over all processors
count() {
	local n
	n=$(bpftool -j map dump pinned "/sys/fs/bpf/$INST/map_splice_count" 2>/dev/null |
		jq "[.[$1].formatted.values[].value.$2] | add" 2>/dev/null)
	echo "${n:-0}"
}
joined() { count 0 messages; }
redirected() { count 2 messages; }
passed() { count 3 messages; }

# Before something is looked at, and after it.
splice_mark() {
	MARK_JOINED=$(joined) MARK=$(redirected)
}

# spliced WHAT MESSAGES [SOCKETS]: at least so many were redirected since the mark, and so many
# sockets joined; else all that was seen shows nothing of splicing.
spliced() {
	local n=$(($(redirected) - MARK)) m=$(($(joined) - MARK_JOINED))
	if [ "$SPLICE" = off ]; then
		is "$1: nothing is spliced" "$n $m" "0 0"
	elif [ "$n" -ge "$2" ] && [ "$m" -ge "${3:-2}" ]; then
		pass "$1: $n messages were redirected, $m sockets had joined"
	else
		not_ok "$1: $n messages were redirected, wanted $2; $m sockets joined, wanted ${3:-2}" \
			"$(ax get conns -o wide 2>&1 | tail -n 5; ax doctor | grep -i splic)"
	fi
}

# not_spliced WHAT: nobody joined since the mark
not_spliced() {
	is "$1: nothing is spliced" "$(($(redirected) - MARK)) $(($(joined) - MARK_JOINED))" "0 0"
}

# Does FIONREAD count what members were sent by TCP? Where it does not, a reader that asks it and then
# waits for an edge, as nginx does with more than a buffer full, waits for ever: only `forced`
# splices there.
fionread_is_right() {
	[ "$SPLICE" = off ] && return
	wait_for "! ax doctor | grep -q 'being tried'"
	! ax doctor | grep -q '^ *FIONREAD (member'
}
# shellcheck disable=SC2034 # for those who source this
NO_FIONREAD="missing kernel feature: FIONREAD that is right for sockets in a sockhash"

# until_true COMMAND: the file $T/true comes to be when that is true, for a program that goes on
# until then. done_until: it has ended.
until_true() {
	rm -f "$T/true"
	wait_for -t 40 "$1 && touch '$T/true'" &
	WAITER=$!
}
done_until() {
	{
		kill "$WAITER"
		wait "$WAITER"
	} 2>/dev/null
	return 0
}

# talk WHAT [ax run's options] -- FAMILY ADDR PORT OPTIONS...: every byte is right, and every
# connection ended as it should. With $JOINS they are not warm before so many sockets have joined
# since the mark (on a machine with much else to do the agent's looks take longer), with $UNTIL not
# before that is true.
talk() {
	local what=$1 out go=() until=${UNTIL:-}
	shift
	local run=()
	while [ "$1" != -- ]; do
		run+=("$1")
		shift
	done
	shift
	[ -z "${JOINS:-}" ] || until='[ $(($(joined) - MARK_JOINED)) -ge '"$JOINS"' ]'
	if [ "$SPLICE" != off ] && [ -n "$until" ]; then
		go=(-W "$T/true")
		until_true "$until"
	fi
	out=$(TIME_LIMIT=90 in_app "${run[@]}" -- "$BIN/talk" client "$@" "${go[@]}" 2>&1)
	[ ${#go[@]} -eq 0 ] || done_until
	like "$what: every byte is where it should be" "$out" $'(^|\n)good [0-9]+$'
}
