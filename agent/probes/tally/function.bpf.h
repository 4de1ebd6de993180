/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls of functions of programs, from their entry to their return. What is inside of a call that
 * is looked at is not: whether it is inside, the stack pointer tells; so calls that never return (a
 * longjmp, a thread that is cancelled) are forgotten with the next one.
 */
#ifndef AX_PROBES_TALLY_FUNCTION_BPF_H
#define AX_PROBES_TALLY_FUNCTION_BPF_H

#include <linux/ptrace.h>

#include "tally.bpf.h"

const volatile __u32 never;

/*
 * From Linux 6.13 on, programs on functions with more than a few bytes of stack have one that
 * belongs to the CPU, where another one may begin meanwhile; those with tail calls keep the task's.
 * (See probes/engine/interpreter.bpf.c.)
 */
static __always_inline void keep_own_stack(void *ctx)
{
	if (never)
		bpf_tail_call(ctx, NULL, 0);
}

/* Where the return address was when the function began: the same at its entry and its return. */
static __always_inline __u64 frame_at_entry(struct pt_regs *ctx)
{
	return PT_REGS_SP(ctx);
}

static __always_inline __u64 frame_at_return(struct pt_regs *ctx)
{
#if defined(__TARGET_ARCH_x86)
	return PT_REGS_SP(ctx) - sizeof(__u64);
#else
	return PT_REGS_SP(ctx);
#endif
}

/* The call that a thread is in. */
struct function_call {
	__u64 frame; /* 0: none */
	__u64 since;
	__u64 args[4];
	__u32 function; /* the attachment's cookie */
	__u32 pad;
};
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct function_call);
} function_calls SEC(".maps");

/* NULL: it is inside of another one, or there is no room, which is counted. */
static __always_inline struct function_call *function_enter(struct pt_regs *ctx)
{
	struct function_call *c =
		bpf_task_storage_get(&function_calls, (void *)bpf_get_current_task_btf(), NULL,
				     BPF_LOCAL_STORAGE_GET_F_CREATE);
	__u64 frame = frame_at_entry(ctx);

	if (!c) {
		watch_count(AX_WATCH_EMITTED);
		watch_count(AX_WATCH_DROPPED);
		return NULL;
	}
	if (c->frame > frame)
		return NULL;
	c->frame = frame;
	c->since = bpf_ktime_get_ns();
	c->function = (__u32)bpf_get_attach_cookie(ctx);
	c->args[0] = PT_REGS_PARM1(ctx);
	c->args[1] = PT_REGS_PARM2(ctx);
	c->args[2] = PT_REGS_PARM3(ctx);
	c->args[3] = PT_REGS_PARM4(ctx);
	return c;
}

/* The call that returns, which is over then. NULL: its entry was not seen, or it was inside. */
static __always_inline struct function_call *function_leave(struct pt_regs *ctx)
{
	struct function_call *c =
		bpf_task_storage_get(&function_calls, (void *)bpf_get_current_task_btf(), NULL, 0);

	if (!c || !c->frame || c->frame != frame_at_return(ctx))
		return NULL;
	c->frame = 0;
	return c;
}

#endif
