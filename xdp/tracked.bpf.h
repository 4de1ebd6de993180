/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flows that ax itself keeps for states (include/flow_state.h): whether a packet is of one, and
 * what begins one.
 *
 * What is of a flow is seen where its state is asked for: once answered it lives on by that,
 * whatever the list then does with the packet. What begins one is noted when the list has let it
 * through.
 */
#ifndef AX_TRACKED_BPF_H
#define AX_TRACKED_BPF_H

#include <stddef.h>

#include "classify.bpf.h"
#include "context.bpf.h"
#include "quote.bpf.h"
#include "tuple.bpf.h"

/* Ns of a tick, without a division where that can be: the verifier knows what hz is. */
static __always_inline __u64 tick_ns(void)
{
	switch (layout.hz) {
	case 100:
		return 10000000;
	case 250:
		return 4000000;
	case 1000:
		return 1000000;
	default:
		return 1000000000 / layout.hz;
	}
}

/* CLOCK_MONOTONIC, as far as ticks tell it: they are read, where a clock has to be called. (They
 * are counted from 5 minutes before an overflow of 32 bits on.) */
static __always_inline __u64 tracked_clock(void)
{
	return (bpf_jiffies64() - ((1ull << 32) - 300 * layout.hz)) * tick_ns();
}

/* --- which flow --- */

struct flow_of {
	struct ax_tracked_key key;
	bool by_high; /* the packet is from `high` */
};

/* Of an ICMP packet: it is an echo request (AX_ECHO_ASKS), or a reply to one; 0: neither. */
#define ECHO_ASKS    1
#define ECHO_ANSWERS 2
static __always_inline __u32 echo_of(const struct packet *p)
{
	__u32 type = p->icmp >> 8;

	if (!p->has_icmp)
		return 0;
	if (type == (p->v4 ? 8 : 128))
		return ECHO_ASKS;
	return type == (p->v4 ? 0 : 129) ? ECHO_ANSWERS : 0;
}

static __always_inline bool has_flow(const struct packet *p)
{
	return p->has_l4 || echo_of(p);
}

/* A packet with has_flow(). */
static __always_inline bool flow_of(packet_ctx *ctx, const struct packet *p, struct flow_of *f)
{
	__be16 sport = p->sport_be, dport = p->dport_be;
	__u64 src_hi = half(&p->src, 0), src_lo = half(&p->src, 1);
	__u64 dst_hi = half(&p->dst, 0), dst_lo = half(&p->dst, 1);

	if (!p->has_l4) {
		if (packet_load(ctx, p->l4_off + 4u, &sport, sizeof(sport)))
			return false;
		dport = sport;
	}
	f->by_high = mask_less128(dst_hi, dst_lo, src_hi, src_lo) ||
		     (src_hi == dst_hi && src_lo == dst_lo && dport < sport);
	f->key.low = f->by_high ? p->dst : p->src;
	f->key.high = f->by_high ? p->src : p->dst;
	f->key.low_port_be = f->by_high ? dport : sport;
	f->key.high_port_be = f->by_high ? sport : dport;
	f->key.proto = p->proto;
	f->key.netns[0] = (__u8)layout.netns_cookie;
	f->key.netns[1] = (__u8)(layout.netns_cookie >> 8);
	f->key.netns[2] = (__u8)(layout.netns_cookie >> 16);
	return true;
}

static __always_inline __u64 mix_flow(__u64 h, __u64 v)
{
	h = (h ^ v) * layout.flows_key[1];
	return h ^ h >> 32;
}

static __always_inline __u64 hash_of(const struct ax_tracked_key *key)
{
	const __u64 *v = (const __u64 *)key;
	__u64 h = layout.flows_key[0];

#pragma unroll
	for (int i = 0; i < (int)sizeof(*key) / 8; i++)
		h = mix_flow(h, v[i]);
	return mix_flow(h, 0);
}

static __always_inline struct ax_begun_set *begun_set(__u64 hash, __u32 proto)
{
	__u32 index = (__u32)(hash & (AX_BEGUN_SETS - 1));

	if (proto != IPPROTO_TCP)
		index += AX_BEGUN_SETS;
	return bpf_map_lookup_elem(&begun, &index);
}

/* Which way a packet came: tags make more of an interface. (Of what leaves it is the interface by
 * which it came in, 0: this host's own.) */
static __always_inline __u64 way_of(packet_ctx *ctx, const struct packet *p)
{
	__u32 way = ctx->ingress_ifindex;

#ifndef AX_ON_TC
	if (p->vlan != AX_VLAN_NONE)
		way += (p->vlan + 1u) * 0x9e37u;
#else
	(void)p;
#endif
	return way & AX_BEGUN_WAY_MASK;
}

/* --- flows that were answered --- */

static __always_inline bool tracked_is_closed(__u32 state)
{
	return state & AX_TRACKED_RSTS || (state & AX_TRACKED_FINS) == AX_TRACKED_FINS;
}

static __always_inline __u32 tracked_life(__u32 state)
{
	if (state & AX_TRACKED_RSTS)
		return AX_TRACKED_LIFE_RESET;
	return tracked_is_closed(state) ? AX_TRACKED_LIFE_CLOSED : AX_TRACKED_LIFE_OPEN;
}

/*
 * Who goes on sending has not taken the other end's reset, and who sends data has not ended: then
 * it was somebody else who pretended that. (An end that is gone answers with another reset.)
 */
static __always_inline __u32 next_tracked(__u32 state, const struct packet *p, bool by_high)
{
	if (p->tcp_flags & TCP_FLAG_RST_BIT)
		return state | (AX_TRACKED_RST << by_high);
	state &= ~(AX_TRACKED_RST << !by_high);
	if (p->tcp_flags & TCP_FLAG_FIN_BIT)
		return state | (AX_TRACKED_FIN << by_high);
	if (p->l4_off + p->l4_len > p->payload_off)
		state &= ~(AX_TRACKED_FIN << by_high);
	return state;
}

static __always_inline void tracked_seen(const struct flow_of *f, struct ax_tracked *t,
					 const struct packet *p, __u32 now)
{
	struct ax_tracked next = {now, 0};

	if (p->proto == IPPROTO_TCP)
		next.state = next_tracked(t->state, p, f->by_high);
	/* not for each packet: other CPUs read it. What has changed is not written where it is: it
	 * may be another flow's place by now. */
	if (next.state != t->state)
		bpf_map_update_elem(&tracked_tcp, &f->key, &next, BPF_ANY);
	else if (t->seen != now && !tracked_is_closed(next.state))
		t->seen = now;
}

static __always_inline __u32 other_life(__u32 proto)
{
	return proto == IPPROTO_UDP ? AX_TRACKED_LIFE_OTHER : AX_TRACKED_LIFE_ECHO;
}

/* --- flows that have begun --- */

static __always_inline bool is_begun(const struct ax_begun *b, __u64 hash, __u64 clock)
{
	__u64 rest = b->rest;

	return (b->tag ^ rest) == hash && rest & AX_BEGUN_USED &&
	       ((clock >> 32) - (rest >> AX_BEGUN_SEEN_SHIFT) & AX_BEGUN_SEEN_MASK) <=
		       AX_BEGUN_LIFE;
}

static __always_inline void put_begun(struct ax_begun *b, __u64 hash, __u64 rest)
{
	b->tag = hash ^ rest;
	b->rest = rest;
}

static __always_inline struct ax_begun *find_begun(struct ax_begun_set *set, __u64 hash,
						   __u64 clock)
{
#pragma unroll
	for (int i = 0; i < AX_BEGUN_WAYS; i++)
		if (is_begun(&set->way[i], hash, clock))
			return &set->way[i];
	return NULL;
}

/* A number of TCP's header in host byte order; false: it is not there. */
static __always_inline bool tcp_number_at(packet_ctx *ctx, const struct packet *p, __u32 off,
					  __u32 *ret)
{
	__be32 n;

	if (packet_load(ctx, p->l4_off + off, &n, sizeof(n)))
		return false;
	*ret = bpf_ntohl(n);
	return true;
}

/* What the one who has begun a connection sends next: the number that it was asked for makes it
 * one. */
static __always_inline bool opens(packet_ctx *ctx, const struct packet *p, const struct flow_of *f,
				  __u64 rest, __u64 clock, bool keep)
{
	struct ax_tracked open = {(__u32)(clock >> 30), 0};
	__u32 ack;

	if (p->tcp_flags & TCP_FLAG_RST_BIT)
		return true;
	if (!(rest & AX_BEGUN_ANSWERED) || !(p->tcp_flags & TCP_FLAG_ACK_BIT) ||
	    !tcp_number_at(ctx, p, offsetof(struct tcphdr, ack_seq), &ack) || ack != (__u32)rest)
		return false;
	open.state = next_tracked(0, p, f->by_high);
	if (!keep)
		bpf_map_update_elem(&tracked_tcp, &f->key, &open, BPF_ANY);
	return true;
}

/* An answer to what has begun, which came by another way. */
static __always_inline void answered(packet_ctx *ctx, const struct packet *p,
				     const struct flow_of *f, struct ax_begun *b, __u64 hash,
				     __u64 clock)
{
	struct ax_tracked open = {(__u32)(clock >> 30), 0};
	__u64 rest = b->rest;
	__u32 seq;

	if (p->proto != IPPROTO_TCP) {
		bpf_map_update_elem(&tracked_other, &f->key, &open, BPF_ANY);
		return;
	}
	if (!(p->tcp_flags & TCP_FLAG_SYN_BIT) ||
	    !tcp_number_at(ctx, p, offsetof(struct tcphdr, seq), &seq))
		return;
	rest = (rest & ~0xffffffffull) | (__u32)(seq + 1) | AX_BEGUN_ANSWERED;
	put_begun(b, hash, rest);
}

static __always_inline bool of_begun(packet_ctx *ctx, const struct packet *p,
				     const struct flow_of *f, __u64 clock, bool keep)
{
	__u64 hash = hash_of(&f->key);
	struct ax_begun_set *set = begun_set(hash, p->proto);
	struct ax_begun *b = set ? find_begun(set, hash, clock) : NULL;

	if (!b)
		return false;
	if (!(b->rest & AX_BEGUN_BY_HIGH) == !f->by_high)
		return p->proto == IPPROTO_TCP && opens(ctx, p, f, b->rest, clock, keep);
	if ((b->rest >> AX_BEGUN_WAY_SHIFT & AX_BEGUN_WAY_MASK) == way_of(ctx, p))
		return false;
	if (!keep)
		answered(ctx, p, f, b, hash, clock);
	return true;
}

/* --- packets --- */

/* (Two look-ups, which the compiler is not to make one of: with a map that is not known before,
 * the kernel calls what it else writes into the program.) */
static __always_inline struct ax_tracked *tracked_of(const struct packet *p,
						     const struct flow_of *f)
{
	struct ax_tracked *t;

	if (p->proto != IPPROTO_TCP)
		return bpf_map_lookup_elem(&tracked_other, &f->key);
	t = bpf_map_lookup_elem(&tracked_tcp, &f->key);
	opaque(t);
	return t;
}

static __always_inline __u32 life_of(const struct packet *p, const struct ax_tracked *t)
{
	return p->proto == IPPROTO_TCP ? tracked_life(t->state) : other_life(p->proto);
}

/* Whether a packet is of a flow that was answered, or is an answer. With `keep` no trace of it is
 * left. (Global functions: the verifier looks at them once.) */
__weak __noinline int of_flow(packet_ctx *ctx, const struct packet *p, __u32 keep)
{
	struct ax_tracked *t;
	struct flow_of f;
	__u64 clock;
	bool there;

	if (!layout.flows || !p || !has_flow(p) || !flow_of(ctx, p, &f))
		return 0;
#ifdef AX_ON_TC
	/* connections of this host's own have a socket */
	if (!keep && p->proto == IPPROTO_TCP && !ctx->ingress_ifindex)
		return 0;
#endif
	if (layout.flows == AX_FLOWS_LOOK)
		keep = 1;
	clock = tracked_clock();
	t = tracked_of(p, &f);
	there = t && (__u32)(clock >> 30) - t->seen <= life_of(p, t);
	/* after one that is closed another one may begin between the same ends */
	if ((!there || tracked_is_closed(t->state)) && of_begun(ctx, p, &f, clock, keep))
		return 1;
	if (there && !keep)
		tracked_seen(&f, t, p, (__u32)(clock >> 30));
	return there;
}

/* The place for a flow that begins: its own, one that is free, or that of the one that has been
 * there for the longest time, by chance among several. */
static __always_inline struct ax_begun *place_for(struct ax_begun_set *set, __u64 hash, __u64 clock)
{
	__u32 any = bpf_get_prandom_u32(), oldest = 0, victim = 0;

#pragma unroll
	for (int i = 0; i < AX_BEGUN_WAYS; i++) {
		__u64 rest = set->way[i].rest;
		__u32 age = (clock >> 32) - (rest >> AX_BEGUN_SEEN_SHIFT) & AX_BEGUN_SEEN_MASK;

		if ((set->way[i].tag ^ rest) == hash)
			return &set->way[i];
		if (!(rest & AX_BEGUN_USED))
			age = AX_BEGUN_SEEN_MASK;
		/* so that of some that are as old one is chosen by chance */
		age = age << 8 | (any >> (8 * i) & 0xff);
		if (age >= oldest) {
			oldest = age;
			victim = i;
		}
	}
	opaque(victim);
	return &set->way[victim & (AX_BEGUN_WAYS - 1)];
}

/* A packet that begins a flow, unless the other end has begun one. */
__weak __noinline int begin_flow(packet_ctx *ctx, const struct packet *p)
{
	__u64 clock = tracked_clock(), hash, rest;
	struct ax_begun_set *set;
	struct ax_begun *b;
	struct flow_of f;

	if (!p || !flow_of(ctx, p, &f))
		return 0;
	hash = hash_of(&f.key);
	set = begun_set(hash, p->proto);
	if (!set)
		return 0;
	b = place_for(set, hash, clock);
	rest = AX_BEGUN_USED | (f.by_high ? AX_BEGUN_BY_HIGH : 0) |
	       way_of(ctx, p) << AX_BEGUN_WAY_SHIFT |
	       (clock >> 32 & AX_BEGUN_SEEN_MASK) << AX_BEGUN_SEEN_SHIFT;
	if (is_begun(b, hash, clock)) {
		if ((b->rest ^ rest) & AX_BEGUN_BY_HIGH)
			return 0;
		rest |= b->rest &
			(AX_BEGUN_ANSWERED | 0xffffffffull); /* a SYN that is sent again */
	}
	if (b->rest != rest)
		put_begun(b, hash, rest);
	return 0;
}

/* The list has let the packet through. */
__weak __noinline int let_go(packet_ctx *ctx, const struct packet *p)
{
	if (!p || !has_flow(p))
		return 0;
#ifdef AX_ON_TC
	if (p->proto == IPPROTO_TCP && !ctx->ingress_ifindex)
		return 0;
#endif
	if (p->proto == IPPROTO_TCP && is_syn(p))
		return begin_flow(ctx, p);
	/* an earlier rule has let it through: it is of its flow all the same */
	if (p->state == AX_STATE_UNASKED && of_flow(ctx, p, 0))
		return 0;
	if (p->proto == IPPROTO_TCP || p->state == AX_STATE_ESTABLISHED ||
	    echo_of(p) == ECHO_ANSWERS)
		return 0;
	return begin_flow(ctx, p);
}

#endif
