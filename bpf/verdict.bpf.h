/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verdicts: who may talk to whom, decided in one place for sockets and for packets. BPF only. The
 * same in C, for whoever explains it: agent/config/policy_match.c. */
#ifndef AX_VERDICT_BPF_H
#define AX_VERDICT_BPF_H

#include <linux/bpf.h>
#include <linux/in.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "app.h"
#include "ctl.h"
#include "maps.bpf.h"
#include "refusal_errno.bpf.h"
#include "verifier.bpf.h"

/*
 * Who asks whom, in two numbers: programs have little stack, and more of it in each function that
 * asks. Where one of both is the world or the host, whose party is AX_PARTY_NONE, its address goes
 * beside them.
 */
struct question {
	__u64 parties; /* the client's, and the server's in the upper half */
	__u64 ports;   /* see question_ports() */
};
#define QUESTION_PROTO(ports) ((__u8)((ports) >> 32))

/* The server's port and the client's, which is a server's if this is an answer; 0: not known. */
static __always_inline __u64 question_ports(__u8 proto, __be16 server_be, __be16 client_be)
{
	return server_be | (__u64)client_be << 16 | (__u64)proto << 32;
}

#define QUESTION_FRAGMENT (1ull << 40) /* a later one: ports are not known */

static __always_inline __u64 question_parties(__u32 client, __u32 server)
{
	return client | (__u64)server << 32;
}

/* A verdict: numbers of rules plus one, 0: none. */
#define VERDICT_RULE(v)	 ((__u32)(v)&0xfff)	      /* the one that decides */
#define VERDICT_AUDIT(v) ((__u32)((v) >> 16) & 0xfff) /* the first of its kind */
#define VERDICT_LOG(v)	 ((__u32)((v) >> 32) & 0xfff)
#define VERDICT_SET	 (1ull << 48) /* the set of rules that decided, 0 or 1 */
#define VERDICT_DENY	 (1ull << 49) /* by that rule */
#define VERDICT_LABELS	 (1ull << 50) /* no rule, and no label in common */
#define VERDICT_REFUSED	 (VERDICT_DENY | VERDICT_LABELS)

/*
 * The functions of this file are global where that helps: the verifier looks at each once, and not
 * again for each way to it, nor for each backend that is tried.
 */

/* The number of the lowest bit that is set: that many bits are below it. (There is no instruction
 * for it; a sum has no branches, which the verifier would follow.) */
static __always_inline __u32 lowest_bit(__u64 bits)
{
	__u64 below = (bits & -bits) - 1;

	below -= below >> 1 & 0x5555555555555555ull;
	below = (below & 0x3333333333333333ull) + (below >> 2 & 0x3333333333333333ull);
	below = (below + (below >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return (__u32)(below * 0x0101010101010101ull >> 56);
}

/* The number of the first rule that is in all four, plus one; 0: none. */
__weak __noinline __u32 first_of(const struct ax_rule_bits *from, const struct ax_rule_bits *to,
				 const struct ax_rule_bits *ports, const struct ax_rule_bits *kind,
				 __u32 n_words)
{
	__u64 bits;

	if (!from || !to || !ports || !kind)
		return 0;
	for (__u32 i = 0; i < AX_RULE_WORDS; i++) {
		if (i >= n_words)
			break;
		bits = from->w[i] & to->w[i] & ports->w[i] & kind->w[i];
		if (bits)
			return i * 64 + lowest_bit(bits) + 1;
	}
	return 0;
}

/* NULL: no rule names it. (It has a frame of its own: stack is short where this is asked.) */
static __noinline const struct ax_party_rules *side_rules(__u32 set, __u32 flags, __u32 party,
							  const struct ax_addr *addr)
{
	__u32 i = set * AX_PARTIES_MAX + party;
	struct ax_outside_key key = {.len = 32 + 128};

	if (party != AX_PARTY_NONE)
		return bpf_map_lookup_elem(&party_rules, &i);
	if (!(flags & AX_RULES_OUTSIDE))
		return NULL;
	key.set = bpf_htonl(set);
	key.addr = *addr;
	return bpf_map_lookup_elem(&outside_rules, &key);
}

static __always_inline __u32 port_class(__u32 set, __u64 ports)
{
	__u32 port = bpf_ntohs((__be16)ports), i = set * 2 * AX_PORT_BLOCKS + port / AX_PORT_BLOCK;
	__u8 proto = QUESTION_PROTO(ports);
	const struct ax_port_block *b;

	if (proto != IPPROTO_TCP && proto != IPPROTO_UDP)
		return AX_PORTS_NONE;
	if (ports & QUESTION_FRAGMENT)
		return proto == IPPROTO_TCP ? AX_PORTS_TCP_FRAGMENT : AX_PORTS_UDP_FRAGMENT;
	if (proto == IPPROTO_UDP)
		i += AX_PORT_BLOCKS;
	b = bpf_map_lookup_elem(&rule_ports, &i);
	return b ? b->class_of[port % AX_PORT_BLOCK] : AX_PORTS_NONE;
}

/* NULL: no rule is about ports. (A frame of its own, as side_rules().) */
static __noinline const struct ax_rule_bits *ports_rules(__u32 set, const struct ax_rule_set *rs,
							 __u64 ports)
{
	__u32 i;

	if (!(rs->flags & AX_RULES_PORTS))
		return NULL;
	i = set * AX_PORT_CLASSES + port_class(set, ports);
	return bpf_map_lookup_elem(&port_rules, &i);
}

static __always_inline bool has_bit(const struct ax_rule_bits *b, __u32 i)
{
	__u32 word = i / 64;

	opaque(word); /* clang 19 checks i + 1 instead, and Linux 6.1 knows nothing of i from that
		       */
	return word < AX_RULE_WORDS && b->w[word] >> i % 64 & 1;
}

/* What those rules say that are in all three. */
__weak __noinline __u64 decide(const struct ax_rule_bits *from, const struct ax_rule_bits *to,
			       const struct ax_rule_bits *ports, const struct ax_rule_set *rs)
{
	__u64 v;

	if (!from || !to || !ports || !rs)
		return 0;
	v = first_of(from, to, ports, &rs->decide, rs->n_words);
	if (v && !has_bit(&rs->allow, v - 1))
		v |= VERDICT_DENY;
	if (rs->flags & AX_RULES_PASS) {
		v |= (__u64)first_of(from, to, ports, &rs->audit, rs->n_words) << 16;
		v |= (__u64)first_of(from, to, ports, &rs->log, rs->n_words) << 32;
	}
	return v;
}

/* What the rules say; nothing is counted. */
static __always_inline __u64 judge_rules(__u64 parties, __u64 port, const struct ax_addr *world)
{
	const struct ax_ctl *c = bpf_map_lookup_elem(&ctl, &(__u32){0});
	const struct ax_party_rules *client, *server;
	const struct ax_rule_bits *ports;
	const struct ax_rule_set *rs;
	__u32 set;
	__u64 v;

	if (!c)
		return 0;
	/* read once: all that follows is of one set of rules */
	set = *(const volatile __u32 *)&c->rule_set ? 1 : 0;
	rs = bpf_map_lookup_elem(&rule_sets, &set);
	if (!rs || !rs->n_words)
		return 0;
	client = side_rules(set, rs->flags, (__u32)parties, world);
	if (!client)
		return 0;
	server = side_rules(set, rs->flags, parties >> 32, world);
	if (!server)
		return 0;
	ports = ports_rules(set, rs, port);
	if (!ports)
		ports = &client->from; /* once more the same: no rule is about ports */
	v = decide(&client->from, &server->to, ports, rs);
	return set ? v | VERDICT_SET : v;
}

static __noinline bool share_a_label(__u32 x, __u32 y)
{
	const struct ax_party *a = bpf_map_lookup_elem(&parties, &x);
	const struct ax_party *b = bpf_map_lookup_elem(&parties, &y);
	__u64 shared = 0;

	if (!a || !b)
		return false;
	for (int i = 0; i < AX_LABEL_WORDS; i++)
		shared |= a->labels[i] & b->labels[i];
	return shared != 0;
}

/*
 * By the rules, and of two apps then by their labels. A global function: the verifier looks at it
 * once, and not again for each backend that is tried.
 */
__weak __noinline __u64 party_verdict(__u64 parties, __u64 ports, const struct ax_addr *world)
{
	__u32 client = (__u32)parties, server = parties >> 32;
	__u64 v;

	if (!world)
		return VERDICT_LABELS;
	v = judge_rules(parties, ports, world);
	if (VERDICT_RULE(v) || client == AX_PARTY_NONE || server == AX_PARTY_NONE ||
	    share_a_label(client, server))
		return v;
	return v | VERDICT_LABELS;
}

/* The other way round, for what may be an answer. */
static __always_inline __u64 turned_verdict(__u64 parties, __u64 ports, const struct ax_addr *world)
{
	__u64 both = ports & 0xffffffff;

	return party_verdict(parties >> 32 | parties << 32,
			     (ports & ~0xffffffffull) | both >> 16 | (both << 16 & 0xffff0000),
			     world);
}

/*
 * For what has no ports, and may be an answer: nothing tells them apart, so both ways are asked,
 * and the first rule that matches either way decides. (Who an allow rule lets ping a server gets
 * its answer, although they share no label or a later rule denies all else.)
 */
static __always_inline __u64 either_way_verdict(__u64 parties, __u64 ports,
						const struct ax_addr *world)
{
	__u64 v = party_verdict(parties, ports, world), b;

	if (!(v & VERDICT_REFUSED))
		return v;
	b = turned_verdict(parties, ports, world);
	if (b & VERDICT_REFUSED)
		return v;
	if (v & VERDICT_LABELS)
		return b;
	return VERDICT_RULE(b) && VERDICT_RULE(b) < VERDICT_RULE(v) ? b : v;
}

/* Of an app and the world: whoever asks knows what holds if no rule matches. (UDP that is refused
 * may be an answer: answer.bpf.h.) */
static __always_inline __u64 verdict_of(const struct question *q, const struct ax_addr *world)
{
	__u8 proto = QUESTION_PROTO(q->ports);

	return proto == IPPROTO_TCP || proto == IPPROTO_UDP
		       ? party_verdict(q->parties, q->ports, world)
		       : either_way_verdict(q->parties, q->ports, world);
}

/* Whether a rule lets it be. */
static __always_inline bool allows(__u64 v)
{
	return VERDICT_RULE(v) && !(v & VERDICT_DENY);
}

static __always_inline int verdict_errno(__u64 v)
{
	return v & VERDICT_LABELS ? REFUSED_LABELS : v & VERDICT_DENY ? REFUSED_RULE : 0;
}

/* --- counting --- */

static __always_inline void count_rule(__u32 set, __u32 rule)
{
	__u32 i = set * AX_RULES_MAX + rule - 1;
	struct ax_rule_hits *h;

	if (!rule)
		return;
	h = bpf_map_lookup_elem(&rule_hits, &i);
	if (!h)
		return;
	h->hits++; /* per CPU */
	h->last_ns = bpf_ktime_get_boot_ns();
}

/* Once for each verdict that somebody gets: not for each packet of what is let through. A rule that
 * decides nothing counts if it stands in front of the one that does. */
__weak __noinline int count_verdict(__u64 v)
{
	__u32 set = v & VERDICT_SET ? 1 : 0, rule = VERDICT_RULE(v);

	count_rule(set, rule);
	if (!rule || VERDICT_AUDIT(v) < rule)
		count_rule(set, VERDICT_AUDIT(v));
	if (!rule || VERDICT_LOG(v) < rule)
		count_rule(set, VERDICT_LOG(v));
	return 0;
}

#endif
