#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax trace change -f and several -p: what is changed in processes that others start, and that it is taken
# back in each of them, also in those that have it from their parent.
. "$(dirname "$0")/lib.sh"
need gcc jq
build change_family change_family.c gcc -std=gnu11 -D_GNU_SOURCE -O1 -g "$SRC/change_family.c" -o %o
p=$BIN/change_family

# --- with a command ---

is "what a function of each process returns" "$(ax trace change "uretprobe:$p:check" --return 7 --unsafe -f \
	-c "$p a; $p b | cat" -O "$T/out" 2>"$T/change.err")" $'a: 7\nb: 7'
is "without -f, of the command's own process" "$(ax trace change "uretprobe:$p:check" --return 7 --unsafe \
	-c "$p a; $p b | cat" -O "$T/out" 2>"$T/change.err")" $'a: 1\nb: 1'
ax trace change "uprobe:$p:check" --write @limit:s32=3 --unsafe -f -c "$p a; $p b | cat" -o json -O "$T/out" 2>"$T/change.err" \
	>"$T/null"
is "which process it was" "$(jq -s '[.[] | select(.event == "write") | .pid] | unique | length' <"$T/out")" 2

# --- programs that go on ---

# start N: the program number N, which says in $T/said.N what was asked by `asks`
start() {
	rm -f "$T/fifo.$1"
	mkfifo "$T/fifo.$1"
	: >"$T/said.$1"
	"$p" <"$T/fifo.$1" >>"$T/said.$1" 7>&- 8>&- &
	programs[$1]=$!
	case $1 in
	0) exec 7>"$T/fifo.0" ;;
	1) exec 8>"$T/fifo.1" ;;
	esac
}
# asks N WORD NAME ANSWER
asks() {
	local fd=$((7 + $1))
	: >"$T/said.$1"
	echo "$2" >&"$fd"
	wait_for 'grep -q "\." "$T/said.'"$1"'"'
	is "$3" "$(<"$T/said.$1")" "$4"
}
# change OPTION...: as $changer, when it has begun
change() {
	: >"$T/change.err"
	"$AX" --instance "$INST" trace change "uprobe:$p:greet" --write @limit:s32=77 --unsafe -O "$T/out" "$@" \
		2>"$T/change.err" 7>&- 8>&- &
	changer=$!
	wait_for 'grep -q Ctrl-C "$T/change.err"'
}
is_free() {
	local pid
	for pid in "${programs[@]}" $(pgrep -P "$(IFS=, && echo "${programs[*]}")"); do
		[ ! -e "/proc/$pid" ] || grep -q '^TracerPid:.0' "/proc/$pid/status" || return 1
	done
}
# ended SIGNAL
ended() {
	kill -"$1" "$changer"
	wait "$changer" 2>/dev/null
	ok "nobody traces them after SIG$1" wait_for is_free
	is "it is listed no more" "$(ax trace changes)" ""
}
for signal in INT KILL; do
	start 0
	asks 0 f "a child that is there at the start" "."
	asks 0 p "what they have" " 10 10."
	change -f -p "${programs[0]}"
	is "it is listed, with its children" "$(ax trace changes)" "${programs[0]} -f  uprobe:$p:greet  writes @limit:s32=77"
	asks 0 g "both are changed" " 77 77."
	asks 0 f "another child" "."
	asks 0 p "has it from its parent" " 77 77 77."
	asks 0 f "one more" "."
	asks 0 g "comes to the probe, too" " 77 77 77 77."
	ended "$signal"
	asks 0 p "all have again what they had" " 10 10 10 10."
	exec 7>&-
	wait "${programs[0]}"
done
start 0
change -f -p "${programs[0]}"
asks 0 v "a child of vfork(), before it becomes another program" " 77."
asks 0 p "has written to its parent's memory" " 77."
ended INT
like "which is told" "$(<"$T/change.err")" "1 of 1 places have again what they had"
asks 0 p "and is taken back there" " 10."

# --- several processes ---

start 1
change -p "${programs[0]},${programs[1]}"
is "several are listed" "$(ax trace changes)" "${programs[0]},${programs[1]}  uprobe:$p:greet  writes @limit:s32=77"
asks 0 g "one" " 77."
asks 1 g "and the other" " 77."
ended INT
asks 0 p "both have again what they had: one" " 10."
asks 1 p "and the other" " 10."
change -p "${programs[0]}" -p "${programs[1]}"
asks 0 g "one is changed" " 77."
asks 1 g "the other, too" " 77."
exec 7>&-
wait "${programs[0]}"
asks 1 g "one that ends does not end it" " 77."
ended TERM
asks 1 p "the other has again what it had" " 10."
like "all have to be the owner's" "$(ax trace change "uprobe:$p:greet" --write @limit:s32=1 --unsafe --owner nobody \
	-p "${programs[1]},$$" 2>&1)" "process ${programs[1]} is not a process of user [0-9]+ alone"
exec 8>&-
wait "${programs[1]}"
is "a child of another user is left as it is" "$(ax trace change "uretprobe:$p:check" --return 7 --unsafe -f \
	-c "setpriv --reuid nobody --clear-groups $p a" -O "$T/out" 2>"$T/change.err"
	grep -c 'left as it is: it is not a process of its owner alone' "$T/out")" $'a: 1\n1'
done_testing
