// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ax trace profile: what is running when a clock ticks. Call stacks of programs are followed by
 * frame pointers and counted here; or their registers and the upper end of their stacks are copied,
 * for user space to find the callers by what the program's files say.
 */
#include "stacks.bpf.h"
#include "user_stack.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__uint(value_size, sizeof(struct ax_profile_sample) + AX_USER_STACK_ROOM);
} copies SEC(".maps");

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
	len = user_stack_take(&s->stack, task);
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
	bool copies_it, has_memory;

	if (!task->pid || !watch_current())
		return 0;
	has_memory = BPF_CORE_READ(task, mm) != NULL;
	copies_it = wanted.copies && has_memory;
	fill_key(&k, ctx, !copies_it && has_memory);
	if (copies_it) {
		if (send_copy(&k, task))
			return 0;
		k.user = stack_of(ctx, BPF_F_USER_STACK); /* better than nothing */
	}
	count(count_of(&k), 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
