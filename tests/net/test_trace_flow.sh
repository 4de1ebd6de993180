#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax trace flow: who calls whom, with what, and what comes back.
. "$(dirname "$0")/lib.sh"
need jq
build flow flow.c gcc -std=gnu11 -D_GNU_SOURCE -O0 -g -pthread -Wall "$SRC/flow.c" -o %o
build flow_bare flow.c gcc -std=gnu11 -D_GNU_SOURCE -O0 -pthread -Wall "$SRC/flow.c" -o %o
build flow_tail flow_tail.c gcc -std=gnu11 -O2 -g -Wall "$SRC/flow_tail.c" -o %o
build flow_fixed flow.c gcc -std=gnu11 -D_GNU_SOURCE -O0 -g -pthread -no-pie -Wall "$SRC/flow.c" -o %o
prog=$BIN/flow

flow() {
	"$AX" --instance "$INST" trace flow "$@" 2>"$T/err"
}
# shape TEXT: without times and threads
shape() {
	sed -E 's/^ *[0-9.]+ +[0-9]+  //; s/ +\[[0-9.]+ us\]//; s/0x7f[0-9a-f]+/PTR/g' <<<"$1"
}
# whole NAME N: the summary says that N events came, and none was lost
whole() {
	is "$1: none was lost" "$(grep ' dropped' "$T/err" | tr -d ,)" "$2 events $2 received 0 dropped"
}

# --- calls and returns ---

out=$(flow "$prog" file:flow.c -c "$prog fib 3")
is "all functions of a source file, with arguments and results" "$(shape "$out")" \
	"-> main argc=3 argv=PTR
  -> fib n=3
    -> fib n=2
      -> fib n=1
      <- fib = 1
      -> fib n=0
      <- fib = 0
    <- fib = 1
    -> fib n=1
    <- fib = 1
  <- fib = 2
<- main = 0"
whole "a source file" 12
is "times never go back" "$(awk '{print $1}' <<<"$out")" "$(awk '{print $1}' <<<"$out" | sort -n)"
like "a call has its time" "$out" '<- fib = 2  \[[0-9]+\.[0-9] us\]'

out=$(flow "$BIN/flow_fixed" file:flow.c -c "$BIN/flow_fixed fib 1")
is "a program at fixed addresses" "$(shape "$out")" "-> main argc=3 argv=PTR
  -> fib n=1
  <- fib = 1
<- main = 0"

out=$(flow "$prog" greet -c "$prog greet")
is "strings" "$(shape "$out")" '-> greet name="world"
<- greet = "hi world"'

out=$(flow "$prog" 'gre*' 'mai?' 'm*n' -c "$prog greet")
is "several globs, each function once" "$(shape "$out" | sed 's/ .*-> m.*/&/; s/argc=.*//')" '-> main 
  -> greet name="world"
  <- greet = "hi world"
<- main = 0'

out=$(flow "$BIN/flow_bare" fib -c "$BIN/flow_bare fib 1")
is "without debug data there are no names, but results" "$(shape "$out")" "-> fib
<- fib = 0x1"

# --- calls that do not return ---

out=$(flow "$prog" catcher jumper -c "$prog jump 2")
is "longjmp, twice" "$(shape "$out")" "-> catcher times=2
  -> jumper depth=2
    -> jumper depth=1
      -> jumper depth=0
      <- jumper  (left without a return)
    <- jumper  (left without a return)
  <- jumper  (left without a return)
  -> jumper depth=2
    -> jumper depth=1
      -> jumper depth=0
      <- jumper  (left without a return)
    <- jumper  (left without a return)
  <- jumper  (left without a return)
<- catcher = -2"
whole "longjmp" 8

out=$(flow "$prog" main leave -c "$prog exit 5")
is "the status is the command's" $? 5
is "exit in the middle" "$(shape "$out")" "-> main argc=3 argv=PTR
  -> leave status=5
  <- leave  (had not returned when the trace ended)
<- main  (had not returned when the trace ended)"

out=$(flow "$prog" main fib -c "$prog exec")
is "execve" "$(shape "$out" | sed 's/ argv=.*//')" "-> main argc=2
<- main  (left without a return)
-> main argc=3
  -> fib n=1
  <- fib = 1
<- main = 0"

# all of libc's, setjmp too, which keeps the return address
build flow_static flow.c gcc -std=gnu11 -D_GNU_SOURCE -O0 -g -pthread -static "$SRC/flow.c" -o %o
flow "$BIN/flow_static" '*setjmp*' 'catcher' _start main '*memcpy*' '*printf' '*exit*' -c "$BIN/flow_static jump 3" >"$T/out"
is "a program whose setjmp is probed goes on" $? 0
like "functions that must keep their return address are shown" "$(<"$T/out")" '-> _?_?(sig)?setjmp'
unlike "and not as if they had never returned" "$(<"$T/out")" 'setjmp.*left'

# --- threads ---

flow "$prog" fib worker -o json -c "$prog threads 4" >"$T/json"
is "four threads" "$(jq -s '[.[] | select(.function == "worker" and .event == "entry") | .thread] | unique | length' "$T/json")" 4
is "what threads do is theirs" \
	"$(jq -r 'select(.function == "worker" and .event == "return") | .return' "$T/json" | sort | tr '\n' ' ')" \
	"0x1 0x2 0x3 0x5 "
is "every call returned in its thread, as deep as it was called" \
	"$(jq -s 'group_by(.thread)[] | select(.[0].thread) | reduce .[] as $e ([]; if $e.event == "entry" then . + [$e.depth] elif .[-1] == $e.depth then .[:-1] else ["wrong"] end) | length' "$T/json" | sort -u)" 0
is "JSON tells the same totals" "$(jq -c 'select(.emitted) | [.emitted == .received, .dropped]' "$T/json")" '[true,0]'
is "JSON has one object for each" "$(jq -s 'map(select(.event)) | length' "$T/json")" \
	"$(jq 'select(.emitted) | .emitted' "$T/json")"

# --- deep recursion ---

flow "$prog" deep -c "$prog deep 200" >"$T/out"
is "the kernel follows 64 calls: of deeper ones this is said" "$(grep -c 'more than 64' "$T/out")" 137
is "the others return" "$(grep -c 'us\]' "$T/out")" 64
flow "$prog" deep --at-ret -c "$prog deep 200" >"$T/out"
is "at RET instructions all are seen" "$(grep -c '<- deep = .*us\]' "$T/out")" 201
like "from the innermost on" "$(grep -m 1 '<-' "$T/out")" '<- deep = 0 '
whole "deep" 402

# --- optimised programs ---

jumps="-> caller n=2
  -> first x=10
    -> middle x=11
      -> last x=12
      <- last = 36"
out=$(flow "$BIN/flow_tail" file:flow_tail.c caller -c "$BIN/flow_tail" | grep -v main | sed 's/  //3')
is "a function that jumps to another has called it" \
	"$(shape "$out" | sed 's/^  //' | head -n 8)" "$jumps
    <- middle = 36
  <- first = 36
  -> first x=11"
like "who has no code of its own is counted" "$(<"$T/err")" '1 more function has no code of its own'
out=$(flow "$BIN/flow_tail" caller first middle last --at-ret --callers -c "$BIN/flow_tail")
like "at RET instructions too" "$out" '<- last = 36  \[[0-9.]+ us\]'$'\n''.*<- middle  \[[0-9.]+ us\]  \(with the function that it jumped to\)'
like "a jump is no call" "$out" '-> middle x=11  jumped to from first'
like "a call is one" "$out" '-> first x=11  called from caller'

# --- under ---

out=$(flow "$prog" fib --under outer -c "$prog outer 2")
is "only what is called while inside, with callers" "$(shape "$out")" "-> outer n=2  called from main
  -> fib n=2  called from outer
    -> fib n=1  called from fib
    <- fib = 1
    -> fib n=0  called from fib
    <- fib = 0
  <- fib = 1
<- outer = 2"
whole "under: the kernel leaves out the others" 8
out=$(flow "$prog" fib --under worker -c "$prog threads 2")
is "under: each thread by itself" "$(grep -c -- '-> worker' <<<"$out")" 2
out=$(flow "$prog" jumper --under jumper -c "$prog jump 1")
is "under: who leaves by longjmp is outside" "$(grep -c -- '-> jumper' <<<"$out")" 3
out=$(flow "$prog" fib --under outer --at-ret -c "$prog outer 2")
is "under, at RET instructions" "$(grep -c -- '->' <<<"$out")" 4

# --- C++ ---

if command -v g++ >/dev/null; then
	build flow_throw flow_throw.cc g++ -O1 -g "$SRC/flow_throw.cc" -o %o
	is "exceptions are caught" "$(flow "$BIN/flow_throw" 'sample::*' main -O "$T/out" -c "$BIN/flow_throw" | tr '\n' ' ')" \
		"1 2 caught: too many caught: too many "
	like "names are those of the source" "$(<"$T/out")" '-> sample::thrower'
	is "exceptions leave functions" "$(grep -c 'left without a return' "$T/out")" 4
	is "others return" "$(grep -c 'between.* = 2 ' "$T/out")" 1
else
	skip "C++" "missing g++"
fi

# --- Go ---

if command -v go >/dev/null; then
	build grow grow.go env CGO_ENABLED=0 GOFLAGS=-mod=mod GOPROXY=off GOCACHE="$BIN/go-cache" \
		HOME="${HOME:-/root}" go build -o %o "$SRC/grow.go"
	flow "$BIN/grow" main.deep main.add -o json -O "$T/json" -c "$BIN/grow 20 300" >/dev/null
	is "Go: stacks that grow lose no call" "$(jq -s 'map(select(.event and .event != "entry" and .event != "return")) | length' "$T/json")" 0
	is "Go: recursion in each goroutine, as deep as it is" \
		"$(jq -s 'map(select(.function == "main.deep" and .event == "entry") | .depth) | max' "$T/json")" 300
	is "Go: what returns is what was called" \
		"$(jq -s 'map(select(.function == "main.deep" and .event == "return")) | [length > 300, all(.return == 300 - .depth)]' -c "$T/json")" "[true,true]"
else
	skip "Go" "missing go"
fi

# --- graphs ---

flow "$prog" fib outer --folded --calls -c "$prog outer 3" >"$T/folded"
is "folded: as many calls as there were" "$(awk '{n += $NF} END {print n}' "$T/folded")" 12
like "folded: by the way that they were called" "$(<"$T/folded")" $'(^|\n)outer;fib;fib;fib 2(\n|$)'
like "folded: from the outermost on" "$(<"$T/folded")" $'(^|\n)outer 1\n'
flow "$prog" main fib --folded -c "$prog fib 12" >"$T/folded"
us=$(awk '{n += $NF} END {print n}' "$T/folded")
is "folded: microseconds" "$([ "$us" -gt 100 ] && [ "$us" -lt 5000000 ] && echo some)" some

flow "$prog" file:flow.c --graph dot -c "$prog fib 5" >"$T/dot"
like "dot: calls are counted" "$(<"$T/dot")" 'fib\\n15 calls\\ntotal'
like "dot: an edge for recursion" "$(<"$T/dot")" 'f([0-9]+) -> f\1 \[label="14 x'
if command -v dot >/dev/null; then
	ok "Graphviz reads it" dot -Tsvg -o "$T/dot.svg" "$T/dot"
else
	is "dot: brackets and quotes are closed" "$(tail -n 1 "$T/dot") $(($(tr -dc '"' <"$T/dot" | wc -c) % 2))" "} 0"
fi

flow "$prog" file:flow.c --graph svg -O "$T/svg" -c "$prog fib 5"
# shellcheck disable=SC2016
is "svg: XML, with what each call took" "$("$PYTHON" -c '
import sys, xml.etree.ElementTree as t
root = t.parse(sys.argv[1]).getroot()
n = "{http://www.w3.org/2000/svg}"
titles = [x.text for x in root.iter(n + "title")]
boxes = [x for x in root.iter(n + "rect") if x.get("rx")]
wide = max(float(x.get("width")) for x in boxes)
print(root.tag == n + "svg", len(titles) == len(boxes), wide == 1180,
      titles[0].startswith("main (1 call, total "), not list(root.iter(n + "script")))
' "$T/svg")" "True True True True True"
whole "svg" 32

# --- a running process, and the end of a trace ---

out=$(flow "$prog" fib -n 3 -c "$prog fib 5")
is "-n: so many" "$(grep -c -- '-> fib' <<<"$out")" 3
like "-n: the others are counted" "$(<"$T/err")" '30 events, 30 received, 0 dropped, 3 shown'

bg "$T/fib" "$prog" fib 60
fib=$BG
for _ in 1 2 3; do
	flow "$prog" fib -o json -p "$fib" -n 2000
done >"$T/json"
is "-p: no call of the time in which probes are being attached is taken for one that did not return" \
	"$(jq -s -c '[(map(select(.event == "return")) | length > 0), (map(select(.event == "left")) | length)]' "$T/json")" "[true,0]"
kill "$fib"

bg "$T/naps" "$prog" naps 60
naps=$BG
wait_for "grep -q . /proc/$naps/wchan"
flow "$prog" nap --at-ret -p "$naps" -n 4 >"$T/out"
is "-p: calls of a process that runs already" "$(grep -cE 'nap (n)?=' "$T/out")" 4
flow "$prog" main nap --at-ret -p "$naps" -d 300ms >"$T/out"
like "-d: it ends by itself" "$(head -n 3 "$T/out")" '-> nap n=[0-9]+'
bg "$T/int" "$AX" --instance "$INST" trace flow "$prog" main nap --at-ret -p "$naps"
ax=$BG
wait_for "grep -q -- '-> nap' '$T/int'"
wait "$naps"
wait "$ax"
like "its end is the trace's; what was entered before is told" "$(grep main "$T/int")" \
	'<- main = 0  \(its entry was not seen\)'
like "and so are the totals" "$(<"$T/int")" ' events, ([0-9]+) received, 0 dropped'

# --- more than the ring holds: what is missing is said ---

bg "$T/busy" "$prog" busy 2000
busy=$BG
bg "$T/err" "$AX" --instance "$INST" trace flow "$prog" fib -o json -O "$T/json" -p "$busy"
ax=$BG
wait_for "[ -s '$T/json' ]"
for _ in 1 2; do
	kill -STOP "$ax"
	sleep 1
	kill -CONT "$ax"
	sleep 0.3
done
kill -INT "$ax"
wait "$ax"
is "Ctrl-C is no failure" $? 0
kill "$busy"
is "lost: the sum is right, and something was lost" \
	"$(jq -c 'select(.emitted) | [.emitted == .received + .dropped, .dropped > 0]' "$T/json")" "[true,true]"
is "lost: it is told where, and how many" \
	"$(jq -s '[(map(select(.event == "gap")) | length > 0), (map(select(.event == "gap") | .records) | add) == (map(select(.emitted))[0].dropped)]' -c "$T/json")" "[true,true]"
is "lost: no call is taken for one that did not return" "$(jq -s 'map(select(.event == "left")) | length' "$T/json")" 0

timeout 60 "$AX" --instance "$INST" trace flow "$prog" fib -o json -O "$T/json" -c "$prog fib 24" 2>"$T/err"
is "many: the sum is right" "$(jq -c 'select(.emitted) | .emitted == .received + .dropped' "$T/json")" true
is "many: all calls are emitted" "$(jq -c 'select(.emitted) | .emitted' "$T/json")" 300098
is "many: lost records are told of, and only then" \
	"$(jq -s '(map(select(.event == "gap")) | length > 0) == (map(select(.emitted))[0].dropped > 0)' "$T/json")" true
is "many: no call is taken for one that did not return" "$(jq -s 'map(select(.event == "left")) | length' "$T/json")" 0

# --- mistakes ---

fails "nothing to trace" "$AX" trace flow "$prog"
like "no such function" "$("$AX" trace flow "$prog" nofib 2>&1)" "no function nofib"
like "no such source" "$("$AX" trace flow "$prog" file:nofile.c 2>&1)" "nofile.c"
like "no debug data" "$("$AX" trace flow "$BIN/flow_bare" file:flow.c 2>&1)" "no debug data"
like "under: several" "$("$AX" trace flow "$prog" fib --under '*er' 2>&1)" "--under takes one"
like "two outputs" "$("$AX" trace flow "$prog" fib --graph svg --folded 2>&1)" "expected one"
like "a graph is no JSON" "$("$AX" trace flow "$prog" fib --graph svg -o json 2>&1)" "no -o json"
like "--calls alone" "$("$AX" trace flow "$prog" fib --calls 2>&1)" "--folded"
like "no such process" "$("$AX" trace flow "$prog" fib -p 999999999 2>&1)" "no process 999999999"

done_testing
