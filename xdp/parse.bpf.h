/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The only packet parser. Works on any [data, data_end) that starts with an Ethernet header, so on
 * XDP and tc alike. Lengths are checked against the packet and against each other: a port is never
 * read from a later fragment, from padding behind the IP length, or from a header that lies.
 */
#ifndef AX_PARSE_BPF_H
#define AX_PARSE_BPF_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "addr.h"

#define PARSE_IPV6_HEADERS_MAX 6

enum parse_result {
	PARSE_OK,	 /* L3 is good; L4 too where has_l4 says so */
	PARSE_NOT_IP,	 /* another ethertype */
	PARSE_MALFORMED, /* too short, a wrong version, or lengths that do not fit */
};

enum tcp_flag {
	TCP_FLAG_FIN_BIT = 1,
	TCP_FLAG_SYN_BIT = 2,
	TCP_FLAG_RST_BIT = 4,
	TCP_FLAG_ACK_BIT = 16
};

struct packet {
	struct ax_addr src;
	struct ax_addr dst;
	__be16 sport_be; /* valid with has_l4 */
	__be16 dport_be;
	__u16 l4_off;	/* of the transport header, from the Ethernet header's start */
	__u8 proto;	/* of the innermost header that was reached */
	__u8 tcp_flags; /* valid with has_l4 and IPPROTO_TCP */
	bool v4;
	bool later;  /* a fragment behind the first one: it has no L4 header */
	bool has_l4; /* TCP or UDP, and its header is in the packet */
};

static __always_inline __u32 l4_size(__u8 proto)
{
	return proto == IPPROTO_TCP ? sizeof(struct tcphdr) : sizeof(struct udphdr);
}

static __always_inline void parse_l4(void *l4, void *end, struct packet *p)
{
	if (p->proto == IPPROTO_TCP) {
		struct tcphdr *tcp = l4;

		if ((void *)(tcp + 1) > end)
			return;
		p->sport_be = tcp->source;
		p->dport_be = tcp->dest;
		p->tcp_flags = ((__u8 *)tcp)[13];
		p->has_l4 = true;
	} else if (p->proto == IPPROTO_UDP) {
		struct udphdr *udp = l4;

		if ((void *)(udp + 1) > end)
			return;
		p->sport_be = udp->source;
		p->dport_be = udp->dest;
		p->has_l4 = true;
	}
}

static __always_inline int parse_ipv4(void *l3, void *end, struct packet *p)
{
	struct iphdr *ip = l3;
	__u32 header, total;

	if ((void *)(ip + 1) > end || ip->version != 4)
		return PARSE_MALFORMED;
	header = ip->ihl * 4;
	total = bpf_ntohs(ip->tot_len);
	/* total 0: a GSO packet over 64 KiB (BIG TCP) */
	if (header < sizeof(*ip) || (total && total < header) || l3 + header > end)
		return PARSE_MALFORMED;
	p->v4 = true;
	p->src = (struct ax_addr){.w = {0, 0, bpf_htonl(0xffff), ip->saddr}};
	p->dst = (struct ax_addr){.w = {0, 0, bpf_htonl(0xffff), ip->daddr}};
	p->proto = ip->protocol;
	p->l4_off = (__u16)(sizeof(struct ethhdr) + header);
	p->later = bpf_ntohs(ip->frag_off) & 0x1fff;
	if (p->later)
		return PARSE_OK;
	if (total && total < header + l4_size(p->proto))
		return PARSE_OK; /* what follows is padding, not a header */
	parse_l4(l3 + header, end, p);
	return PARSE_OK;
}

struct ipv6_ext {
	__u8 next;
	__u8 len; /* in 8 bytes, beyond the first 8 */
};
struct ipv6_frag {
	__u8 next;
	__u8 reserved;
	__be16 offset;
	__be32 id;
};

/* An IPv4 address in an IPv6 header: it would be taken for the owner of the real one. */
static __always_inline bool is_mapped(const struct in6_addr *a)
{
	return !a->s6_addr32[0] && !a->s6_addr32[1] && a->s6_addr32[2] == bpf_htonl(0xffff);
}

/* Follows the extension headers from *at. Returns PARSE_OK with *at at the header of p->proto, or
 * behind the fragment header of a later fragment. */
static __always_inline int skip_extensions(void **at, void *end, struct packet *p)
{
	for (int i = 0; i <= PARSE_IPV6_HEADERS_MAX; i++) {
		struct ipv6_frag *f = *at;
		struct ipv6_ext *e = *at;
		__u32 size;

		switch (p->proto) {
		case IPPROTO_FRAGMENT:
			if ((void *)(f + 1) > end)
				return PARSE_MALFORMED;
			p->later = bpf_ntohs(f->offset) & 0xfff8;
			size = sizeof(*f);
			break;
		case IPPROTO_HOPOPTS:
		case IPPROTO_ROUTING:
		case IPPROTO_DSTOPTS:
			if ((void *)(e + 1) > end)
				return PARSE_MALFORMED;
			size = 8 + e->len * 8;
			break;
		default:
			return PARSE_OK;
		}
		p->proto = e->next;
		p->l4_off += size;
		*at += size;
		if (p->later)
			return PARSE_OK;
	}
	return PARSE_MALFORMED; /* what hides behind so many headers cannot be judged */
}

static __always_inline int parse_ipv6(void *l3, void *end, struct packet *p)
{
	struct ipv6hdr *ip = l3;
	const __u32 start = sizeof(struct ethhdr) + sizeof(*ip);
	void *at = ip + 1;
	__u32 payload;
	int r;

	if (at > end || ip->version != 6 || is_mapped(&ip->saddr) || is_mapped(&ip->daddr))
		return PARSE_MALFORMED;
	payload = bpf_ntohs(ip->payload_len); /* 0: a GSO packet over 64 KiB */
	p->v4 = false;
	__builtin_memcpy(&p->src, &ip->saddr, sizeof(p->src));
	__builtin_memcpy(&p->dst, &ip->daddr, sizeof(p->dst));
	p->proto = ip->nexthdr;
	p->l4_off = start;
	r = skip_extensions(&at, end, p);
	if (r != PARSE_OK || (payload && p->l4_off > start + payload))
		return PARSE_MALFORMED;
	if (p->later || (payload && p->l4_off + l4_size(p->proto) > start + payload))
		return PARSE_OK; /* the rest is padding, not a header */
	parse_l4(at, end, p);
	return PARSE_OK;
}

/* Parses an untagged Ethernet frame. *p is zeroed first. */
static __always_inline int parse_packet(void *data, void *end, struct packet *p)
{
	struct ethhdr *eth = data;

	__builtin_memset(p, 0, sizeof(*p));
	if ((void *)(eth + 1) > end)
		return PARSE_MALFORMED;
	if (eth->h_proto == bpf_htons(ETH_P_IP))
		return parse_ipv4(eth + 1, end, p);
	if (eth->h_proto == bpf_htons(ETH_P_IPV6))
		return parse_ipv6(eth + 1, end, p);
	return PARSE_NOT_IP;
}

#endif
