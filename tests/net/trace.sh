# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Sourced after lib.sh by tests of `ax trace`: programs that are probed, and what came of it.
# shellcheck disable=SC2034 # the tests use PROBED and PROBED_LOAD

# build_probed: $PROBED, whose call stacks are whole
build_probed() {
	build probed probed.c gcc -std=gnu11 -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls \
		-pthread "$SRC/probed.c" -o %o
	PROBED=$BIN/probed
}

# build_probed_load: $PROBED_LOAD, which is hard on probes
build_probed_load() {
	build probed_load probed_load.c gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -pthread \
		"$SRC/probed_load.c" -o %o
	PROBED_LOAD=$BIN/probed_load
}

trace_json() {
	ax trace "$@" -o json 2>"$T/json.err"
}

# values NAME: of the records on stdin, in one line
values() {
	jq -rs "map(.values // empty | .[\"$1\"]) | join(\" \")"
}

# total: emitted, received and dropped, of the last line on stdin
total() {
	jq -rs '.[-1] | "\(.emitted) \(.received) \(.dropped)"'
}
