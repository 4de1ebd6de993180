# SPDX-License-Identifier: GPL-2.0-or-later
# What is measured of `ax trace jit`: how long Node.js takes to start and end while the code that it makes is
# kept, and how long one such start takes with that of ax. Sourced by trace.sh.

NODE_STARTS=${NODE_STARTS:-10}
jit_cases=(trace.jit.bare trace.jit.kept trace.jit.once trace.jit.all)

# node_starts: a script that starts it so often, and says how many microseconds that took
node_starts() {
	cat <<-END
		start=\${EPOCHREALTIME/./}
		for ((i = 0; i < $NODE_STARTS; i++)); do node -e 0 || exit 1; done
		echo \$((\${EPOCHREALTIME/./} - start))
	END
}
measure_jit() { # CASE
	local starts=$NODE_STARTS us
	rm -rf "$tmp/jit"
	node_starts >"$tmp/node_starts"
	us=-${EPOCHREALTIME/./}
	case $1 in
	*.bare) us=$(bash "$tmp/node_starts") || die "$1 failed" ;;
	*.kept)
		us=$("${ax_trace[@]}" jit -o "$tmp/jit" -c "bash $tmp/node_starts" 2>"$tmp/$1.said") ||
			die "$1 failed: $(says "$1")"
		ax_said "$1"
		grep -q '^[1-9][0-9]* pages in ' "$tmp/$1.said" || die "$1: no code was kept: $(says "$1")"
		record "$1.lost" "$dropped"
		;;
	*.once)
		node -e 0 || die "$1 failed"
		us=$((${EPOCHREALTIME/./} + us)) starts=1
		;;
	*)
		"${ax_trace[@]}" jit -o "$tmp/jit" -c 'node -e 0' 2>"$tmp/$1.said" ||
			die "$1 failed: $(says "$1")"
		us=$((${EPOCHREALTIME/./} + us)) starts=1
		;;
	esac
	record "$1" "$(awk -v us="$us" -v n="$starts" 'BEGIN { printf "%.2f\n", us / n / 1000 }')"
	rm -rf "$tmp/jit"
}
jit_rows() {
	row "one of $NODE_STARTS starts of Node.js, its code kept" ms trace.jit.kept 'not kept' trace.jit.bare '<=' 1.10
	row 'events lost then' events trace.jit.kept.lost '' '' '<=' 0
	row 'one start of Node.js with that of ax and its end' ms trace.jit.all 'not kept' trace.jit.once '' ''
}
