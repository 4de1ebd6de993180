/* SPDX-License-Identifier: GPL-2.0-or-later */
/* NAT's way back to the clients. */
#ifndef AX_BALANCE_REVERSE_BPF_H
#define AX_BALANCE_REVERSE_BPF_H

#include "balance_nat.bpf.h"

/* Where the client's packets come from, for want of a route to it. */
static __noinline void way_back(struct hop *hop, const struct ax_nat *n)
{
	hop->link.ifindex = n->ifindex;
	hop->link.mtu = 0;
	hop->result = BPF_FIB_LKUP_RET_SUCCESS;
	__builtin_memcpy(hop->link.mac, n->mac, sizeof(n->mac));
}

/*
 * From the pair of devices that leads to apps packets leave as the stack's: whatever the driver of
 * the way out is, and joined again by GRO. ax_from_backends (fabric.bpf.c) reads which way that is.
 */
static __always_inline int send_by_stack(struct xdp_md *ctx, const struct link *link)
{
	struct bytes b = bytes_of(ctx);
	__u32 *ifindex;

	if (b.data + sizeof(struct ethhdr) > b.end)
		return XDP_DROP;
	__builtin_memcpy(b.data, link->mac, sizeof(link->mac));
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*ifindex)))
		return XDP_DROP;
	ifindex = (void *)(long)ctx->data_meta;
	if ((void *)(ifindex + 1) > (void *)(long)ctx->data)
		return XDP_DROP;
	*ifindex = link->ifindex;
	return XDP_PASS;
}

static __always_inline int reverse(struct xdp_md *ctx, const struct handover *h, bool v4)
{
	const struct ax_nat *n = &h->nat;
	struct ends to = {
		.src = n->service,
		.dst = n->client,
		.sport_be = n->service_port_be,
		.dport_be = n->client_port_be,
	};
	__u32 index = (__u32)mix_addr(0, &n->client, v4) % CLIENT_HOPS + AX_REAL_NUMBERS;
	struct bytes b = bytes_of(ctx);
	struct hop *hop = hop_find(ctx, index, &n->client, &n->service, bpf_jiffies64());
	__u32 trouble;

	if (!hop)
		return XDP_ABORTED;
	if (hop->result != BPF_FIB_LKUP_RET_SUCCESS)
		way_back(hop, n);
	trouble = hop_trouble(hop, &h->p);
	if (!trouble && !ttl_left(&b, &h->p, v4))
		trouble = AX_REASON_TTL;
	if (trouble)
		return fail(ctx, h, trouble, XDP_DROP);
	if (hop->link.mtu && ip_length(&h->p) > hop->link.mtu)
		return too_big(ctx, h, hop->link.mtu, v4);
	if (!translate_any(ctx, h, &to, v4))
		return fail(ctx, h, AX_REASON_REWRITE_FAILED, XDP_DROP);
	if (layout.apps.ifindex == layout.ifindex && !h->explain)
		return send_by_stack(ctx, &hop->link);
	return send(ctx, &hop->link);
}

#endif
