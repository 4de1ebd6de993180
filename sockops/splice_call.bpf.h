/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The system call by which a message was sent: flags like MSG_MORE are nowhere else to be seen.
 * They stand in the registers with which the task entered the kernel. What is not known for sure is
 * a reason to go by TCP.
 */
#ifndef AX_SPLICE_CALL_BPF_H
#define AX_SPLICE_CALL_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "splice_kernel.bpf.h"
#include "splicing.h"

#define PF_EXITING   0x00000004
#define PF_IO_WORKER 0x00000010
#define PF_KTHREAD   0x00200000
#define TASK_STOPPED 0x0004
#define TASK_TRACED  0x0008

/* The flags of send() that change nothing but whether the caller waits, and what it is told. */
#define MSG_DONTWAIT 0x40
#define MSG_NOSIGNAL 0x4000
/* And one that may be done without: more is to come. */
#define MSG_MORE 0x8000

enum call {
	CALL_WRITE, /* without flags */
	CALL_THIRD, /* the third argument has them */
	CALL_FOURTH,
	CALL_OTHER,
};

#if defined(__TARGET_ARCH_x86)
/* Calls of 32-bit programs have other numbers: none of these sends there. */
static __always_inline enum call call_of(const struct pt_regs *regs)
{
	switch (regs->orig_ax) {
	case 1:	 /* write */
	case 20: /* writev */
		return CALL_WRITE;
	case 46: /* sendmsg */
		return CALL_THIRD;
	case 44:  /* sendto */
	case 307: /* sendmmsg */
		return CALL_FOURTH;
	}
	return CALL_OTHER;
}
static __always_inline __u64 third_argument(const struct pt_regs *regs)
{
	return regs->dx;
}
static __always_inline __u64 fourth_argument(const struct pt_regs *regs)
{
	return regs->r10;
}
#elif defined(__TARGET_ARCH_arm64)
static __always_inline enum call call_of(const struct pt_regs *regs)
{
	switch (regs->syscallno) {
	case 64: /* write */
	case 66: /* writev */
		return CALL_WRITE;
	case 211: /* sendmsg */
		return CALL_THIRD;
	case 206: /* sendto */
	case 269: /* sendmmsg */
		return CALL_FOURTH;
	}
	return CALL_OTHER;
}
static __always_inline __u64 third_argument(const struct pt_regs *regs)
{
	return regs->regs[2];
}
static __always_inline __u64 fourth_argument(const struct pt_regs *regs)
{
	return regs->regs[3];
}
#else
static __always_inline enum call call_of(const struct pt_regs *regs)
{
	(void)regs;
	return CALL_OTHER;
}
static __always_inline __u64 third_argument(const struct pt_regs *regs)
{
	(void)regs;
	return 0;
}
static __always_inline __u64 fourth_argument(const struct pt_regs *regs)
{
	(void)regs;
	return 0;
}
#endif

/* 0, or why the call's message has to go by TCP. behind: it would be behind what was handed on, and
 * flags that are not seen are taken for none. */
static __always_inline __u32 call_obstacle(bool behind)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct pt_regs *regs;
	__u64 flags = 0, plain = MSG_DONTWAIT | MSG_NOSIGNAL | (behind ? MSG_MORE : 0);
	__u32 unseen = behind ? 0 : AX_SPLICE_SYSCALL;

	/* Requests of io_uring run in workers and at the end of whatever call. */
	if (task->flags & (PF_KTHREAD | PF_IO_WORKER))
		return unseen;
	if (bpf_core_field_exists(task->io_uring) && task->io_uring)
		return unseen;
	regs = (const struct pt_regs *)bpf_task_pt_regs(task);
	switch (call_of(regs)) {
	case CALL_WRITE:
		return 0;
	case CALL_THIRD:
		flags = third_argument(regs);
		break;
	case CALL_FOURTH:
		flags = fourth_argument(regs);
		break;
	case CALL_OTHER:
		return unseen;
	}
	return (__u32)flags & ~plain ? AX_SPLICE_FLAGS : 0;
}

#endif
