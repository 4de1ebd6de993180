/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_BPF_SCOPE_H
#define AX_BPF_SCOPE_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "scope.h"

/* Whether it is one of those cgroups. */
static __always_inline bool scope_has(const volatile struct ax_scope *s, __u64 cgroup)
{
#pragma unroll
	for (__u32 i = 0; i < AX_SCOPE_CGROUPS; i++)
		if (i < s->n && s->cgroups[i] == cgroup)
			return true;
	return false;
}

static __always_inline bool scope_has_current(const volatile struct ax_scope *s)
{
	return !s->n || scope_has(s, bpf_get_current_ancestor_cgroup_id((int)s->level));
}

#endif
