# SPDX-License-Identifier: GPL-2.0-or-later
# What is measured of `ax trace build`: a part of this project's build, bare and traced. Sourced by
# trace.sh. What a tracer adds is the difference to the bare build of the same round.

build_rooms='base rules' # of agent/
build_cases=(trace.build.bare trace.build.ax trace.build.strace trace.build.bear)

# build_time TRACER...: the seconds of a build from nothing
build_time() {
	local top=$here/../.. room file targets=() start
	for room in $build_rooms; do
		for file in "$top/agent/$room"/*.c; do
			file=agent/$room/${file##*/}
			targets+=("$tmp/build/${file%.c}.o")
		done
	done
	rm -rf "$tmp/build"
	mkdir "$tmp/build"
	start=$EPOCHREALTIME
	# no cache of a compiler between
	PATH=$(tr : '\n' <<<"$PATH" | grep -v ccache | paste -sd:) \
		"$@" make -s -j2 -C "$top" OUT="$tmp/build" "${targets[@]}" >"$tmp/build.said" 2>&1 ||
		die "building with '$*' failed: $(tail -n 3 "$tmp/build.said" | tr '\n' ' ')"
	awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.3f\n", b - a}'
}
measure_build() {
	local tracer=()
	case $1 in
	*.ax)
		[ -n "$ax" ] || return 0
		tracer=("${ax_trace[@]}" build -o "$tmp/build.trace" --)
		;;
	*.strace) tracer=(strace -f -e "trace=file,process" -o "$tmp/build.trace") ;;
	*.bear) tracer=(bear --output "$tmp/build.json" --) ;;
	esac
	record "$1" "$(build_time "${tracer[@]}")"
	if [[ $1 = *.ax ]]; then
		cp "$tmp/build.said" "$tmp/$1.said"
		ax_said "$1"
		record "$1.events" "$received"
		record "$1.lost" "$dropped"
	fi
	rm -rf "$tmp/build" "$tmp/build.trace" "$tmp/build.json"
}
# build_added: what each tracer added to the bare build of its round, from all raw figures
build_added() {
	awk '
		$1 ~ /^trace\.build\.[a-z]*$/ { v[$1, $2] = $3 }
		END {
			for (key in v) {
				split(key, part, SUBSEP)
				bare = "trace.build.bare" SUBSEP part[2]
				if (part[1] != "trace.build.bare" && bare in v)
					printf "%s.added %d %.3f\n", part[1], part[2], v[key] - v[bare]
			}
		}' "$tmp/raw" >"$tmp/added"
	cat "$tmp/added" >>"$tmp/raw"
}
build_rows() {
	row "a part of ax's build, traced by ax" s trace.build.ax 'not traced' trace.build.bare '<=' 1.03
	row 'the same' s trace.build.ax 'strace -f' trace.build.strace '' ''
	row 'the same' s trace.build.ax bear trace.build.bear '' ''
	row 'time that tracing it adds' s trace.build.ax.added 'strace -f' trace.build.strace.added '<=' 0.25
	row 'events lost then' events trace.build.ax.lost '' '' '<=' 0
}
