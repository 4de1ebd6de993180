// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace signals: each signal that is sent, by whom, to whom, and what came of it. */
#include "tally.bpf.h"

#define SI_USER_PRIV ((void *)1) /* SEND_SIG_PRIV: from the kernel, without more */
#define SI_KERNEL    0x80
#define SI_TIMER     (-2)
#define ERRNO_MAX    4095

#if defined(__TARGET_ARCH_x86)
#define NR_KILL		     62
#define NR_RT_SIGQUEUEINFO   129
#define NR_TKILL	     200
#define NR_TGKILL	     234
#define NR_RT_TGSIGQUEUEINFO 297
#else
#define NR_KILL		     129
#define NR_TKILL	     130
#define NR_TGKILL	     131
#define NR_RT_SIGQUEUEINFO   138
#define NR_RT_TGSIGQUEUEINFO 240
#endif
#define NR_PIDFD_SEND_SIGNAL 424

const volatile __s32 only_signal; /* 0: all */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct kernel_siginfo {
	int si_code;
};
struct cred {
	struct {
		__u32 val;
	} uid;
};
struct task_struct___cred {
	struct cred *real_cred;
};
#pragma clang attribute pop

/* Whether the process that a signal goes to is one that is watched. */
static __always_inline bool watch_target(struct task_struct *task)
{
	__u32 tgid = task->tgid;
	struct cgroup *c;

	if (watch.tree && !bpf_map_lookup_elem(&tree, &tgid))
		return false;
	if (!watch.scope.n)
		return true;
	c = cgroup_above(BPF_CORE_READ(task, cgroups, dfl_cgrp), watch.scope.level);
	return c && scope_has(&watch.scope, BPF_CORE_READ(c, kn, id));
}

static __always_inline void fill_target(struct ax_signal_event *e, struct task_struct *task,
					bool group)
{
	struct task_struct___cred *t = (void *)task;

	e->to_pid = task->tgid;
	e->to_tid = group ? 0 : task->pid;
	e->to_uid = BPF_CORE_READ(t, real_cred, uid.val);
	bpf_probe_read_kernel(e->to_comm, sizeof(e->to_comm), task->group_leader->comm);
	watch_app(BPF_CORE_READ(task, cgroups, dfl_cgrp), e->to_app);
}

/* Such signals come from whatever the current process was interrupted by. */
static __always_inline void forget_sender(struct ax_watch_head *h)
{
	h->pid = h->tid = h->ppid = h->uid = 0;
	__builtin_memset(h->comm, 0, sizeof(h->comm));
	h->app[0] = 0;
}

SEC("tp_btf/signal_generate")
int ax_signals(__u64 *ctx)
{
	int signal = (int)ctx[0], group = (int)ctx[3], result = (int)ctx[4], code = 0;
	struct kernel_siginfo *info = (void *)ctx[1];
	struct task_struct *task = (void *)ctx[2];
	struct ax_signal_event *e;

	if ((only_signal && signal != only_signal) || (!watch_current() && !watch_target(task)))
		return 0;
	if (info == SI_USER_PRIV)
		code = SI_KERNEL;
	else if (info)
		bpf_probe_read_kernel(&code, sizeof(code), &info->si_code);
	e = watch_reserve(sizeof(*e));
	if (!e)
		return 0;
	watch_head(&e->head, AX_WATCH_SIGNAL);
	if (code == SI_KERNEL || code == SI_TIMER)
		forget_sender(&e->head);
	e->signal = signal;
	e->code = code;
	e->result = result;
	e->error = 0;
	e->pad = 0;
	fill_target(e, task, group);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

/* --- those that the kernel refused to send (loaded only if that matters) --- */

/* The target and the signal that a call names. False: it is none that sends signals. */
static __always_inline bool read_call(const struct pt_regs___kernel *regs, long nr, __s32 *pid,
				      __s32 *tid, __s32 *signal)
{
	*pid = (__s32)SYSCALL_A(regs);
	*tid = 0;
	if (nr == NR_KILL || nr == NR_RT_SIGQUEUEINFO) {
		*signal = (__s32)SYSCALL_B(regs);
	} else if (nr == NR_TKILL) {
		*tid = *pid;
		*pid = 0;
		*signal = (__s32)SYSCALL_B(regs);
	} else if (nr == NR_TGKILL || nr == NR_RT_TGSIGQUEUEINFO) {
		*tid = (__s32)SYSCALL_B(regs);
		*signal = (__s32)SYSCALL_C(regs);
	} else if (nr == NR_PIDFD_SEND_SIGNAL) {
		*pid = 0; /* only the kernel knows */
		*signal = (__s32)SYSCALL_B(regs);
	} else {
		return false;
	}
	return true;
}

SEC("tp_btf/sys_exit")
int ax_signals_refused(__u64 *ctx)
{
	struct pt_regs___kernel *regs = (void *)ctx[0];
	long ret = (long)ctx[1];
	__s32 pid, tid, signal;
	struct ax_signal_event *e;

	if (ret >= 0 || ret < -ERRNO_MAX || !read_call(regs, SYSCALL_NR(regs), &pid, &tid, &signal))
		return 0;
	if ((only_signal && signal != only_signal) || syscall_is_compat() || !watch_current())
		return 0;
	e = watch_reserve(sizeof(*e));
	if (!e)
		return 0;
	watch_head(&e->head, AX_WATCH_SIGNAL);
	e->signal = signal;
	e->code = 0;
	e->result = AX_SIGNAL_REFUSED;
	e->error = (__s32)-ret;
	e->to_pid = pid;
	e->to_tid = tid;
	e->to_uid = 0;
	e->pad = 0;
	__builtin_memset(e->to_comm, 0, sizeof(e->to_comm));
	__builtin_memset(e->to_app, 0, sizeof(e->to_app));
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
