/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Giving a packet other ends: what NAT does to it on its way to a backend, and back. */
#ifndef AX_BALANCE_NAT_BPF_H
#define AX_BALANCE_NAT_BPF_H

#include "balance_icmp.bpf.h"

/* The ends that a packet gets. */
struct ends {
	struct ax_addr src, dst;
	__be16 sport_be, dport_be;
};

static __always_inline bool translate_ipv4(struct iphdr *ip, void *end, const struct packet *p,
					   const struct ends *to)
{
	__u16 *word, old;
	__u64 diff;

	if ((void *)(ip + 1) > end)
		return false;
	word = (__u16 *)&ip->ttl;
	old = *word;
	ip->ttl--;
	diff = diff_addr(&p->src, &to->src, true) + diff_addr(&p->dst, &to->dst, true) +
	       diff16(old, *word);
	ip->check = diff_apply(ip->check, diff);
	ip->saddr = to->src.w[3];
	ip->daddr = to->dst.w[3];
	return true;
}

static __always_inline bool translate_ipv6(struct ipv6hdr *ip, void *end, const struct ends *to)
{
	if ((void *)(ip + 1) > end)
		return false;
	ip->hop_limit--;
	__builtin_memcpy(&ip->saddr, &to->src, sizeof(ip->saddr));
	__builtin_memcpy(&ip->daddr, &to->dst, sizeof(ip->daddr));
	return true;
}

/* Ports and checksum of TCP and UDP. */
static __always_inline bool translate_l4(void *l4, void *end, const struct packet *p,
					 const struct ends *to, bool v4)
{
	__be16 *port = l4;
	__u16 *check = l4 + (p->proto == IPPROTO_TCP ? 16 : 6);
	__u64 diff;

	if ((void *)(port + 4) > end || (void *)(check + 1) > end)
		return false;
	port[0] = to->sport_be;
	port[1] = to->dport_be;
	if (p->proto == IPPROTO_UDP && !*check)
		return true; /* it has none, and gets none */
	diff = diff_addr(&p->src, &to->src, v4) + diff_addr(&p->dst, &to->dst, v4) +
	       diff16(p->sport_be, to->sport_be) + diff16(p->dport_be, to->dport_be);
	*check = diff_apply(*check, diff);
	if (!*check && p->proto == IPPROTO_UDP)
		*check = 0xffff;
	return true;
}

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

/* The packet's ends become those, and it has passed a router. */
static __always_inline bool translate(struct xdp_md *ctx, const struct handover *h,
				      const struct ends *to, bool v4)
{
	const struct packet *p = &h->p;
	struct bytes b = bytes_of(ctx);
	void *l3 = b.data + (p->l3_off & L3_OFF_MAX);

	if (!(v4 ? translate_ipv4(l3, b.end, p, to) : translate_ipv6(l3, b.end, to)))
		return false;
	if (h->icmp_error)
		return translate_quote(b.data, b.end, h, to, v4);
	if (!p->has_l4)
		return true;
	return translate_l4(b.data + (p->l4_off & L4_OFF_MAX), b.end, p, to, v4);
}

#endif
