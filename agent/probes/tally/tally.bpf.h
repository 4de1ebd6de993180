/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs that count have in common: in whose name, and times. */
#ifndef AX_PROBES_TALLY_TALLY_BPF_H
#define AX_PROBES_TALLY_TALLY_BPF_H

#include "syscall.bpf.h"
#include "tally_event.h"
#include "defaults.h"

const volatile __u32 tally_by; /* enum ax_tally_by */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TALLY_GROUPS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct ax_tally_group);
} groups SEC(".maps");

/* --- groups --- */

static __always_inline __u64 app_number(struct task_struct *task)
{
	struct cgroup *c = BPF_CORE_READ(task, cgroups, dfl_cgrp), *all, *own;

	if (!watch.app_level)
		return 0;
	all = cgroup_above(c, watch.app_level - 1);
	own = cgroup_above(c, watch.app_level);
	return all && own && BPF_CORE_READ(all, kn, id) == watch.apps ? BPF_CORE_READ(own, kn, id)
								      : 0;
}

/* A name for which there is no room is not known: its number is shown. */
static __always_inline void name_group(struct task_struct *task, __u64 id)
{
	struct ax_tally_group *g = bpf_map_lookup_elem(&groups, &id), new = {};

	if (!g) {
		watch_app(BPF_CORE_READ(task, cgroups, dfl_cgrp), new.app);
		bpf_map_update_elem(&groups, &id, &new, BPF_NOEXIST);
		g = bpf_map_lookup_elem(&groups, &id);
	}
	/* each time, since a program may become another */
	if (g && tally_by == AX_TALLY_PROCESS)
		bpf_probe_read_kernel(g->comm, sizeof(g->comm), task->group_leader->comm);
}

static __always_inline __u64 tally_group(void)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u64 id = 0;

	if (tally_by == AX_TALLY_PROCESS)
		id = bpf_get_current_pid_tgid() >> 32;
	else if (tally_by == AX_TALLY_APP)
		id = app_number(task);
	if (id)
		name_group(task, id);
	return id;
}

/* --- times --- */

/* How many bits a number has. */
static __always_inline __u32 bits_of(__u64 v)
{
	__u32 n = 0;

	for (__u32 step = 32; step; step /= 2)
		if (v >> step) {
			v >>= step;
			n += step;
		}
	return n + (v != 0);
}

static __always_inline void raise_to(__u64 *most, __u64 v)
{
	/* a lost race is made up for by trying again: a few times are enough mostly */
	for (int i = 0; i < 4; i++) {
		__u64 old = *(volatile __u64 *)most;

		if (old >= v || __sync_val_compare_and_swap(most, old, v) == old)
			return;
	}
}

static __always_inline void tally_time(struct ax_tally_times *t, __u64 ns)
{
	__u32 i = bits_of(ns);

	if (i >= AX_TALLY_BUCKETS)
		i = AX_TALLY_BUCKETS - 1;
	__sync_fetch_and_add(&t->count, 1);
	__sync_fetch_and_add(&t->sum, ns);
	__sync_fetch_and_add(&t->buckets[i], 1);
	raise_to(&t->most, ns);
}

/* --- records --- */

/* Large ones come by the hundred, so their reader is woken before the ring is full. */
static __always_inline __u64 tally_wakeup(void)
{
	__u64 size = bpf_ringbuf_query(&records, BPF_RB_RING_SIZE);

	return bpf_ringbuf_query(&records, BPF_RB_AVAIL_DATA) > size / WATCH_WAKE_FRACTION
		       ? BPF_RB_FORCE_WAKEUP
		       : BPF_RB_NO_WAKEUP;
}

#endif
