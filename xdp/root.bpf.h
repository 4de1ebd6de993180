/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the root program and the tap find the generation that is current. */
#ifndef AX_ROOT_BPF_H
#define AX_ROOT_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "context.bpf.h"
#include "xdp.h"

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, AX_JUMP_ENTRIES);
	__type(key, __u32);
	__type(value, __u32);
} jumps SEC(".maps");

struct ax_root root;

/* Nobody confirmed the current list in time. */
static __always_inline bool is_over(void)
{
	__u64 deadline = *(volatile __u64 *)&root.deadline_ns;

	return deadline && bpf_ktime_get_ns() >= deadline;
}

/* Jumps to the list. Comes back when there is none: with what happens to the packet then. */
static __always_inline int to_list(packet_ctx *ctx)
{
	/* static: two calls, each to a known entry, become two direct jumps; the compiler would
	 * make them one, which is an indirect jump with all that guards those */
	if (is_over())
		bpf_tail_call_static(ctx, &jumps, AX_JUMP_PREVIOUS);
	else
		bpf_tail_call_static(ctx, &jumps, AX_JUMP_CURRENT);
	return *(volatile __u32 *)&root.fallback;
}

#endif
