#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax trace exec: every command with all of its arguments, where it ran and how it ended.
. "$(dirname "$0")/lib.sh"
need jq
build watched watched.c gcc "${CFLAGS_TEST[@]}" "$SRC/watched.c" -o %o
watched=$BIN/watched

trace() {
	"$AX" --instance "$INST" trace exec "$@" 2>&1
}
# came N TEXT: the run's last line says that N events came and all were received
came() {
	like "$1 came, none was lost" "$(grep ' dropped' <<<"$2" | tr -d ,)" \
		"^$1 events? $1 received 0 dropped$"
}
# the command of the line that matches
command_of() {
	grep -E "$1" <<<"$2" | head -n 1 | sed -E 's/^.{54}[^ ]+ +//'
}
# whole TEXT: however many came, all were received
whole() {
	like "none was lost" "$(grep ' dropped' <<<"$1" | tr -d ,)" "^([0-9]+) events (.*) received 0 dropped$"
	is "all were received" "${BASH_REMATCH[1]:-}" "${BASH_REMATCH[2]:-none}"
}

# --- commands as they can be typed ---

cat >"$T/script" <<'END'
/bin/echo "it's" 'a b' '$HOME' "tab	" ''
/bin/echo *
END
cd "$T" || exit 1
out=$(trace -c "sh $T/script")
came 3 "$out"
like "the command itself is there" "$out" " sh  +0 +sh $T/script"
line=$(command_of " /bin/echo 'it'" "$out")
is "a shell gets the same arguments back" "$(eval "printf '<%s>' ${line#/bin/echo}")" \
	"<it's><a b><\$HOME><tab	><>"

out=$(trace --cwd --env -c "cd / && exec env -i 'A=b c' D= /bin/true x")
came 3 "$out"
like "directory and environment are shown so that they can be repeated" "$out" \
	"cd / && env -i 'A=b c' D= /bin/true x"
deep=$T
for i in {1..40}; do deep+=/directory.$i; done
mkdir -p "$deep"
is "a deep directory" "$(trace -o json --cwd -c "cd $deep && exec /bin/true" |
	jq -r 'select(.comm == "true") | .cwd')" "$deep"

# --- all of them ---

for n in 0 1 500 20000; do
	trace -o json -c "$watched exec $n $T/args" >"$T/json"
	jq -j 'select(.event == "exec" and .argv[1] == "args") | .argv[] + "\u0000"' "$T/json" >"$T/seen"
	# bytes that are no UTF-8 are taken for Latin-1
	sed 's/\xff/\xc3\xbf/g' "$T/args" >"$T/expected"
	ok "$n arguments are all there" cmp "$T/seen" "$T/expected"
	is "$n: nothing is missing" "$(jq -c 'select(.emitted) | [.emitted, .received, .dropped, .cut]' \
		"$T/json")" "[2,2,0,null]"
done
is "none of them is said to be incomplete" "$(grep -c complete "$T/json")" 0

trace -c "$watched exec 5 $T/args" >"$T/text"
line=$(command_of ' args ' "$(<"$T/text")")
mv "$T/args" "$T/first"
eval "$line"
ok "what cannot be shown can be pasted too" cmp "$T/first" "$T/args"
unlike "nothing reaches the terminal that could harm it" "$(cat "$T/text")" $'\e'

# --- those that fail, and ends ---

echo 'no program' >"$T/text.x"
chmod +x "$T/text.x"
out=$(trace --failed -c "sh -c '/none/there x \"y z\"; $T/text.x'")
like "one that is not there" "$out" " ENOENT +/none/there x 'y z'"
like "one that is no program" "$out" " ENOEXEC +$T/text.x"
out=$(trace --exit -c "bash -c '(exec sh -c \"exit 7\"); (exec sh -c \"kill -9 \\\$\\\$\"); exit 0'")
whole "$out"
like "an exit status" "$out" " exit 7 +after [0-9.]+[mu]s"
like "a signal" "$out" " SIGKILL +after "
out=$(trace --exit -o json -c "sleep 0.3")
like "how long it took" "$(jq 'select(.event == "exit") | .duration_ns' <<<"$out")" \
	'^(3[0-9]{8}|[4-9][0-9]{8})$'

# --- who ---

sleep 1000 &
other=$!
bg "$T/shell.out" bash -c 'while sleep 0.1; do /bin/true in-the-shell; done'
shell=$BG
out=$(trace -p "$shell" -d 1s)
like "what a process starts that was there" "$out" "/bin/true in-the-shell"
unlike "and only that" "$(grep -v -e 'in-the-shell' -e 'sleep 0.1' <<<"$out")" "[0-9]{2}:[0-9]{2}:[0-9]{2}\."
out=$(trace --alone -p "$shell" -d 1s)
came 0 "$out"
out=$(trace -n 3 -p "$shell" -d 20s)
is "-n ends it" "$(grep -c '^[0-9][0-9]:' <<<"$out")" 3
end "$shell"
kill "$other"

mkdir "$CGROUP2/$INST.x"
bg "$T/cgroup.out" "$AX" trace exec -o json -O "$T/cgroup.json" --cgroup "$CGROUP2/$INST.x" -d 4s
tracer=$BG
sleep 1
(echo "$BASHPID" >"$CGROUP2/$INST.x/cgroup.procs" && /bin/true inside)
/bin/true outside
wait "$tracer"
rmdir "$CGROUP2/$INST.x"
is "only those of a cgroup" "$(jq -c 'select(.argv) | .argv' "$T/cgroup.json")" '["/bin/true","inside"]'

# two at once, each with its own
bg "$T/one" "$AX" trace exec -o json -c "sh -c '/bin/true one; sleep 1; /bin/true one'"
one=$BG
bg "$T/two" "$AX" trace exec -o json -c "sh -c '/bin/true two; sleep 1; /bin/true two'"
wait "$one" "$BG"
for i in one two; do
	is "two at once: $i" "$(jq -r 'select(.comm == "true") | .argv[1]' "$T/$i" | tr '\n' ' ')" "$i $i "
done

"$watched" exec 45000 "$T/args" || diag "the kernel takes no 45,000 arguments"
trace -o json -O "$T/json" -c "$watched exec 45000 $T/args"
is "as many as the kernel takes" "$(jq 'select(.argv[1] == "args") | .argv | length' "$T/json")" 45003

# a flood of long commands
out=$(trace -o json -O "$T/flood" -c "bash -c 'for i in {1..300}; do /bin/true \$i {1..2000}; done'")
is "a flood of long commands: all came" "$(jq -c 'select(.emitted) | .emitted > 300 and .emitted == .received and .dropped == 0' "$T/flood")" \
	true
is "a flood of long commands: all are whole" \
	"$(jq -s '[.[] | select(.comm == "true" and (.argv | length) == 2002)] | length' "$T/flood")" 300

# --- mistakes ---

fails "two processes" "$AX" trace exec -p 1 -c true
fails "a word too many" "$AX" trace exec word
like "no such process" "$("$AX" trace exec -p 999999999 2>&1)" "no process 999999999"
like "a command that is not there" "$("$AX" trace exec -c /none/there 2>&1)" "/none/there.*No such file"
"$AX" trace exec -c 'sh -c "exit 5"' >/dev/null 2>&1
is "the status is the command's" $? 5

done_testing
