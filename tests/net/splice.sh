# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Sourced after lib.sh by the scripts that have programs talk over spliced connections.
# AX_TEST_SPLICE is the word of the agent's config, on: what users say. With off, nothing is spliced, and
# all else must end alike; forced is what test_splice_on.sh has, too.
#
# Kernels whose FIONREAD is wrong for members refuse on. There the agent is given what its gate found
# but for those lines: it takes this kernel for one whose FIONREAD is right, and does all that on does. What
# needs FIONREAD to be right asks fionread_is_right.

SPLICE=${AX_TEST_SPLICE:-on}
# shellcheck disable=SC2034 # for those who source this
GATE=/run/ax/$INST/splice-gate # what the agent keeps of it
FIONREAD_WRONG=
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
	[ "$SPLICE" != off ] || return 0
	# on a machine with much else to do the kernel is tried for long
	wait_for -t 100 '[ -s "$GATE" ] || grep -q "could not be tried" "$T/$INST.log"'
	grep -qs '	FIONREAD	' "$GATE" || return 0
	FIONREAD_WRONG=1
	[ "$SPLICE" != on ] || pass_fionread
}

# pass_fionread: the agent is started again with a result in which FIONREAD does not differ.
pass_fionread() {
	agent_stop
	awk '/\tFIONREAD\t/ { next } /^(member|redirected)\t/ { n++ } /^end / { $2 = n + 0 } { print }' "$GATE" \
		>"$T/gate"
	install -m 600 "$T/gate" "$GATE"
	agent_again
	is "the gate's result without FIONREAD is taken as it is" "$(cat "$GATE")" "$(cat "$T/gate")"
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
# waits for an edge, as nginx does with more than a buffer full, waits for ever.
fionread_is_right() {
	[ "$SPLICE" = off ] || [ -z "$FIONREAD_WRONG" ]
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
