/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies of a thread's registers and of the upper end of its stack. */
#ifndef AX_USER_STACK_BPF_H
#define AX_USER_STACK_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "user_stack.h"

#define USER_STACK_PAGE	 4096
#define USER_STACK_PAGES (AX_USER_STACK_ROOM / USER_STACK_PAGE)

#if defined(__TARGET_ARCH_x86)
struct pt_regs___user {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, ip, sp;
} __attribute__((preserve_access_index));
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs___user {
	__u64 regs[31];
	__u64 sp, pc;
} __attribute__((preserve_access_index));
#endif

#if defined(__TARGET_ARCH_x86)
static __always_inline __u64 user_registers(struct ax_user_stack *s, const struct pt_regs___user *r)
{
	s->regs[0] = BPF_CORE_READ(r, ax);
	s->regs[1] = BPF_CORE_READ(r, dx);
	s->regs[2] = BPF_CORE_READ(r, cx);
	s->regs[3] = BPF_CORE_READ(r, bx);
	s->regs[4] = BPF_CORE_READ(r, si);
	s->regs[5] = BPF_CORE_READ(r, di);
	s->regs[6] = BPF_CORE_READ(r, bp);
	s->regs[7] = BPF_CORE_READ(r, sp);
	s->regs[8] = BPF_CORE_READ(r, r8);
	s->regs[9] = BPF_CORE_READ(r, r9);
	s->regs[10] = BPF_CORE_READ(r, r10);
	s->regs[11] = BPF_CORE_READ(r, r11);
	s->regs[12] = BPF_CORE_READ(r, r12);
	s->regs[13] = BPF_CORE_READ(r, r13);
	s->regs[14] = BPF_CORE_READ(r, r14);
	s->regs[15] = BPF_CORE_READ(r, r15);
	s->regs[16] = s->pc = BPF_CORE_READ(r, ip);
	return s->regs[7];
}
#elif defined(__TARGET_ARCH_arm64)
static __always_inline __u64 user_registers(struct ax_user_stack *s, const struct pt_regs___user *r)
{
	bpf_probe_read_kernel(s->regs, 31 * sizeof(__u64), &r->regs);
	s->regs[31] = BPF_CORE_READ(r, sp);
	s->regs[32] = s->pc = BPF_CORE_READ(r, pc);
	return s->regs[31];
}
#endif

/* Page by page, since a stack ends where nothing is mapped any more. */
static __always_inline __u32 user_stack_bytes(struct ax_user_stack *s, __u64 sp)
{
	__u32 used = USER_STACK_PAGE - (sp & (USER_STACK_PAGE - 1));

	if (bpf_probe_read_user(s->bytes, used & (2 * USER_STACK_PAGE - 1), (void *)sp) < 0)
		return 0;
	for (__u32 i = 0; i < USER_STACK_PAGES - 1; i++) {
		/* the compiler knows the bounds, but what it makes of that the verifier does not */
		asm volatile("" : "+r"(used));
		if (used > AX_USER_STACK_ROOM - USER_STACK_PAGE ||
		    bpf_probe_read_user(&s->bytes[used], USER_STACK_PAGE, (void *)(sp + used)) < 0)
			break;
		used += USER_STACK_PAGE;
	}
	return used;
}

/* Of the current task, as it has entered the kernel. `s` has AX_USER_STACK_ROOM bytes more than its
 * size. Returns how many of them are used. */
static __always_inline __u32 user_stack_take(struct ax_user_stack *s, struct task_struct *task)
{
	__u32 len;

	__builtin_memset(&s->regs[17], 0, sizeof(s->regs) - 17 * sizeof(s->regs[0]));
	len = user_stack_bytes(s, user_registers(s, (void *)bpf_task_pt_regs(task)));
	if (len > AX_USER_STACK_ROOM)
		len = 0;
	s->len = len;
	s->pad = 0;
	return len;
}

#endif
