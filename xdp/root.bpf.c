// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is attached to the interface, by libxdp's dispatcher or alone, and stays there: it jumps to
 * the generation that is current. A list that waits for its confirmation is judged here, not by a
 * process that could die: after the deadline the former generation is jumped to again.
 */
#include "root.bpf.h"

SEC("xdp")
int ax_root(struct xdp_md *ctx)
{
	if (*(volatile __u16 *)&root.tapped)
		bpf_tail_call_static(ctx, &jumps, AX_JUMP_TAP);
	return to_list(ctx);
}

char LICENSE[] SEC("license") = "GPL";
