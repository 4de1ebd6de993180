# SPDX-License-Identifier: GPL-2.0-or-later
# What is measured of `ax trace profile`: the processor time and the memory that looking at all
# processors for some seconds takes, while they are busy. Sourced by trace.sh.

PROFILE_SECONDS=${PROFILE_SECONDS:-5}
profile_cases=(trace.profilebt trace.profileperf trace.profile trace.profilefp)

# profile_cost CASE COMMAND...: its processor time in ms, and its peak memory, asked for shortly before
# its end
profile_cost() {
	local name=$1 load=() timer command i
	shift
	for ((i = 0; i < $(nproc); i++)); do
		(while :; do :; done) &
		load+=($!)
	done
	(
		TIMEFORMAT='%U %S'
		time "$@" >"$tmp/$name.said" 2>"$tmp/$name.err" </dev/null
	) 2>"$tmp/$name.time" &
	timer=$!
	sleep "$PROFILE_SECONDS"
	command=$(pgrep -P "$timer") || die "$name ended too early: $(tail -n 3 "$tmp/$name.err")"
	record "$name.rss" "$(awk '/^VmHWM:/ {printf "%.2f\n", $2 / 1024}' "/proc/$command/status")"
	wait "$timer" || die "$name failed: $(tail -n 3 "$tmp/$name.err")"
	kill "${load[@]}"
	wait "${load[@]}" 2>/dev/null || true
	record "$name" "$(awk '{print ($1 + $2) * 1000}' "$tmp/$name.time")"
}
measure_profile() {
	local seconds=$((PROFILE_SECONDS + 1))
	case $1 in
	trace.profilebt)
		profile_cost "$1" bpftrace -e \
			"profile:hz:99 { @[kstack, ustack, comm] = count(); } interval:s:$seconds { exit(); }"
		;;
	trace.profileperf)
		profile_cost "$1" perf record -q -F 99 -a -g -o "$tmp/profile.data" sleep "$seconds"
		rm -f "$tmp/profile.data"
		;;
	trace.profile) profile_cost "$1" "${ax_trace[@]}" profile -d "${seconds}s" -o folded ;;
	*) profile_cost "$1" "${ax_trace[@]}" profile --stack fp -d "${seconds}s" -o folded ;;
	esac
	case $1 in
	trace.profile | trace.profilefp)
		cp "$tmp/$1.err" "$tmp/$1.said"
		ax_said "$1"
		record "$1.lost" "$dropped"
		;;
	esac
}
profile_rows() {
	local what="processor time of a profile of $((PROFILE_SECONDS + 1)) s at 99 Hz"
	row "$what" ms trace.profile bpftrace trace.profilebt '<=' 0.5
	row 'the same' ms trace.profile 'perf record -g' trace.profileperf '<=' 0.5
	row 'the same by frame pointers' ms trace.profilefp bpftrace trace.profilebt '' ''
	row 'peak memory of the first' MiB trace.profile.rss '' '' '<=' 16
	row 'the same' MiB trace.profile.rss bpftrace trace.profilebt.rss '' ''
	row 'samples lost then' samples trace.profile.lost '' '' '<=' 0
}
