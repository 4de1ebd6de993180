// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is attached to the interface, by libxdp's dispatcher or alone, and stays there: it jumps to
 * the generation that is current. A list that waits for its confirmation is judged here, not by a
 * process that could die: after the deadline the former generation is jumped to again.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "xdp.h"

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, AX_JUMP_ENTRIES);
	__type(key, __u32);
	__type(value, __u32);
} jumps SEC(".maps");

struct ax_root root;

SEC("xdp")
int ax_root(struct xdp_md *ctx)
{
	__u64 deadline = *(volatile __u64 *)&root.deadline_ns;

	/* static: two calls, each to a known entry, become two direct jumps; the compiler would
	 * make them one, which is an indirect jump with all that guards those */
	if (deadline && bpf_ktime_get_ns() >= deadline)
		bpf_tail_call_static(ctx, &jumps, AX_JUMP_PREVIOUS);
	else
		bpf_tail_call_static(ctx, &jumps, AX_JUMP_CURRENT);
	return *(volatile __u32 *)&root.fallback;
}

char LICENSE[] SEC("license") = "GPL";
