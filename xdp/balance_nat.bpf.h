/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ICMP errors about packets that NAT has changed. */
#ifndef AX_BALANCE_NAT_BPF_H
#define AX_BALANCE_NAT_BPF_H

#include "balance_icmp.bpf.h"

/*
 * An ICMP error's checksum and the packet that it quotes, which went the other way: `q` has its
 * ends swapped already. Of its transport header only the ports need to be there. Its transport
 * checksum stays as it was, for nobody can check that of a packet that is cut off.
 */
static __always_inline bool translate_quote(void *data, void *end, const struct handover *h,
					    const struct ends *to, bool v4)
{
	const struct packet *q = &h->quoted;
	void *l3 = data + (h->quote_off & L4_OFF_MAX);
	__u16 *check = data + (h->p.l4_off & L4_OFF_MAX) + 2;
	__be16 *port = data + (q->l4_off & L4_OFF_MAX);
	__u64 addrs = diff_addr(&q->src, &to->src, v4) + diff_addr(&q->dst, &to->dst, v4);
	__u64 diff = 0;

	if ((void *)(check + 1) > end)
		return false;
	if (v4) {
		struct iphdr *ip = l3;

		if ((void *)(ip + 1) > end)
			return false;
		/* what the addresses change in the ICMP checksum, this changes back */
		ip->check = diff_apply(ip->check, addrs);
		ip->saddr = to->dst.w[3];
		ip->daddr = to->src.w[3];
	} else {
		struct ipv6hdr *ip = l3;

		if ((void *)(ip + 1) > end)
			return false;
		__builtin_memcpy(&ip->saddr, &to->dst, sizeof(ip->saddr));
		__builtin_memcpy(&ip->daddr, &to->src, sizeof(ip->daddr));
		diff = addrs + diff_addr(&h->p.src, &to->src, false) +
		       diff_addr(&h->p.dst, &to->dst, false);
	}
	if (q->has_l4) {
		if ((void *)(port + 2) > end)
			return false;
		port[0] = to->dport_be;
		port[1] = to->sport_be;
		diff += diff16(q->sport_be, to->sport_be) + diff16(q->dport_be, to->dport_be);
	}
	*check = diff_apply(*check, diff);
	return true;
}

/* The same as translate(), also for ICMP errors. */
static __always_inline bool translate_any(struct xdp_md *ctx, const struct handover *h,
					  const struct ends *to, bool v4)
{
	struct bytes b = bytes_of(ctx);

	if (!translate(ctx, &h->p, to, v4))
		return false;
	return !h->icmp_error || translate_quote(b.data, b.end, h, to, v4);
}

#endif
