/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What ICMP errors quote of the packet that they are about. */
#ifndef AX_QUOTE_BPF_H
#define AX_QUOTE_BPF_H

#include <linux/bpf.h>

#include "context.bpf.h"
#include "parse.bpf.h"

static __always_inline bool is_icmp_error(const struct packet *p)
{
	__u32 type = p->icmp >> 8;

	if (!p->has_icmp)
		return false;
	return p->v4 ? type == 3 || type == 11 || type == 12 : type < 5;
}

/*
 * The packet that an ICMP error is about, with its ends swapped: the packet that was answered by
 * what the error is about. Of its transport header only 8 bytes need to be there (RFC 792).
 */
static __noinline __attribute__((unused)) bool quote(packet_ctx *ctx, const struct packet *p,
						     struct packet *q)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 off = p->l4_off + 8u;
	void *l3 = packet_at(data, off);
	__u32 ip_end =
		p->l4_off + p->l4_len; /* what is behind it, the IP header does not vouch for */

	packet_init(q);
	opaque(off);
	if (off > 0xff) /* l3_off has no room for it: no error comes behind so many headers */
		return false;
	q->vlan = p->vlan;
	q->l3_off = (__u8)off;
	q->ethertype_be = p->ethertype_be;
	if (!read_quoted(l3, end, p->v4, q) || q->l4_off > ip_end)
		return false;
	if (q->l4_off + 4u > ip_end) /* ports, or ICMP's type and code, would be the padding's */
		q->has_l4 = q->has_icmp = false;
	swap_packet(q);
	return true;
}

/* The error is for who has sent the packet that it quotes. */
static __always_inline bool quotes_own(const struct packet *p, const struct packet *q)
{
	return !((p->dst.w[0] ^ q->dst.w[0]) | (p->dst.w[1] ^ q->dst.w[1]) |
		 (p->dst.w[2] ^ q->dst.w[2]) | (p->dst.w[3] ^ q->dst.w[3]));
}

#endif
