// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The program of a generation of a list for what leaves an interface (`direction: egress`): from a
 * packet to its rule, and what the rule does. root_egress.bpf.c jumps here.
 *
 * A packet may be many here: the device, or the stack for it, cuts it to segments later on (GSO).
 * It is judged by what leaves then: counted and limited as so many packets, each with its headers,
 * and as long as the longest. Its VLAN tag may stand beside it, and counts as if it was in it.
 */
#define AX_ON_TC
#define AX_RULES_MAP
#include <linux/pkt_cls.h>

#include "judge.bpf.h"
#include "judge_state.bpf.h"
#include "mark.bpf.h"

const volatile struct ax_layout layout = {};
const volatile __u32 found_places = 0;

/* As far as headers are looked at where they are not in the linear part. */
#define HEADERS_MAX 256
#define TAG_SIZE    4

/* --- explaining: a program of its own, which is asked by BPF_PROG_TEST_RUN (include/xdp.h) --- */

static __always_inline void answer(struct __sk_buff *skb, const struct turn *t)
{
	skb->cb[AX_EXPLAIN_RULES] = t->rule | (__u32)t->quoted_rule << 16;
	skb->cb[AX_EXPLAIN_WORDS] = t->verdict | (__u32)t->reason << 8 | (__u32)t->decided << 16 |
				    (__u32)(t->reason == AX_REASON_RATE_LIMITED) << 24 |
				    (__u32)t->p.state << AX_EXPLAIN_STATE_SHIFT;
	skb->cb[AX_EXPLAIN_VLAN] = t->p.vlan;
	skb->cb[AX_EXPLAIN_L4] = t->p.l4_off;
}

static __always_inline int done(struct __sk_buff *skb, const struct turn *t, bool pass)
{
	if (t->explain)
		answer(skb, t);
	/* who stands behind is asked next */
	return pass ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}

__noinline __u32 minute_of(struct __sk_buff *skb)
{
	__u32 minute = skb->cb[AX_EXPLAIN_MINUTE];

	return skb->cb[AX_EXPLAIN_KEY] == AX_EXPLAIN_ASKED && minute != AX_TIME_UNKNOWN
		       ? minute
		       : minute_now();
}

/* --- reading --- */

static __always_inline bool is_cut(const struct packet *p)
{
	return p->odd == AX_REASON_RUNT || p->odd == AX_REASON_BAD_HEADER ||
	       p->odd == AX_REASON_TOO_MANY_HEADERS || p->odd == AX_REASON_SPLIT;
}

static __always_inline bool has_more(const struct __sk_buff *skb)
{
	return skb->data_end - skb->data < skb->len;
}

/* A packet of more than 64 KiB that is to be cut (BIG TCP): its IP header does not say how long it
 * is. What says something else than its length has lied all the same. */
static __always_inline void read_big(struct __sk_buff *skb, struct packet *p)
{
	__u32 len = skb->len, header;

	parse(skb, p, p->l3_off);
	if (p->l4_len || p->l4_off >= len) {
		p->odd = AX_REASON_BAD_LENGTH;
		return;
	}
	header = p->payload_off - p->l4_off;
	if (p->odd == AX_REASON_BAD_TCP && header >= sizeof(struct tcphdr))
		p->odd = AX_REASON_NONE;
	len -= p->l4_off;
	p->l4_len = len > 0xffff ? 0xffff : (__u16)len;
}

static __always_inline void read_packet(struct __sk_buff *skb, struct packet *p)
{
	__u32 len = skb->len;

	packet_init(p);
	parse(skb, p, len);
	if (is_cut(p) && has_more(skb)) {
		bpf_skb_pull_data(skb, len < HEADERS_MAX ? len : HEADERS_MAX);
		parse(skb, p, len);
		if (is_cut(p) && has_more(skb))
			p->odd = AX_REASON_SPLIT;
	}
	if (p->odd == AX_REASON_BAD_LENGTH && skb->gso_size)
		read_big(skb, p);
	if (skb->vlan_present)
		p->vlan = skb->vlan_tci & 0xfff;
	if (layout.field[AX_FIELD_MARK].used)
		p->marks = marks_of(skb);
}

static __always_inline void measure(struct __sk_buff *skb, struct turn *t)
{
	__u32 tag = skb->vlan_present ? TAG_SIZE : 0, len = skb->len;
	__u32 headers = t->p.payload_off, size = skb->gso_size;

	t->packets = 1;
	t->bytes = t->len = len + tag;
	if (!size || len <= headers)
		return;
	/* who has made the packet may not have said how many it will be */
	t->packets = skb->gso_segs ? skb->gso_segs : (len - headers + size - 1) / size;
	t->bytes += (t->packets - 1) * (headers + tag);
	if (len > headers + size)
		t->len = headers + tag + size;
}

/* --- acting --- */

/* Whether the flow that an ICMP error is about is let through. */
static __always_inline bool quoted_passes(struct __sk_buff *skb, const __u8 *a, struct turn *t)
{
	struct packet *q = layout.quotes ? quoted_get() : NULL;

	if (!q || !quote(skb, &t->p, q))
		return false;
	quoted_as_asked(&t->p, q);
	q->marks = t->p.marks; /* the error's: its flow's is not known */
	t->quoted_rule = (__u16)match_quoted(skb, a, q, t->len);
	return action_of(a, t->quoted_rule)->verdict != AX_VERDICT_DROP;
}

/* The default (or a rule without conditions) would drop it: is it one of those that a list needs
 * to let through? */
static __always_inline bool let_through(struct __sk_buff *skb, const __u8 *a, struct turn *t)
{
	__u32 reason = needed(&t->p);

	if (!reason || reason >= AX_REASON_POLICIES || layout.policy[reason] != AX_POLICY_PASS)
		return false;
	if (reason == AX_REASON_ICMP_ERROR && !quoted_passes(skb, a, t))
		return false;
	if (!t->explain)
		count_reason(reason);
	t->reason = reason;
	t->decided = AX_DECIDED_LET_THROUGH;
	t->verdict = AX_VERDICT_PASS;
	return true;
}

static __always_inline bool act_on(struct __sk_buff *skb, const __u8 *a, struct turn *t,
				   const struct ax_action *act)
{
	t->verdict = act->verdict;
	if (act->verdict == AX_VERDICT_DROP && act->flags & AX_ACTION_CATCH_ALL &&
	    let_through(skb, a, t))
		return true;
	if (account(skb, a, t, act)) {
		if (act->verdict != AX_VERDICT_PASS)
			return false;
		let_pass(skb, t);
		return true;
	}
	t->reason = AX_REASON_RATE_LIMITED;
	if (!t->explain)
		count_reason(AX_REASON_RATE_LIMITED);
	return false;
}

/* --- judging --- */

static __always_inline __u32 match_own(struct __sk_buff *skb, const __u8 *a, struct turn *t)
{
	__u32 at, rule;
	struct judged j;

	find_sets(&t->p);
	if (layout.field[AX_FIELD_NAME].used)
		expect_name(&t->p);
	j = judged(skb, &t->p, t->len);
	rule = classify_own(skb, a, t, &j, &at);
	if (wants_payload(a, &t->p, rule)) {
		look_into(skb, &t->p);
		rule = match_apart(skb, &t->p, t->len);
	}
	rule = match_by_state(skb, a, t, rule);
	if (layout.field[AX_FIELD_STATE].used && wants_payload(a, &t->p, rule)) {
		look_into(skb, &t->p);
		rule = match_apart(skb, &t->p, t->len);
	}
	return rule;
}

static __always_inline bool has_policy(struct turn *t, bool *pass)
{
	__u32 reason = t->p.odd ? strictest(&t->p) : AX_REASON_NONE;
	int action = XDP_DROP;
	bool decided = false;

	if (reason) {
		if (!t->explain)
			count_reason(reason);
		decided = by_policy(t, reason, &action);
	}
	if (!decided) {
		reason = needed(&t->p);
		if (reason && reason < AX_REASON_POLICIES &&
		    layout.policy[reason] == AX_POLICY_DROP) {
			if (!t->explain)
				count_reason(reason);
			decided = by_policy(t, reason, &action);
		}
	}
	*pass = action == XDP_PASS;
	return decided;
}

static __always_inline int judge(struct __sk_buff *skb, bool explain)
{
	const __u8 *a = arena_get();
	struct turn t = {};
	bool pass;

	if (!a)
		return TC_ACT_SHOT;
	t.verdict = AX_VERDICT_PASS;
	t.explain = explain;
	t.rule = t.quoted_rule = layout.rules;
	read_packet(skb, &t.p);
	measure(skb, &t);
	if (layout.field[AX_FIELD_STATE].used && explain && t.p.fragment != AX_FRAGMENT_NOT_IP)
		t.p.state = (__u8)skb->cb[AX_EXPLAIN_STATE];
	if (has_policy(&t, &pass))
		return done(skb, &t, pass);
	t.rule = (__u16)match_own(skb, a, &t);
	pass = act_on(skb, a, &t, action_of(a, t.rule));
	return done(skb, &t, pass);
}

SEC("tc")
int ax_judge_egress(struct __sk_buff *skb)
{
	if (layout.field[AX_FIELD_TIME].used)
		skb->cb[AX_EXPLAIN_KEY] = 0; /* nobody asks */
	return judge(skb, false);
}

SEC("tc")
int ax_tell_egress(struct __sk_buff *skb)
{
	return judge(skb, true);
}

char LICENSE[] SEC("license") = "GPL";
