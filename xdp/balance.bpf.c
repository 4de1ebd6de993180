// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The balancer: two stages behind the filter, which has said to which balancer a packet goes, or
 * whose flow an answer of a NAT backend belongs to.
 */
#include "balance_forward.bpf.h"
#include "balance_reverse.bpf.h"
#include "balance_tunnel.bpf.h"

static __always_inline int balance(struct xdp_md *ctx, struct handover *h, bool v4)
{
	const __u8 *a = arena_get();
	const struct ax_balancer *b = a ? balancer_of(a, h->balancer) : NULL;

	if (!b)
		return XDP_ABORTED;
	if (b->mode == AX_BALANCE_NAT)
		return forward(ctx, h, a, b, v4);
	return tunnel(ctx, h, a, b, v4);
}

SEC("xdp")
int ax_balance(struct xdp_md *ctx)
{
	struct handover *h = bpf_map_lookup_elem(&handovers, &(__u32){0});

	if (!h)
		return XDP_ABORTED;
	if (h->p.fragment == AX_FRAGMENT_NOT_IP) /* ARP and others: no balancer's business */
		return XDP_PASS;
	if (!is_readable(&h->p))
		return fail(ctx, h, AX_REASON_REWRITE_FAILED, XDP_DROP);
	return h->p.v4 ? balance(ctx, h, true) : balance(ctx, h, false);
}

SEC("xdp")
int ax_reverse(struct xdp_md *ctx)
{
	const struct handover *h = bpf_map_lookup_elem(&handovers, &(__u32){0});

	if (!h)
		return XDP_ABORTED;
	if (!is_readable(&h->p))
		return fail(ctx, h, AX_REASON_REWRITE_FAILED, XDP_DROP);
	return h->p.v4 ? reverse(ctx, h, true) : reverse(ctx, h, false);
}
