// SPDX-License-Identifier: GPL-2.0-or-later
/* What rules do: actions, limits and rewrites. */
#include <arpa/inet.h>

#include "compile/priv.h"
#include "rules/defaults.h"

#define UNITS_PER_SECOND (1000000000ull << AX_LIMIT_NS_SHIFT)
/* A frame of 65535 bytes then costs less than 1 << 63. It is 4 bit/s, the slowest there is. */
#define BYTE_COST_MAX ((1ull << 47) - 1)
/* 208 days: so that a stamp never overflows, whatever burst somebody wants. */
#define TOLERANCE_MAX (1ull << 60)

static uint64_t divide_rounded(uint64_t a, uint64_t b)
{
	return a / b + (a % b >= b - a % b);
}

static uint64_t at_most(unsigned __int128 v, uint64_t max)
{
	return v < max ? (uint64_t)v : max;
}

/* The agent is woken up for every datagram of a trigger, so there is always a limit. */
static bool is_limited(const struct rule *r)
{
	return r->rate || r->trigger;
}

/* The first packet of a burst is let through whatever the tolerance is, so it is not part of it. */
static struct ax_limit limit_of(const struct rule *r)
{
	struct ax_limit l = {
		.bytes = r->rate_bits,
		.per_source = r->per_source,
		.len4 = r->per4,
		.len6 = r->per6,
	};
	uint64_t rate = r->rate ? r->rate : TRIGGER_RATE, burst = r->rate ? r->burst : TRIGGER_RATE;
	unsigned __int128 more = burst ? burst - 1 : 0;
	uint64_t cost;

	if (r->rate_bits) {
		cost = divide_rounded(8 * UNITS_PER_SECOND << AX_LIMIT_BYTE_SHIFT, rate);
		cost = at_most(cost, BYTE_COST_MAX);
		l.tolerance = at_most(more * cost >> AX_LIMIT_BYTE_SHIFT, TOLERANCE_MAX);
	} else {
		cost = divide_rounded(UNITS_PER_SECOND, rate);
		l.tolerance = at_most(more * cost, TOLERANCE_MAX);
	}
	l.cost = cost ? cost : 1;
	return l;
}

static struct ax_rewrite rewrite_of(const struct rule *r)
{
	struct ax_rewrite w = {.dst = r->to, .dport_be = htons(r->to_port), .flags = r->rewrite};

	memcpy(w.smac, r->smac, sizeof(w.smac));
	memcpy(w.dmac, r->dmac, sizeof(w.dmac));
	return w;
}

static uint16_t flags_of(const struct rule *r, const struct rule_binding *bind)
{
	uint16_t f = bind->off ? AX_ACTION_OFF : 0;

	if (rule_takes_any_packet(r))
		f |= AX_ACTION_CATCH_ALL;
	if (r->capture && r->capture_ring)
		f |= AX_ACTION_RING;
	if (r->capture && r->slot)
		f |= AX_ACTION_SLOT;
	if (r->capture && r->capture_frame)
		f |= AX_ACTION_FRAME;
	if (r->log)
		f |= AX_ACTION_LOG;
	if (r->trigger)
		f |= AX_ACTION_TRIGGER;
	if (r->checksum)
		f |= AX_ACTION_CHECKSUM;
	if (!condition_is_empty(&r->in[AX_FIELD_STATE]))
		f |= AX_ACTION_ASKS_STATE;
	if (!condition_is_empty(&r->in[AX_FIELD_PAYLOAD]) ||
	    !condition_is_empty(&r->in[AX_FIELD_NAME]))
		f |= AX_ACTION_ASKS_PAYLOAD;
	return f;
}

static int target_of(struct compiler *c, uint32_t i, const struct rule_binding *bind, uint16_t *ret)
{
	const struct rule *r = c->rules[i];
	const struct balancer *b;

	*ret = 0;
	if (r->verdict == AX_VERDICT_REDIRECT || r->verdict == AX_VERDICT_CPU)
		*ret = bind->target;
	if (r->verdict != AX_VERDICT_BALANCE)
		return 0;
	b = r->target ? rule_list_balancer(c->list, r->target) : NULL;
	if (!b)
		return error_set(c->e, -ENOENT,
				 "rule %u names the balancer %s, which is not defined: define it",
				 c->list_rule[i] + 1u, r->target ? r->target : "(none)");
	*ret = (uint16_t)(b - c->list->balancers);
	return 0;
}

static int action_of(struct compiler *c, uint32_t i, const struct rule_binding *bind,
		     struct ax_action *a)
{
	const struct rule *r = c->rules[i];

	*a = (struct ax_action){
		.verdict = (uint8_t)r->verdict,
		.flags = flags_of(r, bind),
		.counter = bind->counter,
		.capture = (uint16_t)(r->capture < AX_CAPTURE_MAX ? r->capture : AX_CAPTURE_MAX),
		.slot = (uint8_t)bind->slot,
		.rule = c->list_rule[i],
		.sample = r->sample,
	};
	return target_of(c, i, bind, &a->target);
}

/* Limits and rewrites of all rules that have one. */
struct parts {
	struct ax_limit *limits;
	struct ax_rewrite *rewrites;
	struct ax_learn *learns;
	uint16_t n_limits, n_rewrites, n_learns;
};

static void parts_free(struct parts *p)
{
	free(p->limits);
	free(p->rewrites);
	free(p->learns);
}

static bool is_companion(const struct compiler *c, uint32_t i)
{
	return i > 0 && c->list_rule[i] == c->list_rule[i - 1];
}

/* A companion shares its rule's: it comes behind it. */
static void add_parts(const struct compiler *c, uint32_t i, struct ax_action *a, struct parts *p)
{
	const struct rule *r = c->rules[i];

	if (is_limited(r)) {
		if (!is_companion(c, i))
			p->limits[p->n_limits++] = limit_of(r);
		a->limit = p->n_limits;
	}
	if (r->rewrite) {
		if (!is_companion(c, i))
			p->rewrites[p->n_rewrites++] = rewrite_of(r);
		a->rewrite = p->n_rewrites;
	}
	if (r->learn) {
		if (!is_companion(c, i))
			p->learns[p->n_learns++] = learn_of(c, r);
		a->learn = p->n_learns;
	}
}

static int write_part(struct arena *a, const void *v, size_t n, size_t size, uint32_t *ret,
		      uint32_t *ret_n)
{
	int64_t at = arena_add(a, n * size, 64);

	if (at < 0)
		return (int)at;
	if (n)
		memcpy(a->data + at, v, n * size);
	*ret = (uint32_t)at;
	*ret_n = (uint32_t)n;
	return 0;
}

int compile_actions(struct compiler *c, struct arena *a, struct ax_layout *layout)
{
	const struct rule_binding *bind = c->bind;
	uint32_t n = c->shape.rules;
	struct parts p CLEANUP(parts_free) = {
		.limits = calloc(n + 1, sizeof(*p.limits)),
		.rewrites = calloc(n + 1, sizeof(*p.rewrites)),
		.learns = calloc(n + 1, sizeof(*p.learns)),
	};
	autofree struct ax_action *actions = calloc(n + 1, sizeof(*actions));
	uint32_t n_actions;
	int r = 0;

	if (!p.limits || !p.rewrites || !p.learns || !actions)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && r == 0; i++) {
		r = action_of(c, i, &bind[c->list_rule[i]], &actions[i]);
		if (r == 0)
			add_parts(c, i, &actions[i], &p);
	}
	actions[n] = (struct ax_action){
		.verdict = (uint8_t)c->list->default_action,
		.flags = AX_ACTION_CATCH_ALL,
		.counter = bind[c->list->n_rules].counter,
		.rule = (uint16_t)c->list->n_rules,
	};
	layout->rules = n;
	if (r == 0)
		r = write_part(a, actions, n + 1, sizeof(*actions), &layout->actions, &n_actions);
	if (r == 0)
		r = write_part(a, p.limits, p.n_limits, sizeof(*p.limits), &layout->limits,
			       &layout->limits_n);
	if (r == 0)
		r = write_part(a, p.rewrites, p.n_rewrites, sizeof(*p.rewrites), &layout->rewrites,
			       &layout->rewrites_n);
	if (r == 0)
		r = write_part(a, p.learns, p.n_learns, sizeof(*p.learns), &layout->learns,
			       &layout->learns_n);
	return r;
}
