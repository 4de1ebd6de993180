#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax trace malloc: what is not freed, and who allocated it.
. "$(dirname "$0")/lib.sh"
need jq
build tallied tallied.c gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-omit-frame-pointer \
	-fno-optimize-sibling-calls -pthread "$SRC/tallied.c" -o %o
tallied=$BIN/tallied

trace() {
	"$AX" --instance "$INST" trace malloc "$@" 2>&1
}
# at FUNCTION FILTER: of the call stacks that allocate in it
at() {
	jq -c "select(.stack and (.stack[0] | startswith(\"$1+\"))) | $2" "$T/json"
}
totals() {
	jq -c 'select(.emitted) | [.emitted == .received, .dropped]' "$T/json"
}

trace -o json -O "$T/json" -c "$tallied leak 50"
is "a known leak, by its function" "$(at leaks_here '[.left, .left_bytes, .allocated, .freed]')" "[50,50000,50,0]"
is "with who called" "$(at leaks_here '.stack[1] | sub("[+].*"; "")')" '"main"'
is "posix_memalign()" "$(at leaks_aligned '[.left, .left_bytes]')" "[1,640]"
is "realloc(): the larger one is left" "$(at grows '[.left, .left_bytes]' | sort | tr '\n' ' ')" "[1,5000] "
is "what was freed, or grew, is not left; calloc() and what a failing realloc() kept is" \
	"$(at main .left_bytes | sort -n | tr '\n' ' ')" "10 210 "
is "all is accounted for" "$(totals)" '[true,0]'
is "the command's name" "$(jq -r 'select(.stack) | .comm' "$T/json" | sort -u)" tallied
trace -o json -O "$T/json" -c "$tallied scattered 3000"
is "one place is one line, whatever is where a frame pointer could be" "$(at malloc_with .left_bytes)" 192000
is "and all of it is accounted for" "$(totals)" '[true,0]'
trace --order allocated -o json -O "$T/json" -c "$tallied leak 50"
is "who leaves nothing, if it is asked for" "$(at main 'select(.left == 0) | .allocated_bytes' | sort -n | tr '\n' ' ')" "77 1024 "
is "what a realloc() replaced counts as freed" "$(at grows 'select(.freed == 1) | .freed_bytes')" 100

trace -o json -O "$T/json" -c "$tallied churn 4 3000"
is "threads that free all leave nothing" "$(at churn .left)" ""
is "and none is lost" "$(totals)" '[true,0]'

out=$(trace --top 1 -c "$tallied leak 50")
like "in text" "$out" $'49K bytes left in 50 pieces \\(the oldest [0-9.]+[mu]?s\\), of 49K in 50: +[0-9]+ tallied +- +\n +leaks_here\\+0x[0-9a-f]+ \\(tallied\\)\n +main\\+'
like "the sum" "$out" '55K bytes left in 54 pieces; 56K allocated in 57 \([0-9]+ a second\)'
out=$(trace --older 60m -c "$tallied leak 50")
like "what is younger than wanted is left out" "$out" '0 bytes left in 0 pieces'

# --- a process that is there; its allocations of before are not known ---

bg "$T/python.out" "$PYTHON" -c '
import ctypes, os, sys, time
libc = ctypes.CDLL("libc.so.6")
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
old = libc.malloc(12345)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
libc.free(old)
for i in range(7):
    libc.malloc(33333)
open(sys.argv[1] + ".done", "w").close()
time.sleep(60)' "$T/go"
python=$BG
bg "$T/watcher.out" "$AX" --instance "$INST" trace malloc --alone -p "$python" -o json -O "$T/json"
watcher=$BG
wait_for "grep -q attached $T/watcher.out"
touch "$T/go"
wait_for "[ -e $T/go.done ]"
end "$watcher" INT
is "what it leaves from then on" "$(jq -c 'select(.stack and .left_bytes == 233331) | [.left, .pid]' "$T/json")" "[7,$python]"
ok "what it frees of before is counted" test "$(jq 'select(.emitted) | .freed_unknown' "$T/json")" -ge 1
end "$python"

# --- two processes that see one library by two paths ---

for i in 1 2; do
	bg "$T/python$i.out" unshare -m "$PYTHON" -c '
import ctypes, os, sys, time
libc = ctypes.CDLL("libc.so.6")
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
for i in range(5):
    libc.malloc(44444)
open(sys.argv[2], "w").close()
time.sleep(60)' "$T/go2" "$T/done$i"
	pids[i]=$BG
done
bg "$T/both.out" "$AX" --instance "$INST" trace malloc -p "${pids[1]}" -p "${pids[2]}" -o json -O "$T/json"
watcher=$BG
wait_for "grep -q attached $T/both.out"
touch "$T/go2"
wait_for "[ -e $T/done1 ] && [ -e $T/done2 ]"
end "$watcher" INT
is "each call counts once, for each of them" "$(jq -c 'select(.stack and .left_bytes == 222220) | .left' "$T/json" | tr '\n' ' ')" "5 5 "
end "${pids[1]}"
end "${pids[2]}"

like "a file that has no malloc()" "$(trace --library libm.so.6 -d 100ms)" 'has none of the functions'
fails "a word too many" "$AX" trace malloc word
done_testing
