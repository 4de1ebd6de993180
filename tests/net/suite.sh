# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Sourced after lib.sh by the scripts that run others' own test suites without ax, as a private app
# and as host-mode apps of two agents: one with a pool of IPv6 too, one with no config, which gives
# IPv4 alone. Each test must end alike.
#
# Suites assert times, and four runs share the processors: those that differ are asked up to three times
# more, alone, and have to agree twice.

MODES=(bare private host host-ipv4)

suite_agents() {
	agent_start
	FIRST=$INST
	INST=$(random_name)
	INSTANCES+=("$INST")
	agent_start /dev/null
	SECOND_AGENT=$AGENT SECOND=$INST
}

# in_mode MODE COMMAND...
in_mode() {
	local mode=$1
	shift
	case $mode in
	bare) timeout --foreground -k 1 "$TIME_LIMIT" \
		unshare -n sh -c 'ip link set lo up && exec "$@"' sh "$@" ;;
	private) INST=$FIRST in_app -- "$@" ;;
	host) INST=$FIRST in_app --net host -- "$@" ;;
	host-ipv4) INST=$SECOND in_app --net host -- "$@" ;;
	esac
}

# differing DIR-A DIR-B: the names of tests whose results differ, or that one has not.
differing() {
	comm -3 <(sort "$1/all") <(sort "$2/all") | awk '{ print $1 }' | sort -u
}

# suite NAME LEAST: runs the function run_NAME MODE DIR [NAMES-FILE] for each mode, two at a time; it
# writes 'TEST RESULT' lines to DIR/all, and why to DIR/why. Of so many tests at least.
suite() {
	local name=$1 least=$2 mode left
	local TIME_LIMIT=180

	for mode in "${MODES[@]}"; do
		mkdir -p "$T/$name/$mode"
	done
	for mode in bare host; do
		run_"$name" $mode "$T/$name/$mode" &
		BACKGROUND+=($!)
		[ $mode = bare ] && mode=private || mode=host-ipv4
		run_"$name" $mode "$T/$name/$mode"
		wait $!
	done
	ok "$name: at least $least tests, $(wc -l <"$T/$name/bare/all") in fact" \
		[ "$(wc -l <"$T/$name/bare/all")" -ge "$least" ]
	for mode in "${MODES[@]:1}"; do
		left=$(asked_again "$name" "$mode" "$(differing "$T/$name/bare" "$T/$name/$mode")")
		is "$name, $mode: every test ends as without ax" "$left" ""
		[ -z "$left" ] || diag "$(head -n 40 "$T/$name/$mode/why")"
	done
}

# asked_again NAME MODE TESTS: those of them whose results differ in two of three more runs.
asked_again() {
	local name=$1 mode=$2 open=$3 differ round test
	local -A alike=() apart=()

	for round in 1 2 3; do
		[ -n "$open" ] || break
		diag "$name, $mode: asked again: $(xargs <<<"$open")" >&2
		mkdir -p "$T/$name/$mode.$round" "$T/$name/bare-$mode.$round"
		echo "$open" >"$T/$name/$mode.names"
		run_"$name" bare "$T/$name/bare-$mode.$round" "$T/$name/$mode.names"
		run_"$name" "$mode" "$T/$name/$mode.$round" "$T/$name/$mode.names"
		differ=$(differing "$T/$name/bare-$mode.$round" "$T/$name/$mode.$round")
		for test in $open; do
			# (nor does one agree that was not run)
			if grep -qxF -- "$test" <<<"$differ" ||
				! awk '{ print $1 }' "$T/$name/bare-$mode.$round/all" | grep -qxF -- "$test"; then
				apart[$test]=$((${apart[$test]:-0} + 1))
			else
				alike[$test]=$((${alike[$test]:-0} + 1))
			fi
		done
		open=$(for test in $open; do
			[ "${alike[$test]:-0}" -ge 2 ] || [ "${apart[$test]:-0}" -ge 2 ] || echo "$test"
		done)
	done
	for test in "${!apart[@]}"; do
		[ "${apart[$test]}" -lt 2 ] || echo "$test"
	done | sort
}

suite_done() {
	INST=$SECOND AGENT=$SECOND_AGENT
	done_testing
}
