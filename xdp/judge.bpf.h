/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs of a list do alike, whichever way the packets go (filter.bpf.c,
 * filter_egress.bpf.c): reading, matching, and the classes of packets that have policies. */
#ifndef AX_JUDGE_BPF_H
#define AX_JUDGE_BPF_H

#include "act.bpf.h"
#include "classify.bpf.h"
#include "context.bpf.h"
#include "learn.bpf.h"
#include "name.bpf.h"
#include "payload.bpf.h"
#include "quote.bpf.h"

/* A packet's way through the program. */
struct turn {
	struct packet p;
	__u32 len; /* of the frame; of several: of the longest */
#ifdef AX_ON_TC
	__u32 packets; /* that leave for this one, */
	__u32 bytes;   /* and of all of them */
#endif
	__u8 explain; /* it carries a struct ax_explain: answer there, and keep no trace */
	__u8 reason;  /* told to who wants an explanation */
	__u8 decided; /* enum ax_decided */
	__u8 verdict;
	__u16 rule, quoted_rule;
};

/* --- reading --- */

/* Tagged and IPv6 packets. Global functions are verified once, and what they write through a
 * pointer is unknown after: the many ways through the parser end in one. To Linux 6.1 what they are
 * given has to be all written, which a compiler would see through if they were not weak.
 * `len`: of the frame. */
__weak __noinline int parse_rest_of(packet_ctx *ctx, struct packet *p, __u32 len)
{
	if (!p)
		return 0;
	parse_net((void *)(long)ctx->data, (void *)(long)ctx->data_end, len, p);
	return p->odd;
}

__weak __noinline int parse(packet_ctx *ctx, struct packet *p, __u32 len)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (!p)
		return 0;
	if (!parse_link(data, end, p))
		return p->odd;
	return parse_rest_of(ctx, p, len);
}

/* --- matching --- */

/* The minute of the week, as clocks on walls have it. */
static __always_inline __u32 minute_now(void)
{
	__u64 now = bpf_ktime_get_tai_ns() / 1000000000, ahead = layout.clocks[0].ahead_s;

	for (__u32 i = 1; i < AX_CLOCKS && i < layout.clocks_n; i++)
		if (now >= layout.clocks[i].from_s)
			ahead = layout.clocks[i].ahead_s;
	return (now + ahead) / 60 % AX_TIME_MINUTES;
}

/* The minute of the week that a packet is judged by. A function of the program's own, global for
 * the verifier: it may be any number. */
__u32 minute_of(packet_ctx *ctx);

static __always_inline __u64 source_mac(packet_ctx *ctx)
{
	struct ethhdr *eth = (void *)(long)ctx->data;
	__u64 mac = 0;

	if ((void *)(eth + 1) > (void *)(long)ctx->data_end)
		return 0;
	for (int i = 0; i < ETH_ALEN; i++)
		mac = mac << 8 | eth->h_source[i];
	return mac;
}

static __always_inline const struct ax_action *action_of(const __u8 *a, __u32 rule)
{
	/* so that the register that is compared is the one that is used */
	opaque(rule);
	if (rule > layout.rules)
		rule = layout.rules;
	return (const void *)(a + layout.actions + rule * sizeof(struct ax_action));
}

static __always_inline struct judged judged(packet_ctx *ctx, const struct packet *p, __u32 len)
{
	struct judged j = {.p = p, .len = len};

	if (layout.field[AX_FIELD_MAC].used)
		j.mac = source_mac(ctx);
	if (layout.field[AX_FIELD_TIME].used)
		j.minute = minute_of(ctx);
	if (j.minute >= AX_TIME_MINUTES)
		j.minute = 0;
	return j;
}

/* Matching in a global function, which is verified once: for a packet that another one quotes, and
 * for one that is judged again, or by bit vectors. (Others are matched inline: where returns are
 * guarded against speculation, each costs as much as the rest of the matching.) */
__noinline __u32 match_apart(packet_ctx *ctx, const struct packet *p, __u32 len)
{
	const __u8 *a = arena_get();
	struct judged j;
	__u32 at;

	if (!a || !p)
		return layout.rules;
	j = judged(ctx, p, len);
	return classify(a, &j, &at);
}

/* The search in bit vectors has no room on the stack of a program that does so much else (Linux 6.1
 * takes no more than 512 bytes), and each way out of it would be a way into all of that: of what
 * clang 19 makes of it Linux 6.1 follows more than a million instructions. */
static __always_inline __u32 classify_own(packet_ctx *ctx, const __u8 *a, const struct turn *t,
					  const struct judged *j, __u32 *at)
{
	if (layout.match != AX_MATCH_BITMAP)
		return classify_table(a, j, at);
	*at = 0;
	return match_apart(ctx, &t->p, t->len);
}

/* The rule that was found for a packet wants its payload, which nobody has looked at. */
static __always_inline bool wants_payload(const __u8 *a, const struct packet *p, __u32 rule)
{
	return asks_payload() && p->payload == AX_PAYLOAD_UNASKED &&
	       action_of(a, rule)->flags & AX_ACTION_ASKS_PAYLOAD;
}

/* --- counting --- */

#ifdef AX_ON_TC
static __always_inline __u32 turn_packets(const struct turn *t)
{
	return t->packets;
}
static __always_inline __u32 turn_bytes(const struct turn *t)
{
	return t->bytes;
}
/* What there is to be captured: the packet as it is here. */
static __always_inline __u32 captured_of(const struct __sk_buff *skb, const struct turn *t)
{
	(void)t;
	return skb->len;
}

#define PACKETS_MOST 0xffff
#define BYTES_MOST   (1 << 20)

static __always_inline __u64 cost_leaving(const struct ax_limit *lim, __u32 packets, __u32 bytes)
{
	/* (more than 64 KiB, at a low rate, would not fit into 64 bits with all of them) */
	return lim->bytes ? ((lim->cost >> 3) * bytes) >> (AX_LIMIT_BYTE_SHIFT - 3)
			  : lim->cost * packets;
}

static __always_inline bool above_rate(const struct ax_limit *lim, const struct turn *t,
				       __u32 counter, bool keep)
{
	return limited_by(lim, &t->p, cost_leaving(lim, t->packets, t->bytes),
			  cost_leaving(lim, PACKETS_MOST, BYTES_MOST), counter, keep);
}
#else
static __always_inline __u32 turn_packets(const struct turn *t)
{
	(void)t;
	return 1;
}
static __always_inline __u32 turn_bytes(const struct turn *t)
{
	return t->len;
}
static __always_inline __u32 captured_of(const struct xdp_md *ctx, const struct turn *t)
{
	(void)ctx;
	return t->len;
}
static __always_inline bool above_rate(const struct ax_limit *lim, const struct turn *t,
				       __u32 counter, bool keep)
{
	return limited(lim, &t->p, t->len, counter, keep);
}
#endif

/* Counts, limits and captures; false: the packet is above its rule's rate. */
static __always_inline bool account(packet_ctx *ctx, const __u8 *a, struct turn *t,
				    const struct ax_action *act)
{
	const struct ax_limit *lim = NULL;
	struct ax_rule_count *n;
	__u32 i = act->limit - 1u;
	bool above;

	opaque(i);
	if (i < layout.limits_n)
		lim = (const void *)(a + layout.limits + i * sizeof(*lim));
	if (t->explain)
		return !lim || !above_rate(lim, t, act->counter, true);
	n = bpf_map_lookup_elem(&rule_counts, &(__u32){act->counter});
	if (n) {
		n->packets += turn_packets(t);
		n->bytes += turn_bytes(t);
	}
	above = lim && above_rate(lim, t, act->counter, false);
	if (layout.learns_n && act->learn)
		learn(&t->p, act->learn - 1u, above);
	if (above) {
		if (n)
			n->limited += turn_packets(t);
		return false;
	}
	if (act->flags & (AX_ACTION_RING | AX_ACTION_SLOT | AX_ACTION_LOG | AX_ACTION_TRIGGER))
		capture(ctx, &t->p, act, captured_of(ctx, t));
	return true;
}

/* --- classes --- */

/* Which class of packets that a deny list lets through this one may be of; 0: of none. */
static __always_inline __u32 needed(const struct packet *p)
{
	__u32 type = p->icmp >> 8;

	if (p->ethertype_be == bpf_htons(ETH_P_ARP))
		return AX_REASON_ARP;
	/* no host sends these in fragments, and none has to take them (RFC 6980) */
	if (p->fragment != AX_FRAGMENT_NONE)
		return 0;
	if (p->v4 && p->proto == IPPROTO_IGMP)
		return AX_REASON_MLD;
	if (!p->has_icmp)
		return 0;
	/* of others than neighbours they would have a smaller hop limit (RFC 4861) */
	if (!p->v4 && type >= 133 && type <= 137)
		return p->ttl == 255 ? AX_REASON_NEIGHBOUR : 0;
	if (!p->v4 && ((type >= 130 && type <= 132) || type == 143))
		return AX_REASON_MLD;
	return is_icmp_error(p) ? AX_REASON_ICMP_ERROR : 0;
}

static __always_inline bool is_tunnel(const struct packet *p)
{
	return p->l4_off > p->l3_off && (p->proto == IPPROTO_IPIP || p->proto == IPPROTO_IPV6);
}

static __always_inline bool has_options(const struct packet *p)
{
	return p->v4 && p->l4_off > p->l3_off + sizeof(struct iphdr);
}

/* The class that decides about an odd packet: p->odd is the first that was found, and it may be of
 * others besides. One that drops comes first, then one that passes: what is left to the rules hides
 * neither. */
static __always_inline __u32 strictest(const struct packet *p)
{
	__u32 reason = p->odd;
	__u8 policy = AX_POLICY_RULES;

	if (reason < AX_REASON_POLICIES)
		policy = layout.policy[reason];
	if (layout.policy[AX_REASON_LATER_FRAGMENT] > policy && p->later)
		policy = layout.policy[reason = AX_REASON_LATER_FRAGMENT];
	if (layout.policy[AX_REASON_TUNNEL] > policy && is_tunnel(p))
		policy = layout.policy[reason = AX_REASON_TUNNEL];
	if (layout.policy[AX_REASON_IP_OPTIONS] > policy && has_options(p))
		reason = AX_REASON_IP_OPTIONS;
	return reason;
}

/* Applies a class' policy. False: the rules decide. */
static __always_inline bool by_policy(struct turn *t, __u32 reason, int *action)
{
	__u8 policy;

	if (reason >= AX_REASON_POLICIES)
		return false;
	policy = layout.policy[reason];
	t->reason = (__u8)reason;
	if (policy == AX_POLICY_RULES)
		return false;
	t->decided = AX_DECIDED_POLICY;
	t->verdict = policy == AX_POLICY_PASS ? AX_VERDICT_PASS : AX_VERDICT_DROP;
	*action = policy == AX_POLICY_PASS ? XDP_PASS : XDP_DROP;
	return true;
}

#endif
