# SPDX-License-Identifier: GPL-2.0-or-later
# What is measured of `ax trace`. Sourced by run.sh, which set ax, tracebench, tmp, cpu.
#
# tracebench has the functions that are probed; it starts the tracer, waits until its probe is in
# the code, calls the function, and ends the tracer. What a call costs without a probe is taken off.
# What was called is held against what the tracer counted: a figure of calls that no probe saw would
# be wrong. Counting is compared by medians of short slices of calls, since the time of one is short;
# recording by all the time that it takes, the reader's wake-ups included.

RATE=${RATE:-200000}	       # events a second that must not be lost
RATE_SECONDS=${RATE_SECONDS:-5}
many_probes=2000	       # as many as tracebench has functions
some_probes=100		       # of bpftrace's

ax_trace=("$ax" trace)
probe() { # FUNCTION
	echo "uprobe:$tracebench:$1"
}
# says CASE: what the tracer of that case printed
says() {
	tail -n 3 "$tmp/$1.said" 2>/dev/null | tr '\n' ' '
}
# tb CASE OPTION... MODE... -- TRACER...: sets measured, and records time and memory
tb() {
	local name=$1
	shift
	measured=$("$tracebench" -c "$cpu" -o "$tmp/$name.said" "$@" 2>"$tmp/$name.err" </dev/null) ||
		die "measuring $name failed: $(tail -n 3 "$tmp/$name.err" | tr '\n' ' ') $(says "$name")"
	record "$name" "$(jq .value <<<"$measured")"
	record "$name.median" "$(jq '.median // .value' <<<"$measured")"
	record "$name.rss" "$(jq .rss_mib <<<"$measured")"
}
# check_calls CASE COUNTED
check_calls() {
	local calls
	calls=$(jq .calls <<<"$measured")
	[ "$2" = "$calls" ] || die "$1: $calls calls, and the tracer counted ${2:-nothing}"
}

# --- ax ---
# Sets events, received and dropped by "1,347,000 events, 1,346,000 received, 1,000 dropped".
ax_said() { # CASE
	read -r events received dropped < <(sed -n 's/\([0-9]\),\([0-9]\)/\1\2/g
		s/^\([0-9]*\) events*, \([0-9]*\) received, \([0-9]*\) dropped.*/\1 \2 \3/p' \
		"$tmp/$1.said") || die "$1: the tracer did not say what it counted: $(says "$1")"
}
ax_count() { # CASE FUNCTION
	tb "$1" -t "$MILLISECONDS" call "$2" -- "${ax_trace[@]}" count "$(probe "$2_probed")"
	ax_said "$1"
	check_calls "$1" "$events"
}
# Everything that arrived has to be in the file.
ax_record() { # CASE OPTION...
	local name=$1
	shift
	tb "$name" "$@" call push -- "${ax_trace[@]}" watch "$(probe push_probed)" arg0 \
		-O "$tmp/$name.records"
	ax_said "$name"
	check_calls "$name" "$events"
	[ "$(wc -l <"$tmp/$name.records")" = "$received" ] ||
		die "$name: $received records were received, and others written"
	record "$name.lost" "$dropped"
	record "$name.rate" "$(jq .rate <<<"$measured")"
	record "$name.cpu" "$(jq .tracer_ns <<<"$measured")"
	rm "$tmp/$name.records"
}

# --- bpftrace ---
bt_count() { # CASE FUNCTION
	tb "$1" -t "$MILLISECONDS" call "$2" -- \
		bpftrace -e "$(probe "$2_probed") { @ = count(); }"
	check_calls "$1" "$(awk '/^@: / {print $2}' "$tmp/$1.said")"
}
# It does not tell of all that it loses: what is in its buffer when it is ended is gone.
bt_record() { # CASE OPTION...
	local name=$1 lost
	shift
	tb "$name" "$@" call push -- \
		bpftrace -e "$(probe push_probed) { printf(\"arg0=%d\\n\", arg0); }"
	lost=$(($(jq .calls <<<"$measured") - $(grep -c ^arg0= "$tmp/$name.said")))
	record "$name.lost" "$lost"
	record "$name.rate" "$(jq .rate <<<"$measured")"
	record "$name.cpu" "$(jq .tracer_ns <<<"$measured")"
}

# --- a script of five probes: what the first one does is given ---
ax_script() { # ACTIONS
	cat <<-END
		$(probe push_probed) { $1 }
		$(probe nop5_probed) { set thread.began = nsecs }
		uretprobe:$tracebench:nop5_probed if thread.began {
			hist nsecs-thread.began as times; set thread.began = 0 }
		$(probe endbr_probed) if arg0 > 100 { count by comm as large }
		$(probe many_10000) { stats arg0 by comm as sums }
	END
}
bt_script() { # ACTIONS
	cat <<-END
		$(probe push_probed) { $1 }
		$(probe nop5_probed) { @began[tid] = nsecs; }
		uretprobe:$tracebench:nop5_probed /@began[tid]/ {
			@times = hist(nsecs - @began[tid]); delete(@began[tid]); }
		$(probe endbr_probed) /arg0 > 100/ { @large[comm] = count(); }
		$(probe many_10000) { @sums[comm] = stats(arg0); }
	END
}

# --- what is on the disk ---
mib() { # FILE...
	du -Lbc "$@" | awk 'END {printf "%.2f\n", $1 / 1048576}'
}
measure_size() {
	local llvm
	if [ -n "$ax" ]; then
		cp "$ax" "$tmp/ax"
		strip "$tmp/ax"
		record trace.size "$(mib "$tmp/ax")"
		rm "$tmp/ax"
	fi
	llvm=$(ldd "$(command -v bpftrace)" | awk '/libLLVM/ {print $3}')
	[ -n "$llvm" ] || die "bpftrace is not linked with libLLVM"
	record trace.sizebt "$(mib "$(command -v bpftrace)" "$llvm")"
}

# --- Intel PT in perf.data ---
# The events of the sample that the tests have, ten times: a hundred thousand packets.
make_pt() { # FILE
	local sample=$here/../../tests/perfdata/intel_pt.data data=744 size i
	size=$(($(stat -c %s "$sample") - data))
	head -c $data "$sample" >"$1"
	for ((i = 0; i < 10; i++)); do
		tail -c +$((data + 1)) "$sample" >>"$1"
	done
	# data_size, its lowest bytes first
	for ((i = 0; i < 8; i++)); do
		printf '%b' "\\x$(printf %02x $((size * 10 >> 8 * i & 255)))"
	done | dd of="$1" bs=1 seek=48 conv=notrunc status=none
}
measure_pt() { # CASE COMMAND...
	local name=$1 start
	shift
	[ -e "$tmp/pt.data" ] || make_pt "$tmp/pt.data"
	start=${EPOCHREALTIME/./}
	"$@" "$tmp/pt.data" >"$tmp/$name.said" 2>"$tmp/$name.err" || die "$name failed: $(tail -n 1 "$tmp/$name.err")"
	record "$name" "$(awk -v us=$((${EPOCHREALTIME/./} - start)) 'BEGIN { print us / 1000 }')"
	# as many of those that perf shows one by one
	[ "$(grep -cE ' MTC (ctc=)?0x' "$tmp/$name.said")" = 3250 ] || die "$name: packets are missing"
	rm "$tmp/$name.said"
}

# --- one round ---
# shellcheck source=tools/bench/build.sh
. "$here/build.sh"
# shellcheck source=tools/bench/profile.sh
. "$here/profile.sh"
# shellcheck source=tools/bench/jit.sh
. "$here/jit.sh"
trace_cases=(trace.firstbt trace.first trace.pushbt trace.push trace.nop5bt trace.nop5
	trace.endbrbt trace.endbr trace.recordbt trace.record trace.ratebt trace.rate
	trace.manybt trace.many trace.scriptbt trace.script trace.keybt trace.key trace.pairbt trace.pair
	trace.ptperf trace.pt "${profile_cases[@]}" "${build_cases[@]}" "${jit_cases[@]}")

measure_trace() {
	case $1 in
	trace.build.*) measure_build "$1" ;;
	trace.profilebt | trace.profileperf) measure_profile "$1" ;;
	trace.jit.bare | trace.jit.once) measure_jit "$1" ;;
	trace.firstbt)
		tb "$1" first push_probed -- bpftrace -e \
			"$(probe push_probed) { printf(\"push_probed\\n\"); exit(); }"
		;;
	trace.recordbt) bt_record "$1" -t "$MILLISECONDS" ;;
	trace.ratebt) bt_record "$1" -r "$RATE" -t $((RATE_SECONDS * 1000)) ;;
	trace.manybt) # a glob that takes a hundred of them; it needs a while to detach from these
		[ "$round" -le 2 ] || return 0
		tb "$1" -n $some_probes many -- bpftrace -e "$(probe 'many_101*') { @ = count(); }"
		check_calls "$1" "$(awk '/^@: / {print $2}' "$tmp/$1.said")"
		;;
	trace.scriptbt)
		tb "$1" first push_probed -- bpftrace -e "$(bt_script 'printf("push_probed\n"); exit();')"
		;;
	trace.keybt | trace.pairbt)
		tb "$1" -t "$MILLISECONDS" call "$(function_of "${1%bt}")" -- \
			bpftrace -e "$(bt_script '@calls[arg0] = count();')"
		;;
	trace.ptperf) measure_pt "$1" perf script -D -i ;;
	trace.*bt) bt_count "$1" "$(expr "$1" : 'trace\.\(.*\)bt')" ;;
	*) [ -z "$ax" ] || measure_ax_trace "$1" ;;
	esac
}
function_of() {
	[ "$1" = trace.key ] && echo push || echo nop5
}
measure_ax_trace() {
	case $1 in
	trace.script)
		tb "$1" first push_probed -- "${ax_trace[@]}" run -e "$(ax_script 'print "push_probed"; exit')"
		;;
	trace.key | trace.pair)
		tb "$1" -t "$MILLISECONDS" call "$(function_of "$1")" -- \
			"${ax_trace[@]}" run -e "$(ax_script 'count by arg0 as calls')"
		ax_said "$1"
		check_calls "$1" "$events"
		record "$1.lost" "$dropped"
		;;
	trace.first)
		tb "$1" first push_probed -- "${ax_trace[@]}" watch "$(probe push_probed)" -n 1
		;;
	trace.pt) measure_pt "$1" "${ax_trace[@]}" perfdata pt ;;
	trace.profile*) measure_profile "$1" ;;
	trace.jit.*) measure_jit "$1" ;;
	trace.record) ax_record "$1" -t "$MILLISECONDS" ;;
	trace.rate) ax_record "$1" -r "$RATE" -t $((RATE_SECONDS * 1000)) ;;
	trace.many)
		tb "$1" -n $many_probes many -- "${ax_trace[@]}" count "$(probe 'many_*')"
		ax_said "$1"
		check_calls "$1" "$events"
		;;
	*) ax_count "$1" "${1#trace.}" ;;
	esac
}

# --- the table's rows ---
trace_rows() {
	local bt=bpftrace
	row 'start to the first record of a uprobe' ms trace.first "$bt" trace.firstbt '<=' 0.5
	row 'peak memory of that' MiB trace.first.rss "$bt" trace.firstbt.rss '' ''
	row 'peak memory of that' MiB trace.first.rss '' '' '<=' 12
	row 'count calls of a function, push first' ns trace.push.median "$bt" \
		trace.pushbt.median '<=' 1.0
	row 'count calls of a function, nop5 first' ns trace.nop5.median "$bt" \
		trace.nop5bt.median '<=' 1.0
	row 'count calls of a function, endbr64 first' ns trace.endbr.median "$bt" \
		trace.endbrbt.median '<=' 0.1
	row 'record an argument to a file, each call' ns trace.record "$bt printf" \
		trace.recordbt '<=' 0.1
	row 'events lost then' events trace.record.lost '' '' '' ''
	row 'processor time of the tracer for each' ns trace.record.cpu "$bt" trace.recordbt.cpu \
		'' ''
	row 'peak memory of that' MiB trace.record.rss '' '' '<=' 12
	row "events lost of $RATE/s for $RATE_SECONDS s" events trace.rate.lost '' '' '<=' 0
	row 'calls a second then' 1/s trace.rate.rate "$bt" trace.ratebt.rate '' ''
	row "attach and detach $many_probes uprobes" s trace.many '' '' '<=' 0.3
	row "attach and detach $many_probes uprobes" s trace.many "$bt, $some_probes of them" \
		trace.manybt '' ''
	row 'start of a script of five probes to its first line' ms trace.script "$bt" \
		trace.scriptbt '<=' 0.4
	row 'peak memory of that' MiB trace.script.rss '' '' '<=' 12
	row 'its count by an argument, push first' ns trace.key.median "$bt" trace.keybt.median \
		'<=' 1.0
	row 'its entry and return with a variable, nop5 first' ns trace.pair.median "$bt" \
		trace.pairbt.median '<=' 1.0
	row 'events lost then' events trace.pair.lost '' '' '<=' 0
	row '100,000 packets of Intel PT as text' ms trace.pt 'perf script -D' trace.ptperf '<=' 0.2
	profile_rows
	build_rows
	jit_rows
	row 'size of the program, stripped' MiB trace.size "$bt + libLLVM" trace.sizebt '<=' 0.05
}
