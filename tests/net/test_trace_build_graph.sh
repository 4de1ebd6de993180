#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 300
# ax trace build graph of a build that is too large to be read: rooms of ax itself, compiled.
. "$(dirname "$0")/lib.sh"
need gcc make dot ar
PATH=$(tr : '\n' <<<"$PATH" | grep -v ccache | paste -sd:)
export PATH

mkdir -p "$T/project/tests" && cd "$T/project" || exit 1
cp -r "$TOP/include" .
for room in base config compile dns; do
	mkdir -p agent/$room
	cp "$TOP"/agent/$room/*.[ch] agent/$room/
done
cp -r "$TOP"/agent/{probes,control,net,packet,rules,yaml,services,allot} agent/ # (for their headers)
find agent/{probes,control,net,packet,rules,yaml,services,allot} -type f ! -name '*.h' -delete
cat >Makefile <<'END2'
sources := $(wildcard agent/*/*.c)
objects := $(sources:%.c=out/%.o)
all: out/all.a out/program out/failed
out/all.a: $(objects)
	ar qcs $@ $^
out/%.o: %.c
	@mkdir -p $(@D)
	gcc -std=gnu11 -D_GNU_SOURCE -I. -Iagent -Iinclude -MMD -c $< -o $@
out/program: tests/program.c
	gcc $< -o $@
out/failed: tests/failed.c
	-gcc -c $< -o $@
END2
echo 'int main(void) { return 0; }' >tests/program.c
echo 'int failed = ' >tests/failed.c
"$AX" --instance "$INST" trace build -o "$T/trace" -- make -j2 >"$T/out" 2>&1
is "a build" "$?" 0

graph() {
	"$AX" trace build graph "$@" "$T/trace" >"$T/graph"
}
boxes() {
	grep -c '\[shape=box' "$T/graph"
}
ellipses() {
	grep -c '^    f[0-9]* \[label' "$T/graph"
}
n=$(find agent -name '*.c' | wc -l)
ok "(it is not small: $n sources)" test "$n" -gt 60

graph
ok "no more than 100 boxes and ellipses" test $(($(boxes) + $(ellipses))) -le 100
ok "Graphviz draws it" dot -Tsvg -o "$T/graph.svg" "$T/graph"
title=$(sed -n 's/^  label="\(.*\)";$/\1/p' "$T/graph")
like "it says what is drawn as one" "$title" \
	"^[0-9]+ commands are drawn as $(boxes) boxes .*, and [0-9]+ files as $(ellipses) ellipses .*--boxes 0 draws each$"
like "and Graphviz, too" "$(<"$T/graph.svg")" '[0-9]+ commands are drawn as [0-9]+ boxes'
# of how many commands of one shape the boxes are
compilations() {
	sed -n 's/.*label="gcc [^"]*-c \*\.c -o \*\.o\\n(\([0-9]*\) commands)".*/\1/p' "$T/graph"
}
is "compilations are one for each directory that they write to" "$(compilations | wc -l)" 4
is "and none of them is missing" "$(($(compilations | paste -sd+)))" "$n"
is "one that failed has a box of its own" "$(grep -c 'color=red' "$T/graph")" 1
like "what is alone is as it was" "$(<"$T/graph")" 'label="gcc tests/program.c -o out/program"'
like "files of a directory are one, by their kind" "$(<"$T/graph")" 'label="\*.h \([0-9]+\)", tooltip="include/\*.h"'
is "those that were made are filled" "$(grep -c 'label="\*.[od] ([0-9]*)".*style=filled' "$T/graph")" 8
is "the others are not" "$(grep 'label="\*.[ch] ([0-9]*)"' "$T/graph" | grep -c 'style=filled')" 0

graph --boxes 0
is "turned off: each command" "$(grep -c 'label="gcc -std=gnu11' "$T/graph")" "$n"
unlike "and nothing is said" "$(<"$T/graph")" 'are drawn as'
all=$(($(boxes) + $(ellipses)))
ok "(which are too many)" test "$all" -gt 100
graph --boxes "$all"
unlike "a bound that is not passed" "$(<"$T/graph")" 'are drawn as'
graph --boxes 30
ok "a low bound" test $(($(boxes) + $(ellipses))) -le 30
is "then all compilations are one" "$(compilations)" "$n"
like "of files anywhere below a directory" "$(<"$T/graph")" 'tooltip="agent/.../\*.c"'
graph -p
ok "each process, too" test $(($(boxes) + $(ellipses))) -le 100
like "with who started it" "$(<"$T/graph")" 'c[0-9]+ -> c[0-9]+ \[style=dotted'
graph --only '*.c'
like "and files of one kind" "$(<"$T/graph")" '\([0-9]+ commands\)'
fails "a bound that is none" "$AX" trace build graph --boxes x "$T/trace"
done_testing
