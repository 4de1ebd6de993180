#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax trace profile and offcpu: where processors are busy and threads wait, by call stacks, also of
# programs without frame pointers, of those that are gone, and with names that mean no good.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/trace.sh"
need gcc jq python3
build profiled profiled.c gcc -O2 -fomit-frame-pointer -pthread "$SRC/profiled.c" -o %o
build profiled_fp profiled.c gcc -O2 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer \
	-fno-optimize-sibling-calls -pthread "$SRC/profiled.c" -o %o
P=$BIN/profiled

# profile OPTION...: into $T/json, its account into $account
profile() {
	ax trace profile -F 499 -o json -O "$T/json" "$@" 2>"$T/err"
	account=$(tail -n 1 "$T/json")
}
# part FILTER: how many of a hundred samples are of stacks for which that is true
part() {
	jq -rs "map(select(.stack)) | (map(.samples) | add) as \$all |
		(map(select($1) | .samples) | add // 0) * 100 / (\$all // 1) | floor" "$T/json"
}
# most NAME FILTER: at least 80 of a hundred
most() {
	local n
	n=$(part "$2")
	ok "$1" test "$n" -ge 80 || diag "$n of 100; $account; $(head -c 2000 "$T/json") $(cat "$T/err")"
}
# behind FUNCTION...: that a stack has these, each called by the next one
behind() {
	local names
	names=$(printf '"%s",' "$@")
	echo ".stack | index([${names%,}])"
}

# --- what is known to be hot ---

profile -c "$P busy 0.5"
is "it ends as its command does" "$?" 0
most "the hot function is most of what runs" '.stack | index("hot")'
most "callers are found without frame pointers" "$(behind hot middle work main)"
most "up to where the program begins" '.stack[-1] == "_start"'
is "all samples are accounted for" "$(jq '.emitted == .received + .dropped and .dropped == 0' <<<"$account")" true
is "stacks have all samples" "$(jq -s 'map(.samples // 0) | add' "$T/json")" "$(jq .received <<<"$account")"
ok "as many as the clock makes in that time" test "$(jq .received <<<"$account")" -ge 100 -a \
	"$(jq .received <<<"$account")" -le 500
profile --stack fp -c "$BIN/profiled_fp busy 0.5"
# one that makes no frame hides its caller
most "callers by frame pointers" '.stack | index("hot") and index("work") and index("main")'
is "counted in the kernel, and all are there" \
	"$(jq -s 'map(.samples // 0) | add' "$T/json")" "$(jq .received <<<"$account")"
profile -c "$BIN/profiled_fp busy 0.3"
most "both ways agree where there are frame pointers" "$(behind hot middle work main)"
profile -c "$P deep 0.3 40"
most "a deep stack is whole" "$(behind deeper deeper deeper deeper main)"
profile -c "$P deep 0.3 400"
most "of a deeper one it is said that there is more" '.stack | index("deeper") and .[-1] == "[more]"'
profile -c "$P signal 0.3"
most "from a signal's handler to what it interrupted" \
	'.stack | index("on_signal") and any(. == "raise" or . == "gsignal") and index("main")'

profile -c "$P threads 0.3"
most "threads" '(.comm == "red" and (.stack | index("red_work"))) or (.comm == "blue" and (.stack | index("blue_work")))'
ok "both of them" test "$(part '.comm == "red"')" -gt 20 -a "$(part '.comm == "blue"')" -gt 20

cat >"$T/busy.py" <<'END'
import time
def busy_python():
    n = 0
    while time.process_time() < 0.6:
        n += sum(i * i for i in range(1000))
busy_python()
END
profile -c "python3 $T/busy.py"
ok "a stripped program of Debian is followed to its beginning" \
	test "$(part '.stack | index("_PyEval_EvalFrameDefault") and index("Py_BytesMain") and .[-1] == "_start"')" -ge 50 ||
	diag "$(head -c 2000 "$T/json")"

# as many as this do not come through as copies
ax trace profile -F 20000 -o json -O "$T/json" -c "$P busy 0.5" 2>"$T/err"
is "what comes too fast is counted all the same" \
	"$(tail -n 1 "$T/json" | jq '.emitted == .received and .dropped == 0')" true
most "and is as hot" '.stack | index("hot")'

# --- files that are gone, or are others by now ---

cp "$P" "$T/gone"
bg "$T/out" "$T/gone" busy 60
# (the shell that is to become it has a libc, too)
wait_for "[ /proc/$BG/exe -ef $T/gone ] && grep -q libc /proc/$BG/maps"
rm "$T/gone"
profile -p "$BG" -d 1
most "a program whose file was deleted" "$(behind hot middle work main)"
cp /bin/true "$T/gone"
profile -p "$BG" -d 1
most "and has another one in its place" "$(behind hot middle work main)"
end "$BG"
profile -c "sh -c '$P busy 0.2; $P busy 0.2'"
most "programs that ended meanwhile" "$(behind hot middle work main)"

# --- other namespaces, apps ---

mkdir "$T/hidden"
bg "$T/out" unshare -mpf --kill-child sh -c "mount -t tmpfs tmpfs '$T/hidden'; cp '$P' '$T/hidden/inside'; exec '$T/hidden/inside' busy 60"
outer=$BG
wait_for "pgrep -P $outer -x inside >/dev/null"
inside=$(pgrep -P "$outer" -x inside)
profile -p "$inside" -d 1
most "a program of other mount and pid namespaces" "$(behind hot middle work main)"
is "by the number that it has here" "$(jq -s 'map(.pid // empty) | unique | .[0]' "$T/json")" "$inside"
kill -KILL "$inside"
end "$outer"

agent_start
for name in first second; do
	run_app --name "$name" -- "$P" busy 60
done
launched first second || not_ok "the apps start"
profile --app first -d 1
most "the samples of an app have its name" '.app == "first" and (.stack | index("hot"))'
out=$(ax trace profile -d 1 -F 499 -o folded 2>"$T/err")
like "also in folded stacks" "$out" 'app:second;profiled;_start;[^ ]*;main;work;middle;hot [0-9]+'
like "and in the table" "$(ax trace profile -d 1 --app first 2>&1)" '% first +profiled +hot \(profiled\)'
out=$(ax trace offcpu --app first --preempted -d 0.5 -o json 2>"$T/err")
is "those of offcpu too" "$(jq -rs 'map(.app // empty) | unique | join(" ")' <<<"$out")" first
stop_apps

# --- names that mean no good ---

cp "$P" "$T/evil"
objcopy --redefine-sym "hot=<script>alert(1)</script>&\"'" \
	--redefine-sym "middle=$(printf 'a;b 7\n\033[31m')" "$P" "$T/evil"
ax trace profile -F 499 -o svg -O "$T/svg" -c "$T/evil busy 0.3" 2>"$T/err"
is "a flame graph is XML, in which names are only names" "$(python3 - "$T/svg" <<'END'
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
kinds = {e.tag.split("}")[1] for e in root.iter()}
titles = [e.text for e in root.iter() if e.tag.endswith("}title")]
print(sorted(kinds), any(t.startswith("<script>alert(1)</script>&\"'") for t in titles),
      any("http" in v or k.startswith("on") for e in root.iter() for k, v in e.attrib.items()))
END
)" "['g', 'rect', 'style', 'svg', 'text', 'title'] True False"
is "which callers are below what they call" "$(python3 - "$T/svg" <<'END'
import sys, xml.etree.ElementTree as tree
rows = {}
for g in tree.parse(sys.argv[1]).getroot():
    if g.tag.endswith("}g"):
        rows[g[0].text.split(" (")[0]] = float(g[1].attrib["y"])
print(rows["main"] > rows["work"] > rows["<script>alert(1)</script>&\"'"])
END
)" True
out=$(ax trace profile -F 499 -o folded -c "$T/evil busy 0.3" 2>"$T/err")
is "each folded stack is a line that ends with a number" "$(grep -cvE '^[^;]+(;[^;]+)* [0-9]+$' <<<"$out")" 0
unlike "and harmless" "$out" $'\e'
out=$(ax trace profile -F 499 --by stack -c "$T/evil busy 0.3" 2>&1)
unlike "as is the table" "$out" $'\e'

# --- what takes a process nothing is not to take ax much ---

# a table of names that is a hole in the file, in files that are one
cat >"$T/spin.c" <<'END'
void spin(volatile long *n)
{
	while (*n)
		--*n;
}
END
gcc -O1 -shared -fPIC -nostdlib -o "$T/spin.so" "$T/spin.c"
cat >"$T/holes.py" <<'END'
import ctypes, mmap, os, struct, sys, time
elf = bytearray(open("spin.so", "rb").read())
sections, = struct.unpack_from("<Q", elf, 40)
tables = [sections + 64 * i for i in range(struct.unpack_from("<H", elf, 60)[0])]
symtab, = [t for t in tables if struct.unpack_from("<I", elf, t + 4)[0] == 2]
names = tables[struct.unpack_from("<I", elf, symtab + 40)[0]]
offset, size = struct.unpack_from("<QQ", elf, names + 24)
end, hole = len(elf), 250 << 20
struct.pack_into("<QQ", elf, names + 24, end, hole)
with open("hole0.so", "wb") as f:
    f.write(elf + elf[offset : offset + size])
    f.truncate(end + hole)
begin = ctypes.CDLL("./spin.so").spin
at = ctypes.cast(begin, ctypes.c_void_p).value
with open("/proc/self/maps") as maps:
    for line in maps:
        start, stop = (int(x, 16) for x in line.split()[0].split("-"))
        if start <= at < stop:
            at += int(line.split()[2], 16) - start
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
for i in range(8):
    if i:
        os.link("hole0.so", f"hole{i}.so")
    fd = os.open(f"hole{i}.so", os.O_RDONLY)
    code = libc.mmap(None, 4 * 4096, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, fd, 0)
    spin = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code + at)
    done = time.thread_time() + 0.1
    while time.thread_time() < done:
        spin(ctypes.byref(ctypes.c_long(1000000)))
time.sleep(6)  # until these files are read, for whose names it has to be there
END
cat >"$T/most.py" <<'END'
import resource, subprocess, sys
with open(sys.argv[1], "w") as out:
    subprocess.run(sys.argv[2:], stderr=out, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
END
cd "$T" || exit 1
most=$(python3 most.py err "$AX" --instance "$INST" trace profile -F 499 -o json -O json -c "python3 holes.py")
ok "tables of symbols that are holes take little memory" test "$most" -lt 1000 || diag "$most MiB; $(cat err)"
ok "all of these files were seen" test "$(grep -o 'hole[0-9]' json | sort -u | wc -l)" -ge 6
cd / || exit 1

# --- waiting ---

ax trace offcpu -o json -O "$T/json" -c "$P wait 5" 2>"$T/err"
is "who sleeps five times 0.1 s has waited so long" "$(jq -s 'map(select(.stack) | select(.stack |
	any(test("nanosleep.*_\\[k\\]"))) | .ns) | add | . >= 0.3e9 and . < 30e9' "$T/json")" true
# one whose time is over before it sleeps, on a busy machine, does not sleep
is "so often" "$(jq -s 'map(select(.stack) | select(.stack | any(test("nanosleep.*_\\[k\\]"))) | .times) |
	add | . >= 3 and . <= 5' "$T/json")" true
is "its stack begins where it went to sleep" \
	"$(jq -rs 'map(select(.stack) | select(.stack | any(test("nanosleep")))) | all(.stack[0] | test("sleep"))' "$T/json")" true
is "all are accounted for" "$(tail -n 1 "$T/json" | jq '.emitted == .received + .dropped')" true
ax trace offcpu -o json -O "$T/json" -d 0.5 -c "sleep 60" 2>"$T/err"
is "who waits still at the end, too" "$(jq -s 'map(select(.comm == "sleep") | .ns) | add >= 3e8' "$T/json")" true
ax trace offcpu -o json -O "$T/json" --least 50 -c "$P wait 3" 2>"$T/err"
is "only what lasted long" "$(jq -s 'map(select(.times) | .ns / .times >= 5e7) | all' "$T/json")" true
ax trace offcpu -o json -O "$T/json" -c "$BIN/profiled_fp wait 5" 2>"$T/err"
is "callers by frame pointers" "$(jq -s 'map(select(.stack) | select(.stack | index("main"))) | length > 0' "$T/json")" true
out=$(ax trace offcpu -c "$P wait 3" 2>&1)
like "a table of stacks" "$out" ' +TIME +PART +TIMES APP +COMM +PID'
like "with times" "$out" ' [0-9.]+ms +[0-9.]+% +[1-3] - +profiled +[0-9]+'
like "or of functions" "$(ax trace offcpu --by function -c "$P wait 3" 2>&1)" '% - +profiled +do_nanosleep \(kernel\)'
out=$(ax trace offcpu -o folded -c "$P wait 3" 2>"$T/err")
like "folded, with microseconds" "$out" '^profiled;.*nanosleep.*_\[k\] [0-9]{6}'
ax trace offcpu -o svg -O "$T/svg" -c "$P wait 3" 2>"$T/err"
ok "a flame graph" python3 -c 'import sys, xml.etree.ElementTree as t; t.parse(sys.argv[1])' "$T/svg"

# --- mistakes ---

like "no frequency" "$(ax trace profile -F 0 2>&1)" "-F 0: expected a number from 1 to"
like "an unknown way" "$(ax trace profile --stack lbr 2>&1)" "dwarf"
like "an unknown process" "$(ax trace profile -p 4194304 2>&1)" "there is no process 4194304"
like "a word too many" "$(ax trace offcpu main 2>&1)" "unexpected word 'main'"
like "no such command" "$(ax trace profile -c "$T/nothing" 2>&1)" "cannot be executed"

# --- what it costs to begin ---

# libbpf looks at some of the kernel's types alone, which a file without a name has: for these programs and for those
# that follow processes
if command -v strace >/dev/null && [ -e /sys/kernel/btf/vmlinux ]; then
	strace -f -e trace=openat -o "$T/opened" "$AX" --instance "$INST" trace profile -d 1s -c true >/dev/null 2>&1
	is "few types" "$(grep -c '"/proc/self/fd/' "$T/opened")" 2
else
	skip "few types" "strace, or the kernel's types"
fi
done_testing
