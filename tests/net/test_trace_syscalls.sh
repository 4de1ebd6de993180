#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax trace syscalls, files and signals: what is counted is what a program did.
. "$(dirname "$0")/lib.sh"
need jq strace
build tallied tallied.c gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-omit-frame-pointer \
	-fno-optimize-sibling-calls -pthread "$SRC/tallied.c" -o %o
tallied=$BIN/tallied

trace() {
	"$AX" --instance "$INST" trace "$@" 2>&1
}
# of NAME FILTER: of the line of one system call
of() {
	jq -r "select(.syscall == \"$1\") | $2" "$T/json"
}
totals() {
	jq -c 'select(.emitted) | [.emitted == .received, .dropped]' "$T/json"
}

# --- syscalls ---

# what ax does in the process before it becomes the command does not count
strace -o "$T/strace" /bin/true
for follow in "" -f; do
	# shellcheck disable=SC2086 # one word or none
	like "the command's calls, and no other${follow:+ ($follow)}" "$(trace count tracepoint:raw_syscalls:sys_enter $follow -c /bin/true)" \
		"$(grep -c '^[a-z0-9_]*(' "$T/strace") events"
done

trace syscalls -o json -O "$T/json" -c "$tallied calls 1000"
is "each call is counted" "$(of getppid '"\(.count) \(.failed)"')" "1000 0"
is "those that fail with their error" "$(of read '.errors.EBADF')" 1000
is "the times are those of the histogram" \
	"$(of getppid '.count == ([.histogram[].count] | add)')" true
is "a call that sleeps takes as long" "$(of clock_nanosleep '.longest_ns >= 20000000 and .time_ns >= .longest_ns')" true
is "a call that returns in another program is the one that was made" "$(of execve .count)" 1
is "all is accounted for" "$(totals)" '[true,0]'
trace syscalls -o json -O "$T/json" -c "$tallied refused 300"
is "calls that a filter refuses" "$(of getppid '"\(.count) \(.errors.EPERM) \(.time_ns)"')" "300 300 0"
is "calls that there are not take one line" "$(of '(no such call)' '"\(.count) \(.errors.ENOSYS)"')" "300 300"
is "those are accounted for, too" "$(totals)" '[true,0]'
out=$(trace syscalls --by-count --hist -c "$tallied calls 300")
like "a table, the most frequent first" "$out" $'^SYSCALL +CALLS +FAILED +TIME +MEAN LONGEST ERRORS\n(getppid|read) +30[0-9] '
like "errors in text" "$out" $'\nread +30[0-9] +300 .* EBADF 300\n'
like "times of each" "$out" $'\n    from [0-9.]+[num]?s +[0-9]+ \\|@'
like "the last line" "$out" '[0-9,]+ events, [0-9,]+ received, 0 dropped'

trace syscalls --by process -o json -O "$T/json" -c "sh -c '$tallied calls 20; $tallied calls 30'"
is "by process" "$(of getppid 'select(.comm == "tallied") | .count' | sort -n | tr '\n' ' ')" "20 30 "
out=$(trace syscalls --by process --top 1 -c "$tallied calls 20")
like "the program's name" "$out" '^ +PID COMM +APP +SYSCALL'
like "what is left out is said" "$out" '\([0-9]+ more lines: --top 0 shows all\)'

# two at once
bg "$T/one.out" "$AX" trace syscalls -o json -O "$T/one.json" -c "$tallied calls 5000"
one=$BG
trace syscalls -o json -O "$T/json" -c "$tallied calls 700"
wait "$one"
is "each sees its own" "$(of getppid .count) $(jq -r 'select(.syscall == "getppid") | .count' "$T/one.json")" "700 5000"

# --- files ---

mkdir "$T/d"
trace files -o json -O "$T/json" -c "$tallied files $T/d"
file() {
	jq -c "select(.file == \"$T/d/$1\") | $2" "$T/json"
}
is "a file that is written and read" \
	"$(file a '[.opens, .writes, .written_bytes, .reads, .read_bytes, .failed]')" "[2,10,10000,3,4700,1]"
is "writev() and sendfile()" "$(file b '[.opens, .writes, .written_bytes, .reads]')" "[1,2,4500,0]"
is "times" "$(file a '.time_ns >= .longest_ns and .longest_ns > 0')" true
is "its number" "$(file a .inode)" "$(stat -c %i "$T/d/a")"
is "its device" "$(file a .device)" "\"$(stat -c '%Hd:%Ld' "$T/d/a")\""
is "nothing else than files" "$(jq -r 'select(.file) | .kind' "$T/json" | sort -u)" file
is "all is accounted for" "$(totals)" '[true,0]'
trace files --all -o json -O "$T/json" -c "sh -c 'echo x | cat'"
is "pipes, if they are wanted" "$(jq -r 'select(.kind == "pipe" and .written_bytes == 2 and .read_bytes == 2) | .file' \
	"$T/json" | grep -c '^pipe:\[[0-9]*\]$')" 1
out=$(trace files --by process --order calls --top 3 -c "$tallied files $T/d")
like "a table by process" "$out" $'^ +PID COMM +APP +OPENS +READS +READ +WRITES WRITTEN +TIME +MEAN LONGEST FILE\n'
like "the most calls first" "$out" "tallied +- +2 +3 +4.6K +10 +9.8K .*s $T/d/a"
mkdir "$T/d/"$'bad\e[31m'
out=$(trace files -c "$tallied files $T/d/"$'bad\e[31m')
unlike "nothing reaches the terminal that could harm it" "$out" $'\e'

# --- signals ---

# the program ends by the SIGSEGV that it causes, which is the shell's to tell, and is no crash of ax
trace signals --failed -o json -O "$T/json" -c "sh -c '$tallied signals; :' 2>/dev/null"
signals() {
	jq -r "select(.event == \"signal\" and .comm == \"tallied\") | \"\(.signal) \(.code) \(.result // .error)\"" "$T/json" |
		grep -v SIGCHLD | tr '\n' ';'
}
is "signals, why, and what comes of them" "$(signals)" \
	"SIGUSR1 SI_USER sent;SIGUSR2 SI_USER ignored;SIGALRM SI_USER sent;SIGALRM SI_USER pending already;SIGUSR1 SI_QUEUE sent;SIGUSR1 SI_TKILL sent;SIGTERM SI_USER ESRCH;SIGSEGV SEGV_MAPERR sent;"
is "to whom" "$(jq -r 'select(.signal == "SIGSEGV") | .pid == .to_pid and .to_comm == "tallied"' "$T/json")" true
is "the end of a child, to its parent" "$(jq -r 'select(.signal == "SIGCHLD" and .to_comm == "sh") | .code' "$T/json" |
	grep -c '^CLD_')" 1
is "all is accounted for" "$(totals)" '[true,0]'
out=$(trace signals USR2 -c "$tallied signals")
is "one of them alone" "$(grep -c 'SIG[A-Z]' <<<"$out") $(grep -c 'SIGUSR2 .*ignored.*tallied .* -> .*tallied' <<<"$out")" "2 1"

# from outside to the one that is watched
bg "$T/sleep.out" sleep 60
sleep=$BG
bg "$T/trace.out" "$AX" trace signals -p "$sleep" -o json -O "$T/json"
watcher=$BG
wait_for "grep -q attached $T/trace.out"
kill -TERM "$sleep"
wait "$watcher"
is "who sent it" "$(jq -r 'select(.signal == "SIGTERM") | "\(.pid) \(.to_pid) \(.code)"' "$T/json")" "$$ $sleep SI_USER"

fails "a word too many" "$AX" trace syscalls word
fails "no signal" "$AX" trace signals NONE
fails "no way to order" "$AX" trace files --order size
done_testing
