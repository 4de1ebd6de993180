/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The SYNs of connects that wait, of all network namespaces: those for which somebody listens by
 * now are written for the agent, which sends them once more.
 */
#include "switch.bpf.h"
#include "held.bpf.h"
#include "kernel.bpf.h"

SEC("iter/bpf_sk_storage_map")
int ax_held_syns(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct ax_held *h = ctx->value;
	struct sock_common *sk = ctx->sk;
	struct ax_endpoint to;

	if (!sk || !h || sk->skc_state != BPF_TCP_SYN_SENT)
		return 0;
	to = h->to;
	if (h->len && listening(&to))
		bpf_seq_write(ctx->meta->seq, h, sizeof(*h));
	else
		held_any = 1;
	return 0;
}
