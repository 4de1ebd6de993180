/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs of a list do alike, whichever way the packets go (filter.bpf.c,
 * filter_egress.bpf.c): reading, matching, and the classes of packets that have policies. */
#ifndef AX_JUDGE_BPF_H
#define AX_JUDGE_BPF_H

#include "classify.bpf.h"
#include "context.bpf.h"
#include "name.bpf.h"
#include "payload.bpf.h"
#include "quote.bpf.h"

/* A packet's way through the program. */
struct turn {
	struct packet p;
	__u32 len;
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
 * for one that is judged again. (Others are matched inline: where returns are guarded against
 * speculation, each costs as much as the rest of the matching.) */
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

/* The rule that was found for a packet wants its payload, which nobody has looked at. */
static __always_inline bool wants_payload(const __u8 *a, const struct packet *p, __u32 rule)
{
	return asks_payload() && p->payload == AX_PAYLOAD_UNASKED &&
	       action_of(a, rule)->flags & AX_ACTION_ASKS_PAYLOAD;
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
	if (!p->v4 && type >= 133 && type <= 137)
		return AX_REASON_NEIGHBOUR;
	if (!p->v4 && ((type >= 130 && type <= 132) || type == 143))
		return AX_REASON_MLD;
	return is_icmp_error(p) ? AX_REASON_ICMP_ERROR : 0;
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
