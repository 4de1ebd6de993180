// SPDX-License-Identifier: GPL-2.0-or-later
/* What lists for packets that leave an interface (`direction: egress`) do not have, and what they
 * alone have. */
#include "rules/defaults.h"
#include "rules/priv.h"

const char *const xdp_direction_names[2] = {
	[DIRECTION_INGRESS] = "ingress", [DIRECTION_EGRESS] = "egress"};

const char *xdp_direction_name(enum xdp_direction d)
{
	return d < ARRAY_SIZE(xdp_direction_names) ? xdp_direction_names[d] : NULL;
}

#define OTHERWISE "pass or drop: "

/* Why an action is for packets that come in alone. */
static const char *const why_not[] = {
	[AX_VERDICT_REFLECT] = OTHERWISE "what leaves came from this side, and reflect sends back "
					 "to the other",
	[AX_VERDICT_REDIRECT] = OTHERWISE "where packets leave was decided before, by this host's "
					  "routes",
	[AX_VERDICT_CPU] = OTHERWISE "what leaves is past the work that another CPU would do",
	[AX_VERDICT_BALANCE] = OTHERWISE "balancers take packets where they come in",
	[AX_VERDICT_ROUTE] = OTHERWISE "where packets leave was decided before, by this host's "
				       "routes",
	[AX_VERDICT_CHALLENGE] = OTHERWISE "who asks for connections here comes in",
};

/* NULL: it is for both directions. */
static const char *instead_of(enum ax_verdict v)
{
	if (v == AX_VERDICT_PASS || v == AX_VERDICT_DROP)
		return NULL;
	return v < ARRAY_SIZE(why_not) ? why_not[v] : OTHERWISE "it is for packets that come in";
}

static int tell(size_t rule, const char *found, const char *want,
		int (*f)(void *arg, const struct rule_fault *fault), void *arg)
{
	struct rule_fault fault = {.rule = rule};

	snprintf(fault.found, sizeof(fault.found), "%s", found);
	snprintf(fault.want, sizeof(fault.want), "%s", want);
	return f(arg, &fault);
}

static int check_header(const struct rule_list *l,
			int (*f)(void *arg, const struct rule_fault *fault), void *arg)
{
	const char *found = NULL, *want = NULL;

	if (l->mode != ATTACH_AUTO) {
		found = "a mode with direction: egress";
		want = "none: modes are XDP's, and what leaves is judged by tc";
	} else if (l->priority) {
		found = "a priority with direction: egress";
		want = "none: what leaves is judged behind all other programs, in its last form";
	} else if (l->n_balancers) {
		found = "a balancer with direction: egress";
		want = "none: balancers take packets where they come in";
	} else if (l->policy[AX_REASON_EXPOSED] != AX_POLICY_RULES) {
		found = "the class exposed with direction: egress";
		want = "rules: to exposed ports packets come in";
	}
	return found ? tell(SIZE_MAX, found, want, f, arg) : 0;
}

static int tell_rule(const struct rule_list *l, size_t i, const char *what, const char *want,
		     int (*f)(void *arg, const struct rule_fault *fault), void *arg)
{
	const struct rule *r = &l->rules[i];
	char found[QUOTED_LEN], who[80];

	snprintf(who, sizeof(who), r->name ? "rule %zu (%.40s)" : "rule %zu", i + 1, r->name);
	snprintf(found, sizeof(found), "%s with %s and direction: %s", who, what,
		 xdp_direction_name(l->direction));
	return tell(i, found, want, f, arg);
}

/* In a list for what comes in. */
static int check_incoming(const struct rule_list *l, size_t i,
			  int (*f)(void *arg, const struct rule_fault *fault), void *arg)
{
	if (condition_is_empty(&l->rules[i].in[AX_FIELD_MARK]))
		return 0;
	return tell_rule(l, i, "mark",
			 "no mark: packets have none where XDP sees them, before the kernel's "
			 "stack; lists with direction: egress know it, and rules of nft(8) do in "
			 "both directions",
			 f, arg);
}

static int check_rule(const struct rule_list *l, size_t i,
		      int (*f)(void *arg, const struct rule_fault *fault), void *arg)
{
	const struct rule *r = &l->rules[i];
	const char *want = instead_of(r->verdict);
	const char *what = "its action";

	if (!want && r->trigger) {
		what = "a trigger";
		want = "no trigger: what starts commands comes in";
	}
	return want ? tell_rule(l, i, what, want, f, arg) : 0;
}

int list_check_direction(const struct rule_list *l,
			 int (*f)(void *arg, const struct rule_fault *fault), void *arg)
{
	bool leaves = l->direction == DIRECTION_EGRESS;
	int code = leaves ? check_header(l, f, arg) : 0;

	for (size_t i = 0; i < l->n_rules && code == 0; i++)
		code = leaves ? check_rule(l, i, f, arg) : check_incoming(l, i, f, arg);
	return code;
}
