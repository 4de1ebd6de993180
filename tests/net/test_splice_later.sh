#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# a processor each
# A program whose connection is spliced executes another one that uses splice(2), or loads a library
# that does: the connection goes by TCP before long, and splice(2) gets all of it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/splice.sh"
need jq bpftool
build_c ask splice_later
build splice_later.so splice_later.c gcc "${CFLAGS_TEST[@]}" -DSPLICES -shared -fPIC "$SRC/splice_later.c" -o %o
build splice_then splice_later.c gcc "${CFLAGS_TEST[@]}" -DSPLICES "$SRC/splice_later.c" -o %o

splice_agent </dev/null

# fate: of the client's connection
fate() {
	ax get conns -o json | jq -r '.[] | select(.local_name == "client") |
		if has("spliced") then "spliced" else .not_spliced end'
}

# becomes HOW TEXT
becomes() {
	local dir=$T/$1 server client server_out client_out
	mkdir "$dir"
	cp "$BIN/splice_later.so" "$dir/splice.so"
	serve 7000 --ip 10.77.1.1 --name server -- "$BIN/splice_later" 10.77.1.1 7000 "$dir" \
		"$BIN/splice_then"
	server=$APP server_out=$OUT
	run_app --name client -- "$BIN/ask" ask 10.77.1.1 7000
	client=$APP client_out=$OUT
	ok "$2: its connection is spliced at first" wait_for '[ "$(fate)" = spliced ]'
	splice_mark
	ok "$2: messages are redirected" wait_for '[ "$(redirected)" -gt $((MARK + 100)) ]'
	touch "$dir/$1"
	ok "$2: it is parted" wait_for '[ "$(fate)" = "uses splice(2)" ]'
	splice_mark
	touch "$dir/splice"
	ok "$2: it uses splice()" wait_for "grep -q splices $server_out"
	sleep 1
	stop_app "$client"
	like "$2: every byte is right" "$(cat "$client_out")" '^good [1-9][0-9]+$'
	not_spliced "$2: by then"
	stop_app "$server"
}

becomes exec "a program that executes one with splice()"
becomes dlopen "a program that loads a library with splice()"
done_testing
