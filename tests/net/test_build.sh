#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# What of a built tree is built anew: what was made with the flag, the version or the line of the
# Makefile that is another now, and nothing else.
. "$(dirname "$0")/lib.sh"
need make gcc clang

cd "$TOP" || exit 1
OUT=$T/out
OBJECTS=("$OUT/agent/base/strv.o" "$OUT/tools/lib/cmd.o" "$OUT/xdp/root.bpf.o" "$OUT/man/ax.1")
# builds ARGS...: what make makes of these four, a word each
builds() {
	touch "$T/before"
	sleep 0.05
	if ! env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make OUT="$OUT" "$@" "${OBJECTS[@]}" >"$T/make" 2>&1; then
		cat "$T/make"
		return
	fi
	find "${OBJECTS[@]}" -newer "$T/before" -printf '%f '
}

is "all at first" "$(builds)" "strv.o cmd.o root.bpf.o ax.1 "
is "then nothing" "$(builds)" ""
is "another version: who names it" "$(builds VERSION=9.8.7)" "cmd.o ax.1 "
ok "which they have then" grep -q 9.8.7 "$OUT/tools/lib/cmd.o" "$OUT/man/ax.1"
is "other flags for C" "$(builds VERSION=9.8.7 CFLAGS=-O1)" "strv.o cmd.o "
is "the same again: nothing" "$(builds VERSION=9.8.7 CFLAGS=-O1)" ""
is "another compiler for BPF" "$(builds VERSION=9.8.7 CFLAGS=-O1 CLANG='clang -DANOTHER')" "root.bpf.o "
sed 's/^BPF_CFLAGS := /&-DONE_MORE /' Makefile >"$T/Makefile"
is "a flag in the Makefile" "$(builds -f "$T/Makefile")" "strv.o cmd.o root.bpf.o ax.1 "
is "and nothing more" "$(builds -f "$T/Makefile")" ""
sed -i 's/^WARN .*/& -Wundef/' "$T/Makefile"
is "a warning" "$(builds -f "$T/Makefile")" "strv.o cmd.o "

# What is put together of them: an archive of two objects, so that not all of ax is built for it.
OBJECTS=("$OUT/libax.a")
sed 's|^AGENT_SRC := .*|AGENT_SRC := agent/base/strv.c agent/base/address.c|' Makefile >"$T/Makefile"
is "an archive of two files" "$(builds -f "$T/Makefile")" "libax.a "
is "which stays as it is" "$(builds -f "$T/Makefile")" ""
sed -i 's|^AGENT_SRC := .*|AGENT_SRC := agent/base/strv.c|' "$T/Makefile"
is "one of them goes" "$(builds -f "$T/Makefile")" "libax.a "
is "with what was made of it" "$(ar t "$OUT/libax.a")" "strv.o"
done_testing
