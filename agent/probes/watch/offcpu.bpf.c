// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace offcpu: how long threads wait, and where. Summed up here, since there may be a million
 * of switches in a second. */
#include "stacks.bpf.h"

#define TASK_DEAD 0x80

struct task_struct___state {
	unsigned int __state;
} __attribute__((preserve_access_index));

/* By the thread's number. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WATCH_WAITING);
	__type(key, __u32);
	__type(value, struct ax_profile_wait);
} waiting SEC(".maps");

static __always_inline void went(void *ctx, struct task_struct *prev, bool preempted, __u64 now)
{
	unsigned state = BPF_CORE_READ((struct task_struct___state *)prev, __state);
	struct ax_profile_wait w;
	__u32 tid = prev->pid;

	if (!tid)
		return;
	if (state & TASK_DEAD) {
		bpf_map_delete_elem(&waiting, &tid);
		return;
	}
	if (((preempted || !state) && !wanted.preempted) || (!prev->mm && !wanted.kernel_threads) ||
	    !watch_current())
		return;
	fill_key(&w.key, ctx, prev->mm);
	w.since = now;
	if (!count_of(&w.key) || bpf_map_update_elem(&waiting, &tid, &w, BPF_ANY) < 0)
		count(NULL, 0);
}

static __always_inline void came(struct task_struct *next, __u64 now)
{
	__u32 tid = next->pid;
	struct ax_profile_wait *w = bpf_map_lookup_elem(&waiting, &tid);
	__u64 ns;

	if (!w || !w->since)
		return;
	ns = now - w->since;
	w->since = 0;
	if (ns >= wanted.least_ns)
		count(bpf_map_lookup_elem(&counts, &w->key), ns);
}

SEC("tp_btf/sched_switch")
int ax_offcpu(__u64 *ctx)
{
	__u64 now = bpf_ktime_get_ns();

	went(ctx, (void *)ctx[1], ctx[0] & 1, now);
	came((void *)ctx[2], now);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
