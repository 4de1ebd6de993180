/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections between private apps and other nodes (struct ax_across_flow), for programs on tc:
 * what is known of them, and the translation of their packets in both directions. BPF only.
 */
#ifndef AX_ACROSS_FLOW_BPF_H
#define AX_ACROSS_FLOW_BPF_H

#include <linux/pkt_cls.h>

#include "count.bpf.h"
#include "endpoint.bpf.h"
#include "flows.bpf.h"
#include "maps.bpf.h"
#include "parse.bpf.h"
#include "rewrite.bpf.h"
#include "to_device.bpf.h"
#include "verdict.bpf.h"

extern bool across_any; /* map `across_flows` has entries */

/* A segment that asks for a connection: for whoever receives it, too (across.bpf.c). */
static __always_inline bool begins(const struct packet *p)
{
	return (p->tcp_flags & (TCP_FLAG_SYN_BIT | TCP_FLAG_ACK_BIT)) == TCP_FLAG_SYN_BIT;
}

/* An IP header without options or extensions. */
static __always_inline __u32 ip_size(const struct packet *p)
{
	return p->v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
}

/* What can be translated: nothing behind the IP header but TCP's, all of it. */
static __always_inline bool may_cross(const struct packet *p)
{
	return p->proto == IPPROTO_TCP && p->has_l4 && !p->fragment &&
	       p->l3_off == sizeof(struct ethhdr) &&
	       p->l4_off == sizeof(struct ethhdr) + ip_size(p);
}

/* How the side has both ends from which it comes: the app's, or the nodes'. */
static __always_inline void ends_of(const struct packet *p, bool from_app,
				    struct ax_across_ends *ret)
{
	struct ax_endpoint *src = from_app ? &ret->own : &ret->other;
	struct ax_endpoint *dst = from_app ? &ret->other : &ret->own;

	__builtin_memset(ret, 0, sizeof(*ret));
	src->addr = p->src;
	src->port_be = p->sport_be;
	src->proto = IPPROTO_TCP;
	dst->addr = p->dst;
	dst->port_be = p->dport_be;
	dst->proto = IPPROTO_TCP;
}

static __always_inline bool ends_eq(const struct ax_across_ends *a, const struct ax_across_ends *b)
{
	return endpoint_eq(&a->own, &b->own) && endpoint_eq(&a->other, &b->other);
}

/* --- what is known of a connection: `f` is the entry of the nodes' side --- */

/* One that was reset stays for a while: whoever forges that ends nothing by it. */
static __always_inline bool across_is_over(const struct ax_across_flow *f, __u32 now)
{
	return now - f->seen > (flow_is_open(f->state) ? AX_FLOW_LIFE_OPEN : AX_FLOW_LIFE_NEW);
}

/* A SYN does not begin it anew. */
static __always_inline bool goes_on(const struct ax_across_flow *f)
{
	return !flow_is_closed(f->state) && !across_is_over(f, flow_now());
}

static __always_inline void across_seen(struct ax_across_flow *f, __u8 flags, bool from_server)
{
	__u8 was = flags & FLOW_RST ? f->state : f->state & ~AX_FLOW_RESET;
	__u8 state = flow_next_state(was, flags, from_server);
	__u32 now = flow_now();

	if (f->state != state)
		f->state = state;
	if (f->seen != now)
		f->seen = now;
}

/* By its ends on either side. (Global functions, this and those below: the verifier looks at each
 * once. Keys are on the stack to Linux 6.1, or in a map.) */
__weak __noinline int across_forget(const struct ax_across_ends *ends)
{
	struct ax_across_ends key;
	struct ax_across_slot slot;
	struct ax_across_flow *f;

	if (!ends)
		return 0;
	key = *ends;
	f = bpf_map_lookup_elem(&across_flows, &key);
	if (!f)
		return 0;
	slot.app = f->app;
	slot.slot = f->slot;
	bpf_map_delete_elem(&across_slots, &slot);
	bpf_map_delete_elem(&across_flows, &f->as);
	bpf_map_delete_elem(&across_flows, &key);
	return 0;
}

/* --- places --- */

#define SLOT_TRIES	8
#define SLOT_IDLE	300 /* seconds: an open one that is idle for longer makes room */
#define SLOT_AGE_OPEN	0x40000000
#define SLOT_AGE_IN_USE 0xffffffff

/* Some of the app's places: one that is free, or whose connection is worth least. */
struct slot_search {
	__u32 app;
	__u32 slot; /* the best one so far */
	__u32 cost; /* of taking it; 0: none */
	__u32 now;
};

static __always_inline __u32 slot_cost(const struct ax_across_flow *f, __u32 now)
{
	__u32 idle = now - f->seen;

	if (across_is_over(f, now))
		return 0;
	if (!flow_is_open(f->state))
		return SLOT_AGE_OPEN - idle;
	return idle > SLOT_IDLE ? 2 * SLOT_AGE_OPEN - idle : SLOT_AGE_IN_USE;
}

static long try_slot(__u32 i, struct slot_search *s)
{
	struct ax_across_slot key = {.app = s->app,
				     .slot = bpf_get_prandom_u32() % AX_ACROSS_SLOTS};
	struct ax_across_ends *has = bpf_map_lookup_elem(&across_slots, &key);
	struct ax_across_flow *f = has ? bpf_map_lookup_elem(&across_flows, has) : NULL;
	__u32 cost = f ? slot_cost(f, s->now) : 0;

	(void)i;
	if (cost < s->cost) {
		s->cost = cost;
		s->slot = key.slot;
	}
	return !cost;
}

/* A place of the app's, which is empty then; -1: connections that are in use have all. */
__weak __noinline int across_slot(__u32 app)
{
	struct slot_search s = {.app = app, .cost = SLOT_AGE_IN_USE, .now = flow_now()};
	struct ax_across_slot key = {.app = app};
	struct ax_across_ends *has;

	bpf_loop(SLOT_TRIES, try_slot, &s, 0);
	if (s.cost == SLOT_AGE_IN_USE)
		return -1;
	key.slot = s.slot;
	has = bpf_map_lookup_elem(&across_slots, &key);
	if (has) {
		across_forget(has);
		bpf_map_delete_elem(&across_slots, &key);
	}
	return (int)s.slot;
}

/* --- a new one --- */

struct across_new {
	struct ax_across_ends app, nodes; /* how either side has both ends */
	__u32 id;			  /* the app's */
	__u32 ifindex;			  /* by which the other node is reached */
	__u32 serves;
};

static __noinline __attribute__((unused)) int across_write(const struct across_new *n, __u32 slot)
{
	struct ax_across_flow f = {.as = n->app,
				   .app = n->id,
				   .slot = slot,
				   .seen = flow_now(),
				   .ifindex = n->ifindex,
				   .serves = (__u8)n->serves};
	struct ax_across_slot at = {.app = n->id, .slot = slot};
	struct ax_across_ends key = n->nodes;

	if (bpf_map_update_elem(&across_slots, &at, &key, BPF_ANY))
		return -1;
	if (bpf_map_update_elem(&across_flows, &key, &f, BPF_NOEXIST))
		goto failed;
	f.as = key;
	key = n->app;
	if (!bpf_map_update_elem(&across_flows, &key, &f, BPF_ANY))
		return 0;
	key = n->nodes;
	bpf_map_delete_elem(&across_flows, &key);
failed:
	bpf_map_delete_elem(&across_slots, &at);
	return -1;
}

/* Whether it is known with these ends on both sides, and not to be begun anew. */
__weak __noinline int across_stands(const struct ax_across_ends *app,
				    const struct ax_across_ends *nodes)
{
	struct ax_across_ends key;
	struct ax_across_flow *f;

	if (!app || !nodes)
		return false;
	key = *nodes;
	f = bpf_map_lookup_elem(&across_flows, &key);
	return f && ends_eq(&f->as, app) && goes_on(f);
}

/* 0, or -1: the app has too many. What either side knew of these ends is over. */
__weak __noinline int across_enter(const struct across_new *n)
{
	int slot;

	if (!n)
		return -1;
	if (across_stands(&n->app, &n->nodes))
		return 0;
	across_forget(&n->app);
	across_forget(&n->nodes);
	slot = across_slot(n->id);
	if (slot < 0 || across_write(n, (__u32)slot)) {
		count(AX_COUNT_ACROSS_FULL);
		return -1;
	}
	across_any = true;
	return 0;
}

/* --- packets --- */

/* As the other side has them: what comes from there is to be so. 0 or -1. */
__weak __noinline int across_rewrite(struct __sk_buff *skb, const struct packet *p,
				     const struct ax_across_ends *to, bool from_app)
{
	if (!p || !to)
		return -1;
	if (from_app)
		return rewrite_endpoint(skb, p, true, &to->own) ||
				       rewrite_endpoint(skb, p, false, &to->other)
			       ? -1
			       : 0;
	return rewrite_endpoint(skb, p, true, &to->other) ||
			       rewrite_endpoint(skb, p, false, &to->own)
		       ? -1
		       : 0;
}

#define TCP_OPTIONS_OFF sizeof(struct tcphdr)
#define TCP_MSS_KIND	2

/* What the app's device may carry the way to the node may not: its kernel says in its SYN, as the
 * first option, how much it takes at once. 0 or -1. */
__weak __noinline int across_clamp(struct __sk_buff *skb, const struct packet *p, __u32 ifindex)
{
	__be16 was, now;
	__u8 opt[4];
	__u32 mtu = 0, headers;

	if (!p)
		return 0;
	headers = ip_size(p) + sizeof(struct tcphdr);
	if (bpf_check_mtu(skb, ifindex, &mtu, 0, 0) < 0 || mtu <= headers ||
	    p->payload_off < p->l4_off + TCP_OPTIONS_OFF + sizeof(opt) ||
	    bpf_skb_load_bytes(skb, p->l4_off + TCP_OPTIONS_OFF, opt, sizeof(opt)) ||
	    opt[0] != TCP_MSS_KIND || opt[1] != sizeof(opt))
		return 0;
	__builtin_memcpy(&was, opt + 2, sizeof(was));
	if (bpf_ntohs(was) <= mtu - headers)
		return 0;
	now = bpf_htons((__u16)(mtu - headers));
	return bpf_l4_csum_replace(skb, p->l4_off + offsetof(struct tcphdr, check), was, now, 2) ||
			       bpf_skb_store_bytes(skb, p->l4_off + TCP_OPTIONS_OFF + 2, &now,
						   sizeof(now), 0)
		       ? -1
		       : 0;
}

/* A segment of the app `id`, to the node that it leads to; by that interface, 0: by which the
 * connection has begun. Returns a verdict, or -1: it is of no connection. */
__weak __noinline int across_out(struct __sk_buff *skb, const struct packet *p, __u32 id,
				 __u32 ifindex)
{
	struct ax_across_ends ends;
	struct ax_across_flow *f;

	if (!p || !may_cross(p))
		return -1;
	ends_of(p, true, &ends);
	f = bpf_map_lookup_elem(&across_flows, &ends);
	if (!f || f->app != id)
		return -1;
	ends = f->as;
	f = bpf_map_lookup_elem(&across_flows, &ends);
	if (!f || f->app != id || across_is_over(f, flow_now()))
		return -1;
	across_seen(f, p->tcp_flags, f->serves);
	ifindex = ifindex ? ifindex : f->ifindex;
	if ((p->tcp_flags & TCP_FLAG_SYN_BIT && across_clamp(skb, p, ifindex)) ||
	    across_rewrite(skb, p, &ends, true)) {
		count(AX_COUNT_ERROR);
		return TC_ACT_SHOT;
	}
	return (int)bpf_redirect_neigh((int)ifindex, NULL, 0, 0);
}

/* Whether the rules still let it be, of whoever has begun it: both are apps. */
static __always_inline bool across_may(const struct ax_across_flow *f, const struct ax_vip *own,
				       const struct ax_vip *other)
{
	const struct ax_endpoint *client = f->serves ? &f->as.other : &f->as.own;
	const struct ax_endpoint *server = f->serves ? &f->as.own : &f->as.other;
	struct ax_addr addr = client->addr;
	__u64 parties = f->serves ? question_parties(other->party, own->party)
				  : question_parties(own->party, other->party);

	return own->party && other->party &&
	       !(party_verdict(parties,
			       question_ports(IPPROTO_TCP, server->port_be, client->port_be),
			       &addr) &
		 VERDICT_REFUSED);
}

/* A segment from another node, to the app that it is for. As across_out(). */
__weak __noinline int across_in(struct __sk_buff *skb, const struct packet *p)
{
	struct ax_across_ends ends;
	const struct ax_vip *own, *other;
	struct ax_across_flow *f;
	__u32 ifindex;

	if (!p || !may_cross(p))
		return -1;
	ends_of(p, false, &ends);
	f = bpf_map_lookup_elem(&across_flows, &ends);
	if (!f || across_is_over(f, flow_now()))
		return -1;
	own = bpf_map_lookup_elem(&vips, &f->as.own.addr);
	if (!own || own->kind != AX_VIP_APP || own->id != f->app || !own->ifindex)
		return -1; /* it has ended */
	other = bpf_map_lookup_elem(&vips, &f->as.other.addr);
	/* (one that is not known any more was let in before) */
	if (other && other->kind == AX_VIP_ACROSS && !across_may(f, own, other)) {
		count(AX_COUNT_FABRIC_DENIED);
		return TC_ACT_SHOT;
	}
	across_seen(f, p->tcp_flags, !f->serves);
	ifindex = own->ifindex;
	ends = f->as;
	if (across_rewrite(skb, p, &ends, false)) {
		count(AX_COUNT_ERROR);
		return TC_ACT_SHOT;
	}
	return to_device(skb, ifindex);
}

#endif
