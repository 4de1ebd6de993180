#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax trace open: what is opened, with which flags, and what comes of it.
. "$(dirname "$0")/lib.sh"
need jq
build watched watched.c gcc "${CFLAGS_TEST[@]}" "$SRC/watched.c" -o %o
watched=$BIN/watched

trace() {
	"$AX" --instance "$INST" trace open "$@" 2>&1
}
field() { # field FILTER: of all opens, in their order
	jq -r "select(.event == \"open\") | $1" "$T/json"
}

# --- every way to open ---

mkdir "$T/d"
trace "$T/d" -o json -O "$T/json" -c "$watched open $T/d"
is "the names as the program gave them" "$(field .name | head -n 2 | tr '\n' ' ')" "$T/d $T/d/new "
is "all that begin with the pattern" "$(field .name | wc -l)" 5
is "a long name is whole" "$(field '.name | length' | tail -n 1)" \
	$((${#T} + 2 + 201 + 201 + 106))
is "flags" "$(field .flags | tr '\n' ' ')" \
	"O_DIRECTORY|O_PATH O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC O_RDONLY|O_DIRECTORY O_WRONLY|O_CREAT|O_TRUNC O_RDONLY "
is "the mode of new files only" "$(field '.mode // "-"' | tr '\n' ' ')" "- 0640 - 0600 - "
is "descriptors and errors" "$(field '.error // (.fd | tostring)' | tr '\n' ' ')" \
	"3 4 ENOTDIR 7 ENOENT "
is "each has its time" "$(field 'select(.latency_ns > 100 and .latency_ns < 1e10) | 1' | wc -l)" 5
is "all came" "$(jq -c 'select(.emitted) | [.emitted, .received, .dropped]' "$T/json")" "[5,5,0]"

rm "$T/d/new"
out=$(trace -c "$watched open $T/d")
like "below a directory's descriptor" "$out" ' 5 +O_RDWR\|O_APPEND\|O_NONBLOCK +\[3\]/new'
like "openat2() with what it resolves" "$out" ' 6 +O_RDONLY\|RESOLVE_BENEATH +\[3\]/new'
like "openat2() that fails" "$out" ' EXDEV +O_RDONLY\|RESOLVE_BENEATH +\[3\]/\.\./new'
like "a name that cannot be read" "$out" " EFAULT +O_RDONLY +\?"
like "a table" "$out" '^TIME +PID COMM +TOOK RESULT  FLAGS AND MODE +NAME'
like "the time in between" "$out" ' watched +[0-9.]+[um]s 4 '
unlike "nothing reaches the terminal that could harm it" "$out" $'\e'
like "flags and mode" "$out" ' O_WRONLY\|O_CREAT\|O_EXCL\|O_CLOEXEC 0640 .*/new'

# --- which ---

rm "$T/d/new"
trace '*/n?w' -o json -O "$T/json" -c "$watched open $T/d"
is "a glob goes over the whole name" "$(field .name | sort | tr '\n' ' ')" "../new $T/d/new $T/d/new $T/d/new "
rm "$T/d/new"
trace --failed "$T" -o json -O "$T/json" -c "$watched open $T/d"
is "only those that failed" "$(field .error | tr '\n' ' ')" "ENOTDIR ENOENT "
trace --quick /etc/hostname -o json -O "$T/json" -c "cat /etc/hostname"
is "without the time" "$(field '[.name, .latency_ns] | @json')" '["/etc/hostname",null]'

# --- who ---

bg "$T/shell.out" bash -c 'while sleep 0.1; do cat /etc/hostname; done'
shell=$BG
sleep 0.3
cat /etc/hostname >/dev/null &
out=$(trace -p "$shell" /etc/hostname -n 3 -d 20s)
is "of a process that was there, with what it starts" "$(grep -c ' cat .*/etc/hostname' <<<"$out")" 3
out=$(trace --alone -p "$shell" /etc/hostname -d 700ms)
like "of it alone" "$out" "0 events, 0 received"
end "$shell"

# two at once, each with its own; many events, none lost: what is on its way has room for all of them,
# however late who reads them comes
bg "$T/one.out" "$AX" trace open "$T/one" -o json -O "$T/one.json" -c "$watched opens $T/one 15000"
one=$BG
bg "$T/two.out" "$AX" trace open "$T/two" -o json -O "$T/two.json" -c "$watched opens $T/two 15000"
wait "$one" "$BG"
for i in one two; do
	is "two at once: each sees its own ($i)" "$(jq -r 'select(.event) | .name' "$T/$i.json" |
		sort | uniq -c | tr -s ' ')" " 15000 $T/$i"
	is "two at once: none is lost ($i)" "$(jq -c 'select(.emitted) | [.emitted, .received, .dropped]' \
		"$T/$i.json")" "[15000,15000,0]"
done

# a reader that cannot keep up: what it lost is counted
cat >"$T/flood" <<END
kill -STOP \$PPID
$watched opens $T/flood-file 60000
kill -CONT \$PPID
END
trace "$T/flood-file" -o json -O "$T/json" -c "sh $T/flood"
is "what there was no room for is counted" "$(jq -c 'select(.emitted) |
	[.emitted, .received + .dropped, .dropped > 0]' "$T/json")" "[60000,60000,true]"
is "what was received is there" "$(field .name | wc -l)" \
	"$(jq 'select(.emitted) | .received' "$T/json")"

# --- real programs ---

trace -o json -O "$T/json" -c "$PYTHON -c 'open(\"/etc/passwd\").read()'"
like "Python opens what it is told to" "$(field '[.comm, .name, .flags] | @csv')" \
	'"python3?[0-9.]*","/etc/passwd","O_RDONLY\|O_CLOEXEC"'

fails "two patterns" "$AX" trace open a b
done_testing
