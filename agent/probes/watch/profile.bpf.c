// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ax trace profile: what is running when a clock ticks. Call stacks of programs are followed by
 * frame pointers and counted here; or their registers and the upper end of their stacks are copied,
 * for user space to find the callers by what the program's files say.
 */
#include "stacks.bpf.h"

#define PAGE	  4096
#define PAGES_MAX (AX_PROFILE_STACK / PAGE)

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

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__uint(value_size, sizeof(struct ax_profile_sample) + AX_PROFILE_STACK);
} copies SEC(".maps");

#if defined(__TARGET_ARCH_x86)
static __always_inline __u64 fill_registers(struct ax_profile_sample *s,
					    const struct pt_regs___user *r)
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
static __always_inline __u64 fill_registers(struct ax_profile_sample *s,
					    const struct pt_regs___user *r)
{
	bpf_probe_read_kernel(s->regs, 31 * sizeof(__u64), &r->regs);
	s->regs[31] = BPF_CORE_READ(r, sp);
	s->regs[32] = s->pc = BPF_CORE_READ(r, pc);
	return s->regs[31];
}
#endif

/* Page by page, since a stack ends where nothing is mapped any more. */
static __always_inline __u32 copy_stack(struct ax_profile_sample *s, __u64 sp)
{
	__u32 used = PAGE - (sp & (PAGE - 1));

	if (bpf_probe_read_user(s->stack, used & (2 * PAGE - 1), (void *)sp) < 0)
		return 0;
	for (__u32 i = 0; i < PAGES_MAX - 1; i++) {
		/* the compiler knows the bounds, but what it makes of that the verifier does not */
		asm volatile("" : "+r"(used));
		if (used > AX_PROFILE_STACK - PAGE ||
		    bpf_probe_read_user(&s->stack[used], PAGE, (void *)(sp + used)) < 0)
			break;
		used += PAGE;
	}
	return used;
}

/* False: there was no room. */
static __always_inline bool send_copy(const struct ax_profile_key *k, struct task_struct *task)
{
	struct ax_profile_sample *s;
	__u32 zero = 0, len;

	s = bpf_map_lookup_elem(&copies, &zero);
	if (!s)
		return false;
	watch_head(&s->head, AX_PROFILE_SAMPLE);
	s->key = *k;
	s->pad = 0;
	len = copy_stack(s, fill_registers(s, (void *)bpf_task_pt_regs(task)));
	if (len > AX_PROFILE_STACK)
		len = 0;
	s->len = len;
	if (bpf_ringbuf_output(&records, s, sizeof(*s) + len, wake_flags(k->pid)) < 0)
		return false;
	watch_count(AX_WATCH_EMITTED);
	return true;
}

SEC("perf_event")
int ax_profile(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct ax_profile_key k;
	bool copies_it;

	if (!task->pid || !watch_current())
		return 0;
	copies_it = wanted.copies && task->mm;
	fill_key(&k, ctx, !copies_it && task->mm);
	if (copies_it) {
		if (send_copy(&k, task))
			return 0;
		k.user = stack_of(ctx, BPF_F_USER_STACK); /* better than nothing */
	}
	count(count_of(&k), 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
