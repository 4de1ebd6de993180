# SPDX-License-Identifier: GPL-2.0-or-later
# Scripts of several probes on this kernel: all kinds of probes at once, variables, BEGIN and END.
. "${0%/*}/lib.sh"

traced=/bin/traced
cat >/tmp/s.ax <<EOF
BEGIN { print "begin"; set global.least = 2 }
uprobe:$traced:twice if arg0 >= global.least { set thread.n += 1; print "twice %d" arg0; count by comm as calls }
uretprobe:$traced:twice if thread.n { hist retval as results; print "%s -> %d" comm retval if retval > 6 }
kprobe:vfs_read if comm == "traced" { stats arg2 by comm as reads; set global.reads += 1 }
tracepoint:syscalls:sys_exit_read if comm == "traced" { count as exits }
every 50ms { set global.ticks += 1 }
END { print "end %d" global.least; print "read" if global.reads > 0; show calls results }
EOF
ax trace run /tmp/s.ax -c "$traced 5" >/tmp/script.out 2>&1 </dev/null
like "BEGIN comes first" '^begin' cat /tmp/script.out
like "a function under a condition on a variable" 'twice 4' cat /tmp/script.out
like "its return, by a variable of the thread" 'traced -> 8' cat /tmp/script.out
like "END has variables that the kernel's functions set" '^read' cat /tmp/script.out
like "a table" 'traced  *3' cat /tmp/script.out
like "a histogram" '\[4, 8\)  *2' cat /tmp/script.out
like "all are received" ' 0 dropped' cat /tmp/script.out

# what the verifier of older kernels looks at more closely: keys that are read from memory, and both pairs of a return
cat >/tmp/s.ax <<EOF
uprobe:$traced:twice { set thread.last = 5; count by +0(%sp):string comm as long; start took on arg0 }
uretprobe:$traced:twice { latency since took on arg0@entry by arg0@entry as times }
EOF
ax trace run /tmp/s.ax -o json -c "$traced 5" >/tmp/script.out 2>&1 </dev/null
like "a variable is set beside long keys" '"name":"long"' cat /tmp/script.out
like "a time ends at a return, by what the entry had" '"name":"times"' cat /tmp/script.out
like "and all of it is received" '"dropped":0' cat /tmp/script.out

# texts, maps with call stacks, arithmetic, the struct of the thread, a clock, what happens in other processes
cat >/tmp/s.ax <<EOF
uprobe:$traced:twice { set thread.who = comm; set map.n[arg0 % 2] += 1; set map.at[arg0] = ustack; set map.name[arg0] = "a" }
uretprobe:$traced:twice {
	print "%s %s %d" thread.who map.name[arg0@entry] map.n[0] * 10 / 2; count by map.at[arg0@entry]:ustack as places }
tracepoint:sched:sched_switch if \$task->mm { set map.off[prev_pid] = nsecs; set map.kernel[prev_pid] = kstack }
tracepoint:sched:sched_switch anywhere if map.off[next_pid] {
	stats nsecs-map.off[next_pid] by map.kernel[next_pid]:kstack as waits; set map.off[next_pid] = 0 }
tracepoint:syscalls:sys_exit_write if ret > 0 { count by \$task->group_leader->comm:string as writers }
profile:99 { count by kstack as busy }
EOF
ax trace run /tmp/s.ax -c "$traced 5" >/tmp/script.out 2>&1 </dev/null
like "texts in variables, and maps" 'traced a [1-9]' cat /tmp/script.out
like "stacks in maps" '^places:' cat /tmp/script.out
like "all of these are received" ' 0 dropped' cat /tmp/script.out
done_testing
