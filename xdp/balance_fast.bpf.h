/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Flows whose way is known (struct fast): their packets are sent by the filter itself. */
#ifndef AX_BALANCE_FAST_BPF_H
#define AX_BALANCE_FAST_BPF_H

#include "balance_packet.bpf.h"

/* --- flows --- */

static __always_inline __u64 mix(__u64 h, __u64 word)
{
	h = (h ^ word) * 0x9fb21c651e98df25ull;
	return h ^ h >> 32;
}

static __always_inline __u64 mix_addr(__u64 h, const struct ax_addr *a, bool v4)
{
	if (v4)
		return mix(h, bpf_ntohl(a->w[3]));
	h = mix(h, (__u64)bpf_ntohl(a->w[0]) << 32 | bpf_ntohl(a->w[1]));
	return mix(h, (__u64)bpf_ntohl(a->w[2]) << 32 | bpf_ntohl(a->w[3]));
}

/* Whether ports decide about the backend, and the flow table knows it. */
static __always_inline bool is_tracked(const struct packet *flow)
{
	return flow->has_l4 && flow->fragment == AX_FRAGMENT_NONE;
}

struct flow_key {
	union {
		struct ax_flow4 v4;
		struct ax_flow6 v6;
	};
};

static __always_inline void flow_key(const struct packet *p, bool v4, struct flow_key *k)
{
	if (v4)
		k->v4 = (struct ax_flow4){
			.client = p->src.w[3],
			.service = p->dst.w[3],
			.client_port_be = p->sport_be,
			.service_port_be = p->dport_be,
			.proto = p->proto,
			.fragments = p->fragment != AX_FRAGMENT_NONE,
		};
	else
		k->v6 = (struct ax_flow6){
			.client = p->src,
			.service = p->dst,
			.client_port_be = p->sport_be,
			.service_port_be = p->dport_be,
			.proto = p->proto,
			.fragments = p->fragment != AX_FRAGMENT_NONE,
		};
}

static __always_inline void count_real(__u32 number, __u32 len, bool fresh)
{
	struct ax_real_count *c = bpf_map_lookup_elem(&real_counts, &number);

	if (!c)
		return;
	c->packets++;
	c->bytes += len;
	c->flows += fresh;
}

/* --- the table --- */

/* Parts of a second. Well below AX_NAT_CLOSED, after which a flow's port may be another's, and
 * often enough for the flow table to know which flows are in use. */
#define FAST_FRESH 8

/* What begins or ends a connection is to be seen by those who keep its state. */
static __always_inline bool is_event(const struct packet *p)
{
	return p->tcp_flags & (TCP_FLAG_SYN_BIT | TCP_FLAG_FIN_BIT | TCP_FLAG_RST_BIT);
}

static __always_inline bool is_plain(const struct packet *p)
{
	return is_tracked(p) && p->l3_off == sizeof(struct ethhdr) && !is_event(p);
}

static __always_inline struct fast *fast_slot(const struct packet *p, __u32 balancer, bool v4)
{
	__u64 h = mix(balancer, (__u64)p->sport_be << 32 | p->dport_be << 16 | p->proto);
	__u32 index;

	if (v4)
		h = mix(h, (__u64)p->src.w[3] << 32 | p->dst.w[3]);
	else
		h = mix_addr(mix_addr(h, &p->src, false), &p->dst, false);
	index = (__u32)h % FAST_FLOWS;
	return bpf_map_lookup_elem(&fast_flows, &index);
}

static __always_inline bool same_fast(const struct fast *f, const struct packet *p, __u32 balancer,
				      bool v4)
{
	if (f->balancer != balancer || f->v4 != v4)
		return false;
	if (v4)
		return f->flow4.client == p->src.w[3] && f->flow4.service == p->dst.w[3] &&
		       f->flow4.client_port_be == p->sport_be &&
		       f->flow4.service_port_be == p->dport_be && f->flow4.proto == p->proto;
	return same_addr(&f->flow6.client, &p->src) && same_addr(&f->flow6.service, &p->dst) &&
	       f->flow6.client_port_be == p->sport_be && f->flow6.service_port_be == p->dport_be &&
	       f->flow6.proto == p->proto;
}

static __always_inline void fast_keep(const struct handover *h, __u32 real, __u32 mode,
				      const struct ends *to, const struct link *link, bool v4,
				      __u64 now)
{
	struct fast *f;
	struct flow_key key;

	if (h->icmp_error || h->explain || !is_plain(&h->p))
		return;
	f = fast_slot(&h->p, h->balancer, v4);
	if (!f)
		return;
	flow_key(&h->p, v4, &key);
	if (v4)
		f->flow4 = key.v4;
	else
		f->flow6 = key.v6;
	f->expires = now + layout.hz / FAST_FRESH;
	f->to = *to;
	f->link = *link;
	f->balancer = h->balancer;
	f->real = (__u16)real;
	f->v4 = v4;
	f->mode = (__u8)mode;
}

/* --- sending --- */

static __always_inline int fast_send(struct xdp_md *ctx, const struct packet *p, __u32 len,
				     const struct fast *f, bool v4)
{
	struct outer o = {.len = ip_length(p)};
	bool tunnel = f->mode != AX_BALANCE_NAT, done;
	struct bytes b = bytes_of(ctx);

	if (tunnel)
		o.size = outer_size(&f->to, v4);
	/* who cannot be sent is told why elsewhere */
	if (!ttl_left(&b, p, v4) || (f->link.mtu && o.size + o.len > f->link.mtu))
		return -1;
	count_real(f->real, len, false);
	done = tunnel ? !encapsulate(ctx, p, &f->to, &o, v4, false) : translate(ctx, p, &f->to, v4);
	if (done)
		return send(ctx, &f->link);
	count_reason(AX_REASON_REWRITE_FAILED);
	return XDP_DROP;
}

static __always_inline int fast_try(struct xdp_md *ctx, const struct packet *p, __u32 len,
				    __u32 balancer, bool v4)
{
	const struct fast *f = fast_slot(p, balancer, v4);

	if (!f || f->expires <= bpf_jiffies64() || !same_fast(f, p, balancer, v4))
		return -1;
	return fast_send(ctx, p, len, f, v4);
}

/* Balances a packet of a flow that is well known; -1: it is not, and nothing was done. */
static __always_inline int fast_balance(struct xdp_md *ctx, const struct packet *p, __u32 len,
					__u32 balancer)
{
	if (!is_plain(p))
		return -1;
	return p->v4 ? fast_try(ctx, p, len, balancer, true)
		     : fast_try(ctx, p, len, balancer, false);
}

#endif
