/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The SYNs of connects that wait, of all network namespaces. The agent gets those for which
 * somebody listens by now, and sends them once more; those of apps that it is to start; and those
 * that wait for an app that could not be started.
 */
#include "switch.bpf.h"
#include "held.bpf.h"
#include "kernel.bpf.h"

/* enum ax_held_why, or 0: it waits on */
static __always_inline __u8 why_now(const struct ax_held *h)
{
	struct ax_endpoint to = h->to; /* a map's key is on the stack */
	struct ax_vip *vip = bpf_map_lookup_elem(&vips, &to.addr);

	if (!vip)
		return 0;
	if (is_served(&to))
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
