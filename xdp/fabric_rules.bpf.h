/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the rules say of a packet between an app and another one, and which datagrams answer
 * (fabric.bpf.c). BPF only. */
#ifndef AX_FABRIC_RULES_BPF_H
#define AX_FABRIC_RULES_BPF_H

#include "answer.bpf.h"
#include "parse_tc.bpf.h"
#include "seen.bpf.h"
#include "serving.bpf.h"
#include "verdict.bpf.h"

/* A segment of a connection that stands: whoever opened it was judged by its first packet. A
 * later fragment goes with its first one, which must have the whole header: else a connection could
 * be opened in pieces. */
static __always_inline bool is_answer(const struct packet *p)
{
	if (p->proto != IPPROTO_TCP)
		return false;
	return p->later || (p->has_l4 && (p->tcp_flags & (TCP_FLAG_ACK_BIT | TCP_FLAG_RST_BIT)));
}

static __always_inline struct question question_of(const struct packet *p, __u32 from, __u32 to)
{
	struct question q = {question_parties(from, to), question_ports(p->proto, 0, 0)};

	if (p->has_l4)
		q.ports = question_ports(p->proto, p->dport_be, p->sport_be);
	if (p->later)
		q.ports |= QUESTION_FRAGMENT;
	return q;
}

/* A first fragment that is too short for its ports: they would come with the next one, which is not
 * looked at. No sender makes such. */
static __always_inline bool hides_ports(const struct packet *p)
{
	return (p->proto == IPPROTO_TCP || p->proto == IPPROTO_UDP) && !p->has_l4 && !p->later;
}

/* An answer has been asked for: whoever is refused it did not ask. */
static __noinline int saw_packet(const struct packet *p, __u64 v, __u32 why)
{
	struct ax_endpoint to = {.addr = p->dst, .proto = p->proto};

	if (p->has_l4)
		to.port_be = p->dport_be;
	return saw(&p->src, &to, v, SEEN(AX_SEEN_AT_FABRIC, why), 0);
}

/* Of a datagram that is let through: who was asked may answer. `open`: as any question may come. */
static __noinline void await_packet(const struct packet *p, __u32 from, __u32 to, __u32 app,
				    bool open)
{
	struct question q = question_of(p, from, to);
	struct ax_endpoint asked = {.port_be = p->dport_be, .proto = IPPROTO_UDP};

	if (!p->has_l4)
		return;
	asked.addr = p->dst;
	await_answer(q.parties, q.ports, &asked.addr, app, &asked, open);
}

/* The verdict on a datagram to the app, which may have asked for it. */
static __noinline __u64 awaited_verdict(const struct packet *p, const struct question *q, __u32 app,
					__u64 v)
{
	struct ax_endpoint from = {.proto = IPPROTO_UDP};

	from.addr = p->src;
	if (p->has_l4)
		from.port_be = p->sport_be;
	return answer_verdict(v, q->parties, q->ports, &from.addr, app, &from);
}

static __noinline __attribute__((unused)) bool
may_pass(const struct packet *p, const struct ax_vip *src, const struct ax_vip *dst)
{
	struct question q = question_of(p, src->party, dst->party);
	__u64 v;

	if (!src->party || !dst->party) /* a service's address, or labels that could not be kept */
		return false;
	v = verdict_of(&q, &p->src);
	if (!(v & VERDICT_REFUSED)) {
		if (p->proto == IPPROTO_UDP)
			await_packet(p, src->party, dst->party, src->id, true);
		return true;
	}
	if (p->proto == IPPROTO_UDP && is_running(dst) &&
	    !(awaited_verdict(p, &q, dst->id, v) & VERDICT_REFUSED))
		return true;
	/* a segment of a connection goes by the verdict on whoever opened it */
	if (is_answer(p) && !(turned_verdict(q.parties, q.ports, &p->src) & VERDICT_REFUSED))
		return true;
	if (v & VERDICT_DENY)
		count_verdict(v);
	saw_packet(p, v, 0);
	return false;
}

#endif
