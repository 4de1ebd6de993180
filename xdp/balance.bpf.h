/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the balancer's programs share: which backend, which way there, and sending.
 *
 * Functions that are given `v4` are given a constant: the two families are two paths through the
 * program, each without a look at the other's fields, and with calls of one map each, which the
 * kernel can then inline.
 */
#ifndef AX_BALANCE_BPF_H
#define AX_BALANCE_BPF_H

#include "rules.bpf.h"

#define L3_OFF_MAX 63	  /* Ethernet header and AX_TAGS_MAX tags need less */
#define L4_OFF_MAX 0x1fff /* more than AX_IPV6_HEADERS_MAX of the longest in any frame */

#define HOP_FRESH_NS 250000000ull /* how long a route is used without asking again */
#define HOP_RETRY_NS 20000000ull  /* the same of one that failed */

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

/* --- what the arena says --- */

static __always_inline const struct ax_balancer *balancer_of(const __u8 *a, __u32 n)
{
	opaque(n);
	if (n >= layout.balancers_n)
		return NULL;
	return (const void *)(a + layout.balancers + n * sizeof(struct ax_balancer));
}

static __always_inline const struct ax_real *real_of(const __u8 *a, __u32 n)
{
	opaque(n);
	if (n >= layout.backends_n)
		return NULL;
	return (const void *)(a + layout.backends + n * sizeof(struct ax_real));
}

#define RING_SIZE (AX_MAGLEV_SLOTS * sizeof(__u16))

/* The number of Maglev's choice, or -1: there are no backends of that family. */
static __always_inline int ring_choice(const __u8 *a, const struct ax_balancer *b, bool v4,
				       __u32 hash)
{
	__u32 size = layout.size, ring = v4 ? b->ring : b->ring6;
	__u32 slot = (__u64)hash * AX_MAGLEV_SLOTS >> 32;

	opaque(slot);
	if (!ring || size < RING_SIZE || ring > size - RING_SIZE || slot >= AX_MAGLEV_SLOTS)
		return -1;
	return *(const __u16 *)(a + ring + slot * sizeof(__u16));
}

/* --- hashes --- */

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

static __always_inline __u32 hash_flow(const struct packet *p, bool v4, bool ports)
{
	__u64 h = mix_addr(mix_addr(p->proto, &p->src, v4), &p->dst, v4);

	if (ports)
		h = mix(h, (__u32)bpf_ntohs(p->sport_be) << 16 | bpf_ntohs(p->dport_be));
	return (__u32)mix(h, 0);
}

/* --- flows --- */

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

static __always_inline struct ax_flow_real *flow_find(const struct flow_key *k, bool v4)
{
	return v4 ? bpf_map_lookup_elem(&flows4, &k->v4) : bpf_map_lookup_elem(&flows6, &k->v6);
}

static __always_inline bool flow_enter(const struct flow_key *k, bool v4,
				       const struct ax_flow_real *f)
{
	return !(v4 ? bpf_map_update_elem(&flows4, &k->v4, f, BPF_ANY)
		    : bpf_map_update_elem(&flows6, &k->v6, f, BPF_ANY));
}

/* The backend of a known flow, if it may go on there. */
static __always_inline const struct ax_real *flow_real(const __u8 *a, const struct ax_flow_real *f,
						       __u32 balancer)
{
	const struct ax_real *r = real_of(a, f->real);

	if (!r || r->balancer != balancer ||
	    (r->flags & (AX_REAL_PRESENT | AX_REAL_DOWN)) != AX_REAL_PRESENT)
		return NULL;
	return r;
}

/* Whether one more new flow may be entered now. */
static __always_inline bool may_enter(__u64 now)
{
	struct flow_window *w = bpf_map_lookup_elem(&flow_windows, &(__u32){0});

	if (!w)
		return false;
	if (w->window != now >> AX_FLOWS_WINDOW_SHIFT) {
		w->window = now >> AX_FLOWS_WINDOW_SHIFT;
		w->n = 0;
	}
	return w->n++ < AX_FLOWS_PER_WINDOW;
}

/* --- counting and explaining --- */

static __always_inline void count_real(__u32 number, __u32 len, bool fresh)
{
	struct ax_real_count *c = bpf_map_lookup_elem(&real_counts, &number);

	if (!c)
		return;
	c->packets++;
	c->bytes += len;
	c->flows += fresh;
}

static __always_inline struct ax_explain *explain_of(struct xdp_md *ctx)
{
	struct ax_explain *x = (void *)(long)ctx->data_meta;

	return (void *)(x + 1) <= (void *)(long)ctx->data ? x : NULL;
}

static __always_inline void explain_backend(struct xdp_md *ctx, __u32 number)
{
	struct ax_explain *x = explain_of(ctx);

	if (x)
		x->backend = (__u16)number;
}

/* The packet did not get through; `action` is what becomes of it. A global function, as are others
 * that are seldom called: the verifier looks at them once. */
__noinline int fail(struct xdp_md *ctx, const struct handover *h, __u32 reason, int action)
{
	struct ax_explain *x;

	if (!h || !h->explain) {
		count_reason(reason);
		return action;
	}
	x = explain_of(ctx);
	if (x) {
		x->reason = (__u8)reason;
		x->decided = AX_DECIDED_BALANCER;
	}
	return action;
}

/* --- the way there --- */

__noinline int hop_ask(struct xdp_md *ctx, struct hop *hop, const struct ax_addr *to,
		       const struct ax_addr *from, __u64 now)
{
	struct bpf_fib_lookup fib = {.ifindex = layout.ifindex};
	bool v4;
	long r;

	if (!hop || !to || !from)
		return -1;
	v4 = !to->w[0] && !to->w[1] && to->w[2] == bpf_htonl(0xffff);
	fib.family = v4 ? 2 /* AF_INET */ : 10 /* AF_INET6 */;
	if (v4) {
		fib.ipv4_src = from->w[3];
		fib.ipv4_dst = to->w[3];
	} else {
		__builtin_memcpy(fib.ipv6_src, from, sizeof(fib.ipv6_src));
		__builtin_memcpy(fib.ipv6_dst, to, sizeof(fib.ipv6_dst));
	}
	r = bpf_fib_lookup(ctx, &fib, sizeof(fib), 0);
	hop->to = *to;
	hop->result = r < 0 ? BPF_FIB_LKUP_RET_UNREACHABLE : (__u8)r;
	hop->expires = now + (r ? HOP_RETRY_NS : HOP_FRESH_NS);
	hop->ifindex = fib.ifindex;
	hop->mtu = r ? 0 : fib.mtu_result; /* there because tot_len was 0 (Linux 5.12) */
	__builtin_memcpy(hop->mac, fib.dmac, ETH_ALEN);
	__builtin_memcpy(hop->mac + ETH_ALEN, fib.smac, ETH_ALEN);
	return 0;
}

static __always_inline struct hop *hop_find(struct xdp_md *ctx, __u32 index,
					    const struct ax_addr *to, const struct ax_addr *from,
					    __u64 now)
{
	struct hop *hop = bpf_map_lookup_elem(&hops, &index);

	if (!hop)
		return NULL;
	if (hop->expires <= now || !same_addr(&hop->to, to))
		hop_ask(ctx, hop, to, from, now);
	return hop;
}

/* Why a way cannot be gone; 0: it can. */
static __always_inline __u32 hop_trouble(const struct hop *hop, const struct packet *p)
{
	if (hop->result == BPF_FIB_LKUP_RET_NO_NEIGH)
		return AX_REASON_NO_NEIGHBOUR;
	if (hop->result != BPF_FIB_LKUP_RET_SUCCESS)
		return AX_REASON_NO_ROUTE;
	/* its tags mean nothing elsewhere */
	if (p->l3_off != sizeof(struct ethhdr) && hop->ifindex != layout.ifindex)
		return AX_REASON_NO_ROUTE;
	return 0;
}

static __always_inline int send(struct xdp_md *ctx, const struct hop *hop)
{
	struct bytes b = bytes_of(ctx);

	if (b.data + sizeof(struct ethhdr) > b.end)
		return XDP_DROP;
	__builtin_memcpy(b.data, hop->mac, sizeof(hop->mac));
	if (hop->ifindex == layout.ifindex)
		return XDP_TX;
	return bpf_redirect(hop->ifindex, 0);
}

/* --- the packet --- */

/* Of the IP packet, without what follows it in the frame. */
static __always_inline __u32 ip_length(const struct packet *p)
{
	return (__u32)(p->l4_off - p->l3_off) + p->l4_len;
}

/* Odd packets that rules let come here although nobody knows where their headers are. */
static __always_inline bool is_readable(const struct packet *p)
{
	return p->l4_off > p->l3_off && p->l4_off <= L4_OFF_MAX && p->l3_off <= L3_OFF_MAX &&
	       (p->has_l4 || p->later || (p->proto != IPPROTO_TCP && p->proto != IPPROTO_UDP));
}

/* Moves the frame's link header, of l3_off bytes, from `by` bytes behind the frame's start to
 * there. 0 or -1. */
__noinline int move_link(struct xdp_md *ctx, __u32 l3_off, __u32 by)
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

#endif
