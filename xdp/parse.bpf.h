/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The only packet parser. Works on any [data, end) that starts with an Ethernet header, so on XDP
 * and tc alike. Lengths are checked against the packet and against each other: a port is never
 * read from a later fragment, from padding behind the IP length, or from a header that lies.
 *
 * parse_frame() is XDP's: the whole frame, VLAN tags, strict about everything, and it says what is
 * odd about a packet. parse_packet() is tc's, where packets may be larger than their IP header can
 * say (GSO above 64 KiB) and their data may lie elsewhere, so lengths are not held against it.
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
#include "verifier.bpf.h"
#include "xdp.h"

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
	struct ax_addr src; /* all zero: not IP */
	struct ax_addr dst;
	__be16 sport_be; /* valid with has_l4 */
	__be16 dport_be;
	__be16 ethertype_be; /* behind the tags */
	__u16 vlan;	     /* id of the outermost tag, AX_VLAN_NONE: untagged */
	__u8 l3_off;	     /* of the IP header, from the Ethernet header's start */
	__u8 tos;	     /* IPv4's TOS, or IPv6's traffic class; valid with a ttl */
	__u16 l4_off;	     /* of the transport header */
	__u16 l4_len;	     /* of it and its payload, as the IP header says; 0 with BIG TCP */
	union {
		__u16 icmp; /* type << 8 | code, valid with has_icmp */
		__u16 name; /* valid with has_l4, see expect_name() */
	};
	__u8 proto;	/* of the innermost header that was reached */
	__u8 tcp_flags; /* valid with has_l4 and IPPROTO_TCP */
	__u8 fragment;	/* enum ax_fragment */
	__u8 odd;	/* enum ax_reason: the first odd thing about it */
	bool v4;
	bool later;	   /* a fragment behind the first one: it has no L4 header */
	bool has_l4;	   /* TCP or UDP, and its header is in the packet */
	bool has_icmp;	   /* ICMP or ICMPv6, and its header is in the packet */
	__u16 payload_off; /* behind the transport header, if it was understood */
	__u16 ttl;	   /* or hop limit; AX_TTL_NONE: not IP, or only quoted by an ICMP error */
	__u8 state;	   /* enum ax_state: the parser leaves it AX_STATE_UNASKED */
	__u8 sets;	   /* the list's timed sets that its source, or it as a flow, is in (a set
			      has elements of one kind); << 4: that its destination is in */
	__u16 payload;	   /* AX_PAYLOAD_NONE + bits; the parser leaves it AX_PAYLOAD_UNASKED */
#ifdef AX_ON_TC
	__u16 marks; /* bits, see struct ax_mark; the parser leaves it 0 */
#endif
};

#define PACKET_AT_MAX 0x3fff
/* A place in the packet at an offset that the verifier does not know: it follows none beyond 64
 * KiB, so let that be far from it. What lies behind 16 KiB of headers is never found. */
static __always_inline void *packet_at(void *data, __u32 off)
{
	asm volatile("" : "+r"(off)); /* or the compiler drops the check where it knows better */
	return data + (off > PACKET_AT_MAX ? PACKET_AT_MAX : off);
}

/* Reasons are told in the order of the enum: the worst is found first. */
static __always_inline void odd(struct packet *p, __u8 reason)
{
	if (!p->odd)
		p->odd = reason;
}

static __always_inline __u32 l4_size(__u8 proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return sizeof(struct tcphdr);
	case IPPROTO_UDP:
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return 8;
	default:
		return 0;
	}
}

static __always_inline void parse_tcp(struct tcphdr *tcp, struct packet *p)
{
	__u32 header = tcp->doff * 4;

	p->sport_be = tcp->source;
	p->dport_be = tcp->dest;
	p->tcp_flags = ((__u8 *)tcp)[13];
	p->has_l4 = true;
	p->payload_off = (__u16)(p->l4_off + header);
	if (header < sizeof(*tcp) || header > p->l4_len)
		odd(p, p->fragment == AX_FRAGMENT_FIRST ? AX_REASON_SHORT_FRAGMENT
							: AX_REASON_BAD_TCP);
}

static __always_inline void parse_udp(struct udphdr *udp, struct packet *p)
{
	__u32 len = bpf_ntohs(udp->len);

	p->sport_be = udp->source;
	p->dport_be = udp->dest;
	p->has_l4 = true;
	p->payload_off = p->l4_off + sizeof(*udp);
	/* the length is the whole datagram's, of which a first fragment has a part */
	if (len < sizeof(*udp) || (p->fragment == AX_FRAGMENT_NONE && len > p->l4_len))
		odd(p, AX_REASON_BAD_UDP);
}

static __always_inline bool is_icmp(const struct packet *p)
{
	return p->proto == (p->v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
}

/* The transport header, of which the IP header says that p->l4_len bytes are there. */
static __always_inline void parse_l4(void *l4, void *end, struct packet *p)
{
	switch (p->proto) {
	case IPPROTO_TCP:
		if (l4 + sizeof(struct tcphdr) > end)
			return odd(p, AX_REASON_SPLIT);
		return parse_tcp(l4, p);
	case IPPROTO_UDP:
		if (l4 + sizeof(struct udphdr) > end)
			return odd(p, AX_REASON_SPLIT);
		return parse_udp(l4, p);
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		if (!is_icmp(p))
			return;
		if (l4 + 8 > end)
			return odd(p, AX_REASON_SPLIT);
		p->icmp = (__u16)(((__u8 *)l4)[0] << 8 | ((__u8 *)l4)[1]);
		p->has_icmp = true;
		p->payload_off = p->l4_off + 8;
		return;
	case IPPROTO_IPIP:
	case IPPROTO_IPV6:
		return odd(p, AX_REASON_TUNNEL);
	}
}

/* What follows the IP headers, of which `len` bytes are the datagram's. `exact` is false when the
 * header could not say how many there are. */
static __always_inline void parse_rest(void *l4, void *end, __u32 len, bool exact, bool options,
				       struct packet *p)
{
	p->l4_len = (__u16)len;
	p->payload_off = p->l4_off;
	if (p->later) {
		/* RFC 3128: one that begins within the TCP header replaces ports or flags */
		odd(p, AX_REASON_LATER_FRAGMENT);
		return;
	}
	if (exact && len < l4_size(p->proto) && (p->proto != IPPROTO_ICMP || p->v4) &&
	    (p->proto != IPPROTO_ICMPV6 || !p->v4))
		odd(p, p->fragment == AX_FRAGMENT_FIRST ? AX_REASON_SHORT_FRAGMENT
							: AX_REASON_SHORT_L4);
	else
		parse_l4(l4, end, p);
	if (options)
		odd(p, AX_REASON_IP_OPTIONS);
}

/* A fragment at 8 or 16 bytes: RFC 3128 says what it is good for. A first fragment has the whole
 * header, so no honest one begins there. */
static __always_inline bool overwrites_tcp(__u32 offset)
{
	return offset - 1 < 2;
}

/* `frame`: how many bytes there are from l3 on, 0: not to be held against it. */
static __always_inline void parse_ipv4(void *l3, void *end, __u32 frame, struct packet *p)
{
	struct iphdr *ip = l3;
	__u32 header, total, offset;

	if ((void *)(ip + 1) > end)
		return odd(p, AX_REASON_RUNT);
	p->v4 = true;
	p->src = (struct ax_addr){.w = {0, 0, bpf_htonl(0xffff), ip->saddr}};
	p->dst = (struct ax_addr){.w = {0, 0, bpf_htonl(0xffff), ip->daddr}};
	p->proto = ip->protocol;
	p->ttl = ip->ttl;
	p->tos = ip->tos;
	p->fragment = AX_FRAGMENT_NONE;
	if (ip->version != 4)
		return odd(p, AX_REASON_BAD_VERSION);
	header = ip->ihl * 4;
	total = bpf_ntohs(ip->tot_len);
	if (header < sizeof(*ip) || l3 + header > end)
		return odd(p, AX_REASON_BAD_HEADER);
	/* total 0: a GSO packet over 64 KiB (BIG TCP), which only tc gets to see */
	if ((total || frame) && (total < header || (frame && total > frame)))
		return odd(p, AX_REASON_BAD_LENGTH);
	p->l4_off = (__u16)(p->l3_off + header);
	offset = bpf_ntohs(ip->frag_off);
	p->later = offset & 0x1fff;
	if (p->later)
		p->fragment = AX_FRAGMENT_LATER;
	else if (offset & 0x2000)
		p->fragment = AX_FRAGMENT_FIRST;
	if (overwrites_tcp(offset & 0x1fff) && p->proto == IPPROTO_TCP)
		odd(p, AX_REASON_SHORT_FRAGMENT);
	parse_rest(l3 + header, end, total ? total - header : 0, total, header > sizeof(*ip), p);
}

#define IPV6_HEADERS_SIZE_MAX 0x3fff

struct ipv6_frag {
	__u8 next;
	__u8 reserved; /* the others' length beyond 8 bytes, in units of 8 (AH: 4) */
	__be16 offset;
	__be32 id;
};

/* An IPv4 address in an IPv6 header: it would be taken for the owner of the real one. */
static __always_inline bool is_mapped(const struct in6_addr *a)
{
	return !a->s6_addr32[0] && !a->s6_addr32[1] && a->s6_addr32[2] == bpf_htonl(0xffff);
}

/* 1 if a == b, else 0, without a branch. */
static __always_inline __u32 equal(__u32 a, __u32 b)
{
	__u64 differ = a ^ b;

	differ--; /* above 32 bits only if it was 0 */
	opaque(differ);
	differ >>= 63;
	opaque(differ); /* or clang 19 makes branches of the masks that callers make of it */
	return (__u32)differ;
}

/* Whether a header of this protocol is followed by another one (Fragment, AH included). */
static __always_inline bool is_extension(__u32 proto)
{
	const __u64 known = 1ULL << IPPROTO_HOPOPTS | 1ULL << IPPROTO_ROUTING |
			    1ULL << IPPROTO_FRAGMENT | 1ULL << IPPROTO_AH | 1ULL << IPPROTO_DSTOPTS;

	return proto < 64 && known >> proto & 1;
}

/*
 * Follows the extension headers from `at` and returns where the header of p->proto is, or what is
 * behind the fragment header of a later fragment; NULL: they are cut off or too many. *frag gets
 * the fragment header's offset field, 0 without one. What kind of header it is makes no branch:
 * each would double what the verifier has to walk through.
 */
static __always_inline void *skip_extensions(void *at, void *end, struct packet *p, __u32 *frag)
{
	__u32 proto = p->proto;

	for (int i = 0; i <= AX_IPV6_HEADERS_MAX; i++) {
		struct ipv6_frag *h = at; /* all have at least its 8 bytes, and begin like it */
		__u32 is_frag, len;

		if (!is_extension(proto)) {
			p->proto = (__u8)proto;
			return at;
		}
		if ((void *)(h + 1) > end)
			break;
		is_frag = equal(proto, IPPROTO_FRAGMENT);
		len = (h->reserved & (is_frag - 1)) * 4; /* in a fragment header it says nothing */
		len += len & (equal(proto, IPPROTO_AH) - 1);
		*frag |= bpf_ntohs(h->offset) & -is_frag;
		proto = h->next;
		at += 8 + len;
		if (*frag & 0xfff8) {
			p->proto = (__u8)proto;
			return at;
		}
	}
	return NULL; /* what hides behind so many cannot be judged */
}

static __always_inline void note_fragment(__u32 frag, struct packet *p)
{
	p->later = frag & 0xfff8;
	if (p->later)
		p->fragment = AX_FRAGMENT_LATER;
	else if (frag & 1)
		p->fragment = AX_FRAGMENT_FIRST;
	if (overwrites_tcp(frag >> 3) && p->proto == IPPROTO_TCP)
		odd(p, AX_REASON_SHORT_FRAGMENT);
}

static __always_inline void parse_ipv6(void *l3, void *end, __u32 frame, struct packet *p)
{
	struct ipv6hdr *ip = l3;
	__u32 payload, headers, frag = 0;
	void *at = ip + 1;

	if (at > end)
		return odd(p, AX_REASON_RUNT);
	p->v4 = false;
	__builtin_memcpy(&p->src, &ip->saddr, sizeof(p->src));
	__builtin_memcpy(&p->dst, &ip->daddr, sizeof(p->dst));
	p->proto = ip->nexthdr;
	p->ttl = ip->hop_limit;
	p->tos = (__u8)(ip->priority << 4 | ip->flow_lbl[0] >> 4);
	p->fragment = AX_FRAGMENT_NONE;
	if (ip->version != 6)
		return odd(p, AX_REASON_BAD_VERSION);
	payload = bpf_ntohs(ip->payload_len); /* 0: nothing, or a GSO packet over 64 KiB */
	if (frame && sizeof(*ip) + payload > frame)
		return odd(p, AX_REASON_BAD_LENGTH);
	if (is_mapped(&ip->saddr) || is_mapped(&ip->daddr))
		return odd(p, AX_REASON_MAPPED_ADDRESS);
	at = skip_extensions(at, end, p, &frag);
	if (!at)
		return odd(p, AX_REASON_TOO_MANY_HEADERS);
	/* By a number, and not by the pointer of one of the many ways to here: the verifier would
	 * follow what comes now for each. */
	headers = at - (void *)(ip + 1);
	opaque(headers);
	if (headers > IPV6_HEADERS_SIZE_MAX)
		return odd(p, AX_REASON_TOO_MANY_HEADERS);
	at = (void *)(ip + 1) + headers;
	note_fragment(frag, p);
	p->l4_off = (__u16)(p->l3_off + sizeof(*ip) + headers);
	if ((payload || frame) && headers > payload)
		return odd(p, AX_REASON_BAD_LENGTH);
	parse_rest(at, end, payload ? payload - headers : 0, payload || frame, false, p);
}

static __always_inline bool is_tag(__be16 ethertype_be)
{
	return ethertype_be == bpf_htons(ETH_P_8021Q) || ethertype_be == bpf_htons(ETH_P_8021AD) ||
	       ethertype_be == bpf_htons(0x9100); /* QinQ before it was a standard */
}

struct vlan_tag {
	__be16 id_be;
	__be16 ethertype_be;
};

/* Returns the L3 header, or NULL. */
static __always_inline void *skip_tags(void *at, void *end, struct packet *p)
{
	for (int i = 0; i < AX_TAGS_MAX; i++) {
		struct vlan_tag *tag = at;

		if ((void *)(tag + 1) > end) {
			odd(p, AX_REASON_RUNT);
			return NULL;
		}
		if (!i)
			p->vlan = bpf_ntohs(tag->id_be) & 0xfff;
		p->ethertype_be = tag->ethertype_be;
		p->l3_off += sizeof(*tag);
		at = tag + 1;
		if (!is_tag(p->ethertype_be))
			return at;
	}
	odd(p, AX_REASON_TOO_MANY_TAGS);
	return NULL;
}

static __always_inline void packet_init(struct packet *p)
{
	__builtin_memset(p, 0, sizeof(*p));
	p->vlan = AX_VLAN_NONE;
	p->ttl = AX_TTL_NONE;
	p->state = AX_STATE_UNASKED;
	p->fragment = AX_FRAGMENT_NOT_IP;
	p->l3_off = sizeof(struct ethhdr);
}

/* The Ethernet header and tags: where the next one is and what it is. False: odd. */
static __always_inline bool parse_link(void *data, void *end, struct packet *p)
{
	struct ethhdr *eth = data;

	packet_init(p);
	if ((void *)(eth + 1) > end) {
		odd(p, AX_REASON_RUNT);
		return false;
	}
	p->ethertype_be = eth->h_proto;
	return !is_tag(p->ethertype_be) || skip_tags(eth + 1, end, p);
}

/* What is behind them. */
static __always_inline void parse_net(void *data, void *end, __u32 len, struct packet *p)
{
	void *l3 = packet_at(data, p->l3_off);

	if (p->ethertype_be == bpf_htons(ETH_P_IP))
		parse_ipv4(l3, end, len - p->l3_off, p);
	else if (p->ethertype_be == bpf_htons(ETH_P_IPV6))
		parse_ipv6(l3, end, len - p->l3_off, p);
}

/* Parses a frame of `len` bytes, of which [data, end) can be read here. */
static __always_inline void parse_frame(void *data, void *end, __u32 len, struct packet *p)
{
	if (parse_link(data, end, p))
		parse_net(data, end, len, p);
}

/* --- the values of fields, as rules ask about them --- */

static __always_inline __u32 port_value(const struct packet *p, __be16 port_be)
{
	__u64 port = bpf_ntohs(port_be);

	/* Linux 6.1 knows nothing of what a swap of bytes makes, and the compiler too much to leave
	 * the mask there */
	asm volatile("" : "+r"(port));
	return p->has_l4 ? port & 0xffff : AX_PORT_NONE;
}

static __always_inline __u32 icmp_value(const struct packet *p)
{
	__u64 i = p->has_icmp ? (p->v4 ? 0 : 1u << 16) | p->icmp : AX_ICMP_NONE;

	/* Linux 6.1 knows no upper bound of two variables ORed (6.10 does) */
	asm volatile("" : "+r"(i));
	return i > AX_ICMP_NONE ? AX_ICMP_NONE : (__u32)i;
}

static __always_inline __u32 payload_value(const struct packet *p)
{
	__u64 v = p->payload;

	/* or what is compared is a copy of what is used */
	asm volatile("" : "+r"(v));
	return v >= AX_PAYLOAD_VALUES ? AX_PAYLOAD_VALUES - 1 : (__u32)v;
}

/* Read where it is used: kept until then, it would need stack. */
static __always_inline __u32 marks_value(const struct packet *p)
{
#ifdef AX_ON_TC
	return *(const volatile __u16 *)&p->marks & (AX_MARK_VALUES - 1);
#else
	(void)p;
	return 0; /* no list for what comes in asks */
#endif
}

static __always_inline __u32 length_value(__u32 len)
{
	__u64 v = len;

	/* as above: the frame's length stays on the stack, and was read anew behind the check */
	asm volatile("" : "+r"(v));
	return v > 65535 ? 65535 : (__u32)v;
}

/*
 * The value of a field that is a number, within the bounds of its table (enum ax_field says which
 * they are), for a constant `field`. No default: a new field's value has to be found here, unless
 * it is an address. `len`: of the frame.
 */
static __always_inline __u32 packet_value(const struct packet *p, enum ax_field field, __u32 len)
{
	bool ip = p->fragment != AX_FRAGMENT_NOT_IP;

	switch (field) {
	case AX_FIELD_PROTO:
		return ip ? p->proto : AX_PROTO_NONE;
	case AX_FIELD_SPORT:
		return port_value(p, p->sport_be);
	case AX_FIELD_DPORT:
		return port_value(p, p->dport_be);
	case AX_FIELD_TCP_FLAGS:
		return p->has_l4 && p->proto == IPPROTO_TCP ? p->tcp_flags : AX_TCP_FLAGS_NONE;
	case AX_FIELD_ICMP:
		return icmp_value(p);
	case AX_FIELD_VLAN:
		return p->vlan > AX_VLAN_NONE ? AX_VLAN_NONE : p->vlan;
	case AX_FIELD_FRAGMENT:
		return p->fragment & 3;
	case AX_FIELD_LENGTH:
		return length_value(len);
	case AX_FIELD_TTL:
		return p->ttl > AX_TTL_NONE ? AX_TTL_NONE : p->ttl;
	case AX_FIELD_DSCP:
		return p->ttl >= AX_TTL_NONE ? AX_DSCP_NONE : p->tos >> 2;
	case AX_FIELD_ECN:
		return p->ttl >= AX_TTL_NONE ? AX_ECN_NONE : p->tos & 3;
	case AX_FIELD_STATE:
		return p->state > AX_STATE_UNASKED ? AX_STATE_UNASKED : p->state;
	case AX_FIELD_PAYLOAD:
		return payload_value(p);
	case AX_FIELD_FLOW:
		return *(const volatile __u8 *)&p->sets & (AX_FLOW_VALUES - 1);
	case AX_FIELD_MARK:
		return marks_value(p);
	case AX_FIELD_SRC: /* see classify.bpf.h */
	case AX_FIELD_DST:
	case AX_FIELD_MAC:
	case AX_FIELD_TIME:
	case AX_FIELD_NAME:
	case AX_FIELDS:
		break;
	}
	return 0;
}

/* --- what ICMP errors quote --- */

/* An echo's type and code. What answers it has the other type. */
static __always_inline void read_quoted_icmp(const __u8 *icmp, struct packet *q)
{
	__u8 type = icmp[0];

	if (type == (q->v4 ? 8 : 128) || type == (q->v4 ? 0 : 129))
		type ^= q->v4 ? 8 : 1;
	q->icmp = (__u16)(type << 8 | icmp[1]);
	q->has_icmp = true;
}

/* The IP packet that an ICMP error quotes: its addresses and protocol, and its ports where it had
 * any. Lengths are not looked at: a quote is cut off somewhere. TCP's flags are behind what is
 * quoted for certain: they are taken for those of a connection that stands. */
static __always_inline bool read_quoted(void *l3, void *end, bool v4, struct packet *q)
{
	struct iphdr *ip = l3;
	struct ipv6hdr *ip6 = l3;
	__be16 *port;
	void *l4;

	if (v4) {
		if ((void *)(ip + 1) > end || ip->version != 4 || ip->ihl < 5)
			return false;
		q->v4 = true;
		q->src = (struct ax_addr){.w = {0, 0, bpf_htonl(0xffff), ip->saddr}};
		q->dst = (struct ax_addr){.w = {0, 0, bpf_htonl(0xffff), ip->daddr}};
		q->proto = ip->protocol;
		q->later = bpf_ntohs(ip->frag_off) & 0x1fff;
		l4 = l3 + ip->ihl * 4;
		q->l4_off = (__u16)(q->l3_off + ip->ihl * 4);
	} else {
		__u32 frag = 0;

		if ((void *)(ip6 + 1) > end || ip6->version != 6)
			return false;
		__builtin_memcpy(&q->src, &ip6->saddr, sizeof(q->src));
		__builtin_memcpy(&q->dst, &ip6->daddr, sizeof(q->dst));
		q->proto = ip6->nexthdr;
		l4 = skip_extensions(ip6 + 1, end, q, &frag);
		if (!l4)
			return false;
		q->later = frag & 0xfff8;
		q->l4_off = (__u16)(q->l3_off + (l4 - l3));
	}
	q->fragment = q->later ? AX_FRAGMENT_LATER : AX_FRAGMENT_NONE;
	port = l4;
	if (q->later || (void *)(port + 2) > end)
		return true;
	if (is_icmp(q))
		read_quoted_icmp(l4, q);
	if (q->proto != IPPROTO_TCP && q->proto != IPPROTO_UDP)
		return true;
	if (q->proto == IPPROTO_TCP)
		q->tcp_flags = TCP_FLAG_ACK_BIT;
	q->sport_be = port[0];
	q->dport_be = port[1];
	q->has_l4 = true;
	return true;
}

/* Turns a packet into one of the other direction of its flow. */
static __always_inline void swap_packet(struct packet *p)
{
	struct ax_addr src = p->src;
	__be16 sport = p->sport_be;

	p->src = p->dst;
	p->dst = src;
	p->sport_be = p->dport_be;
	p->dport_be = sport;
}

/* Parses an untagged Ethernet frame on tc. */
static __always_inline int parse_packet(void *data, void *end, struct packet *p)
{
	struct ethhdr *eth = data;

	packet_init(p);
	if ((void *)(eth + 1) > end)
		return PARSE_MALFORMED;
	p->ethertype_be = eth->h_proto;
	if (eth->h_proto == bpf_htons(ETH_P_IP))
		parse_ipv4(eth + 1, end, 0, p);
	else if (eth->h_proto == bpf_htons(ETH_P_IPV6))
		parse_ipv6(eth + 1, end, 0, p);
	else
		return PARSE_NOT_IP;
	return p->odd && p->odd <= AX_REASON_TOO_MANY_HEADERS ? PARSE_MALFORMED : PARSE_OK;
}

#endif
