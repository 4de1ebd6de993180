#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# ax trace step -f and several -p: what processes execute that others start, that they do not notice
# it either, and that all of them go on when the tracer ends.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/trace.sh"
need gcc jq strace
build stepped stepped.c gcc -std=gnu11 -O1 -g -pthread "$SRC/stepped.c" -o %o
build step_family step_family.c gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -pthread "$SRC/step_family.c" -o %o
s=$BIN/stepped
f=$BIN/step_family

# step WORDS...: what else is said in $T/step.err
step() {
	ax trace step "$@" 2>"$T/step.err"
}
# processes FILE: how many were stepped
processes() {
	jq -s '[.[] | select(.step) | .pid] | unique | length' <"$1"
}

# --- processes that are started ---

is "without -f, only the command's own process" \
	"$(step "uprobe:$f:work" -n 3 --times 0 -c "$f forks 3" -o json -O "$T/out"; processes "$T/out")" $'22\n1'
is "with it, those that it starts" \
	"$(step "uprobe:$f:work" -n 3 --times 0 -f -c "$f forks 3" -o json -O "$T/out"; processes "$T/out")" $'22\n4'
is "each of them so many steps" "$(jq -sc '[.[] | select(.step)] | group_by(.pid) | map(length)' <"$T/out")" "[3,3,3,3]"
is "of its own threads" "$(jq -s 'all(.[] | select(.step); .pid == .tid)' <"$T/out")" true
is "their ends are their own" "$(step "uprobe:$f:work" -n 1000000 --times 0 -f -c "$f ends 3" -o json -O "$T/out"
	jq -s '[.[] | select(.event == "the process ended") | .pid] | unique | length' <"$T/out")" $'3\n3'
for how in vfork spawn clone; do
	is "$how() and exec()" "$(step "uprobe:$s:known" -n 5 --times 0 -f -c "$f $how $s known" -o json -O "$T/out"
		processes "$T/out")" $'15 17\nstatus 0\n1'
	is "is stepped behind its exec() only" "$(jq -sr '[.[] | select(.step) | .instruction] | length' <"$T/out")" 10
done
step "uprobe:$f:becomes" -n 1000000 --times 0 -f -c "$f vforks $s known" -o json -O "$T/out" >"$T/said"
is "one that is stepped to its exec()" "$(cat "$T/said")" $'15 17\nstatus 0'
is "is told, with its number" "$(jq -s '[.[] | select(.event // "" | startswith("exec:"))] | length == 1 and
	.[0].pid != null' <"$T/out")" true
is "a child that has its parent's memory" "$(step "uprobe:$f:work" -n 20 --times 0 -f -c "$f shared" -o json -O "$T/out"
	processes "$T/out")" $'20\n2'
is "and not without -f" "$(step "uprobe:$f:work" -n 20 --times 0 -c "$f shared" -o json -O "$T/out"
	processes "$T/out")" $'20\n1'
is "a pipeline" "$(step "uprobe:$s:known" -n 5 --times 0 -f -c "$s known | tr 1 2; $s known | cat" -o json -O "$T/out"
	processes "$T/out")" $'25 27\n15 17\n2'
is "threads of several processes" "$(step "uprobe:$s:mix" -n 5 --times 0 -f -c "$s threads & $s threads; wait" -o json \
	-O "$T/out" | sort -u | wc -l)$(processes "$T/out")" 12
is "in each of them several" "$(jq -s '[.[] | select(.step)] | group_by(.pid) | all(map(.tid) | unique | length > 1)' <"$T/out")" true
is "a process whose parent is gone" "$(step "uprobe:$f:work" -n 3 --times 0 -f -c "$f orphan" -o json -O "$T/out"
	processes "$T/out")" 1
is "in a pid namespace of its own, where a loop comes to the probe again" \
	"$(step "uprobe:$s:mix" -n 2000 --times 0 -f -c "unshare -pf $s rounds 20" -O "$T/out"; grep -c ' mix+' "$T/out" |
		awk '{ print ($1 > 1000) }')" "$("$s" rounds 20)"$'\n1'
is "one that the kernel does not tell of" "$(step "uprobe:$f:work" -n 3 --times 0 -f -c "$f untraced" -o json -O "$T/out"
	processes "$T/out")" $'20\n2'
like "a value of another process's stack" "$(step "uprobe:$f:work" n -n 2 --times 0 -f -c "$f forks 3" -o json -O "$T/out" >"$T/null"
	jq -c 'select(.step == 1) | .values.n' <"$T/out" | sort | tr '\n' ' ')" "^0 1 2 3 $"

# --- programs that must not notice ---

# unnoticed NAME PROBE COMMAND OPTION...: what it prints is what it prints without being stepped
unnoticed() {
	local name=$1 probe=$2 command=$3 plain
	shift 3
	plain=$(sh -c "$command"; echo "status $?")
	is "$name" "$(step "$probe" -f -c "$command" -O "$T/steps" "$@"; echo "status $?")" "$plain"
}
unnoticed "fork()" "uprobe:$s:forks" "$s forks" -n 5000
unnoticed "processes at once" "uprobe:$s:mix" "($s rounds 50 & $s rounds 51; wait) | sort; exit 3" -n 200 --times 0
unnoticed "signals" "uprobe:$s:mix" "$s signals; $s blocked; $s traps" --times 40 -n 300
unnoticed "job control" "uprobe:$f:work" "$f stops" -n 100 --times 0
unnoticed "many short ones" "uprobe:$f:work" "$f forks 200" -n 5 --times 0
unnoticed "a child that is killed in its steps" "uprobe:$f:work" "$f killed" -n 1000000 --times 0

# --- several processes ---

# endless: a program that goes on until its input ends; its number is added to $programs, its output is $T/endless.N
endless() {
	local n=${#programs[@]}
	: >"$T/endless.$n"
	"$f" endless <"$T/fifo" 8>&- >>"$T/endless.$n" &
	programs+=($!)
}
# begin N: so many of them, with two children each
begin() {
	programs=()
	rm -f "$T/fifo"
	mkfifo "$T/fifo"
	exec 8<>"$T/fifo"
	for ((i = 0; i < $1; i++)); do
		endless
	done
	exec 7>"$T/fifo" 8>&-
	for ((i = 0; i < $1; i++)); do
		wait_for "grep -q ready $T/endless.$i"
	done
}
family() {
	local p
	for p in "${programs[@]}"; do
		echo "$p"
		pgrep -P "$p"
	done
}
# free: nobody of them is traced or stopped
is_free() {
	local p
	for p in $(family); do
		grep -q '^TracerPid:.0' "/proc/$p/status" && ! grep -q '^State:.[tT]' "/proc/$p/status" || return 1
	done
}
# ends_well NAME: they are traced by nobody, and end by themselves when their input does
ends_well() {
	local n=0 p
	ok "$1: nobody traces them any more" wait_for is_free
	is "$1: all of them are there" "$(family | wc -l)" $((${#programs[@]} * 3))
	exec 7>&-
	for p in "${programs[@]}"; do
		wait "$p"
		is "$1: one goes on, and ends by itself with its children" "$? $(tail -n 1 "$T/endless.$n")" "0 ended"
		n=$((n + 1))
	done
}
# steps_all NAME PIDS OPTION...: all of these processes are stepped, and no others
steps_all() {
	local name=$1 pids=$2
	shift 2
	: >"$T/out"
	"$AX" --instance "$INST" trace step "uprobe:$f:round" -n 3 --times 0 "$@" -o json -O "$T/out" 2>"$T/step.err" &
	tracer=$!
	wait_for -t 60 '[ "$(processes "$T/out" 2>"$T/null")" = '"$(wc -w <<<"$pids")"' ]'
	kill -INT "$tracer"
	wait "$tracer"
	# shellcheck disable=SC2086 # several words
	is "$name" "$(jq -sr '[.[] | select(.step) | .pid] | unique | .[]' <"$T/out")" "$(printf '%s\n' $pids | sort -n)"
}
begin 3
steps_all "two of three processes" "${programs[0]} ${programs[1]}" -p "${programs[0]},${programs[1]}"
steps_all "each with its own option" "${programs[0]} ${programs[2]}" -p "${programs[0]}" -p "${programs[2]}"
steps_all "with children that there are already" \
	"${programs[0]} ${programs[2]} $(pgrep -P "${programs[0]},${programs[2]}" | tr '\n' ' ')" -f -p "${programs[0]},${programs[2]}"
: >"$T/step.err"
"$AX" --instance "$INST" trace step "uprobe:$f:work" -p "${programs[0]},${programs[1]}" 2>"$T/step.err" &
tracer=$!
wait_for 'grep -q Ctrl-C "$T/step.err"'
{ kill -KILL "${programs[0]}" && wait "${programs[0]}"; } 2>"$T/null"
ok "one that ends does not end it" alive "$tracer"
kill -INT "$tracer"
wait "$tracer"
exec 7>&-
wait "${programs[@]:1}"
is "and the others go on" "$? $(tail -n 1 "$T/endless.2")" "0 ended"

# --- the end comes from outside ---

for signal in KILL TERM INT; do
	for delay in 0.01 0.2; do
		begin 2
		: >"$T/steps"
		"$AX" --instance "$INST" trace step "uprobe:$f:round" -n 1000000 --times 0 -f -p "${programs[0]},${programs[1]}" \
			-O "$T/steps" 2>"$T/step.err" &
		tracer=$!
		wait_for '[ -s "$T/steps" ]'
		sleep "$delay"
		kill -"$signal" "$tracer"
		wait "$tracer" 2>/dev/null
		ends_well "SIG$signal after $delay s"
	done
done

# --- refusals ---

begin 1
child=$(pgrep -P "${programs[0]}" | head -n 1)
strace -o "$T/null" -p "$child" >/dev/null 2>&1 &
debugger=$!
wait_for 'grep -q "^TracerPid:.$debugger" "/proc/$child/status"'
like "a debugger of a child is named" "$(ax trace step "uprobe:$f:round" -f -p "${programs[0]}" 2>&1)" \
	"process $child is traced already by strace \(process $debugger\), and only one can do that: end it first"
like "its parent alone is stepped" "$(ax trace step "uprobe:$f:round" -n 1 -p "${programs[0]}" 2>&1)" "1 shown|1 received"
end "$debugger"
ends_well "after that"
like "-p and -c" "$(ax trace step "uprobe:$s:mix" -p $$ -c true 2>&1)" "expected one"
done_testing
