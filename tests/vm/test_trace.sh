# SPDX-License-Identifier: GPL-2.0-or-later
# Probes on this kernel: functions of programs and of the kernel, returns, tracepoints.
. "${0%/*}/lib.sh"

traced=/bin/traced
# exactly NAME REGEX N COMMAND...: what comes out matches, and N events came and all were received.
exactly()
{
	local name=$1 regex=$2 events=$3

	shift 3
	"$@" >/tmp/trace.out 2>&1 </dev/null
	like "$name" "$regex" cat /tmp/trace.out
	like "$name: all are received" "^$events events?, $events received, 0 dropped" cat /tmp/trace.out
}

# --- programs ---

exactly "a function's arguments" 'named .*"a name".*=4$' 5 \
	ax trace watch uprobe:$traced:named arg0:string arg1:s32 -c "$traced 5"
exactly "its return value, and an argument of its entry" 'twice .*=3 .*=6$' 5 \
	ax trace watch uretprobe:$traced:twice arg0@entry:s32 retval:s32 -c "$traced 5"
exactly "recursive calls are paired" . 20 \
	ax trace latency uretprobe:$traced:deep -c "$traced 5"
exactly "counts by value" '(^|[^0-9])7  *1$' 10 \
	ax trace count uprobe:$traced:twice arg0:s32 -c "$traced 10"
exactly "under a condition" . 3 \
	ax trace watch uprobe:$traced:twice arg0:s32 if 'arg0 >= 7' -c "$traced 10"
exactly "all functions of a glob" . 10 \
	ax trace count "uprobe:$traced:[tn][wa]*e*" if 'comm == "traced"' -c "$traced 5"

# --- by the types of the program ---

typed=/bin/typed
exactly "texts of a length, structs in registers and in memory" \
	's="hello" p=.a=1, b="pair". \*r=.name="in a record", d=0.5, color=BLUE, list=.1, 2, 3..$' 3 \
	ax trace watch "uprobe:$typed:take" s p '*r' -c $typed
exactly "in conditions" 'r->d=0.5' 1 ax trace watch "uprobe:$typed:take" 'r->d' \
	if 's == "hello" && r->d > 0.25 && r->d < 1.0 && r->color == BLUE' -c $typed
exactly "and counted by" 'hello +BLUE +3' 3 ax trace count "uprobe:$typed:take" s 'r->color' -c $typed
exactly "all registers" 'regs=.ax=0x.*, flags=0x' 3 ax trace watch "uprobe:$typed:take" '$regs' -c $typed

# --- the kernel ---

exactly "a function of the kernel" 'vfs_read .*=10$' 10 \
	ax trace watch kprobe:vfs_read arg2 if 'comm == "traced"' -c "$traced 10"
exactly "its return value" 'vfs_read .*=9 .*=9$' 10 \
	ax trace watch kretprobe:vfs_read arg2@entry:s64 retval:s64 if 'comm == "traced"' \
	-c "$traced 10"
exactly "how long it takes" . 100 \
	ax trace latency kprobe:vfs_read by comm if 'comm == "traced"' -c "$traced 100"
exactly "as ftrace has it" 'r1?.* .*=10' 10 \
	ax trace watch 'p:r1 vfs_read n=%dx:u64' if 'comm == "traced"' -c "$traced 10"
exactly "a program's string as ftrace has it" 'myopen dfd=0x.* filename="/dev/zero"' 1 \
	ax trace watch 'p:myopen do_sys_openat2 dfd=%di filename=+0(%si):string' \
	if 'comm == "traced" && filename == "/dev/zero"' -c "$traced 1"
like "one that is not there" "no function|not there|did you mean" \
	ax trace watch kprobe:vfs_raed -c "$traced 1"
like "functions are listed" '^kprobe:vfs_read$|vfs_read' ax trace list 'kprobe:vfs_r*'
like "with what they take and return" 'vfs_read  ssize_t vfs_read.struct file .file, char .buf, size_t count' \
	ax trace list kprobe:vfs_read
exactly "parameters are shown without being asked for" 'vfs_read file=0x.* buf=.* count=5 pos=0x' 5 \
	ax trace watch kprobe:vfs_read if 'comm == "traced"' -c "$traced 5"
exactly "those of a program, too" 'take .*s=' 3 ax trace watch "uprobe:$typed:take" -c $typed
exactly "members of structs by the kernel's own types" 'vfs_read .*"zero"' 5 \
	ax trace watch kprobe:vfs_read 'arg0->f_path.dentry->d_name.name:string' \
	if 'comm == "traced"' -c "$traced 5"
exactly "whole structs by them" 'd_name=.*name="zero"|f_flags=' 5 \
	ax trace watch kprobe:vfs_read '*file' if 'comm == "traced"' -c "$traced 5"
exactly "errors by their names" 'ret=-ENOENT' 1 ax trace watch tracepoint:syscalls:sys_exit_openat \
	'if ret == -2' -c "cat /nowhere"
exactly "between two functions" . 10 \
	ax trace latency kprobe:vfs_read if 'comm == "traced"' to kretprobe:vfs_read -c "$traced 10"

exactly "from one time of a function to the next one" . 9 \
	ax trace latency kprobe:vfs_read if 'comm == "traced"' to kprobe:vfs_read -c "$traced 10"
exactly "the same in a program" 'mean .*50% up to' 9 \
	ax trace latency uprobe:$traced:twice to uprobe:$traced:twice -c "$traced 10"
like "returns that the kernel does not tell are counted" "64 events, 64 received, 0 dropped; 37 returns not seen" \
	ax trace count uretprobe:$traced:deep -c "$traced 1 100"

# --- tracepoints ---

exactly "a tracepoint's fields" 'sys_enter_read .*count=10' 10 \
	ax trace watch tracepoint:syscalls:sys_enter_read count if 'comm == "traced"' \
	-c "$traced 10"
exactly "a tracepoint that disarms itself" . 1 \
	ax trace count tracepoint:syscalls:sys_enter_read --armed-by uprobe:$traced:named \
	--disarmed-by tracepoint:syscalls:sys_enter_read -c "$traced 1"
like "many tracepoints, whose events end later" 'sys_enter_read  *5' ax trace count \
	'tracepoint:syscalls:sys_enter_[r-s]*' 'if comm == "traced"' -c "$traced 5"
exactly "without fields" . 1 \
	ax trace count tracepoint:sched:sched_process_exec if 'comm == "traced"' -c "$traced 1"

like "call stacks of the kernel begin where the probe is" '"kstack":\["vfs_read' \
	ax trace watch kprobe:vfs_read kstack if 'comm == "traced"' -o json -c "$traced 1"
# (which has no frame pointers)
like "callers are found by copies of the stack" '"ustack":\["twice [^,]*","named\+[^,]*","main\+' \
	ax trace watch uprobe:/bin/traced:twice ustack -n 1 -o json -c "$traced 1000000"

# --- killed ---

# breakpoints PID: how many bytes of the program's code in memory are not those of its file
breakpoints()
{
	local range offset start end

	read -r range offset <<END
$(awk '$2 ~ /x/ && $6 == "/bin/traced" { print $1, $3 }' "/proc/$1/maps")
END
	start=$((0x${range%-*} / 4096))
	end=$((0x${range#*-} / 4096))
	dd if="/proc/$1/mem" bs=4096 skip="$start" count=$((end - start)) >/tmp/in-memory 2>/dev/null
	dd if="$traced" bs=4096 skip=$((0x$offset / 4096)) count=$((end - start)) >/tmp/in-file 2>/dev/null
	cmp -l /tmp/in-memory /tmp/in-file 2>/dev/null | wc -l
}
breaks() { [ "$(breakpoints "$1")" -gt 20 ]; }
whole() { [ -s /tmp/in-memory ] && [ "$(breakpoints "$1")" = 0 ]; }

# Who is killed while the kernel takes breakpoints out would leave them in: until 6.6 each is an event
# of its own, and their closing takes a while.
killed()
{
	local tracer after

	for after in 0 10000 100000; do
		ax trace count "uprobe:$traced:[f-z]*" >/dev/null 2>&1 &
		tracer=$!
		eventually 30 breaks "$1" || return 1
		kill -INT "$tracer"
		usleep "$after"
		kill -9 "$tracer"
		wait "$tracer"
		eventually 30 whole "$1" || return 1
	done
}
$traced 2000000000 >/dev/null &
stopped=$!
usleep 300000
kill -STOP "$stopped"
tap "who kills ax while probes go leaves none in a program" killed "$stopped"
kill -9 "$stopped"

done_testing
