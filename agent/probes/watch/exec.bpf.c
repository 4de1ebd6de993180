// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ax trace exec: every command with all of its arguments. At sched_process_exec the kernel has just
 * written them onto the new stack, so that they can be read without faults.
 */
#include "texts.bpf.h"

#define FAILED_ARGS  512
#define FAILED_BYTES 8192

const volatile struct {
	__u32 env, cwd, exits;
} wanted;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct linux_binprm {
	const char *filename;
};
#pragma clang attribute pop

/* When processes executed what they are. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WATCH_RUNNING_MAX);
	__type(key, __u32);
	__type(value, __u64);
} running SEC(".maps");

/* --- what was executed --- */

static __always_inline void send_event(int ret, __u32 flags, __u64 argv_len, __u64 env_len)
{
	struct ax_exec_event *e = watch_reserve(sizeof(*e));

	if (!e)
		return;
	watch_head(&e->head, AX_WATCH_EXEC);
	e->ret = ret;
	e->flags = flags;
	e->argv_len = argv_len;
	e->env_len = env_len;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/sched_process_exec")
int ax_exec(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct linux_binprm *bprm = (void *)ctx[2];
	struct mm_struct *mm = task->mm;
	__u64 argv_len, env_len = 0, now;
	__u32 flags = 0, tgid;

	if (!watch_current() || !mm)
		return 0;
	send_file(bprm->filename, false);
	argv_len = copy_memory(AX_EXEC_ARGV, mm->arg_start, mm->arg_end);
	if (wanted.env)
		env_len = copy_memory(AX_EXEC_ENV, mm->env_start, mm->env_end);
	if (wanted.cwd)
		flags |= send_cwd();
	send_event(0, flags, argv_len, env_len);
	if (wanted.exits) {
		tgid = bpf_get_current_pid_tgid() >> 32;
		now = bpf_ktime_get_ns();
		bpf_map_update_elem(&running, &tgid, &now, BPF_ANY);
	}
	return 0;
}

/* --- what was not --- */

struct collect {
	__u64 argv;
	__u32 used;
	__u32 more;
};

static long collect_arg(__u32 i, struct collect *c)
{
	struct scratch *s = get_scratch();
	__u32 used = c->used;
	__u64 arg = 0;
	long n;

	if (bpf_probe_read_user(&arg, sizeof(arg), (void *)(c->argv + (__u64)i * sizeof(arg))) <
		    0 ||
	    !arg)
		return 1;
	if (!s || used > FAILED_BYTES || i == FAILED_ARGS - 1) {
		c->more = AX_EXEC_MORE_ARGS;
		return 1;
	}
	n = bpf_probe_read_user_str(text_at(s, used), FILE_BYTES, (void *)arg);
	if (n <= 0) {
		c->more = AX_EXEC_MORE_ARGS;
		return 1;
	}
	if (n == FILE_BYTES)
		c->more = AX_EXEC_MORE_ARGS;
	c->used = used + (__u32)n;
	return 0;
}

SEC("tp_btf/sys_exit")
int ax_exec_failed(__u64 *ctx)
{
	struct pt_regs___kernel *regs = (void *)ctx[0];
	long ret = (long)ctx[1];
	struct scratch *s;
	struct collect c = {};
	__u64 file;
	__u32 flags;
	long nr;

	if (ret >= 0)
		return 0;
	nr = SYSCALL_NR(regs);
	if (nr != NR_EXECVE && nr != NR_EXECVEAT)
		return 0;
	if (syscall_is_compat() || !watch_current())
		return 0;
	s = get_scratch();
	if (!s)
		return 0;
	file = nr == NR_EXECVE ? SYSCALL_A(regs) : SYSCALL_B(regs);
	c.argv = nr == NR_EXECVE ? SYSCALL_B(regs) : SYSCALL_C(regs);
	send_file((void *)file, true);
	bpf_loop(FAILED_ARGS, collect_arg, &c, 0);
	send_scratch(s, AX_EXEC_ARGV, c.used);
	flags = c.more;
	if (wanted.cwd)
		flags |= send_cwd();
	send_event((int)ret, flags, c.used, 0);
	return 0;
}

/* --- ends --- */

SEC("tp_btf/sched_process_exit")
int ax_exit(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct signal_struct *signal = task->signal;
	__u32 tgid = task->tgid;
	struct ax_exit_event *e;
	__u64 *since, begin;

	if (signal->live.counter)
		return 0;
	since = bpf_map_lookup_elem(&running, &tgid);
	if (!since)
		return 0;
	begin = *since;
	bpf_map_delete_elem(&running, &tgid);
	e = watch_reserve(sizeof(*e));
	if (!e)
		return 0;
	watch_head(&e->head, AX_WATCH_EXIT);
	e->duration_ns = e->head.time_ns - begin;
	e->status = signal->flags & SIGNAL_GROUP_EXIT ? (__u32)signal->group_exit_code
						      : (__u32)task->group_leader->exit_code;
	e->pad = 0;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
