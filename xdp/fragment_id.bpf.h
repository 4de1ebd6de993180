/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which datagram a fragment is of. */
#ifndef AX_FRAGMENT_ID_BPF_H
#define AX_FRAGMENT_ID_BPF_H

#include "context.bpf.h"
#include "rules.bpf.h"

/* The identification of a fragment's datagram. False: it is not where it should be. */
static __always_inline bool fragment_id(packet_ctx *ctx, const struct packet *p, __be32 *id)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (p->v4) {
		struct iphdr *ip = data + (p->l3_off & 63);

		if ((void *)(ip + 1) > end)
			return false;
		*id = ip->id;
	} else {
		/* right in front of what is fragmented, unless more extension headers are between
		 */
		__u64 off = (__u64)p->l4_off - sizeof(struct ipv6_frag);
		struct ipv6_frag *f;

		opaque(off);
		if (off > 0x1fff)
			return false;
		f = data + off;
		if ((void *)(f + 1) > end || f->next != p->proto || f->reserved)
			return false;
		*id = f->id;
	}
	return true;
}

static __always_inline bool nat_fragment_key(packet_ctx *ctx, const struct packet *p,
					     struct ax_nat_fragment *key)
{
	*key = (struct ax_nat_fragment){.real = p->src, .source = p->dst, .proto = p->proto};
	return fragment_id(ctx, p, &key->id);
}

#endif
