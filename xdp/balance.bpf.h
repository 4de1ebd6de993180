/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the balancer's programs share: which backend, and which way there. */
#ifndef AX_BALANCE_BPF_H
#define AX_BALANCE_BPF_H

#include "balance_fast.bpf.h"

/* How long a route is used without asking again, and one that failed: parts of a second. */
#define HOP_FRESH 4
#define HOP_RETRY 50

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

static __always_inline __u32 hash_flow(const struct packet *p, bool v4, bool ports)
{
	__u64 h = mix_addr(mix_addr(p->proto, &p->src, v4), &p->dst, v4);

	if (ports)
		h = mix(h, (__u32)bpf_ntohs(p->sport_be) << 16 | bpf_ntohs(p->dport_be));
	return (__u32)mix(h, 0);
}

/* What decides about the backend: the hash of the flow, unless the client's address does so alone.
 */
static __always_inline __u32 hash_place(const struct ax_balancer *b, const struct packet *p,
					bool v4, __u32 flow)
{
	if (b->affinity != AX_BALANCE_BY_SRC)
		return flow;
	return (__u32)mix(mix_addr(0, &p->src, v4), 0);
}

/* --- flows --- */

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
	return real_in_use(a, f->real, balancer);
}

/* Under which key the flow of a packet is. One whose connection id names a backend has an entry
 * beside the flow's own, if that leads elsewhere: so nobody who forges ids and addresses changes
 * where what has no id goes. */
static __always_inline void flow_pick(const struct handover *h, const struct packet *flow, bool v4,
				      struct flow_key *k)
{
	const struct ax_flow_real *own;

	flow_key(flow, v4, k);
	if (!layout.quic || (h->quic < 0 && !h->icmp_error))
		return;
	own = flow_find(k, v4);
	if (own && (h->quic < 0 || own->real == h->quic))
		return;
	if (v4)
		k->v4.kind = AX_ENTRY_BY_ID;
	else
		k->v6.kind = AX_ENTRY_BY_ID;
}

static __always_inline bool is_by_id(const struct flow_key *k, bool v4)
{
	return layout.quic && (v4 ? k->v4.kind : k->v6.kind) == AX_ENTRY_BY_ID;
}

/* Whether one more new flow may be entered now. */
static __always_inline bool may_enter(__u64 now)
{
	struct flow_window *w = bpf_map_lookup_elem(&flow_windows, &(__u32){0});
	__u64 window;

	if (!w)
		return false;
	window = now * AX_FLOWS_WINDOWS / layout.hz;
	if (w->window != window) {
		w->window = window;
		w->n = 0;
	}
	return w->n++ < AX_FLOWS_PER_WINDOW;
}

/* --- counting and explaining --- */

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
	hop->expires = now + layout.hz / (r ? HOP_RETRY : HOP_FRESH);
	hop->link.ifindex = fib.ifindex;
	hop->link.mtu = r ? 0 : fib.mtu_result; /* there because tot_len was 0 (Linux 5.12) */
	__builtin_memcpy(hop->link.mac, fib.dmac, ETH_ALEN);
	__builtin_memcpy(hop->link.mac + ETH_ALEN, fib.smac, ETH_ALEN);
	return 0;
}

static __always_inline bool hop_fresh(const struct hop *hop, const struct ax_addr *to, __u64 now)
{
	return hop->expires > now && same_addr(&hop->to, to);
}

static __always_inline struct hop *hop_find(struct xdp_md *ctx, __u32 index,
					    const struct ax_addr *to, const struct ax_addr *from,
					    __u64 now)
{
	struct hop *hop = bpf_map_lookup_elem(&hops, &index);

	if (hop && !hop_fresh(hop, to, now))
		hop_ask(ctx, hop, to, from, now);
	return hop;
}

/* To an app of this machine, which is known without asking. */
static __noinline void hop_to_apps(struct hop *hop, const struct ax_addr *to, __u64 now)
{
	hop->to = *to;
	hop->result = layout.apps.ifindex ? BPF_FIB_LKUP_RET_SUCCESS : BPF_FIB_LKUP_RET_UNREACHABLE;
	hop->expires = now + layout.hz;
	hop->link.ifindex = layout.apps.ifindex;
	hop->link.mtu = layout.apps.mtu;
	for (int i = 0; i < ETH_ALEN; i++)
		hop->link.mac[i] = hop->link.mac[ETH_ALEN + i] = layout.apps.mac[i];
}

/* To a backend. */
static __always_inline struct hop *hop_to(struct xdp_md *ctx, __u32 number,
					  const struct ax_real *real, __u64 now)
{
	struct hop *hop;

	if (!(real->flags & AX_REAL_APP))
		return hop_find(ctx, number, &real->addr, &real->source, now);
	hop = bpf_map_lookup_elem(&hops, &number);
	if (hop && !hop_fresh(hop, &real->addr, now))
		hop_to_apps(hop, &real->addr, now);
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
	if (p->l3_off != sizeof(struct ethhdr) && hop->link.ifindex != layout.ifindex)
		return AX_REASON_NO_ROUTE;
	return 0;
}

/* Odd packets that rules let come here although nobody knows where their headers are. */
static __always_inline bool is_readable(const struct packet *p)
{
	return p->l4_off > p->l3_off && p->l4_off <= L4_OFF_MAX && p->l3_off <= L3_OFF_MAX &&
	       (p->has_l4 || p->later || (p->proto != IPPROTO_TCP && p->proto != IPPROTO_UDP));
}

#endif
