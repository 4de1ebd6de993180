#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Probes in a Go program: arguments as Go passes them, returns without touching a stack that moves.
. "$(dirname "$0")/lib.sh"
need go jq
build grow grow.go env CGO_ENABLED=0 GOFLAGS=-mod=mod GOPROXY=off GOCACHE="$BIN/go-cache" \
	HOME="${HOME:-/root}" go build -o %o "$SRC/grow.go"
grow=$BIN/grow

trace() {
	"$AX" trace "$@" 2>&1
}
# came N TEXT: the run's last line says that N events came and all were received
came() {
	like "$1 events came" "$(tail -n 1 <<<"$2" | tr -d ,)" "^$1 events $1 received 0 dropped"
}

plain=$("$grow" 20 30)
out=$(trace watch "uprobe:$grow:main.add" arg0:s64 arg1:s64 'arg2:string[3]' arg3 -c "$grow 20 30")
like "a program goes on as without probes" "$out" "(^|
)$plain(\$|
)"
came 160 "$out"
like "arguments are those of Go's registers" "$out" 'arg0=19 arg1=7 .*"abc.* arg3=3'

like "a list has signatures as Go writes them" "$("$AX" trace list "uprobe:$grow:main.add")" \
	"func main\.add\([a-z]+ int, [a-z]+ int, [a-z]+ string\) int  grow\.go:[1-9]"

out=$(trace watch "uretprobe:$grow:main.add" arg0@entry:s64 arg1@entry:s64 retval:s64 -o json \
	-c "$grow 20 30")
is "values at the entry and the return belong together" "$(grep '"probe"' <<<"$out" |
	jq -s 'map(.values | [.[]] | .[0] + .[1] + 3 == .[2]) | [length, all]' -c)" "[160,true]"

# a number and an error of two words, of which none is nil when the text is no number
out=$(trace watch "uretprobe:$grow:strconv.Atoi" 'text=arg0@entry:string[arg1@entry]' n=retval:s64 \
	'no=retval1' if 'arg1@entry < 8' -c "$grow 20 x30")
like "further results of a function" "$out" 'text="20" n=20 no=0
.* text="x30" n=0 no=[1-9]'
like "all of them without being asked for" "$(trace watch "uretprobe:$grow:strconv.Atoi" -c "$grow 20 x30")" \
	'retval=20 retval1=nil
.* retval=0 retval1=\*strconv\.NumError\{Func="Atoi"'
like "by the names that they have" "$(trace watch "uretprobe:$grow:fmt.Fprintln" -c "$grow 1 2")" 'retval=[0-9]+ err=nil'
out=$(trace flow "$grow" strconv.Atoi -c "$grow 20 30" -o json | grep '"event":"return"')
is "and where calls are shown" "$(jq -c '[.return, .results]' <<<"$out" | tr '\n' ' ')" "[20,[20,null]] [30,[30,null]] "
like "in text, too" "$(trace flow "$grow" strconv.Atoi -c "$grow 20 30")" '<- strconv\.Atoi = 20, nil  \['
like "of words that there are" "$(trace watch "uretprobe:$BIN/grow:main.add" retval9 -c true)" "retval9"

# in its frame, whose place stands only in .debug_frame
line=$(awk '/if n == 0/ { print NR }' "$SRC/grow.go")
out=$(trace watch "line:$grow:grow.go:$line" 'pad[5]:s64' if 'pad[5] == 5' -c "$grow 1 30")
came 8 "$out"
like "a local variable of a frame" "$out" 'main\.deep.* pad\[5\]=5'

# 8 goroutines, each 2,001 calls deep: their stacks are copied to a bigger place nine times
out=$(trace latency "uretprobe:$grow:main.deep" -c "$grow 1 2000")
came 16008 "$out"
like "each return finds its entry" "$out" "$("$grow" 1 2000)"
unlike "none is left over" "$out" "unmatched|without"

out=$(trace count "uprobe:$grow:main.deep" -c "$grow 1 2000")
came 16008 "$out"

# under load, and with several processes at a time
for i in 1 2 3 4; do
	bg "$T/grow.$i" "$grow" 2000 3000
done
out=$(trace count "uretprobe:$grow:main.deep" by pid -d 3s -c "$grow 2000 3000")
for i in 1 2 3 4; do
	is "a process under load ends as it does alone" "$(wait_for "[ -s '$T/grow.$i' ]"
		cat "$T/grow.$i")" "$("$grow" 2000 3000)"
done

out=$(trace explain "uretprobe:$grow:main.deep" retval)
like "explain tells that returns are probed one by one" "$out" "ret"
out=$(trace watch "uretprobe:$grow:0x10" retval -c true)
like "where no function begins, there are no returns to find" "$out" "Go program"
done_testing
