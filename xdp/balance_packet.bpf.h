/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What balancing does to a packet: other ends (NAT), or another packet around it (direct server
 * return).
 *
 * Functions that are given `v4` are given a constant: the two families are two paths through the
 * program, each without a look at the other's fields, and with calls of one map each, which the
 * kernel can then inline.
 */
#ifndef AX_BALANCE_PACKET_BPF_H
#define AX_BALANCE_PACKET_BPF_H

#include "balance_csum.bpf.h"
#include "rules.bpf.h"

#define L3_OFF_MAX 63	  /* Ethernet header and AX_TAGS_MAX tags need less */
#define L4_OFF_MAX 0x1fff /* more than AX_IPV6_HEADERS_MAX of the longest in any frame */

/* The packet's bytes as they are now; to be taken anew after bpf_xdp_adjust_head(). */
struct bytes {
	void *data, *end;
};
static __always_inline struct bytes bytes_of(struct xdp_md *ctx)
{
	return (struct bytes){(void *)(long)ctx->data, (void *)(long)ctx->data_end};
}

static __always_inline bool same_addr(const struct ax_addr *a, const struct ax_addr *b)
{
	const __u64 *x = (const void *)a, *y = (const void *)b;

	return x[0] == y[0] && x[1] == y[1];
}

static __always_inline bool no_addr(const struct ax_addr *a)
{
	const __u64 *x = (const void *)a;

	return !(x[0] | x[1]);
}

/* Of the IP packet, without what follows it in the frame. */
static __always_inline __u32 ip_length(const struct packet *p)
{
	return (__u32)(p->l4_off - p->l3_off) + p->l4_len;
}

/* One router more. False: it was the last one. */
static __always_inline bool ttl_left(const struct bytes *b, const struct packet *p, bool v4)
{
	void *l3 = b->data + (p->l3_off & L3_OFF_MAX);

	if (v4) {
		struct iphdr *ip = l3;

		return (void *)(ip + 1) <= b->end && ip->ttl > 1;
	} else {
		struct ipv6hdr *ip = l3;

		return (void *)(ip + 1) <= b->end && ip->hop_limit > 1;
	}
}

static __always_inline int send(struct xdp_md *ctx, const struct link *link)
{
	struct bytes b = bytes_of(ctx);

	if (b.data + sizeof(struct ethhdr) > b.end)
		return XDP_DROP;
	__builtin_memcpy(b.data, link->mac, sizeof(link->mac));
	if (link->ifindex == layout.ifindex)
		return XDP_TX;
	return bpf_redirect(link->ifindex, 0);
}

/* --- other ends --- */

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

/* The packet's ends become those, and it has passed a router. */
static __always_inline bool translate(struct xdp_md *ctx, const struct packet *p,
				      const struct ends *to, bool v4)
{
	struct bytes b = bytes_of(ctx);
	void *l3 = b.data + (p->l3_off & L3_OFF_MAX);

	if (!(v4 ? translate_ipv4(l3, b.end, p, to) : translate_ipv6(l3, b.end, to)))
		return false;
	return !p->has_l4 || translate_l4(b.data + (p->l4_off & L4_OFF_MAX), b.end, p, to, v4);
}

/* --- another packet around it --- */

#define TUNNEL_TTL 64

/* Moves the frame's link header, of l3_off bytes, from `by` bytes behind the frame's start to
 * there. 0 or -1. */
static __noinline int move_link(struct xdp_md *ctx, __u32 l3_off, __u32 by)
{
	struct bytes b = bytes_of(ctx);
	__u16 *to = b.data, *from = b.data + (by & L3_OFF_MAX);

	for (__u32 i = 0; i < (L3_OFF_MAX + 1) / 2; i++) {
		if (i >= l3_off / 2)
			break;
		if ((void *)(to + 1) > b.end || (void *)(from + 1) > b.end)
			return -1;
		*to++ = *from++;
	}
	return 0;
}

/* What is put in front: from to->src, and with to->dport_be a UDP header too. */
struct outer {
	__u32 size;
	__u32 len; /* of what it is put in front of */
	__u8 tos;
};

static __always_inline void put_ipv4(struct iphdr *ip, const struct outer *o, const struct ends *to)
{
	__u64 sum;

	*ip = (struct iphdr){
		.version = 4,
		.ihl = 5,
		.tos = o->tos,
		.tot_len = bpf_htons((__u16)(o->size + o->len)),
		.frag_off = bpf_htons(0x4000),
		.ttl = TUNNEL_TTL,
		.protocol = to->dport_be ? IPPROTO_UDP : IPPROTO_IPIP,
		.saddr = to->src.w[3],
		.daddr = to->dst.w[3],
	};
	sum = (__u64)((__u32 *)ip)[0] + ((__u32 *)ip)[1] + ((__u32 *)ip)[2] + ip->saddr + ip->daddr;
	ip->check = (__u16)~diff_fold(sum);
}

static __always_inline void put_ipv6(struct ipv6hdr *ip, const struct outer *o,
				     const struct ends *to)
{
	/* the source port also as the flow label: routers spread by it what they cannot read */
	*(__be32 *)ip = bpf_htonl(6u << 28 | (__u32)o->tos << 20 | bpf_ntohs(to->sport_be));
	ip->payload_len = bpf_htons((__u16)(o->size + o->len - sizeof(*ip)));
	ip->nexthdr = to->dport_be ? IPPROTO_UDP : IPPROTO_IPV6;
	ip->hop_limit = TUNNEL_TTL;
	__builtin_memcpy(&ip->saddr, &to->src, sizeof(ip->saddr));
	__builtin_memcpy(&ip->daddr, &to->dst, sizeof(ip->daddr));
}

static __always_inline void put_gue(struct udphdr *udp, const struct outer *o,
				    const struct ends *to, __u32 ip_size)
{
	udp->source = to->sport_be;
	udp->dest = to->dport_be;
	udp->len = bpf_htons((__u16)(o->size + o->len - ip_size));
	udp->check = 0;
}

static __always_inline __u32 outer_size(const struct ends *to, bool v4)
{
	return (v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr)) +
	       (to->dport_be ? sizeof(struct udphdr) : 0);
}

/* The inner packet has passed a router. Also says what the outer header takes over of it. */
static __always_inline bool pass_inner(const struct bytes *b, const struct packet *p, bool v4,
				       struct outer *o)
{
	void *l3 = b->data + (p->l3_off & L3_OFF_MAX);

	if (v4) {
		struct iphdr *ip = l3;
		__u16 *word, old;

		if ((void *)(ip + 1) > b->end)
			return false;
		word = (__u16 *)&ip->ttl;
		old = *word;
		o->tos = ip->tos;
		ip->ttl--;
		ip->check = diff_apply(ip->check, diff16(old, *word));
	} else {
		struct ipv6hdr *ip = l3;

		if ((void *)(ip + 1) > b->end)
			return false;
		o->tos = (__u8)(ip->priority << 4 | ip->flow_lbl[0] >> 4);
		ip->hop_limit--;
	}
	return true;
}

static __always_inline int encapsulate(struct xdp_md *ctx, const struct packet *p,
				       const struct ends *to, struct outer *o, bool v4, bool tagged)
{
	const __u32 ip_size = v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	__u32 l3_off = tagged ? p->l3_off & L3_OFF_MAX : sizeof(struct ethhdr);
	struct bytes b = bytes_of(ctx);
	struct ethhdr *eth;
	void *l3;

	if (!pass_inner(&b, p, v4, o))
		return -1;
	if (bpf_xdp_adjust_head(ctx, -(int)o->size))
		return -1;
	if (tagged && move_link(ctx, l3_off, o->size))
		return -1;
	b = bytes_of(ctx);
	eth = b.data;
	if ((void *)(eth + 1) > b.end)
		return -1;
	/* the addresses are written by send() */
	if (!tagged)
		eth->h_proto = bpf_htons(v4 ? ETH_P_IP : ETH_P_IPV6);
	l3 = b.data + l3_off;
	if (l3 + ip_size + sizeof(struct udphdr) > b.end)
		return -1;
	if (v4)
		put_ipv4(l3, o, to);
	else
		put_ipv6(l3, o, to);
	if (to->dport_be)
		put_gue(l3 + ip_size, o, to, ip_size);
	return 0;
}

#endif
