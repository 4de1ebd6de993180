/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Matching packets by their state, and what is remembered of those that are let through. */
#ifndef AX_JUDGE_STATE_BPF_H
#define AX_JUDGE_STATE_BPF_H

#include "judge.bpf.h"
#include "state.bpf.h"

/* The rule that was found for a packet wants its state, which nobody has asked for. */
static __always_inline bool wants_state(const __u8 *a, const struct packet *p, __u32 rule)
{
	return layout.field[AX_FIELD_STATE].used && p->state == AX_STATE_UNASKED &&
	       action_of(a, rule)->flags & AX_ACTION_ASKS_STATE;
}

static __always_inline __u32 match_by_state(packet_ctx *ctx, const __u8 *a, struct turn *t,
					    __u32 rule)
{
	if (!wants_state(a, &t->p, rule))
		return rule;
	t->p.state = (__u8)packet_state(ctx, &t->p, t->explain);
	return match_apart(ctx, &t->p, t->len);
}

/* The rule of a packet that another one quotes; its payload is not what its flow's are. */
static __always_inline __u32 match_quoted(packet_ctx *ctx, const __u8 *a, struct packet *q,
					  __u32 len)
{
	__u32 rule;

	if (asks_payload())
		q->payload = AX_PAYLOAD_NONE;
	find_sets(q);
	rule = match_apart(ctx, q, len);
	if (!wants_state(a, q, rule))
		return rule;
	q->state = (__u8)quoted_state(ctx, q);
	return match_apart(ctx, q, len);
}

/* What was found of an error is not asked for again for what it quotes. What somebody else has sent
 * is none of this host's flows. */
static __always_inline void quoted_as_asked(const struct packet *p, struct packet *q)
{
	if (!layout.field[AX_FIELD_STATE].used)
		return;
	if (p->state == AX_STATE_RELATED)
		q->state = AX_STATE_ESTABLISHED;
	else if (p->state == AX_STATE_NEW && quotes_own(p, q))
		q->state = AX_STATE_NEW;
	else if (p->state == AX_STATE_INVALID || !quotes_own(p, q))
		q->state = q->proto == IPPROTO_TCP ? AX_STATE_INVALID : AX_STATE_NEW;
}

/* A list lets the packet through: it may begin a flow, unless it is known to be of one. */
static __always_inline void let_pass(packet_ctx *ctx, const struct turn *t)
{
	if (layout.flows == AX_FLOWS_KEEP && !t->explain && t->p.state != AX_STATE_ESTABLISHED)
		let_go(ctx, &t->p);
}

#endif
