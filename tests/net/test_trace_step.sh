#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# ax trace step: what a thread executes behind a probe; and that programs do not notice it, whatever
# they do meanwhile and whoever is killed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/trace.sh"
need gcc jq strace babeltrace2
build stepped stepped.c gcc -std=gnu11 -O1 -g -pthread "$SRC/stepped.c" -o %o
build stepped_static stepped.c gcc -std=gnu11 -O1 -g -static -no-pie -pthread "$SRC/stepped.c" -o %o
s=$BIN/stepped

# step WORDS...: the steps in one line each, what else is said in $T/step.err
step() {
	ax trace step "$@" 2>"$T/step.err"
}
# instructions: of the JSON objects on stdin, with the registers that each changed
instructions() {
	jq -r 'select(.step) | "\(.at | split(" ")[0]) \(.instruction) \(.registers | keys | join(","))"'
}

# --- what is shown ---

expected="known+0x1 mov %rdi,%rbx bx
known+0x4 add \$0x5,%rbx bx
known+0x8 lea 0x1(%rbx),%rax ax
known+0xc pop %rbx bx,sp
known+0xd ret sp"
out=$(step "uprobe:$s:known" -n 5 -c "$s known" -o json -O "$T/known" && cat "$T/known")
is "the instructions behind a probe, with what they changed" "$(instructions <"$T/known")" "$expected"
like "and the program has its result" "$out" "^15 17"
like "each step has its source line" "$(step "uprobe:$s:known" -n 6 -c "$s known" | tail -n 3)" \
	"6 main\+0x[0-9a-f]+ \(stepped\) stepped.c:[0-9]+  mov"
is "of a program that is not relocated, and static" \
	"$(step "uprobe:$BIN/stepped_static:known" -n 5 -c "$BIN/stepped_static known" -o json | grep -v '^15' |
		instructions)" "$expected"
# where the kernel has put a call in the place of a nop, none of its own instructions is shown
expected="nop5+0x5 mov %rdi,%rax
nop5+0x8 add \$0x7,%rax
nop5+0xc ret"
is "behind a nop" "$(step "uprobe:$s:nop5" -n 3 -c "$s known" -O "$T/nop" -o json >"$T/out" && instructions <"$T/nop" | sed 's/ [a-z,]*$//')" \
	"$expected"
is "and the result is right" "$(cat "$T/out")" "15 17"
step "uprobe:$s:lines" sum --lines -n 8 -c "$s lines" -o json -O "$T/lines" >"$T/out"
is "lines with a variable" "$(jq -r 'select(.step and .values.sum != null) | .values.sum' <"$T/lines" | uniq |
	tr '\n' ' ')" "0 2 6 7 "
# --- floating-point numbers ---

step "uprobe:$s:scale" -n 7 -c "$s floats" -O "$T/floats" >"$T/out"
is "vector registers, as what the instruction computes" "$(sed -n 's/^ *[0-9]* *[0-9]* scale+[^ ]* ([a-z]*)  //p' "$T/floats")" \
	"addsd %xmm0,%xmm0  xmm0=3
cvtss2sd %xmm1,%xmm2  xmm2=0.25
mulsd %xmm2,%xmm0  xmm0=0.75
movaps %xmm0,%xmm3  xmm3=0x3fe8000000000000
cvttsd2si %xmm3,%rax  ax=0x0
addps %xmm1,%xmm1  xmm1=[0.5, 0, 0, 0]
$(sed -n 's/.*  \(pop .*\)/\1/p' "$T/floats")"
is "and the program has its results" "$(cat "$T/out")" "0.75 13"
step "uprobe:$s:scale" %xmm0 %xmm1:f32 '$regs' -n 3 -c "$s floats" -o json -O "$T/floats" >"$T/out"
is "as they were asked for" "$(jq -r 'select(.step) | .values | "\(.["%xmm0"]) \(.["%xmm1"]) \(.["$regs"].xmm0[0])"' <"$T/floats")" \
	"3 0.25 3
3 0.25 3
0.75 0.25 0.75"
step "uprobe:$s:blend" a f sum s.x '*s' -n 20 -c "$s floats" -o json -O "$T/floats" >"$T/out"
is "variables: in memory, in vector registers, and what a struct points to" "$(jq -r 'select(.step and (.at | startswith("blend"))) |
	.values | select(.sum) | [.sum, .["s.x"], .["*s"].y, .["*s"].name] | join(" ")' <"$T/floats" | tail -n 1)" "3.25 2 4 here"
like "no probe reads them" "$(ax trace watch "uprobe:$s:scale" %xmm0 -c "$s floats" 2>&1)" \
	"%xmm0 is a vector register, which no probe can read: only 'ax trace step' can"

# --- as CTF ---

out=$(step "uprobe:$s:scale" -n 3 -c "$s floats" -o ctf -O "$T/ctf")
is "the program has its results when it goes to CTF" "$out" "0.75 13"
like "with the accounts on the terminal" "$(cat "$T/step.err")" "1 event, 1 received, 0 dropped"
is "CTF is read without a warning" "$(babeltrace2 "$T/ctf" 2>&1 >"$T/read")" ""
is "with the probe, and the steps in their order" "$(sed 's/.*vm \|.* [^ ]* \([a-z]*\): { pid.*/\1/; s/ .*//' "$T/read" |
	sed 's/:.*//' | uniq -c | awk '{ print $1, $2 }')" "1 scale
3 step"
like "and what they changed" "$(tail -n 1 "$T/read")" 'step = 3, .*instruction = "mulsd %xmm2,%xmm0".* registers_xmm0 = "0x3fe8000000000000"'
like "a directory is needed" "$(ax trace step "uprobe:$s:scale" -c "$s floats" -o ctf 2>&1)" "expected -O DIR"

step "uretprobe:$s:known" -n 1 -c "$s known" -o json -O "$T/ret" >"$T/out"
like "behind a return" "$(instructions <"$T/ret")" "^main\+"
is "and the result is right there, too" "$(cat "$T/out")" "15 17"
step "uprobe:$s:mix" 'if arg0 > 1' --times 3 -n 2 -c "$s rounds 10" -o json -O "$T/if" >"$T/out"
is "a condition, and several times" "$(jq -c 'select(.probe) | .values.v > 1' <"$T/if" | tr '\n' ' ')" "true true true "
out=$(step "uprobe:$s:flags" x -n 30 -c "$s flags")
like "a value that is known nowhere" "$(cat "$T/step.err")" "nowhere known: x: "

# --- programs that must not notice ---

# unnoticed NAME MODE PROBE OPTION...: what it prints is what it prints without being stepped
unnoticed() {
	local name=$1 mode=$2 plain
	shift 2
	# shellcheck disable=SC2086 # the mode has its argument
	plain=$("$s" $mode; echo "status $?")
	is "$name" "$(step "$@" -c "$s $mode" -O "$T/steps"; echo "status $?")" "$plain"
}
for n in 1 2 4 5 6 7 14 15; do
	unnoticed "flags that go over the stack, $n steps" flags "uprobe:$s:flags" -n "$n"
done
unnoticed "threads" threads "uprobe:$s:mix" --times 30 -n 50
unnoticed "threads that end meanwhile" short "uprobe:$s:ends" --times 10 -n 5000
like "which is said" "$(cat "$T/steps")" "the thread ended"
unnoticed "signals with handlers, one of them queued" signals "uprobe:$s:mix" --times 20 -n 300
like "they are shown" "$(cat "$T/steps")" "signal 14"
like "with what their handlers do" "$(cat "$T/steps")" "on_tick"
unnoticed "all signals blocked" blocked "uprobe:$s:mix" -n 50
is "but stepped all the same" "$(grep -c ' mix+' "$T/steps")" 50
unnoticed "SIGTRAP of the program's own" traps "uprobe:$s:own_trap" -n 5000
unnoticed "a SIGTRAP that waits" traps "uprobe:$s:mix" -n 50
unnoticed "system calls" pipes "uprobe:$s:calls" -n 3000
unnoticed "fork()" forks "uprobe:$s:forks" -n 3000
unnoticed "exec()" becomes "uprobe:$s:becomes" -n 3000
like "which is said" "$(cat "$T/steps")" "exec: the process is another program"
unnoticed "a loop that comes to the probe again" "rounds 200" "uprobe:$s:mix" -n 2000
out=$(step "uprobe:$s:known" -n 5 -c "sh -c \"trap '' TRAP; exec $s known\"" -O "$T/steps")
is "one that ignores SIGTRAP is left alone" "$out $(grep -c 'not stepped' "$T/steps")" "15 17 1"
is "an interpreter" "$(step uprobe:/usr/bin/python3:PyObject_Repr -n 2000 -c "/usr/bin/python3 -c 'print(repr([1, 2]))'" \
	-O "$T/steps")" "[1, 2]"
is "was stepped" "$(grep -c '(python3' "$T/steps" | awk '{ print ($1 > 1000) }')" 1

# --- the end comes from outside ---

# endless: a program that goes on until its input ends, as $program; its output in $T/endless
endless() {
	rm -f "$T/fifo"
	mkfifo "$T/fifo"
	: >"$T/endless"
	"$s" endless <"$T/fifo" >>"$T/endless" &
	program=$!
	exec 8>"$T/fifo"
	wait_for 'grep -q ready "$T/endless"'
}
# ends_well NAME: it is traced by nobody, and ends by itself
ends_well() {
	ok "$1: nobody traces the program any more" wait_for 'grep -q "^TracerPid:.0" "/proc/$program/status"'
	exec 8>&-
	wait "$program"
	is "$1: it goes on, and ends by itself" "$? $(tail -n 1 "$T/endless")" "0 ended"
}
for delay in 0.01 0.1; do
	for signal in KILL TERM INT; do
		endless
		: >"$T/steps"
		"$AX" --instance "$INST" trace step "uprobe:$s:mix" -n 1000000 --times 0 -p "$program" -O "$T/steps" \
			2>"$T/step.err" &
		tracer=$!
		wait_for '[ -s "$T/steps" ]'
		sleep "$delay"
		kill -"$signal" "$tracer"
		wait "$tracer" 2>/dev/null
		ends_well "SIG$signal after $delay s"
	done
done
endless
step "uprobe:$s:mix" -n 1000000 -p "$program" -d 300ms -O "$T/steps"
ends_well "after a time"

# What was read of a long output takes no memory.
endless
: >"$T/steps"
"$AX" --instance "$INST" trace step "uprobe:$s:mix" -n 1000000 --times 0 -p "$program" -O "$T/steps" 2>"$T/step.err" &
tracer=$!
wait_for -t 60 '[ "$(stat -c %s "$T/steps")" -gt 2000000 ]'
fd=$(find "/proc/$tracer/fd" -lname '/memfd:ax-trace-step*')
is "what was read is freed" "$(stat -L -c %b "$fd" | awk '{ print ($1 * 512 < 1000000) }')" 1
kill -INT "$tracer"
wait "$tracer"
ends_well "after much output"

# In a system call that waits nobody is called back from it.
rm -f "$T/fifo"
mkfifo "$T/fifo"
"$s" waits <"$T/fifo" >"$T/waits" &
program=$!
"$AX" --instance "$INST" trace step "uprobe:$s:waits" -n 100000 -p "$program" -O "$T/steps" 2>"$T/step.err" &
tracer=$!
wait_for 'grep -q Ctrl-C "$T/step.err"'
exec 8>"$T/fifo"
wait_for 'grep -q "syscall-template\|call " "$T/steps"'
wait_for 'grep -q "^0 " "/proc/$program/syscall"'
kill -INT "$tracer"
wait "$tracer"
echo A >&8
exec 8>&-
wait "$program"
is "a thread that waits in a system call is let go as it is" "$(cat "$T/waits")" A

# --- refusals ---

endless
strace -o "$T/null" -p "$program" >/dev/null 2>&1 &
debugger=$!
wait_for 'grep -q "^TracerPid:.$debugger" "/proc/$program/status"'
like "a debugger is named" "$(ax trace step "uprobe:$s:mix" -p "$program" 2>&1)" \
	"process $program is traced already by strace \(process $debugger\), and only one can do that: end it first"
end "$debugger"
exec 8>&-
wait "$program"
like "a probe that cannot be, with a command that never begins" \
	"$(timeout 20 "$AX" --instance "$INST" trace step "uprobe:$s:no_such_function" -c "$s known" 2>&1; echo "status $?")" \
	"no_such_function.*status 1"
like "whose" "$(ax trace step "uprobe:$s:mix" 2>&1)" "expected -p or -c"
like "not the kernel" "$(ax trace step tracepoint:sched:sched_switch -p $$ 2>&1)" "only programs are stepped"
like "what is known only at the entry" "$(ax trace step "uprobe:$s:mix" arg0 -p $$ 2>&1)" "arg0 is known only where"
like "no steps" "$(ax trace step "uprobe:$s:mix" -n 0 -p $$ 2>&1)" "expected 1 to"
like "a process that is not there" "$(ax trace step "uprobe:$s:mix" -p 4194304 2>&1)" "there is no process 4194304"
done_testing
