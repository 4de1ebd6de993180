/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which packets are answers of NAT's backends. For the filter, which asks before it looks at its
 * rules. ICMP errors are asked about by the packet that they quote, ends swapped.
 */
#ifndef AX_NAT_BPF_H
#define AX_NAT_BPF_H

#include "fragment_id.bpf.h"
#include "nat_proof.bpf.h"
#include "rules.bpf.h"

/* Most packets are no answers, and seen to be none by their destination address, */
static __always_inline bool nat_ours(const struct packet *p)
{
	__u32 last = p->dst.b[15] & 31, family = !p->v4;
	__u32 *others;

	if (layout.nat >> last & 1)
		return true;
	if (!layout.answers)
		return false;
	others = bpf_map_lookup_elem(&nat_sources, &family);
	return others && *others >> last & 1;
}

/* or port. */
static __always_inline bool nat_possible(const struct packet *p)
{
	__u32 port = bpf_ntohs(p->dport_be);

	if (p->later)
		return true;
	return p->has_l4 && port >= AX_NAT_PORT && port < AX_NAT_PORT + AX_NAT_PORTS;
}

/* A later fragment: by what was remembered of the first one. */
static __noinline int nat_find_fragment(struct xdp_md *ctx, const struct packet *p,
					struct ax_nat *ret)
{
	struct ax_nat_fragment key;
	struct ax_nat *n;

	if (!nat_fragment_key(ctx, p, &key))
		return 0;
	n = bpf_map_lookup_elem(&nat_fragments, &key);
	if (!n)
		return 0;
	*ret = *n;
	return 1;
}

static __noinline void nat_remember_fragment(struct xdp_md *ctx, const struct packet *p,
					     const struct ax_nat *n)
{
	struct ax_nat_fragment key;

	if (nat_fragment_key(ctx, p, &key))
		bpf_map_update_elem(&nat_fragments, &key, n, BPF_ANY);
}

/*
 * Whether it may be what a backend whose connection is half-open still says to a second SYN with
 * another number: an ACK, with the number behind its own SYN. (What it sends first has that, too:
 * then what comes next tells, or the client.)
 */
static __always_inline bool answers_syn_again(struct xdp_md *ctx, const struct ax_nat *n,
					      const struct packet *p)
{
	__u8 seq[3];

	if (p->proto != IPPROTO_TCP || p->tcp_flags & TCP_FLAG_FIN_BIT ||
	    (n->state & (AX_NAT_SYN_REAL | AX_NAT_OPEN)) != AX_NAT_SYN_REAL)
		return false;
	put_proof(seq, tcp_number(ctx, p, offsetof(struct tcphdr, seq)));
	return same_proof(seq, n->proof);
}

/* What a packet from a backend says of its flow's state. */
static __always_inline void nat_answered(struct xdp_md *ctx, struct ax_nat *n,
					 const struct packet *p)
{
	__u8 was = n->state, state = 0;

	if (p->tcp_flags & TCP_FLAG_SYN_BIT && !(n->state & AX_NAT_OPEN))
		put_proof(n->proof, tcp_number(ctx, p, offsetof(struct tcphdr, seq)) + 1);
	if (p->tcp_flags & TCP_FLAG_RST_BIT)
		state = AX_NAT_RESET;
	else if (p->tcp_flags & TCP_FLAG_SYN_BIT)
		state = AX_NAT_SYN_REAL;
	else if (!answers_syn_again(ctx, n, p))
		state = AX_NAT_OPEN | (p->tcp_flags & TCP_FLAG_FIN_BIT ? AX_NAT_FIN_REAL : 0);
	if (was & AX_NAT_OPEN && !(p->tcp_flags & TCP_FLAG_RST_BIT))
		was &= (__u8)~AX_NAT_RESET; /* who goes on was not reset (bpf/flows.bpf.h) */
	/* written once: other CPUs read it */
	if (n->state != (was | state))
		n->state = was | state;
}

/* Whether what is in `nat_opening` has its place in `nat` by now. */
static __always_inline bool nat_has_opened(const struct ax_nat_key *key, const struct ax_nat *n)
{
	return key->proto == IPPROTO_TCP && n->state & AX_NAT_OPEN;
}

/* Gives it that: first there, so that it is found all the time. (The key is on the stack, or in a
 * map that is not this one: Linux 6.1.) */
static __always_inline void nat_opened(const struct ax_nat_key *key, const struct ax_nat *n)
{
	if (!bpf_map_update_elem(&nat, key, n, BPF_ANY))
		bpf_map_delete_elem(&nat_opening, key);
}

/* Whose flow a packet from a backend answers. With `keep` no trace of the packet is left. */
static __always_inline bool nat_find(struct xdp_md *ctx, const struct packet *p, struct ax_nat *ret,
				     bool keep)
{
	struct ax_nat_key key = {
		.real = p->src,
		.source = p->dst,
		.real_port_be = p->sport_be,
		.source_port_be = p->dport_be,
		.proto = p->proto,
	};
	bool opening = false;
	struct ax_nat *n;
	__u32 now;

	if (p->later)
		return nat_find_fragment(ctx, p, ret);
	n = bpf_map_lookup_elem(&nat, &key);
	if (!n) {
		n = bpf_map_lookup_elem(&nat_opening, &key);
		opening = true;
	}
	if (!n)
		return false;
	*ret = *n;
	if (keep)
		return true;
	now = (__u32)bpf_jiffies64();
	/* not for each packet: other CPUs read it */
	if (now - n->seen > layout.hz / (2 * AX_NAT_CHECKS))
		n->seen = now;
	nat_answered(ctx, n, p);
	if (opening && nat_has_opened(&key, n))
		nat_opened(&key, n);
	if (p->fragment == AX_FRAGMENT_FIRST)
		nat_remember_fragment(ctx, p, ret);
	return true;
}

#endif
