/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Direct server return: the packet goes to its backend as it came, inside another one; the backend
 * has the service's address too, and answers the client itself.
 *
 * IPIP: RFC 2003, RFC 2473. GUE: its variant 1 (draft-ietf-intarea-gue), which is the IP packet
 * right behind the UDP header, and what `ip fou add port 6080 gue` takes apart. Its source port is
 * of the flow, so that networks and network cards spread flows. Its UDP checksum is zero, over IPv6
 * too, as RFC 6935 permits for tunnels.
 */
#ifndef AX_BALANCE_TUNNEL_BPF_H
#define AX_BALANCE_TUNNEL_BPF_H

#include "balance_icmp.bpf.h"

#define TUNNEL_TTL 64
#define GUE_PORT   0xc000 /* the first one; RFC 6335's dynamic ports */
#define GUE_PORTS  0x4000

struct placed {
	const struct ax_real *real;
	__u32 number;
	__be16 port_be; /* GUE's source port */
	bool fresh;
};

static __always_inline __be16 gue_port(__u32 hash)
{
	return bpf_htons((__u16)(GUE_PORT + (hash & (GUE_PORTS - 1))));
}

/* Remembers where a new flow goes, if that may be done. */
static __always_inline void enter(const struct handover *h, const struct flow_key *key,
				  const struct placed *pl, bool v4, __u64 now)
{
	struct ax_flow_real f = {.real = (__u16)pl->number, .port_be = pl->port_be};

	if (h->explain)
		return;
	if (!may_enter(now) || !flow_enter(key, v4, &f))
		count_reason(AX_REASON_FLOWS_FULL);
}

/* Chooses the backend. False: there is none. */
static __always_inline bool place(const struct handover *h, const __u8 *a,
				  const struct ax_balancer *b, bool v4, __u64 now,
				  struct placed *pl)
{
	const struct packet *flow = h->icmp_error ? &h->quoted : &h->p;
	bool tracked = is_tracked(flow);
	struct flow_key key;
	__u32 hash;
	int n;

	if (tracked) {
		const struct ax_flow_real *f;

		flow_key(flow, v4, &key);
		f = flow_find(&key, v4);
		if (f) {
			pl->real = flow_real(a, f, h->balancer);
			pl->number = f->real;
			pl->port_be = f->port_be;
			pl->fresh = false;
			if (pl->real)
				return true;
		}
	}
	hash = hash_flow(flow, v4, tracked);
	n = ring_choice(a, b, v4, hash);
	if (n < 0)
		return false;
	pl->real = real_of(a, n);
	pl->number = n;
	pl->port_be = gue_port(hash);
	pl->fresh = tracked && !h->icmp_error;
	if (pl->real && pl->fresh)
		enter(h, &key, pl, v4, now);
	return pl->real;
}

/* --- headers --- */

struct outer {
	__u32 size; /* of what is put in front */
	__u32 len;  /* of what it is put in front of */
	__u8 tos;
	bool gue;
	__be16 port_be, gue_port_be;
};

static __always_inline void put_ipv4(struct iphdr *ip, const struct outer *o,
				     const struct ax_real *r)
{
	__u64 sum;

	*ip = (struct iphdr){
		.version = 4,
		.ihl = 5,
		.tos = o->tos,
		.tot_len = bpf_htons((__u16)(o->size + o->len)),
		.frag_off = bpf_htons(0x4000),
		.ttl = TUNNEL_TTL,
		.protocol = o->gue ? IPPROTO_UDP : IPPROTO_IPIP,
		.saddr = r->source.w[3],
		.daddr = r->addr.w[3],
	};
	sum = (__u64)((__u32 *)ip)[0] + ((__u32 *)ip)[1] + ((__u32 *)ip)[2] + ip->saddr + ip->daddr;
	ip->check = (__u16)~diff_fold(sum);
}

static __always_inline void put_ipv6(struct ipv6hdr *ip, const struct outer *o,
				     const struct ax_real *r)
{
	/* the source port also as the flow label: routers spread by it what they cannot read */
	*(__be32 *)ip = bpf_htonl(6u << 28 | (__u32)o->tos << 20 | bpf_ntohs(o->port_be));
	ip->payload_len = bpf_htons((__u16)(o->size + o->len - sizeof(*ip)));
	ip->nexthdr = o->gue ? IPPROTO_UDP : IPPROTO_IPV6;
	ip->hop_limit = TUNNEL_TTL;
	__builtin_memcpy(&ip->saddr, &r->source, sizeof(ip->saddr));
	__builtin_memcpy(&ip->daddr, &r->addr, sizeof(ip->daddr));
}

static __always_inline void put_gue(struct udphdr *udp, const struct outer *o, __u32 ip_size)
{
	udp->source = o->port_be;
	udp->dest = o->gue_port_be;
	udp->len = bpf_htons((__u16)(o->size + o->len - ip_size));
	udp->check = 0;
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
				       const struct ax_real *r, struct outer *o, bool v4)
{
	const __u32 ip_size = v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	__u32 l3_off = p->l3_off & L3_OFF_MAX;
	struct bytes b = bytes_of(ctx);
	struct ethhdr *eth;
	void *l3;

	if (!pass_inner(&b, p, v4, o))
		return -1;
	if (bpf_xdp_adjust_head(ctx, -(int)o->size))
		return -1;
	if (l3_off != sizeof(struct ethhdr) && move_link(ctx, l3_off, o->size))
		return -1;
	b = bytes_of(ctx);
	eth = b.data;
	if ((void *)(eth + 1) > b.end)
		return -1;
	/* the addresses are written by send() */
	if (l3_off == sizeof(*eth))
		eth->h_proto = bpf_htons(v4 ? ETH_P_IP : ETH_P_IPV6);
	l3 = b.data + l3_off;
	if (l3 + ip_size + sizeof(struct udphdr) > b.end)
		return -1;
	if (v4)
		put_ipv4(l3, o, r);
	else
		put_ipv6(l3, o, r);
	if (o->gue)
		put_gue(l3 + ip_size, o, ip_size);
	return 0;
}

/* --- all of it --- */

static __always_inline int tunnel(struct xdp_md *ctx, const struct handover *h, const __u8 *a,
				  const struct ax_balancer *balancer, bool v4)
{
	const __u32 ip_size = v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	__u64 now = bpf_ktime_get_coarse_ns();
	struct placed pl = {};
	struct outer o = {.len = ip_length(&h->p)};
	struct bytes b = bytes_of(ctx);
	struct hop *hop;
	__u32 trouble;

	if (!place(h, a, balancer, v4, now, &pl))
		return fail(ctx, h, AX_REASON_NO_BACKEND, XDP_DROP);
	if (h->explain)
		explain_backend(ctx, pl.number);
	hop = hop_find(ctx, pl.number, &pl.real->addr, &pl.real->source, now);
	if (!hop)
		return XDP_ABORTED;
	if (!h->explain)
		count_real(pl.number, h->len, pl.fresh);
	if (hop->result == BPF_FIB_LKUP_RET_NOT_FWDED)
		return XDP_PASS; /* the backend is this machine */
	trouble = hop_trouble(hop, &h->p);
	if (!trouble && no_addr(&pl.real->source))
		trouble = AX_REASON_NO_ROUTE;
	if (!trouble && !ttl_left(&b, &h->p, v4))
		trouble = AX_REASON_TTL;
	if (trouble)
		return fail(ctx, h, trouble, XDP_DROP);
	o.gue = balancer->mode == AX_BALANCE_GUE;
	o.gue_port_be = balancer->gue_port_be;
	o.port_be = pl.port_be;
	o.size = ip_size + (o.gue ? sizeof(struct udphdr) : 0);
	if (hop->mtu && o.size + o.len > hop->mtu)
		return too_big(ctx, h, hop->mtu - o.size, v4);
	if (encapsulate(ctx, &h->p, pl.real, &o, v4) < 0)
		return fail(ctx, h, AX_REASON_REWRITE_FAILED, XDP_DROP);
	return send(ctx, hop);
}

#endif
