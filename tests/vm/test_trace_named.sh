# SPDX-License-Identifier: GPL-2.0-or-later
# Probes with names stay on this kernel too, by whatever kind of link: of functions of programs and
# of the kernel, their returns, and tracepoints.
. "${0%/*}/lib.sh"

traced=/bin/traced
all="f r k t s"

# counts NAME...: how many events each has had.
counts()
{
	local name

	for name in "$@"; do
		ax trace ls "$name" -o json | sed -n 's/.*"events": \([0-9]*\).*/\1/p'
	done | tr '\n' ' '
}
# is NAME EXPECTED COMMAND...
is()
{
	local name=$1 expected=$2

	shift 2
	like "$name" "^$expected\$" "$@"
}

tap "a function" ax trace add f "uprobe:$traced:twice" arg0:s32 --last 4
tap "its return" ax trace add r "uretprobe:$traced:twice" retval:s32 --action count
tap "a function of the kernel" ax trace add k kprobe:vfs_read arg2 \
	if 'comm == "traced" && arg2 <= 10'
tap "a tracepoint" ax trace add t tracepoint:sched:sched_process_exec 'if comm == "traced"'
tap "one of a system call" ax trace add s tracepoint:syscalls:sys_enter_read \
	'if comm == "traced" && count <= 10'
$traced 10 >/dev/null
# shellcheck disable=SC2086 # $all: a list
is "they go on without their makers" "10 10 10 1 10 " counts $all
is "exactly the last records are kept" 4 \
	sh -c "ax trace view f -o json 2>/dev/null | grep -c '\"arg0\":[6-9]}'"
like "a table is viewed" '10 counted, 0 dropped' ax trace view r
for name in $all; do
	tap "$name is disabled" ax trace disable "$name"
done
$traced 5 >/dev/null
# shellcheck disable=SC2086 # $all: a list
is "they see nothing then" "10 10 10 1 10 " counts $all
for name in $all; do
	tap "$name is enabled" ax trace enable "$name"
done
$traced 5 >/dev/null
# shellcheck disable=SC2086 # $all: a list
is "and then go on with what they had" "15 15 15 2 15 " counts $all
# shellcheck disable=SC2086 # $all: a list
tap "all are removed" ax trace rm $all
is "and nothing is left" 0 sh -c 'ls /sys/fs/bpf | grep -c trace'
done_testing
