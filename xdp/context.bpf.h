/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the programs of a list get: XDP's context, or tc's where the list judges what leaves. The
 * unit that is for tc says so by AX_ON_TC. Both have data, data_end and ingress_ifindex.
 */
#ifndef AX_CONTEXT_BPF_H
#define AX_CONTEXT_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#ifdef AX_ON_TC
typedef struct __sk_buff packet_ctx;
#else
typedef struct xdp_md packet_ctx;
#endif

/* Copies bytes of the packet, wherever it has them. 0, or a negative number. */
static __always_inline long packet_load(packet_ctx *ctx, __u32 off, void *to, __u32 len)
{
#ifdef AX_ON_TC
	return bpf_skb_load_bytes(ctx, off, to, len);
#else
	return bpf_xdp_load_bytes(ctx, off, to, len);
#endif
}

/* The interface that judges it, and the queue by which it came or goes. */
static __always_inline __u32 packet_ifindex(const packet_ctx *ctx)
{
#ifdef AX_ON_TC
	return ctx->ifindex;
#else
	return ctx->ingress_ifindex;
#endif
}

static __always_inline __u32 packet_queue(const packet_ctx *ctx)
{
#ifdef AX_ON_TC
	return ctx->queue_mapping;
#else
	return ctx->rx_queue_index;
#endif
}

#endif
