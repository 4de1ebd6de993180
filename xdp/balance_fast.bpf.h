/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Flows whose way is known (struct fast): their packets are sent by the filter itself. */
#ifndef AX_BALANCE_FAST_BPF_H
#define AX_BALANCE_FAST_BPF_H

#include "balance_arena.bpf.h"
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
			.kind = p->fragment == AX_FRAGMENT_NONE ? AX_ENTRY_WHOLE
								: AX_ENTRY_FRAGMENTS,
		};
	else
		k->v6 = (struct ax_flow6){
			.client = p->src,
			.service = p->dst,
			.client_port_be = p->sport_be,
			.service_port_be = p->dport_be,
			.proto = p->proto,
			.kind = p->fragment == AX_FRAGMENT_NONE ? AX_ENTRY_WHOLE
								: AX_ENTRY_FRAGMENTS,
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

/* What quic_real() says instead of a backend's number. */
#define QUIC_NOTHING (-1) /* there is no connection id that a server has made */
#define QUIC_UNKNOWN (-2) /* it is of none of the balancer's backends, or of one that is down */

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

/* The flow's set, and in its upper bits which place it takes from another one. */
static __always_inline __u32 fast_hash(const struct packet *p, __u32 balancer, bool v4)
{
	__u64 h = mix(balancer, (__u64)p->sport_be << 32 | (__u32)p->dport_be << 16 | p->proto);

	if (v4)
		return (__u32)mix(h, (__u64)p->src.w[3] << 32 | p->dst.w[3]);
	return (__u32)mix_addr(mix_addr(h, &p->src, false), &p->dst, false);
}

static __always_inline __u32 fast_index(__u32 hash)
{
	return bpf_get_smp_processor_id() * fast_sets + (hash & (fast_sets - 1));
}

static __always_inline __u32 fast_victim(__u32 hash)
{
	return hash >> 30;
}
_Static_assert(FAST_WAYS == 4, "fast_victim() is one of them");

static __always_inline bool same_fast4(const struct fast4 *f, const struct packet *p,
				       __u32 balancer)
{
	return f->flow.client == p->src.w[3] && f->flow.client_port_be == p->sport_be &&
	       f->flow.service == p->dst.w[3] && f->flow.service_port_be == p->dport_be &&
	       f->flow.proto == p->proto && f->f.balancer == balancer;
}

static __always_inline bool same_fast6(const struct fast6 *f, const struct packet *p,
				       __u32 balancer)
{
	return same_addr(&f->flow.client, &p->src) && same_addr(&f->flow.service, &p->dst) &&
	       f->flow.client_port_be == p->sport_be && f->flow.service_port_be == p->dport_be &&
	       f->flow.proto == p->proto && f->f.balancer == balancer;
}

static __always_inline const struct fast4 *fast_find4(const struct packet *p, __u32 balancer)
{
	__u32 index = fast_index(fast_hash(p, balancer, true));
	const struct fast_set4 *s = bpf_map_lookup_elem(&fast_flows4, &index);

	if (!s)
		return NULL;
#pragma unroll
	for (int i = 0; i < FAST_WAYS; i++)
		if (same_fast4(&s->way[i], p, balancer))
			return &s->way[i];
	return NULL;
}

static __always_inline const struct fast6 *fast_find6(const struct packet *p, __u32 balancer)
{
	__u32 index = fast_index(fast_hash(p, balancer, false));
	const struct fast_set6 *s = bpf_map_lookup_elem(&fast_flows6, &index);

	if (!s)
		return NULL;
#pragma unroll
	for (int i = 0; i < FAST_WAYS; i++)
		if (same_fast6(&s->way[i], p, balancer))
			return &s->way[i];
	return NULL;
}

/* Where a flow is to be kept: where it is, or what nobody uses, or in another one's place. */
static __always_inline struct fast4 *fast_place4(const struct packet *p, __u32 balancer, __u64 now)
{
	__u32 hash = fast_hash(p, balancer, true), index = fast_index(hash), to = fast_victim(hash);
	struct fast_set4 *s = bpf_map_lookup_elem(&fast_flows4, &index);

	if (!s)
		return NULL;
#pragma unroll
	for (int i = FAST_WAYS - 1; i >= 0; i--) /* the first is found soonest */
		if (s->way[i].f.expires <= now)
			to = (__u32)i;
#pragma unroll
	for (int i = 0; i < FAST_WAYS; i++)
		if (same_fast4(&s->way[i], p, balancer))
			to = (__u32)i;
	opaque(to);
	return to < FAST_WAYS ? &s->way[to] : NULL;
}

static __always_inline struct fast6 *fast_place6(const struct packet *p, __u32 balancer, __u64 now)
{
	__u32 hash = fast_hash(p, balancer, false), index = fast_index(hash),
	      to = fast_victim(hash);
	struct fast_set6 *s = bpf_map_lookup_elem(&fast_flows6, &index);

	if (!s)
		return NULL;
#pragma unroll
	for (int i = FAST_WAYS - 1; i >= 0; i--) /* the first is found soonest */
		if (s->way[i].f.expires <= now)
			to = (__u32)i;
#pragma unroll
	for (int i = 0; i < FAST_WAYS; i++)
		if (same_fast6(&s->way[i], p, balancer))
			to = (__u32)i;
	opaque(to);
	return to < FAST_WAYS ? &s->way[to] : NULL;
}

static __always_inline void fast_keep4(const struct packet *p, const struct ends *to,
				       const struct fast *with, __u64 now)
{
	struct fast4 *f = fast_place4(p, with->balancer, now);
	struct flow_key key;

	if (!f)
		return;
	flow_key(p, true, &key);
	f->flow = key.v4;
	f->src = to->src.w[3];
	f->dst = to->dst.w[3];
	f->f = *with;
}

static __always_inline void fast_keep6(const struct packet *p, const struct ends *to,
				       const struct fast *with, __u64 now)
{
	struct fast6 *f = fast_place6(p, with->balancer, now);
	struct flow_key key;

	if (!f)
		return;
	flow_key(p, false, &key);
	f->flow = key.v6;
	f->src = to->src;
	f->dst = to->dst;
	f->f = *with;
}

static __always_inline void fast_keep(const struct handover *h, __u32 real, __u32 mode,
				      const struct ends *to, const struct link *link, bool v4,
				      bool by_id, __u64 now)
{
	struct fast with = {
		.expires = now + layout.hz / FAST_FRESH,
		.link = *link,
		.sport_be = to->sport_be,
		.dport_be = to->dport_be,
		.real = (__u16)real,
		.balancer = (__u16)h->balancer,
		.mode = (__u8)mode,
		.by_id = by_id,
	};

	if (h->icmp_error || h->explain || !is_plain(&h->p))
		return;
	if (v4)
		fast_keep4(&h->p, to, &with, now);
	else
		fast_keep6(&h->p, to, &with, now);
}

/* --- sending --- */

static __always_inline int fast_send(struct xdp_md *ctx, const struct packet *p, __u32 len,
				     const struct fast *f, const struct ends *to, bool v4)
{
	struct outer o = {.len = ip_length(p)};
	bool tunnel = f->mode != AX_BALANCE_NAT, done;
	struct bytes b = bytes_of(ctx);

	if (tunnel)
		o.size = outer_size(to, v4);
	/* who cannot be sent is told why elsewhere */
	if (!ttl_left(&b, p, v4) || (f->link.mtu && o.size + o.len > f->link.mtu))
		return -1;
	count_real(f->real, len, false);
	done = tunnel ? !encapsulate(ctx, p, to, &o, v4, false) : translate(ctx, p, to, v4);
	if (done)
		return send(ctx, &f->link);
	count_reason(AX_REASON_REWRITE_FAILED);
	return XDP_DROP;
}

/* A flow may have packets of several connections, and such without any id. */
static __always_inline bool fast_fits(const struct fast *f, int by_id)
{
	if (!layout.quic)
		return true;
	return by_id < 0 ? !f->by_id : f->real == by_id;
}

static __always_inline int fast_try4(struct xdp_md *ctx, const struct packet *p, __u32 len,
				     __u32 balancer, int by_id)
{
	const struct fast4 *f = fast_find4(p, balancer);
	struct ends to;

	if (!f || f->f.expires <= bpf_jiffies64() || !fast_fits(&f->f, by_id))
		return -1;
	to.src.w[3] = f->src;
	to.dst.w[3] = f->dst;
	to.sport_be = f->f.sport_be;
	to.dport_be = f->f.dport_be;
	return fast_send(ctx, p, len, &f->f, &to, true);
}

static __always_inline int fast_try6(struct xdp_md *ctx, const struct packet *p, __u32 len,
				     __u32 balancer, int by_id)
{
	const struct fast6 *f = fast_find6(p, balancer);
	struct ends to;

	if (!f || f->f.expires <= bpf_jiffies64() || !fast_fits(&f->f, by_id))
		return -1;
	to.src = f->src;
	to.dst = f->dst;
	to.sport_be = f->f.sport_be;
	to.dport_be = f->f.dport_be;
	return fast_send(ctx, p, len, &f->f, &to, false);
}

/* Balances a packet of a flow that is well known; -1: it is not, and nothing was done. `by_id`:
 * what quic_real() says. */
static __always_inline int fast_balance(struct xdp_md *ctx, const struct packet *p, __u32 len,
					__u32 balancer, int by_id)
{
	if (!is_plain(p))
		return -1;
	return p->v4 ? fast_try4(ctx, p, len, balancer, by_id)
		     : fast_try6(ctx, p, len, balancer, by_id);
}

#endif
