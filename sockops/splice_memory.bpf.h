/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much the control group that pays for a socket has left. BPF only. */
#ifndef AX_SPLICE_MEMORY_BPF_H
#define AX_SPLICE_MEMORY_BPF_H

#include "splice_kernel.bpf.h"

#define PAGE	   4096u
#define GROUPS_MAX 8
#define UNLIMITED  (~0UL / 2 / PAGE) /* what PAGE_COUNTER_MAX is with such pages */

/* A group and those above it may each have a limit. Others take of it meanwhile, by the piece. */
static __always_inline bool is_near_limit(const struct page_counter *at, __u32 pages)
{
	for (int i = 0; i < GROUPS_MAX && at; i++) {
		unsigned long max = at->max;

		/* usage is written by every processor: not read where there is no limit */
		if (max < UNLIMITED && (unsigned long)at->usage.counter + pages > max)
			return true;
		at = at->parent;
	}
	return false;
}

/* Sockets count with all else there, or by themselves (the first version of control groups). */
static __always_inline bool group_is_near_limit(const struct mem_cgroup *group, __u32 pages)
{
	if (bpf_core_field_exists(group->tcpmem) && group->tcpmem_active)
		return is_near_limit(&group->tcpmem, pages);
	return is_near_limit(&group->memory, pages);
}

/* Sockets have a limit of their own. */
static __always_inline bool group_limits_sockets(const struct mem_cgroup *group)
{
	return bpf_core_field_exists(group->tcpmem) && group->tcpmem_active &&
	       is_near_limit(&group->tcpmem, ~0u);
}

#endif
