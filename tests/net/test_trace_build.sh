#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 300
# ax trace build: what a build executes and does with files, and what is made of it.
. "$(dirname "$0")/lib.sh"
need gcc make jq python3 strace dot cmake go unshare babeltrace2
# no compiler cache between: its files are not the build's
PATH=$(tr : '\n' <<<"$PATH" | grep -v ccache | paste -sd:)
export PATH

traced() {
	"$AX" --instance "$INST" trace build "$@"
}
# whole NAME FILE: nothing was lost
whole() {
	is "$1: nothing was lost" \
		"$(traced json "$2" | jq -c 'select(.whole != null) | [.emitted == .received, .dropped, .cut, .missed, .whole]')" \
		"[true,0,0,0,true]"
}

# --- a small project: a header that the Makefile does not know, a list that nobody reads ---

mkdir -p "$T/project/lib" "$T/project/include"
cd "$T/project" || exit 1
export T
cat >Makefile <<'END2'
all: prog lib/part.o
prog: main.o other.o generated.o
	gcc -o $@.tmp $^
	mv $@.tmp $@
	ln -sf $@ latest
%.o: %.c
	gcc -Iinclude -c -o $@ $<
	nm -g $@ >$*.list
main.o: include/known.h
generated.c: rule.txt
	(echo '/* made */'; sed 's/^/int /;s/$$/;/' $<) >$@
lib/part.o:
	$(MAKE) -C lib part.o
END2
echo 'part.o: part.c; gcc -c -o $@ $<' >lib/Makefile
echo 'int part;' >lib/part.c
printf '#include "known.h"\n#include "hidden.h"\nint other(void);\nint main(void) { return other() + HIDDEN; }\n' >main.c
echo 'int other(void) { return 0; }' >other.c
echo '#define KNOWN 1' >include/known.h
echo '#define HIDDEN 0' >include/hidden.h
echo made >rule.txt

# (make 4.4 has a pipe with a name for its jobs, with one job none)
pipe=$(make --help | grep -o -- --jobserver-style)
out=$(GNUMAKEFLAGS=${pipe:+$pipe=pipe} traced -o "$T/trace" -- make -j2 2>&1)
is "the build succeeds" "$?" 0
like "an account" "$out" '[0-9]+ events, [0-9]+ received, 0 dropped'
whole "the project" "$T/trace"
is "the trace is its owner's alone" "$(stat -c %a "$T/trace")" 600
traced report "$T/trace" >"$T/report"
like "a compilation" "$(grep ' exec ' "$T/report")" 'gcc -Iinclude -c -o main.o main.c'
like "a rename" "$(<"$T/report")" ' mv +rename +prog.tmp to prog'
like "a link" "$(<"$T/report")" ' ln +symlink +latest -> prog'
like "a redirection" "$(<"$T/report")" ' sh +write +main.list'
is "by time" "$(awk 'NR > 1 { print $1 }' "$T/report" | sort -cn 2>&1)" ""
unlike "no files of the system" "$(<"$T/report")" '/usr/include|/etc/ld'
like "but with --system" "$(traced report --system "$T/trace")" ' read +/etc/ld.so.cache'
like "calls that failed" "$(traced report -x --only '*/include/*' "$T/trace")" 'cc1 +read +[^ ]*: ENOENT'
is "only some files" "$(traced report --only main.c "$T/trace" | awk 'NR > 1 { print $4, $5 }' | sort -u)" "read main.c"

files=$(traced report --files "$T/trace")
like "who made a file, by the names it had" "$files" \
	$'prog \(first prog.tmp\)\n +made by +[0-9]+  [^\n]*ld '
like "who read it" "$files" $'include/hidden.h\n +read by +[0-9]+  [^\n]*cc1[^\n]* main.c'

# --- other forms ---

traced compile-commands -O "$T/compile_commands.json" "$T/trace"
is "compilations" "$(jq -r '.[] | .file' "$T/compile_commands.json" | sort | xargs)" \
	"generated.c main.c other.c part.c"
is "their directory" "$(jq -r '.[] | select(.file == "part.c") | .directory' "$T/compile_commands.json")" \
	"$T/project/lib"
is "their arguments" "$(jq -c '.[] | select(.file == "main.c") | .arguments' "$T/compile_commands.json")" \
	'["gcc","-Iinclude","-c","-o","main.o","main.c"]'

deps=$(traced deps "$T/trace")
like "what a file was made of" "$deps" $'main.o: include/hidden.h include/known.h main.c'
like "through a rename" "$deps" $'\nprog: generated.o main.o other.o'
like "in another directory" "$deps" $'lib/part.o: lib/part.c\n'
{ make -pq; make -pq -C lib part.o; } >"$T/database"
is "what the Makefile does not declare" "$(traced deps --undeclared "$T/database" "$T/trace")" \
	"main.o: include/hidden.h"
traced deps --undeclared "$T/database" "$T/trace" >/dev/null
is "is an error" "$?" 1
is "with it, nothing is left" "$(sed 's|^main.o:.*|& include/hidden.h|' "$T/database" >"$T/database2"
	traced deps --undeclared "$T/database2" "$T/trace")" ""
is "what nobody reads" "$(traced deps --unread "$T/trace" | sed 's/  #.*//' | sort | xargs)" \
	"generated.list latest lib/part.o main.list other.list prog"
fails "a database that is none" traced deps --undeclared Makefile "$T/trace"

traced graph "$T/trace" >"$T/graph"
ok "Graphviz takes the graph" dot -Tplain "$T/graph"
like "a command with its files" "$(<"$T/graph")" 'label="gcc -Iinclude -c -o main.o main.c"'
like "in its directory" "$(<"$T/graph")" 'label="include";'
unlike "without what only one command knew" "$(<"$T/graph")" '\.s"'
ok "a picture" traced graph -o svg -O "$T/graph.svg" "$T/trace"
like "is SVG" "$(head -c 300 "$T/graph.svg")" '<svg'
is "each process" "$(traced graph -p "$T/trace" | grep -c 'label="\(/[^" ]*/\)\?cc1 ')" 4
like "the system in few files" "$(traced graph -p --system "$T/trace")" 'label="...", tooltip="/usr/lib/..."'
like "without Graphviz" "$(PATH=$T/none "$AX" trace build graph -o svg "$T/trace" 2>&1)" \
	"'dot' cannot be executed.*install graphviz"

rm -f main.o
traced replay -O "$T/again.sh" "$T/trace" main.o
ok "a command is repeated" env -i /bin/bash "$T/again.sh"
ok "and makes its file" test -s main.o
like "by a word" "$(traced replay "$T/trace" 'other.o' 2>&1 | tail -n 1)" \
	'gcc -Iinclude -c -o other.o other.c'
like "a word of several commands" "$(traced replay "$T/trace" gcc 2>&1)" 'several commands have .gcc.'
rm -f generated.c
traced replay "$T/trace" generated.c | env -i /bin/bash
is "with what its shell did" "$(tail -n 1 generated.c)" "int made;"

# what is gone when one process is repeated
# pid_of TRACE PATTERN: of the one that executed it
pid_of() {
	traced report "$1" | awk -v what="$2" '/ exec / && $0 ~ what { pid = $2 } END { print pid }'
}
TMPDIR="$T" traced -o "$T/single" -- sh -c 'mkdir deep; echo 1 >older
	cd deep && gcc -I../include -c ../main.c -o deep.o && cp deep.o .. && cd .. && rm -r deep' >/dev/null 2>&1
rm -f "$T"/*.s
traced replay "$T/single" "$(pid_of "$T/single" "[ /]as ")" >"$T/again.sh"
compiler=$(pid_of "$T/single" "/cc1 ")
like "a file that is gone, and who made it" "$(env -i /bin/bash "$T/again.sh" 2>&1)" \
	"needs $T/cc[^ ]*.s, which is not there: repeat process $compiler \(cc1\) first, which made it"
traced replay "$T/single" "$compiler" | env -i /bin/bash
is "then nothing is missing" "$(env -i /bin/bash "$T/again.sh" 2>&1)" ""
ok "and it makes its file, in a directory that was gone" test -s deep/deep.o
rm -r deep

# what differs from one run to the next is not there
rm -f ./*.o lib/*.o prog latest generated.c ./*.list
traced -o "$T/trace2" -- make -j1 >/dev/null 2>&1
for i in "" 2; do
	traced normalize "$T/trace$i" | sed '1s/-j.//; s/ -j[12]/ -j/; s/--jobserver-[^ ]*//' >"$T/normal$i"
done
ok "two builds are the same" diff "$T/normal" "$T/normal2"
like "with status and environment" "$(traced normalize -e "$T/trace")" $'make -j2 [^\n]*\n[^\n]*='

# --- without one that starts steps ---

# of FILE COMMAND...: what it was made of
of() {
	rm -f single.o
	traced -o "$T/single" -- "${@:2}" >/dev/null 2>&1
	traced deps "$T/single" | grep "^$1:"
}
cat >build.sh <<'END2'
gcc -Iinclude -c main.c -o single.o
gcc -c other.c -o other.o
gcc -o prog single.o other.o
END2
expected="single.o: include/hidden.h include/known.h main.c"
is "what a compiler alone made" "$(of single.o gcc -Iinclude -c main.c -o single.o)" "$expected"
is "what a script made" "$(of single.o bash build.sh)" "$expected"
is "and linked" "$(traced deps "$T/single" | grep '^prog:')" "prog: other.o single.o"
is "what a program of Python made" "$(of single.o "$PYTHON" -c \
	'import subprocess; subprocess.run(["gcc", "-Iinclude", "-c", "main.c", "-o", "single.o"])')" "$expected"
is "also by a file that is gone" "$(of single.o sh -c 'gcc -Iinclude -S main.c -o gone.s; gcc -c gone.s -o single.o; rm gone.s')" \
	"$expected"
traced -o "$T/single" -- "$PYTHON" -c 'import subprocess; subprocess.run(["gcc", "-Iinclude", "-c", "main.c", "-o", "single.o"])'
traced replay -O "$T/again.sh" "$T/single" single.o
rm -f single.o
ok "it is repeated" env -i /bin/bash "$T/again.sh"
ok "and makes its file again" test -s single.o

# --- files that take each other's names ---

cat >exchange.py <<'END2'
import ctypes
open("first", "w").close()
open("second", "w").close()
assert ctypes.CDLL(None).renameat2(-100, b"first", -100, b"second", 2) == 0
END2
traced -o "$T/exchange" -- "$PYTHON" exchange.py >/dev/null 2>&1
unlike "nobody removed one of them" "$(traced report --files "$T/exchange")" "removed by"
like "each was given its name" "$(traced report --files "$T/exchange")" \
	$'\nsecond \(first first\)\n +made by[^\n]*exchange.py\n +renamed by'

# --- strace as the second opinion, of the very same processes ---

# compare NAME LEAST COMMAND...: of a command of more than so many such calls ax tells what strace does; the
# trace is $T/both
compare() {
	local name=$1 least=$2
	shift 2
	rm -f "$T"/st.*
	traced -o "$T/both" -- strace -ff -s 4096 -o "$T/st" -e trace=file,process,fchdir,fchmod,ftruncate "$@" >/dev/null 2>&1
	is "$name succeeds with strace" "$?" 0
	"$PYTHON" "$SRC/strace_list.py" strace "$T/st" | sort >"$T/list.strace"
	if [ -n "${THREADS:-}" ]; then # strace tells of their ends, too
		awk 'NR == FNR { if ($2 == "exec") executes[$1]; next } $2 != "exit" || $1 in executes' \
			"$T/list.strace" "$T/list.strace" >"$T/list.processes"
		mv "$T/list.processes" "$T/list.strace"
	fi
	traced json "$T/both" >"$T/both.json"
	# strace itself, and each child of it before it is the build's
	"$PYTHON" "$SRC/strace_list.py" ax "$T/both.json" |
		awk 'NR == FNR { seen[$1]; next } $1 in seen' <(cut -d' ' -f1 "$T/list.strace" | sort -u) - |
		sort >"$T/list.ax"
	ok "$name: there is much to compare" test "$(wc -l <"$T/list.strace")" -gt "$least"
	is "$name: what strace saw and ax did not" "$(comm -23 "$T/list.strace" "$T/list.ax" | head -n 20)" ""
	is "$name: what ax saw and strace did not" "$(comm -13 "$T/list.strace" "$T/list.ax" | head -n 20)" ""
}
rm -f ./*.o lib/*.o prog latest generated.c ./*.list
compare make 400 make -j2

# --- processes ---

mkfifo "$T/hold"
cat >"$T/family.sh" <<'END2'
cd /
(setsid sh -c 'exec 3<&-; (cat $T/hold; echo daemon >$T/by-daemon) &') &
exit 5
END2
bg "$T/err" "$AX" --instance "$INST" trace build -o "$T/trace" --wait -- sh "$T/family.sh"
wait_for 'grep -q "waiting for [0-9]* more process" "$T/err"'
ok "a daemon is waited for" alive "$BG"
echo go >"$T/hold"
wait "$BG"
is "the command's status" "$?" 5
like "it is seen" "$(traced report "$T/trace")" " write +$T/by-daemon"
traced -o "$T/trace" -- sh "$T/family.sh" >"$T/err" 2>&1
like "without --wait it is said" "$(<"$T/err")" 'of its processes still runs?'
echo go >"$T/hold"
traced -o "$T/trace" -- "$PYTHON" -c '
import os, threading
def work(i):
    os.mkdir(f"d{i}"); os.rename(f"d{i}", f"e{i}"); os.rmdir(f"e{i}")
os.chdir("'"$T"'")
d = os.open(".", os.O_RDONLY)
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
fd = os.open("project/../by-dir", os.O_WRONLY | os.O_CREAT, dir_fd=d); os.close(fd)
os.rename("by-dir", "by-dir2", src_dir_fd=d, dst_dir_fd=d); os.unlink("by-dir2", dir_fd=d)
os.chmod("project", 0o750)
if os.posix_spawn("/bin/true", ["true", "by vfork"], {"A": "b"}): os.wait()
os.kill(os.getpid(), 9)' 2>"$T/err"
is "a signal" "$?" 137
traced report --all "$T/trace" >"$T/report"
is "threads" "$(grep -c ' mkdir \| rmdir \| rename  *d' <(sed 's/\/[^ ]*\///g' "$T/report"))" 24
like "a descriptor's directory" "$(<"$T/report")" " write +$T/by-dir"$'\n'
like "two of them" "$(<"$T/report")" " rename +$T/by-dir to $T/by-dir2"
like "a mode" "$(<"$T/report")" " chmod +0750 $T/project"
like "vfork" "$(<"$T/report")" " exec +true 'by vfork'"
like "its end" "$(<"$T/report")" " exit +SIGKILL after"
is "the whole environment" "$(traced json "$T/trace" | jq -c 'select(.argv[1]? == "by vfork") | .env')" '["A=b"]'

head -c 1000000 /dev/zero | tr '\0' 'x' | fold -w 100000 >"$T/words"
mapfile -t words <"$T/words"
traced -o "$T/trace" -- env "BIG=${words[0]}" /bin/true "${words[@]}" 2>/dev/null
is "a megabyte of arguments" "$(traced json "$T/trace" |
	jq -c 'select(.event == "exec" and .file == "/bin/true") | [(.argv | length), (.argv | join("") | length), .complete]')" \
	"[11,1000009,null]"
whole "a megabyte" "$T/trace"

# --- for other tools ---

# ctf NAME TRACE: as CTF it has the events that it has as JSON
ctf() {
	rm -rf "$T/ctf"
	traced ctf -O "$T/ctf" "$2"
	is "$1 as CTF: read without a warning" "$(babeltrace2 "$T/ctf" 2>&1 >"$T/ctf.read")" ""
	is "$1 as CTF: with all events" "$(sed 's/.* vm \([a-z]*\): { pid.*/\1/; s/.* \([a-z]*\): { pid = [0-9]*, tid.*/\1/' "$T/ctf.read" | sort | uniq -c)" \
		"$(traced json "$2" | jq -r '.event // empty' | sort | uniq -c)"
}
ctf "a megabyte" "$T/trace"
long() {
	tr -c x '\n' | awk 'length > 1000 { n++; all += length } END { print n, all }'
}
is "its arguments are whole" "$(long <"$T/ctf.read")" "$(traced json "$T/trace" | long)"
like "(there are some)" "$(long <"$T/ctf.read")" "^[0-9]{2} [0-9]{7}"
ctf "a build" "$T/both"
is "it is its owner's alone, since environments are in it" "$(stat -c %a "$T/ctf" "$T/ctf/metadata" | xargs)" "700 600"
like "a directory is needed" "$(traced ctf "$T/both" 2>&1)" "expected -O DIR"

# --- names and variables that would be commands elsewhere ---

mkdir "$T/odd" && cd "$T/odd" || exit 1
cat >odd.py <<'END2'
import os
def run(file, words, env):
    if os.fork() == 0:
        os.execve(file, words, env)
    os.wait()
run("/usr/bin/touch", ["/usr/bin/touch", "out\n$(touch injected)"], {"-Sx": "touch injected", "PATH": "/usr/bin:/bin"})
os.symlink("/bin/echo", "a=b"); os.symlink("/bin/echo", "-e")
run("./a=b", ["./a=b", "equals"], {"A": "1"})
run("-e", ["-e", "dash"], {"A": "1"})
run(os.open("/bin/echo", os.O_RDONLY), ["echo", "descriptor"], {"A": "1"})
os.mkdir("\033]0;d\n"); os.chdir("\033]0;d\n")
run("/bin/true", ["true"], {})
END2
traced -o "$T/trace" -- "$PYTHON" odd.py >/dev/null 2>&1
rm -f out*
traced replay "$T/trace" "injected)" | env -i /bin/bash
is "a file's name and a variable are no commands" \
	"$(find . -name 'out*' -printf made -o -name injected -print)" made
for word in equals dash descriptor; do
	is "a program called oddly: $word" "$(traced replay "$T/trace" $word | env -i /bin/bash)" $word
done
like "no control characters" "$(traced normalize "$T/trace" | grep -a ' true ')" " true \\(in \\$'.033]0;d.n'\\)"
ok "a graph of such names" dot -Tplain <(traced graph "$T/trace")

# --- who may read it, whose signals and whose numbers ---

cd "$T" || exit 1
: >"$T/open"
chmod 644 "$T/open"
traced -o "$T/open" -- true 2>/dev/null
is "a file that others could read" "$(stat -c %a "$T/open")" 600
chown 65534 "$T/open"
like "a file of another user" "$(traced -o "$T/open" -- true 2>&1)" 'belongs to another user'
rm -f "$T/again.sh"
traced replay -O "$T/again.sh" "$T/trace" dash
is "a script with an environment" "$(stat -c %a "$T/again.sh")" 600
# shellcheck disable=SC2016
is "as with nohup" "$(trap '' HUP; traced -o "$T/trace" -- sh -c 'kill -HUP $PPID $$; echo alive' 2>/dev/null)" alive
unshare -pf --mount-proc "$AX" --instance "$INST" trace build -o "$T/trace" -- sh -c 'mkdir made; rmdir made' 2>/dev/null
like "numbers of a container" "$(traced report "$T/trace")" ' rmdir +made'
# (not make: now and then make itself ends with 2, "wait: No child processes", where ^C interrupts it)
TYPED="trap 'echo interrupted >>told; exit 130' INT; echo >ready; while :; do sleep 0.1; done"
"$PYTHON" - "$AX" --instance "$INST" trace build -o "$T/trace" -- sh -c "$TYPED" >/dev/null 2>&1 <<'END2'
import os, pty, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
while not os.path.exists("ready"):
    time.sleep(0.01)
os.write(fd, b"\x03")
try:
    while os.read(fd, 4096):
        pass
except OSError:
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END2
is "Ctrl-C is the command's, once" "$? $(cat told)" "130 interrupted"

# --- builds by others ---

mkdir -p "$T/cmake" && cd "$T/cmake" || exit 1
cat >CMakeLists.txt <<'END2'
cmake_minimum_required(VERSION 3.13)
project(small C)
add_library(part STATIC part.c)
add_executable(small small.c)
target_link_libraries(small part)
END2
echo 'int part(void) { return 0; }' >part.c
echo 'int part(void); int main(void) { return part(); }' >small.c
traced -o "$T/trace" -- sh -c 'cmake -S . -B out && cmake --build out' >"$T/out" 2>&1
is "CMake" "$?" 0
whole "CMake" "$T/trace"
is "CMake: its compilations" \
	"$(traced compile-commands --only '*/cmake/*.c' "$T/trace" | jq -r '.[].file' | xargs -n1 basename | sort -u | xargs)" "CMakeCCompilerId.c part.c small.c"
like "CMake: an archive's members" "$(traced deps --only '*.a' --only '*.o' "$T/trace")" \
	$'out/libpart.a:[^\n]*part.c.o'
like "CMake: files that come and go" "$(traced report -f --only '*/CMakeFiles/*' "$T/trace")" '\(gone\)'
ok "CMake: a graph" dot -Tplain <(traced graph --except '*/CMakeFiles/*' "$T/trace")

mkdir -p "$T/go" && cd "$T/go" || exit 1
echo 'module web' >go.mod
printf 'package main\n\nfunc main() { println("%s") }\n' "$INST" >web.go # no cache has it
traced -o "$T/trace" -- env GOCACHE="$BIN/go-cache" HOME="${HOME:-/root}" GOPROXY=off GOFLAGS=-mod=mod GO111MODULE=on CGO_ENABLED=0 go build -o web . >"$T/out" 2>&1
is "Go" "$?" 0
whole "Go" "$T/trace"
like "Go: its compiler" "$(traced report "$T/trace" | grep ' exec ')" 'tool/linux_[a-z0-9]+/compile '
like "Go: what a program was made of" "$(traced report -f --only web.go "$T/trace")" 'read by'
is "Go: its program was made" "$(traced report -f --only web "$T/trace" | head -n 1 | cut -d' ' -f1)" web

# A program with a library of Debian's sources, as its packages build it (GOPATH, no modules). The library is
# copied, as they do, and has a line of its own, so that no cache has what is made of it.
go_sources=/usr/share/gocode/src/github.com/BurntSushi/toml
go_env=(env HOME="${HOME:-/root}" GOCACHE="$BIN/go-cache" GOPATH="$T/gopath" GO111MODULE=off GOFLAGS=-p=2 CGO_ENABLED=0 GOTMPDIR="$T")
go_anew() { # nothing is there of what is built
	rm -f tomlv
	echo "// $((++builds)) $INST" | tee -a src/tomlv/main.go src/github.com/BurntSushi/toml/{doc,internal/tz}.go >/dev/null
}
go_begin() {
	mkdir -p "$T/gopath/src/github.com/BurntSushi" "$T/gopath/src/tomlv"
	cp -a $go_sources "$T/gopath/src/github.com/BurntSushi/"
	cd "$T/gopath" || exit 1
	cat >src/tomlv/main.go <<'END2'
package main

import (
	"fmt"
	"os"

	"github.com/BurntSushi/toml"
)

func main() {
	var v map[string]interface{}
	_, err := toml.DecodeFile(os.Args[1], &v)
	fmt.Println(len(v), err)
}
END2
	builds=0
	"${go_env[@]}" go build -o tomlv tomlv # (later versions have no packages of their own that are built)
	go_anew
}
go_check() {
	local toml
	traced -o "$T/trace" -- "${go_env[@]}" go build -o tomlv tomlv >"$T/out" 2>&1
	is "Debian's Go sources" "$?" 0
	whole "Debian's Go sources" "$T/trace"
	echo 'a = 1' >x.toml
	is "(the program works)" "$(./tomlv x.toml)" "1 <nil>"
	like "Go: a package's compilation" "$(traced report "$T/trace" | grep ' exec ')" \
		'/compile -o [^ ]*/_pkg_.a -trimpath [^ ]* -p github.com/BurntSushi/toml '
	toml=$("${go_env[@]}" go list -f '{{range .GoFiles}}{{$.Dir}}/{{.}} {{end}}' github.com/BurntSushi/toml github.com/BurntSushi/toml/internal tomlv 2>/dev/null |
		tr ' ' '\n' | sed -n "s|^$T/gopath/||p" | sort | xargs)
	like "(go says what it is made of)" "$toml" 'src/github.com/BurntSushi/toml/decode.go .*src/tomlv/main.go'
	is "Go: what a program was made of" "$(traced deps --except '*/telemetry/*' "$T/trace")" "tomlv: $toml"
	is "Go: nobody reads the program" "$(traced deps --unread --except '*/telemetry/*' "$T/trace" | sed 's/  #.*//')" tomlv
	is "Go: no compilations of C" "$(traced compile-commands "$T/trace" | jq length)" 0
	traced graph "$T/trace" >"$T/graph"
	ok "Go: a graph" dot -Tplain "$T/graph"
	is "Go: with a step for each package, and the linker" \
		"$(sed -n 's/.*shape=box, label="\([^"]*\)".*/\1/p' "$T/graph" | grep -o '^link\|-p [^ .]*' | sort | xargs)" \
		"-p github -p github -p main link"
	unlike "Go: without its cache" "$(<"$T/graph")" 'go-cache'
	like "Go: but with --system, as one" "$(traced graph --system "$T/trace")" "tooltip=\"$BIN/go-cache/...\""
	ok "Go: a picture" traced graph -o svg -O "$T/graph.svg" "$T/trace"
	is "Go: events as JSON" "$(traced json "$T/trace" | jq -r 'select(.event == "rename") | .path2' | grep -c '/tomlv$')" 1
	rm -f tomlv
	traced replay "$T/trace" tomlv >"$T/again.sh"
	ok "Go: the build is repeated" env -i /bin/bash "$T/again.sh"
	is "Go: and makes its program" "$(./tomlv x.toml)" "1 <nil>"
}
# One of its processes needs what go wrote into a directory that it removes.
go_repeat_one() {
	local compile='/compile .* -p github.com/BurntSushi/toml -complete' package
	traced replay "$T/trace" "$(pid_of "$T/trace" "$compile")" >"$T/again.sh"
	like "Go: a compilation alone says what it misses, and what to do" "$(env -i /bin/bash "$T/again.sh" 2>&1)" \
		"needs /[^ ]*/importcfg, which is not there: process [0-9]+ \(go\) made and removed it: .*'go build -work'"
	fails "Go: and does not succeed" env -i /bin/bash "$T/again.sh"
	go_anew
	traced -o "$T/kept" -- "${go_env[@]}" go build -work -o tomlv tomlv 2>"$T/out"
	traced replay "$T/kept" "$(pid_of "$T/kept" "$compile")" >"$T/again.sh"
	package=$(sed -n 's/.* -o \([^ ]*\) .*/\1/p' "$T/again.sh")
	ok "Go: with -work its files stay" rm "$package"
	is "Go: and it is repeated" "$(env -i /bin/bash "$T/again.sh" 2>&1)" ""
	ok "Go: and makes its package" test -s "$package"
}
go_compare() {
	# (how often go asks each tool for its version depends on what was there first)
	for i in 1 2; do
		go_anew
		traced -o "$T/trace" -- "${go_env[@]}" go build -o tomlv tomlv >"$T/out" 2>&1
		traced normalize "$T/trace" | grep -v -e ' -V=full ' | sed 's/-buildid[ =][^ ]*/-buildid/' >"$T/normal$i"
	done
	ok "Go: two builds are the same" diff "$T/normal1" "$T/normal2"
	like "Go: directories that are gone have numbers" "$(<"$T/normal1")" \
		$'\n +rename <directory 1>/b001/exe/a.out tomlv\n.* -trimpath <directory 1>/b001=> -p main .*\n +write <directory 1>/b001/_pkg_.a\n'
	unlike "Go: all of them" "$(<"$T/normal1")" '/go-build[0-9]'
	go_anew
	THREADS=1 compare "Go" 300 "${go_env[@]}" go build -o tomlv tomlv
}
if [ -d $go_sources ]; then
	go_begin
	go_check
	go_repeat_one
	go_compare
else
	skip "Debian's Go sources" "missing package golang-github-burntsushi-toml-dev"
fi

# a build below a directory that is the system's
mount -t tmpfs none /opt && mkdir /opt/here && cd /opt/here || exit 1
echo 'int main(void) { return 0; }' >here.c
traced -o "$T/trace" -- gcc -c here.c 2>/dev/null
is "in a directory of the system" "$(traced deps "$T/trace")" "here.o: here.c"
cd "$T" && umount /opt

# --- the tour of ax-trace-build(8), as it is written there ---

mkdir "$T/tour" "$T/path"
printf '#!/bin/sh\nexec "%s" --instance %s "$@"\n' "$AX" "$INST" >"$T/path/ax"
chmod +x "$T/path/ax"
{
	echo "set -eu; cd '$T/tour'; PATH='$T/path':\$PATH"
	tour_of "$TOP/tools/share/ax-trace-build.8"
} >"$T/tour.sh"
bash "$T/tour.sh" >"$T/out" 2>&1
is "the tour's commands succeed" "$?" 0
like "they say what a file was made of" "$(<"$T/out")" $'\nmain.o: inc/answer.h main.c\n'
like "what is not declared" "$(<"$T/out")" $'\nmain.o: inc/answer.h\n'
like "what nobody reads" "$(<"$T/out")" $'\nprog.map  # /bin/sh -c '
like "what was repeated" "$(<"$T/out")" $'\nmain.o\n'
unlike "and two builds are alike" "$(grep '^[<>]' "$T/out")" 'main.o'

# --- what is lost is said ---

# the tracer is stopped while a program fills its buffer
traced -o "$T/trace" --buffer 1 -- sh -c 'kill -STOP $PPID; i=0
	while [ $i -lt 20000 ]; do : </dev/null; i=$((i+1)); done; kill -CONT $PPID' 2>"$T/err"
is "a trace with a hole is no success" "$?" 1
like "it says how many are missing" "$(tr -d , <"$T/err")" ' [1-9][0-9]* dropped'
like "and so do those that read it" "$(traced report "$T/trace" 2>&1 >/dev/null)" 'not whole: [0-9]+ records were lost'
fails "without success, too" traced report "$T/trace"
is "the sum is right" "$(traced json "$T/trace" 2>/dev/null | jq -c 'select(.whole != null) | [.emitted == .received + .dropped, .whole]')" \
	"[true,false]"

# --- mistakes ---

traced -o "$T/small" --buffer 1 -- true 2>/dev/null
for n in 0 1 20 39 41 200 900; do
	head -c "$n" "$T/small" >"$T/cut"
	like "a trace of $n bytes" "$(traced report "$T/cut" 2>&1 >/dev/null)" \
		'is empty|is no trace|ends in its header|not whole'
	fails "and no success" traced report "$T/cut"
done
like "another file" "$(traced json /bin/sh 2>&1)" 'it is no trace of a build'
fails "no file" traced -- true
fails "no command" traced -o "$T/x"
fails "a buffer of an odd size" traced -o "$T/x" --buffer 3 -- true
like "a program that is not there" "$(traced -o "$T/x" -- /none/there 2>&1)" '/none/there.*No such file'
like "a file that cannot be written" "$(traced -o /none/x -- true 2>&1)" '/none/x.*No such file'
traced -o /dev/full -- true 2>"$T/err"
like "a full disk" "$?$(<"$T/err")" '^1.*could not be written'
done_testing
