/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The SYNs of connects that wait, of all network namespaces. The agent gets those for which
 * somebody listens by now, and sends them once more; those of apps that it is to start; and those
 * that wait for an app that could not be started.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <stddef.h>

#include "switch.bpf.h"
#include "held.bpf.h"
#include "kernel.bpf.h"

/* Where the packet comes from. */
static __always_inline void source_of(const struct ax_held *h, struct ax_addr *ret)
{
	__be32 v4;

	if (addr_is_v4(&h->to.addr)) {
		__builtin_memcpy(&v4, h->packet + offsetof(struct iphdr, saddr), sizeof(v4));
		addr_set_v4(ret, v4);
	} else {
		__builtin_memcpy(ret, h->packet + offsetof(struct ipv6hdr, saddr), sizeof(*ret));
	}
}

/* enum ax_held_why, or 0: it waits on */
static __always_inline __u8 why_now(const struct ax_held *h)
{
	struct ax_endpoint to = h->to; /* a map's key is on the stack */
	struct ax_vip *vip = bpf_map_lookup_elem(&vips, &to.addr);
	struct ax_addr from;

	if (!vip)
		return 0;
	source_of(h, &from);
	if (is_served(&to, &from))
		return AX_HELD_READY;
	if (vip->flags & AX_VIP_TELL)
		return AX_HELD_WANTED;
	return h->implied && !(vip->flags & AX_VIP_WAITS) ? AX_HELD_NEVER : 0;
}

SEC("iter/bpf_sk_storage_map")
int ax_held_syns(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct ax_held *h = ctx->value;
	struct sock_common *sk = ctx->sk;

	if (!sk || !h || sk->skc_state != BPF_TCP_SYN_SENT)
		return 0;
	h->why = h->len ? why_now(h) : 0;
	if (h->why)
		bpf_seq_write(ctx->meta->seq, h, sizeof(*h));
	if (h->why != AX_HELD_READY)
		held_any = 1;
	return 0;
}
