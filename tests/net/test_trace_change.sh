#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax trace change: results and memory of a program that its probe changes, and that are taken back.
. "$(dirname "$0")/lib.sh"
need gcc jq babeltrace2
build changed changed.c gcc -std=gnu11 -O1 -g "$SRC/changed.c" -o %o
p=$BIN/changed

change() {
	ax trace change "$@" 2>"$T/change.err"
}
printf 'ann\nbob\n' >"$T/names"

# --- with a command ---

is "what a function returns" "$(change "uretprobe:$p:check" --return 7 -c "$p" --unsafe -O "$T/out" <"$T/names" | grep :)" \
	$'ann: 7\nbob: 7'
like "each change is told" "$(cat "$T/out")" "returns 7 instead of 1"
# told NAME PATTERN ARG...: what is told of two writes
told() {
	local name=$1 pattern=$2
	shift 2
	change "uprobe:$p:greet" --write '*arg0:u8=88' --write @limit:s32=-5 --times 1 "$@" -c "$p" --unsafe -O "$T/out" \
		<"$T/names" >/dev/null
	like "$name" "$(cat "$T/out")" "$pattern"
}
told "what was written, where, and what was there; addresses are no values" ' changed +greet
 +[0-9]+     - \*arg0:u8=88: wrote 88 at 0x[0-9a-f]+, where 97 was
 +[0-9]+     - @limit:s32=-5: wrote -5 at 0x[0-9a-f]+, where 10 was$'
told "as JSON, too" '"values":\{\}\}
.*"value":88,"before":97,"address":"0x.*
\{"time":[0-9.]+,"event":"write","write":"@limit:s32=-5","value":-5,"before":10,"address":"0x[0-9a-f]+","pid":[0-9]+,"tid":[0-9]+\}' -o json
is "only where the condition is true" "$(change "uretprobe:$p:check" 'if retval == 0' --return -3 -c "$p" --unsafe -O "$T/out" \
	< <(printf 'ann\nbert\n') | grep :)" $'ann: 1\nbert: -3'
is "memory that a pointer leads to, and a variable" \
	"$(change "uprobe:$p:greet" --write '*arg0:u8=88' --write @limit:s32=-5 -c "$p" --unsafe -O "$T/out" <"$T/names" |
		grep hello)" $'hello Xnn, limit -5\nhello Xob, limit -5'
is "only so often" "$(change "uprobe:$p:greet" --write '*arg0:u8=88' --times 1 -c "$p" --unsafe -O "$T/out" <"$T/names" |
	grep hello)" $'hello Xnn, limit 10\nhello bob, limit 10'
like "memory that is not there" "$(change "uprobe:$p:greet" --write '*(arg0 - arg0):u8=1' -c "$p" --unsafe <"$T/names")" \
	"not written: there is no memory"
like "memory that the program may not write" "$(change "uprobe:$p:greet" --write '*%ip:u8=1' -c "$p" --unsafe <"$T/names")" \
	"not written: the program may not write there"

# --- errors as the C library tells them ---

build errors errors.c gcc -std=gnu11 -O1 -g -pthread "$SRC/errors.c" -o %o
build errors_static errors.c gcc -std=gnu11 -O1 -g -static -pthread "$SRC/errors.c" -o %o
denied=$'first: Permission denied\nthread: Permission denied'
is "errno of each thread, in the C library" \
	"$(change uretprobe:libc.so.6:open --return -1 --errno EACCES --unsafe -c "$BIN/errors" -O "$T/out")" "$denied"
like "which is told" "$(cat "$T/out")" "errno is EACCES instead of 0
.*returns -1 instead of [0-9]"
is "in a static program, and by its number" \
	"$(change "uretprobe:$BIN/errors_static:open" --return -1 --errno 13 --unsafe -c "$BIN/errors_static" -O "$T/out" -o json)" \
	"$denied"
is "as JSON" "$(jq -c 'select(.event) | [.event, .value]' "$T/out" | sort -u)" '["errno",13]
["return",-1]'
if command -v musl-gcc >/dev/null; then
	build errors_musl errors.c musl-gcc -static -O1 -g "$SRC/errors.c" -o %o
	is "with musl" "$(change "uretprobe:$BIN/errors_musl:open" --return -1 --errno EACCES --unsafe -c "$BIN/errors_musl" \
		-O "$T/out")" "$denied"
fi
cp "$BIN/errors_static" "$T/stripped"
open=$(printf '0x%x' "$(ax trace explain "uprobe:$T/stripped:open" --exact -o json | jq .offset)")
strip "$T/stripped"
is "where it cannot be found, nothing is changed" \
	"$(change "uretprobe:$T/stripped:$open" --return -1 --errno EACCES --unsafe -c "$T/stripped" -O "$T/out")" \
	$'first: open\nthread: open'
like "and why is told" "$(cat "$T/out")" "left as it is: errno cannot be set, since no C library of the process has"
like "an error by its name is a number, too" \
	"$(change uretprobe:libc.so.6:open --return -EACCES --unsafe -c "$BIN/errors" -O "$T/out"; cat "$T/out" "$T/change.err")" \
	"returns -13 instead of 3.*return -1, and leave the error in errno: --return -1 --errno EACCES does that"
ax trace change uretprobe:libc.so.6:open --return -1 --errno EACCES --unsafe -c "$BIN/errors" -o ctf -O "$T/ctf" \
	>"$T/null" 2>&1
is "as CTF, which is read without a warning" "$(babeltrace2 "$T/ctf" 2>&1 >"$T/read")" ""
is "with each change" "$(grep -o 'errno: .*\|return: .*' "$T/read" | sed 's/{ pid.*}, //; s/before = [0-9]*/before/' | sort | uniq -c |
	awk '{ $1 = $1; print }')" "2 errno: { value = 13, before }
2 return: { value = -1, before }"

# --- a program that goes on ---

rm -f "$T/fifo"
mkfifo "$T/fifo"
: >"$T/said"
"$p" <"$T/fifo" >>"$T/said" &
program=$!
exec 8>"$T/fifo"
# says NAME LINE: what the program answers next
says() {
	: >"$T/said"
	echo zoe >&8
	wait_for 'grep -q zoe: "$T/said"'
	is "$1" "$(head -n 1 "$T/said")" "$2"
}
says "before" "hello zoe, limit 10"
for signal in INT KILL; do
	: >"$T/change.err"
	"$AX" --instance "$INST" trace change "uprobe:$p:greet" --write @limit:s32=77 --unsafe -p "$program" -O "$T/out" \
		2>"$T/change.err" &
	changer=$!
	wait_for 'grep -q Ctrl-C "$T/change.err"'
	says "while it is changed" "hello zoe, limit 77"
	is "it is listed" "$(ax trace changes)" "$program  uprobe:$p:greet  writes @limit:s32=77"
	kill -"$signal" "$changer"
	wait "$changer" 2>/dev/null
	ok "nobody traces it after SIG$signal" wait_for 'grep -q "^TracerPid:.0" "/proc/$program/status"'
	is "it is listed no more" "$(ax trace changes)" ""
	says "and the variable has again what it had" "hello zoe, limit 10"
done
like "whose process it is not" "$(SUDO_UID=12345 ax trace change "uprobe:$p:greet" --write @limit:s32=1 --unsafe \
	-p "$program" 2>&1)" "is not a process of user 12345 alone"
like "an owner that is not its" "$(ax trace change "uprobe:$p:greet" --write @limit:s32=1 --unsafe --owner nobody \
	-p "$program" 2>&1)" "is not a process of user [0-9]+ alone"
like "an owner that is none" "$(ax trace change "uprobe:$p:greet" --write @limit:s32=1 --unsafe --owner no-such-user \
	-p "$program" 2>&1)" "there is no user 'no-such-user'"
says "nothing was changed" "hello zoe, limit 10"
exec 8>&-
wait "$program"

# --- results that are in no register that can be set ---

# keeps FUNCTION RESULT WHY: it is refused, and the program does not run
keeps() {
	like "a result that cannot be set: $1" "$(ax trace change "uretprobe:$p:$1" --return "$2" --unsafe -c "$p" <"$T/names" 2>&1
		echo "status $?")" "^ax trace change: $3"$'\n''status 1$'
}
if [ "$(uname -m)" = x86_64 ]; then
	memory="it is in memory"
else
	memory="it is in memory that only the caller knows of"
fi
keeps half 7 "what half returns cannot be set.*it is returned in a floating-point register, which no probe can read"
keeps make_wide 7 "what make_wide returns cannot be set.*$memory"
keeps make_pair 7 "what make_pair returns cannot be set.*it is in several registers"
keeps greet 7 "what greet returns cannot be set.*the function returns nothing"
keeps small 300 "small cannot return 300: its result has only 1 bytes"
keeps small -129 "small cannot return -129: its result has only 1 bytes"
is "one that just fits" "$(change "uretprobe:$p:small" --return 255 -c "$p" --unsafe -O "$T/out" <"$T/names" | grep small)" \
	$'small 255\nsmall 255'

# --- refusals ---

refuses() {
	local name=$1 pattern=$2
	shift 2
	like "$name" "$(ax trace change "$@" 2>&1 </dev/null; echo "status $?")" "$pattern.*"$'\n'".*status 2"
}
refuses "without --unsafe" "say --unsafe if that is meant" "uprobe:$p:greet" --write @limit:s32=1 -c "$p"
refuses "nothing to change" "expected --return, --errno or --write" "uprobe:$p:greet" --unsafe -c "$p"
refuses "a result at the entry" "expected uretprobe:" "uprobe:$p:check" --return 1 --unsafe -c "$p"
refuses "errno at the entry" "errno can be changed where a function returns" "uprobe:$p:check" --errno EIO --unsafe -c "$p"
refuses "no error" "is no error: expected one by its name" "uretprobe:$p:check" --errno ENOTHING --unsafe -c "$p"
refuses "no place" "is no place in memory" "uprobe:$p:greet" --write arg0:u8=1 --unsafe -c "$p"
refuses "no type" "is no type of a number" "uprobe:$p:greet" --write '*arg0:string=1' --unsafe -c "$p"
refuses "no number" "is no number" "uprobe:$p:greet" --write '*arg0:u8=x' --unsafe -c "$p"
refuses "the kernel" "only programs can be changed" tracepoint:sched:sched_switch --write @x:u8=1 --unsafe -c "$p"
# a number that the type does not have would be another one in memory
while read -r write why; do
	refuses "$write is out of range" "$why" "uprobe:$p:greet" --write "$write" --unsafe -c "$p"
done <<'END'
@limit:u8=300 300 is no u8: expected 0 to 255
@limit:u8=-1 -1 is no u8
@limit:s8=128 128 is no s8: expected -128 to 127
@limit:s8=-129 -129 is no s8
@limit:u32=4294967296 is no u32: expected 0 to 4294967295
@limit:s64=9223372036854775808 is no s64: expected -9223372036854775808 to 9223372036854775807
@limit:u64=18446744073709551616 does not fit into 64 bits
END
refuses "nobody's" "expected -p or -c" "uprobe:$p:greet" --write @limit:s32=1 --unsafe
done_testing
