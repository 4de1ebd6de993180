/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Datagrams that answer. Nothing in them tells them from questions, so it is remembered who was
 * asked where a question arrives: by the receiving side, which knows where it is from. Only where
 * rules would refuse the answer if nobody had asked. BPF only.
 */
#ifndef AX_ANSWER_BPF_H
#define AX_ANSWER_BPF_H

#include "endpoint.bpf.h"
#include "flows.bpf.h"
#include "maps.bpf.h"
#include "verdict.bpf.h"
#include "verifier.bpf.h"

static const struct ax_awaited nobody_awaited;

/* Port, protocol and padding. */
static __always_inline __u32 await_word(const struct ax_endpoint *ep)
{
	return *(const __u32 *)((const char *)ep + sizeof(ep->addr));
}

static __always_inline __u32 await_diff(const struct ax_await *a, const struct ax_endpoint *from,
					__be16 port_be)
{
	__u32 diff = a->from.addr.w[0] ^ from->addr.w[0];

	diff |= a->from.addr.w[1] ^ from->addr.w[1];
	diff |= a->from.addr.w[2] ^ from->addr.w[2];
	diff |= a->from.addr.w[3] ^ from->addr.w[3];
	diff |= await_word(&a->from) ^ await_word(from);
	diff |= (__u32)(a->port_be ^ port_be);
	opaque(diff); /* one branch for the verifier to follow */
	return diff;
}

static __always_inline void await_key(__u32 app, const struct ax_endpoint *from, __be16 port_be,
				      __u32 sets, struct ax_awaited_key *ret)
{
	__u32 h = from->addr.w[0] ^ from->addr.w[1] ^ from->addr.w[2] ^ from->addr.w[3];

	/* Fibonacci hashing (Knuth, The Art of Computer Programming 3, section 6.4) */
	h = h * 0x9e3779b1 ^ ((__u32)from->port_be << 16 | port_be);
	h = h * 0x9e3779b1 >> 16;
	ret->app = app;
	ret->set = h % sets;
}

static __always_inline struct ax_await *await_find(struct ax_awaited *all,
						   const struct ax_endpoint *from, __be16 port_be)
{
	for (__u32 i = 0; i < AX_AWAITED_WAYS; i++)
		if (!await_diff(&all->v[i], from, port_be))
			return &all->v[i];
	return NULL;
}

/* The one that was not seen for longest. */
static __always_inline struct ax_await *await_oldest(struct ax_awaited *all)
{
	__u64 oldest = ~0ull, age;
	__u32 i;

	for (i = 0; i < AX_AWAITED_WAYS; i++) {
		age = (__u64)all->v[i].seen << 8 | i;
		opaque(age);
		oldest = age < oldest ? age : oldest;
	}
	i = (__u32)oldest;
	opaque(i);
	return &all->v[i % AX_AWAITED_WAYS];
}

static __always_inline void await_set(struct ax_await *a, const struct ax_endpoint *from,
				      __be16 port_be)
{
	a->from.proto = 0; /* a mixture of two is nobody's */
	ctx_branch_end();
	a->from.addr = from->addr;
	a->port_be = port_be;
	ctx_branch_end();
	a->from.port_be = from->port_be;
	a->from.proto = from->proto;
}

/* Whether it was not known there, or not of late. */
static __always_inline bool await_in(void *map, const struct ax_awaited_key *key,
				     const struct ax_endpoint *from, __be16 port_be)
{
	struct ax_awaited *all = bpf_map_lookup_elem(map, key);
	struct ax_await *a;
	__u32 now = flow_now();

	if (!all) {
		bpf_map_update_elem(map, key, &nobody_awaited, BPF_NOEXIST);
		all = bpf_map_lookup_elem(map, key);
		if (!all)
			return false;
	}
	a = await_find(all, from, port_be);
	if (a && a->seen == now)
		return false;
	if (!a) {
		a = await_oldest(all);
		await_set(a, from, port_be);
	}
	a->seen = now;
	return true;
}

/* Whether it is known there, which is of now then, however long ago that was. */
static __always_inline bool await_knows(void *map, const struct ax_awaited_key *key,
					const struct ax_endpoint *from, __be16 port_be)
{
	struct ax_awaited *all = bpf_map_lookup_elem(map, key);
	struct ax_await *a = all ? await_find(all, from, port_be) : NULL;
	__u32 now = flow_now();

	if (!a)
		return false;
	if (a->seen != now)
		a->seen = now;
	return true;
}

/* The app has asked that one from its port. Whether that was not known, or not of late. A global
 * function, as is is_awaited(): the verifier judges it once, and not with all that its callers did
 * before. */
__weak __noinline int await_from(__u32 app, const struct ax_endpoint *from, __u32 port_be)
{
	struct ax_awaited_key key;

	if (!from)
		return false;
	await_key(app, from, (__be16)port_be, AX_AWAITED_SETS, &key);
	return await_in(&awaited, &key, from, (__be16)port_be);
}

/* Whether the app has asked that one from its port, and either was heard of since a while. */
__weak __noinline int is_awaited(__u32 app, const struct ax_endpoint *from, __u32 port_be)
{
	struct ax_awaited_key key;
	struct ax_awaited *all;
	struct ax_await *a;
	__u32 now = flow_now();

	if (!from || !from->proto)
		return false;
	await_key(app, from, (__be16)port_be, AX_AWAITED_SETS, &key);
	all = bpf_map_lookup_elem(&awaited, &key);
	a = all ? await_find(all, from, (__be16)port_be) : NULL;
	if (!a || now - a->seen > AX_FLOW_LIFE_UDP)
		return false;
	if (a->seen != now)
		a->seen = now;
	return true;
}

/* --- verdicts --- */

static __always_inline __be16 client_port(__u64 ports)
{
	return (__be16)(ports >> 16);
}

/* A datagram of the app's is let through: `asked` may answer. `open`: needless where the answer
 * would be let through if it was a question. */
static __always_inline void await_answer(__u64 parties, __u64 ports, const struct ax_addr *world,
					 __u32 app, struct ax_endpoint *asked, bool open)
{
	__be16 port_be = asked->port_be;

	if (QUESTION_PROTO(ports) != IPPROTO_UDP || (ports & QUESTION_FRAGMENT))
		return;
	if (open && !(turned_verdict(parties, ports, world) & VERDICT_REFUSED))
		return;
	if (!await_from(app, asked, client_port(ports)))
		return;
	asked->port_be = 0; /* the later fragments of the answer */
	await_from(app, asked, 0);
	asked->port_be = port_be;
}

/* On a datagram to `app` that rules refuse: by what the rules say of the question, if it has asked.
 * `from` has no port if it is a later fragment. */
static __always_inline __u64 answer_verdict(__u64 v, __u64 parties, __u64 ports,
					    const struct ax_addr *world, __u32 app,
					    const struct ax_endpoint *from)
{
	__be16 port_be = (ports & QUESTION_FRAGMENT) ? 0 : (__be16)ports;
	__u64 question;

	if (!(v & VERDICT_REFUSED) || QUESTION_PROTO(ports) != IPPROTO_UDP ||
	    !is_awaited(app, from, port_be))
		return v;
	question = turned_verdict(parties, ports, world);
	return question & VERDICT_REFUSED ? v : question;
}

#endif
