// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The program of a generation: from a packet to its rule, and what the rule does. The root program
 * (root.bpf.c) jumps here.
 */
#define AX_RULES_MAP
#include "balance_quic.bpf.h"
#include "exposed_ports.bpf.h"
#include "judge.bpf.h"
#include "judge_state.bpf.h"
#include "nat.bpf.h"

const volatile struct ax_layout layout = {};
const volatile __u32 found_places = 0;
const volatile __u32 fast_sets = 1;
/* The same: it tells a tap what it decides (tap.bpf.c), which is the tap's map `told`. */
const volatile __u32 tell = 0;
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ax_explain);
} told SEC(".maps");

/* --- explaining --- */

static __always_inline bool explaining(struct xdp_md *ctx)
{
	struct ax_explain *x = (void *)(long)ctx->data_meta;

	return (void *)(x + 1) <= (void *)(long)ctx->data && x->key == layout.explain_key;
}

static __always_inline void assume_state(struct xdp_md *ctx, struct packet *p)
{
	struct ax_explain *x = (void *)(long)ctx->data_meta;

	if (p->fragment != AX_FRAGMENT_NOT_IP && (void *)(x + 1) <= (void *)(long)ctx->data)
		p->state = x->state;
}

static __noinline int answer(struct xdp_md *ctx, const struct turn *t, int action)
{
	struct ax_explain *x = (void *)(long)ctx->data_meta;

	if (tell && !t->explain) {
		x = bpf_map_lookup_elem(&told, &(__u32){0});
		if (!x)
			return action;
		x->key = layout.generation;
	} else if ((void *)(x + 1) > (void *)(long)ctx->data) {
		return action;
	}
	x->rule = t->rule;
	x->verdict = t->verdict;
	x->reason = t->reason;
	x->decided = t->decided;
	x->limited = t->reason == AX_REASON_RATE_LIMITED;
	x->quoted_rule = t->quoted_rule;
	x->vlan = t->p.vlan;
	x->l4_off = t->p.l4_off;
	x->state = (__u8)t->p.state;
	return action;
}

static __always_inline int done(struct xdp_md *ctx, const struct turn *t, int action)
{
	return t->explain || tell ? answer(ctx, t, action) : action;
}

/* --- matching --- */

/* A function of its own, for the verifier: it may be any number. */
__noinline __u32 minute_of(struct xdp_md *ctx)
{
	struct ax_explain *x = (void *)(long)ctx->data_meta;

	if (explaining(ctx) && (void *)(x + 1) <= (void *)(long)ctx->data &&
	    x->minute != AX_TIME_UNKNOWN)
		return x->minute;
	return minute_now();
}

/* With the payload. Most lists have it looked at here, without a call. */
static __always_inline __u32 match_payload(struct xdp_md *ctx, const __u8 *a, struct turn *t,
					   const struct judged *j, __u32 at)
{
	if (layout.match == AX_MATCH_BITMAP || layout.field[AX_FIELD_STATE].used ||
	    layout.field[AX_FIELD_NAME].used) {
		look_into(ctx, &t->p);
		return match_apart(ctx, &t->p, t->len);
	}
	t->p.payload = look_at_payload(ctx, &t->p);
	return classify_payload(a, j, at);
}

/* The payload first, which costs less to look at. It is the last as well, when the rule that the
 * state led to is the first to want it. */
static __always_inline __u32 match_own(struct xdp_md *ctx, const __u8 *a, struct turn *t)
{
	__u32 at, rule;
	struct judged j;

	find_sets(&t->p);
	if (layout.field[AX_FIELD_NAME].used)
		expect_name(&t->p);
	j = judged(ctx, &t->p, t->len);
	rule = classify_own(ctx, a, t, &j, &at);
	if (wants_payload(a, &t->p, rule))
		rule = match_payload(ctx, a, t, &j, at);
	rule = match_by_state(ctx, a, t, rule);
	if (layout.field[AX_FIELD_STATE].used && wants_payload(a, &t->p, rule))
		rule = match_payload(ctx, a, t, &j, at);
	return rule;
}

/* And the other way round. */
static __always_inline void asked_as_quoted(const struct packet *q, struct packet *p)
{
	if (layout.field[AX_FIELD_STATE].used && q->has_l4 && q->state != AX_STATE_UNASKED &&
	    p->state == AX_STATE_UNASKED)
		p->state = quotes_own(p, q) ? state_about(q->state) : AX_STATE_INVALID;
}

/* --- the default's exceptions --- */

/* Whether the flow that an ICMP error is about is let through. */
static __always_inline bool quoted_passes(struct xdp_md *ctx, const __u8 *a, struct turn *t)
{
	const struct ax_action *act;
	struct packet *q;

	if (!layout.quotes)
		return false;
	q = quoted_get();
	if (!q || !quote(ctx, &t->p, q))
		return false;
	quoted_as_asked(&t->p, q);
	t->quoted_rule = (__u16)match_quoted(ctx, a, q, t->len);
	act = action_of(a, t->quoted_rule);
	return act->verdict != AX_VERDICT_DROP ||
	       (layout.policy[AX_REASON_EXPOSED] == AX_POLICY_PASS &&
		act->flags & AX_ACTION_CATCH_ALL && to_exposed(q));
}

/* Which class with a policy a packet is of that nothing is wrong with; 0: none. */
static __always_inline __u32 policy_class(struct xdp_md *ctx, const struct turn *t)
{
	__u32 reason = needed(&t->p);

	if (!reason && layout.policy[AX_REASON_EXPOSED] != AX_POLICY_RULES &&
	    is_exposed(ctx, &t->p, t->explain))
		reason = AX_REASON_EXPOSED;
	return reason;
}

/* The default (or a rule without conditions) would drop it: is it one of those that a list needs
 * to let through? */
static __always_inline bool let_through(struct xdp_md *ctx, const __u8 *a, struct turn *t)
{
	__u32 reason = policy_class(ctx, t);

	if (!reason || reason >= AX_REASON_POLICIES || layout.policy[reason] != AX_POLICY_PASS)
		return false;
	if (reason == AX_REASON_ICMP_ERROR && !quoted_passes(ctx, a, t))
		return false;
	if (!t->explain)
		count_reason(reason);
	t->reason = reason;
	t->decided = AX_DECIDED_LET_THROUGH;
	return true;
}

/* --- acting --- */

/* With `error` the packet is an ICMP error, and quoted_get() has what it is about. */
static __always_inline int hand_over(struct xdp_md *ctx, struct turn *t, struct handover *h,
				     __u32 stage, bool error)
{
	h->p = t->p;
	h->rule = t->rule;
	h->len = t->len;
	h->icmp_error = error;
	h->explain = t->explain;
	if (error)
		h->quote_off = h->quoted.l3_off;
	done(ctx, t, 0);
	bpf_tail_call(ctx, &stages,
		      AX_JUMPS + layout.generation % AX_STAGE_SETS * AX_STAGES + stage);
	return done(ctx, t, XDP_DROP);
}

/* What quic_real() says, which is told and, where it names nobody, counted. */
static __always_inline int named_by_id(struct xdp_md *ctx, struct turn *t, __u32 balancer)
{
	int real = quic_real(ctx, &t->p, balancer);

	if (real != QUIC_NOTHING)
		t->reason = real >= 0 ? AX_REASON_QUIC_ID : AX_REASON_QUIC_UNKNOWN;
	if (real == QUIC_UNKNOWN && !t->explain)
		count_reason(AX_REASON_QUIC_UNKNOWN);
	return real;
}

static __always_inline int to_balancer(struct xdp_md *ctx, struct turn *t, __u32 balancer,
				       bool error)
{
	int r, by_id = QUIC_NOTHING;
	struct handover *h;

	if (layout.quic && !error)
		by_id = named_by_id(ctx, t, balancer);

	if (layout.balancers_n && !error && !t->explain) {
		done(ctx, t, 0);
		r = fast_balance(ctx, &t->p, t->len, balancer, by_id);
		if (r >= 0)
			return r;
	}
	h = bpf_map_lookup_elem(&handovers, &(__u32){0});
	if (!h)
		return XDP_ABORTED;
	h->balancer = balancer;
	h->quic = by_id;
	return hand_over(ctx, t, h, AX_STAGE_BALANCE, error);
}

/* `loaded`: some rule leads to that stage. */
static __always_inline int to_stage(struct xdp_md *ctx, struct turn *t, const struct ax_action *act,
				    __u32 stage, bool loaded)
{
	struct handover *h = bpf_map_lookup_elem(&handovers, &(__u32){0});

	if (!loaded || !h)
		return XDP_ABORTED;
	h->route.counter = act->counter;
	h->route.flags = act->flags;
	return hand_over(ctx, t, h, stage, false);
}

static __always_inline int failed(struct xdp_md *ctx, struct turn *t, __u32 reason)
{
	t->reason = reason;
	if (!t->explain)
		count_reason(reason);
	return done(ctx, t, XDP_DROP);
}

/* Remembers where a frame goes, for failures.bpf.c; what goes nowhere has failed already. */
static __always_inline int sent(struct xdp_md *ctx, struct turn *t, const struct ax_action *act,
				__u32 to, int action)
{
	struct ax_redirected *r = bpf_map_lookup_elem(&redirected, &(__u32){0});
	struct ax_rule_count *n;

	if (t->explain)
		return done(ctx, t, action);
	if (action == XDP_REDIRECT || action == XDP_TX) {
		if (r)
			r->last[r->n++ % AX_REDIRECTED] =
				(struct ax_redirect){.to = to, .counter = act->counter};
	} else {
		n = bpf_map_lookup_elem(&rule_counts, &(__u32){act->counter});
		if (n)
			n->failed++;
	}
	return done(ctx, t, action);
}

static __always_inline int redirect(struct xdp_md *ctx, const __u8 *a, struct turn *t,
				    const struct ax_action *act)
{
	const struct ax_rewrite *rw;
	__u32 i = act->rewrite - 1u;

	opaque(i);
	if (i < layout.rewrites_n) {
		rw = (const void *)(a + layout.rewrites + i * sizeof(*rw));
		if (rewrite(ctx, &t->p, rw, act->flags & AX_ACTION_CHECKSUM) < 0)
			return failed(ctx, t, AX_REASON_REWRITE_FAILED);
	} else if (act->flags & AX_ACTION_CHECKSUM && t->p.fragment == AX_FRAGMENT_NONE &&
		   (t->p.has_l4 || t->p.has_icmp)) {
		if (checksum_anew(ctx, &t->p, &t->p.src, &t->p.dst) < 0)
			return failed(ctx, t, AX_REASON_REWRITE_FAILED);
	}
	return sent(ctx, t, act, AX_TO_DEVICE << AX_REDIRECT_TO_SHIFT | act->target,
		    bpf_redirect_map(&devices, act->target, XDP_DROP));
}

/* It goes where it is sent to, as it is. */
static __always_inline bool goes_on(const struct ax_action *act)
{
	return act->verdict == AX_VERDICT_PASS || act->verdict == AX_VERDICT_CPU ||
	       act->verdict == AX_VERDICT_ROUTE ||
	       (act->verdict == AX_VERDICT_REDIRECT && !act->rewrite);
}

static __always_inline int act_on(struct xdp_md *ctx, const __u8 *a, struct turn *t,
				  const struct ax_action *act)
{
	t->verdict = act->verdict;
	if (act->verdict == AX_VERDICT_DROP && act->flags & AX_ACTION_CATCH_ALL &&
	    let_through(ctx, a, t)) {
		t->verdict = AX_VERDICT_PASS;
		return done(ctx, t, XDP_PASS);
	}
	if (!account(ctx, a, t, act))
		return failed(ctx, t, AX_REASON_RATE_LIMITED);
	if (goes_on(act))
		let_pass(ctx, t);
	switch (act->verdict) {
	case AX_VERDICT_PASS:
		return done(ctx, t, XDP_PASS);
	case AX_VERDICT_DROP:
		return done(ctx, t, XDP_DROP);
	case AX_VERDICT_REFLECT:
		if (reflect(ctx, &t->p) < 0)
			return failed(ctx, t, AX_REASON_REWRITE_FAILED);
		return sent(ctx, t, act,
			    AX_TO_IFINDEX << AX_REDIRECT_TO_SHIFT | ctx->ingress_ifindex, XDP_TX);
	case AX_VERDICT_REDIRECT:
		return redirect(ctx, a, t, act);
	case AX_VERDICT_CPU:
		return sent(ctx, t, act, AX_TO_CPU << AX_REDIRECT_TO_SHIFT | act->target,
			    bpf_redirect_map(&cpus, act->target, XDP_PASS));
	case AX_VERDICT_ROUTE:
		return to_stage(ctx, t, act, AX_STAGE_ROUTE, layout.routes);
	case AX_VERDICT_CHALLENGE:
		return to_stage(ctx, t, act, AX_STAGE_CHALLENGE, layout.challenges);
	default:
		return to_balancer(ctx, t, act->target, false);
	}
}

/* An ICMP error about a flow of a balancer goes where the flow goes, whatever rules say of ICMP. */
static __always_inline int follow(struct xdp_md *ctx, const __u8 *a, struct turn *t)
{
	struct packet *q = quoted_get();
	const struct ax_action *act;
	__u32 rule;

	if (!q || !quote(ctx, &t->p, q))
		return -1;
	quoted_as_asked(&t->p, q);
	rule = match_quoted(ctx, a, q, t->len);
	act = action_of(a, rule);
	if (act->verdict != AX_VERDICT_BALANCE) {
		asked_as_quoted(q, &t->p);
		return -1;
	}
	t->rule = t->quoted_rule = (__u16)rule;
	t->verdict = AX_VERDICT_BALANCE;
	t->reason = AX_REASON_ICMP_ERROR;
	if (!account(ctx, a, t, act))
		return failed(ctx, t, AX_REASON_RATE_LIMITED);
	return to_balancer(ctx, t, act->target, true);
}

/* The answer of a NAT backend, or an ICMP error about what it was sent, goes to the client. */
static __always_inline int turn_back(struct xdp_md *ctx, struct turn *t)
{
	bool error = is_icmp_error(&t->p);
	const struct packet *p = &t->p;
	struct handover *h;

	if (!nat_ours(p) || (!error && !nat_possible(p)))
		return -1;
	h = bpf_map_lookup_elem(&handovers, &(__u32){0});
	if (!h || (error && !quote(ctx, p, &h->quoted)))
		return -1;
	if (error)
		p = &h->quoted;
	if ((error && !nat_possible(p)) || !nat_find(ctx, p, &h->nat, t->explain))
		return -1;
	t->verdict = AX_VERDICT_BALANCE;
	t->decided = AX_DECIDED_ANSWER;
	return hand_over(ctx, t, h, AX_STAGE_REVERSE, error);
}

static __always_inline int judge(struct xdp_md *ctx, struct turn *t)
{
	const __u8 *a = arena_get();
	int r;

	if (!a)
		return XDP_ABORTED;
	if (layout.nat || layout.answers) {
		r = turn_back(ctx, t);
		if (r >= 0)
			return r;
	}
	if (layout.balance_first && is_icmp_error(&t->p)) {
		r = follow(ctx, a, t);
		if (r >= 0)
			return r;
	}
	t->rule = (__u16)match_own(ctx, a, t);
	return act_on(ctx, a, t, action_of(a, t->rule));
}

/* --- odd packets --- */

/* Whether a class that a list lets through by default is to be dropped instead. */
static __always_inline bool drops_needed(void)
{
	return layout.policy[AX_REASON_ARP] == AX_POLICY_DROP ||
	       layout.policy[AX_REASON_NEIGHBOUR] == AX_POLICY_DROP ||
	       layout.policy[AX_REASON_MLD] == AX_POLICY_DROP ||
	       layout.policy[AX_REASON_ICMP_ERROR] == AX_POLICY_DROP ||
	       layout.policy[AX_REASON_EXPOSED] == AX_POLICY_DROP;
}

static __always_inline int parse_any(struct xdp_md *ctx, struct packet *p, __u32 len)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;

	packet_init(p);
	if ((void *)(eth + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP))
		return parse(ctx, p, len);
	p->ethertype_be = eth->h_proto;
	parse_ipv4(eth + 1, end, len - sizeof(*eth), p);
	return p->odd;
}

#define SHORT_FRAME 64 /* may be padded up to this, and has one buffer */

/* Whether the frame ends where its IP header says. */
static __always_inline bool ends_as_said(const struct packet *p, __u32 linear)
{
	return linear <= SHORT_FRAME || (__u32)p->l4_off + p->l4_len >= linear;
}

/* Reads the packet. What looks too long, or is not measured by an IP header, may go on in further
 * buffers (jumbo frames): only then it is worth asking how long it is altogether. */
static __always_inline void read_packet(struct xdp_md *ctx, struct turn *t)
{
	__u32 linear = ctx->data_end - ctx->data, full;

	t->len = linear;
	if (!parse_any(ctx, &t->p, linear) && ends_as_said(&t->p, linear))
		return;
	full = bpf_xdp_get_buff_len(ctx);
	if (full == linear)
		return;
	t->len = full;
	parse(ctx, &t->p, full);
	if (t->p.odd == AX_REASON_RUNT || t->p.odd == AX_REASON_BAD_HEADER ||
	    t->p.odd == AX_REASON_TOO_MANY_HEADERS)
		t->p.odd = AX_REASON_SPLIT;
}

SEC("xdp")
int ax_filter(struct xdp_md *ctx)
{
	struct turn t; /* its packet is filled in by the parser */
	int action;

	t.reason = AX_REASON_NONE;
	t.decided = AX_DECIDED_RULE;
	t.verdict = AX_VERDICT_PASS;
	t.explain = explaining(ctx);
	t.rule = layout.rules;
	t.quoted_rule = layout.rules;
	read_packet(ctx, &t);
	if (layout.field[AX_FIELD_STATE].used && t.explain)
		assume_state(ctx, &t.p);
	if (t.p.odd) {
		__u32 reason = strictest(&t.p);

		if (!t.explain)
			count_reason(reason);
		if (by_policy(&t, reason, &action))
			return done(ctx, &t, action);
	}
	if (drops_needed()) {
		__u32 reason = policy_class(ctx, &t);

		if (reason && layout.policy[reason] == AX_POLICY_DROP) {
			if (!t.explain)
				count_reason(reason);
			by_policy(&t, reason, &action);
			return done(ctx, &t, XDP_DROP);
		}
	}
	return judge(ctx, &t);
}

char LICENSE[] SEC("license") = "GPL";
