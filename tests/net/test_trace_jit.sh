#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# ax trace jit: code that programs make while they run, each version of it, of a small compiler of
# ours and of real ones; perf and ax trace perfdata understand what is kept.
. "$(dirname "$0")/lib.sh"
need jq gcc python3 readelf
build jit jit.c gcc "${CFLAGS_TEST[@]}" -pthread "$SRC/jit.c" -o %o
jit=$BIN/jit

# keep NAME OPTION...: into $T/NAME; what was said is in $T/NAME.err
keep() {
	local name=$1
	shift
	timeout 100 "$AX" --instance "$INST" trace jit -o "$T/$name" "$@" >"$T/$name.out" 2>"$T/$name.err" </dev/null
}
pieces() { # NAME: PID TIME ADDRESS SIZE NUMBER
	"$PYTHON" "$SRC/jitdump.py" show "$T/$1"/jit-*.dump
}
numbers() { # NAME: what the functions return that were kept
	pieces "$1" | awk '$5 != "-" { print $5 }' | xargs
}
events() { # NAME FILTER
	jq -r "$2" "$T/$1/index.jsonl"
}

# --- what is kept ---

ok "a program that never writes what it executes" keep wx -c "$jit wx 50"
is "each version" "$(numbers wx)" "$(seq 50 | xargs)"
is "each with its time, one after the other" "$(pieces wx | awk '$5 != "-" { print $2 }' | sort -nu | wc -l)" 50
is "at one address" "$(pieces wx | awk '$5 != "-" { print $3 }' | sort -u | wc -l)" 1
like "nothing is lost" "$(cat "$T/wx.err")" ', 0 dropped'
unlike "nor cut" "$(cat "$T/wx.err")" 'missing'
is "the index has the same pieces" "$(events wx 'select(.event == "code") | "\(.pid) \(.time_ns) \(.address) \(.size)"')" \
	"$(pieces wx | cut -d' ' -f1-4)"
ok "the bytes stand where it says" cmp -n 4 -i "$(events wx 'select(.event == "code") | .offset' | tail -n 1):0" \
	"$T/wx/"jit-*.dump <("$PYTHON" -c 'import sys; sys.stdout.buffer.write(b"\xb8\x32\0\0" if sys.argv[1] == "x86_64" else (0x52800000 | 50 << 5).to_bytes(4, "little"))' "$(uname -m)")
is "nobody else can read it" "$(stat -c %a "$T/wx" "$T"/wx/* | xargs)" "700 600 600"

keep pkey -c "$jit pkey 5"
is "by pkey_mprotect()" "$(numbers pkey)" "1 2 3 4 5"
keep hidden -c "$jit hidden 20"
is "that may be executed only, where processors can forbid to read it" "$(numbers hidden)" "$(seq 20 | xargs)"
unlike "of which nothing is missing" "$(cat "$T/hidden.err")" 'could be executed but not read'
keep unread -c "$jit none 13"
is "that nobody could read before either" "$(numbers unread)" 13
ok "since it became executable" test "$(events unread 'select(.event == "code") | .time_ns')" = \
	"$(events unread 'select(.event == "executable") | .time_ns' | tail -n 1)"
keep lost -c "$jit lost 14"
like "or it is said that it is missing" "$(numbers lost) $(cat "$T/lost.err")" \
	'^14 |; 1 ranges could be executed but not read'
keep threads -c "$jit threads 20"
is "of threads" "$(numbers threads | tr ' ' '\n' | sort -n | xargs)" "$({ seq 1000 1019; seq 2000 2019; seq 3000 3019; seq 4000 4019; } | xargs)"
keep fork -c "$jit fork 7"
read -r parent child <"$T/fork.out"
is "of a child, whose pages are its parent's" "$(pieces fork | awk '$5 != "-" { print $1, $5 }')" "$parent 1
$child 7"
is "the child is told" "$(events fork 'select(.event == "fork") | "\(.pid) \(.parent)"')" "$child $parent"
keep alone --alone -c "$jit fork 7"
is "or left out" "$(numbers alone)" 1
keep rwx -c "$jit rwx 9"
is "writable while it is executable: as it was at the end" "$(numbers rwx | xargs -n 1 | tail -n 1)" 9
is "which the index says" "$(events rwx 'select(.event == "executable") | .writable')" here
keep unmapped -c "$jit unmapped 10"
is "or when it was given back" "$(numbers unmapped | xargs -n 1 | tail -n 1)" 10
keep many --again 50s -c "$jit many 60"
is "or at each of many places" "$(numbers many)" "$(seq 60 | xargs)"
keep dual -c "$jit dual 11"
is "written by another mapping" "$(numbers dual | xargs -n 1 | tail -n 1)" 11
keep readonly -c "$jit readonly 12"
is "also if the one that is executed is not for writing" "$(numbers readonly | xargs -n 1 | tail -n 1)" 12
keep program -c "$jit program 3"
is "what was there when another program began, and of that one" "$(numbers program)" "4 1 2 3"
keep spawned --again 50s -c "$jit commands 40"
ok "who starts commands is not copied for each" \
	test "$(sed -n 's/.* pieces of code, \([0-9]*\) unchanged.*/\1/p' "$T/spawned.err")" -lt $((20 * 64))

# --- programs that run already ---

bg "$T/wait.out" "$jit" wait 77
wait_for '[ -s "$T/wait.out" ]'
bg "$T/p.bg" "$AX" --instance "$INST" trace jit -o "$T/p" -p "$(cat "$T/wait.out")"
tracer=$BG
wait_for '[ "$(numbers p 2>/dev/null)" = 77 ]'
is "their code is there at once" "$(numbers p)" 77
kill -INT "$tracer"
wait "$tracer"
is "and the end" "$?" 0
id=$(readelf -n "$jit" | sed -n 's/.*Build ID: //p')
is "and the files that they have, with their build ids" \
	"$(events p "select(.event == \"file\" and .path == \"$jit\") | .build_id")" "$id"

# each of them has two files open at the tracer
pids=()
for i in $(seq 30); do
	bg "$T/wait.$i" "$jit" wait "$i"
	pids+=("$BG")
done
wait_for '[ "$(cat "$T"/wait.[0-9]* | wc -l)" = 30 ]'
bg "$T/crowd.bg" sh -c 'ulimit -Sn 40; exec "$@"' - "$AX" --instance "$INST" trace jit -o "$T/crowd" -p "$(IFS=,; echo "${pids[*]}")"
wait_for '[ "$(numbers crowd 2>/dev/null | tr " " "\n" | sort -nu | wc -l)" = 30 ]'
is "of more processes than there may be open files at first" "$(numbers crowd | tr ' ' '\n' | sort -n | xargs)" "$(seq 30 | xargs)"
kill "${pids[@]}"
wait "$BG"

# --- what cannot be ---

mkdir "$T/there"
like "a directory that is there" "$(keep there -c true; cat "$T/there.err")" "is there already"
like "nobody" "$(keep x; cat "$T/x.err")" "expected -p or -c"
like "nowhere" "$(ax trace jit -c true 2>&1)" "expected -o with a directory"
keep max --max 1 -c "$jit threads 200"
like "no more than --max" "$(cat "$T/max.err")" 'pages more than --max allows'
ok "is kept" test "$(stat -c %s "$T"/max/jit-*.dump)" -le $((2 << 20))
keep lines --max 1 -c "$jit toggle 60000"
like "nor of the index" "$(cat "$T/lines.err")" 'lines of the index more than --max allows'
ok "which ends with a whole line" jq -es 'length > 1000' "$T/lines/index.jsonl"
ok "below the limit" test "$(stat -c %s "$T/lines/index.jsonl")" -le $((2 << 20))
like "the exit status is the command's" "$(keep status -c 'sh -c "exit 3"'; echo $?)" '^3$'

# --- real compilers ---

if command -v luajit >/dev/null; then
	echo 'local s = 0 for i = 1, 1e7 do s = s + i % 7 end print(s)' >"$T/loop.lua"
	keep lua -c "luajit $T/loop.lua"
	is "LuaJIT goes on as ever" "$(cat "$T/lua.out")" 29999997
	ok "and its traces are kept" test "$(pieces lua | wc -l)" -gt 0
else
	skip "LuaJIT" "no luajit"
fi
cat >"$T/spin.js" <<'END'
function spin(n) { let s = 0; for (let i = 0; i < n; i++) s += i % 7; return s; }
let t = 0; for (let i = 0; i < 1000; i++) t += spin(100000 + i); console.log(t);
END
if command -v node >/dev/null; then
	keep node -c "node $T/spin.js"
	is "Node.js goes on as ever" "$(cat "$T/node.out")" "$(node "$T/spin.js")"
	ok "and its code is kept" test "$(pieces node | wc -l)" -gt 0
else
	skip "Node.js" "no node"
fi
if command -v java >/dev/null; then
	keep java -c "java -XX:TieredStopAtLevel=1 -version"
	ok "code of Java" test "$(events java '[inputs | select(.event == "code") | .size] | add')" -gt 100000
else
	skip "Java" "no java"
fi

# --- the tour of the manual: perf, too ---

if command -v perf >/dev/null && command -v node >/dev/null && perf record -q -e cpu-clock -o "$T/try" -- true 2>"$T/err"; then
	mkdir "$T/tour" "$T/path"
	printf '#!/bin/sh\nexec "%s" --instance %s "$@"\n' "$AX" "$INST" >"$T/path/ax"
	chmod +x "$T/path/ax"
	tour_of "$TOP/tools/share/ax-trace-jit.8" >"$T/commands"
	ok "it has commands" test "$(wc -l <"$T/commands")" -gt 8
	(cd "$T/tour" && PATH="$T/path:$PATH" timeout 100 bash -euo pipefail "$T/commands") >"$T/tour.out" 2>&1
	is "they all succeed" "$?" 0
	like "code in the index" "$(cat "$T/tour.out")" '"time_ns":[0-9]+,"event":"code",'
	like "and in perf's report" "$(cat "$T/tour.out")" '%  node +jitted-[0-9]+-[0-9]+.so +\[\.\] jit 0x'
else
	skip "the tour" "missing: node, or perf record $(tail -n 1 "$T/err")"
fi

# --- Intel PT ---

if [ "$(uname -m)" = x86_64 ]; then
	cd "$T" || exit
	gcc -nostdlib -static -no-pie -DNAME=first "$SRC/traced.S" -o first || exit 1
	cp first second
	"$PYTHON" "$SRC/pt_trace.py" pt.data first second
	"$AX" trace perfdata flow pt.data | sed '$d' | cut -d: -f1,2 | cut -d' ' -f1-5 >with_files
	text=$(readelf -lW first | awk '/ LOAD / && / R E / { print $3, $2, $5 }')
	read -r address offset size <<<"$text"
	bytes=$(od -An -v -tx1 -j $((offset)) -N $((size)) first | tr -d ' \n')
	wrong=${bytes//[0-9a-f][0-9a-f]/cc}
	# kept PIECE...: as jitdump.py has them
	kept() {
		rm -rf kept
		mkdir kept
		"$PYTHON" "$SRC/jitdump.py" write kept/jit-1.dump "$@"
	}
	steps() { # FILE, without functions: the kept ones have another name
		"$AX" trace perfdata flow --jit kept "$1" | sed '$d' | cut -d: -f1,2 | cut -d' ' -f1-5
	}
	kept "100:500:$address:$wrong" "100:5000:$address:$wrong" "200:500:$address:$wrong"
	is "a file that was mapped later is what was executed" "$("$AX" trace perfdata flow --jit kept pt.data)" \
		"$("$AX" trace perfdata flow pt.data)"
	"$PYTHON" "$SRC/pt_trace.py" --fork fork.data first second
	rm first second
	like "programs that are gone" "$("$AX" trace perfdata flow pt.data | tail -n 1)" '^0 instructions'
	# the first version is the right one when each of them ran, and another one came later; a
	# file that ends in the middle of a piece is one whose writer was killed
	kept "100:950:$address:$bytes" "100:1500:$address:$wrong" \
		"200:900:$address:$wrong" "200:1950:$address:$bytes" "200:9000:$address:$wrong"
	printf '\0\0\0\0\xff\0\0\0' >>kept/jit-1.dump
	"$AX" trace perfdata flow --jit kept pt.data >with_jit
	is "the code of that time, as it was kept" "$(steps pt.data)" "$(cat with_files)"
	like "all of it" "$(tail -n 1 with_jit)" '^28 instructions, 0 gaps$'
	is "also of one file" "$("$AX" trace perfdata flow --jit kept/jit-1.dump pt.data)" "$(cat with_jit)"
	jumps=$((14 * 2)) # so many digits are the instructions up to the jump
	kept "100:900:$address:${bytes:0:jumps}${wrong:jumps}" "100:950:$((address + 14)):${bytes:jumps}" \
		"200:900:$address:${bytes:0:2}" "200:950:$((address + 1)):${bytes:2}"
	is "the newer one of two that overlap, and an instruction that lies in two" "$(steps pt.data)" "$(cat with_files)"
	kept "100:900:$address:$bytes" "100:1960:$address:$wrong" "200:9000:$address:$wrong"
	is "a child executes what its parent had when it began" "$(steps fork.data)" "$(cat with_files)"
	kept "100:1500:$address:$wrong" "200:2500:$address:$wrong"
	"$PYTHON" "$SRC/jitdump.py" write kept/jit-2.dump "100:900:$address:$bytes"
	"$PYTHON" "$SRC/jitdump.py" write kept/jit-3.dump "200:900:$address:$bytes"
	is "of several files, whichever has the right time" "$(steps pt.data)" "$(cat with_files)"
	mkdir none
	like "nothing that was kept" "$("$AX" trace perfdata flow --jit none pt.data 2>&1)" "has no files jit-"
	like "what is no such file" "$("$AX" trace perfdata flow --jit pt.data pt.data 2>&1)" "is no jitdump"
else
	skip "Intel PT" "only on x86-64"
fi

# --- what it costs to begin ---

# libbpf looks at some of the kernel's types alone, which a file without a name has: for these programs and for those
# that follow processes
if command -v strace >/dev/null && [ -e /sys/kernel/btf/vmlinux ]; then
	strace -f -e trace=openat -o "$T/opened" "$AX" --instance "$INST" trace jit -o "$T/few" -c true >/dev/null 2>&1
	is "few types" "$(grep -c '"/proc/self/fd/' "$T/opened")" 2
else
	skip "few types" "strace, or the kernel's types"
fi
done_testing
