/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Answering what is too big for the way to its backend: "fragmentation needed" (RFC 1191) or
 * "packet too big" (RFC 4443), from the address that the packet was sent to. IPv4 packets that may
 * be fragmented are answered too: nobody here fragments them, and senders learn from it all the
 * same.
 */
#ifndef AX_BALANCE_ICMP_BPF_H
#define AX_BALANCE_ICMP_BPF_H

#include "balance.bpf.h"

/* What is quoted: bpf_csum_diff() takes no more at once, and RFC 1812 wants 576 bytes at most. */
#define QUOTE	       512
#define ICMP_BYTES     8
#define IPV6_LEAST_MTU 1280

struct icmp_too_big {
	__u8 type, code;
	__u16 check;
	__be32 mtu; /* IPv4: the upper half is unused */
};

/* Whether RFC 1122 and 4443 allow an answer with an error. */
static __always_inline bool may_answer(const struct handover *h, bool v4)
{
	const struct packet *p = &h->p;

	if (h->icmp_error || p->later)
		return false;
	return v4 ? (bpf_ntohl(p->src.w[3]) >> 28) < 14 && (bpf_ntohl(p->dst.w[3]) >> 28) < 14
		  : p->src.b[0] != 0xff && p->dst.b[0] != 0xff && !no_addr(&p->src);
}

static __always_inline void answer_ipv4(struct iphdr *ip, const struct packet *p)
{
	__u16 *w = (void *)ip;
	__u64 sum = 0;

	*ip = (struct iphdr){
		.version = 4,
		.ihl = 5,
		.tot_len = bpf_htons(sizeof(*ip) + ICMP_BYTES + QUOTE),
		.ttl = 64,
		.protocol = IPPROTO_ICMP,
		.saddr = p->dst.w[3],
		.daddr = p->src.w[3],
	};
	for (__u32 i = 0; i < sizeof(*ip) / 2; i++)
		sum += w[i];
	ip->check = (__u16)~diff_fold(sum);
}

static __always_inline void answer_ipv6(struct ipv6hdr *ip, const struct packet *p)
{
	*ip = (struct ipv6hdr){
		.version = 6,
		.payload_len = bpf_htons(ICMP_BYTES + QUOTE),
		.nexthdr = IPPROTO_ICMPV6,
		.hop_limit = 64,
	};
	__builtin_memcpy(&ip->saddr, &p->dst, sizeof(ip->saddr));
	__builtin_memcpy(&ip->daddr, &p->src, sizeof(ip->daddr));
}

/* The sum of an ICMPv6 pseudo header. */
static __always_inline __u64 pseudo_sum(const struct packet *p)
{
	__u64 sum = bpf_htons(ICMP_BYTES + QUOTE) + bpf_htons(IPPROTO_ICMPV6);

	for (int i = 0; i < 4; i++)
		sum += (__u64)p->src.w[i] + p->dst.w[i];
	return sum;
}

static __always_inline bool answer_icmp(struct icmp_too_big *icmp, void *end,
					const struct packet *p, __u32 mtu, bool v4)
{
	__s64 sum;

	if ((void *)(icmp + 1) + QUOTE > end)
		return false;
	*icmp = (struct icmp_too_big){
		.type = v4 ? 3 : 2,
		.code = v4 ? 4 : 0,
		.mtu = bpf_htonl(mtu),
	};
	sum = bpf_csum_diff(NULL, 0, (void *)(icmp + 1), QUOTE, 0);
	if (sum < 0)
		return false;
	sum += *(__u16 *)icmp + (__u64)icmp->mtu + (v4 ? 0 : pseudo_sum(p));
	icmp->check = (__u16)~diff_fold((__u64)sum);
	return true;
}

static __always_inline bool swap_macs(void *data, void *end)
{
	struct ethhdr *eth = data;
	__u8 mac[ETH_ALEN];

	if ((void *)(eth + 1) > end)
		return false;
	__builtin_memcpy(mac, eth->h_dest, ETH_ALEN);
	__builtin_memcpy(eth->h_dest, eth->h_source, ETH_ALEN);
	__builtin_memcpy(eth->h_source, mac, ETH_ALEN);
	return true;
}

static __always_inline int answer_too_big(struct xdp_md *ctx, const struct handover *h, __u32 mtu,
					  bool v4)
{
	const __u32 front = (v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr)) + ICMP_BYTES;
	__u32 l3 = h->p.l3_off & L3_OFF_MAX, keep = l3 + QUOTE;
	struct bytes b;
	void *ip;

	if (!may_answer(h, v4) || h->len < keep)
		return XDP_DROP;
	if (bpf_xdp_adjust_tail(ctx, (int)(keep - h->len)) || bpf_xdp_adjust_head(ctx, -(int)front))
		return XDP_DROP;
	if (move_link(ctx, l3, front))
		return XDP_DROP;
	b = bytes_of(ctx);
	if (!swap_macs(b.data, b.end))
		return XDP_DROP;
	ip = b.data + l3;
	if (ip + front > b.end)
		return XDP_DROP;
	if (v4)
		answer_ipv4(ip, &h->p);
	else
		answer_ipv6(ip, &h->p);
	return answer_icmp(ip + front - ICMP_BYTES, b.end, &h->p, mtu, v4) ? XDP_TX : XDP_DROP;
}

/* `mtu`: what would fit. */
__noinline int too_big4(struct xdp_md *ctx, const struct handover *h, __u32 mtu)
{
	if (!h)
		return XDP_ABORTED;
	return fail(ctx, h, AX_REASON_TOO_BIG, answer_too_big(ctx, h, mtu, true));
}
__noinline int too_big6(struct xdp_md *ctx, const struct handover *h, __u32 mtu)
{
	if (!h)
		return XDP_ABORTED;
	/* nobody can be told to send less than this; then packets of that size are lost */
	return fail(ctx, h, AX_REASON_TOO_BIG,
		    answer_too_big(ctx, h, mtu < IPV6_LEAST_MTU ? IPV6_LEAST_MTU : mtu, false));
}
static __always_inline int too_big(struct xdp_md *ctx, const struct handover *h, __u32 mtu, bool v4)
{
	return v4 ? too_big4(ctx, h, mtu) : too_big6(ctx, h, mtu);
}

#endif
