// SPDX-License-Identifier: GPL-2.0-or-later
/* What no rule can know alone: that all that a list names is there, once, and fits. */
#include "rules/field.h"
#include "rules/priv.h"

#include <search.h>

struct checker {
	const struct rule_list *l;
	const char **set_names, **balancer_names; /* for the hints */
	void *names;				  /* strings, as a tree */
	size_t n_slots;
	int (*found)(void *arg, const struct rule_fault *fault);
	void *arg;
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void free_nothing(void *p)
{
	(void)p;
}

static int tell(const struct checker *c, size_t rule, const char *found, const char *want)
{
	struct rule_fault f = {.rule = rule};

	snprintf(f.found, sizeof(f.found), "%s", found);
	snprintf(f.want, sizeof(f.want), "%s", want);
	return c->found(c->arg, &f);
}

/* "rule 3 (ssh)" */
static void describe_rule(const struct checker *c, size_t i, char buf[96])
{
	const char *name = c->l->rules[i].name;

	snprintf(buf, 96, name ? "rule %zu (%s)" : "rule %zu", i + 1, name);
}

/* 1: the name was there before. */
static int claim_name(void **tree, const char *name)
{
	const char **found = tsearch(name, tree, compare_names);

	if (!found)
		return -ENOMEM;
	return *found != name;
}

/* --- names that rules use --- */

static int check_set(struct checker *c, size_t rule, const char *key, const char *name,
		     enum set_kind kind)
{
	const struct rule_set_def *set = rule_list_set(c->l, name);
	char found[QUOTED_LEN], want[200], hint[96], who[96];

	if (set && set->kind == kind)
		return 0;
	describe_rule(c, rule, who);
	snprintf(found, sizeof(found), "%s with %s @%s", who, key, name);
	if (set)
		snprintf(want, sizeof(want), "a set of %s there, not of %s", set_kind_name(kind),
			 set_kind_name(set->kind));
	else
		snprintf(want, sizeof(want), "a set that is defined%s",
			 value_hint(name, c->set_names, c->l->n_sets, hint));
	return tell(c, rule, found, want);
}

static int check_sets(struct checker *c, size_t rule)
{
	const struct rule *r = &c->l->rules[rule];
	int code = 0;

	for (size_t i = 0; i < AX_FIELDS; i++) {
		const struct rule_field *row = &rule_fields[i];
		const struct strv *sets = &r->in[row->number].sets;

		for (size_t j = 0; j < sets->n && code == 0; j++)
			code = check_set(c, rule, row->keys[0].name, sets->v[j],
					 field_set_kind(row));
	}
	if (r->learn && code == 0)
		code = check_set(c, rule, "learn", r->learn,
				 r->learn_flow ? SET_FLOWS : SET_PREFIXES);
	return code;
}

static int check_balance(struct checker *c, size_t rule)
{
	const struct rule *r = &c->l->rules[rule];
	char found[QUOTED_LEN], want[200], hint[96], who[96];

	if (r->verdict != AX_VERDICT_BALANCE || !r->target || rule_list_balancer(c->l, r->target))
		return 0;
	describe_rule(c, rule, who);
	snprintf(found, sizeof(found), "%s with balance %s", who, r->target);
	snprintf(want, sizeof(want), "a balancer that is defined%s",
		 value_hint(r->target, c->balancer_names, c->l->n_balancers, hint));
	return tell(c, rule, found, want);
}

static int check_slot(struct checker *c, size_t rule, void **slots)
{
	const char *slot = c->l->rules[rule].slot;
	char who[96];
	int taken = slot ? claim_name(slots, slot) : 1;

	if (taken)
		return taken < 0 ? taken : 0;
	if (++c->n_slots != AX_SLOTS + 1)
		return 0;
	describe_rule(c, rule, who);
	return tell(c, rule, who, "at most 64 different slots in a list");
}

static int check_rules(struct checker *c, void **names, void **slots)
{
	const struct rule_list *l = c->l;
	int code = 0;

	if (l->n_rules > AX_XDP_RULES_MAX)
		return tell(c, SIZE_MAX, "too many rules",
			    "at most 16384; one rule with a set does the work of many");
	for (size_t i = 0; i < l->n_rules && code == 0; i++) {
		const char *name = l->rules[i].name;
		int taken = name ? claim_name(names, name) : 0;
		char who[96];

		if (taken < 0)
			return taken;
		if (taken) {
			describe_rule(c, i, who);
			code = tell(c, i, who, "a name that no rule before it has");
		}
		if (code == 0)
			code = check_sets(c, i);
		if (code == 0)
			code = check_balance(c, i);
		if (code == 0)
			code = check_slot(c, i, slots);
	}
	return code;
}

/* --- what is defined --- */

static int check_defined(struct checker *c, const char *what, const char *const *all, size_t n,
			 size_t max)
{
	char found[QUOTED_LEN], want[64];
	void *names = NULL;
	int code = 0;

	if (n > max) {
		snprintf(found, sizeof(found), "too many %ss", what);
		snprintf(want, sizeof(want), "at most %zu", max);
		return tell(c, SIZE_MAX, found, want);
	}
	for (size_t i = 0; i < n && code == 0; i++) {
		int taken = claim_name(&names, all[i]);

		snprintf(found, sizeof(found), "%s %.80s twice", what, all[i]);
		if (taken < 0)
			code = taken;
		else if (taken)
			code = tell(c, SIZE_MAX, found, "each name once");
	}
	tdestroy(names, free_nothing);
	return code;
}

static int compare_backends(const void *a, const void *b)
{
	const struct balance_backend *x = a, *y = b;
	int c = addr_cmp(&x->addr, &y->addr);

	return c ? c : (int)x->port - (int)y->port;
}

/* Those without a number last. */
static int compare_quic_ids(const void *a, const void *b)
{
	const struct balance_backend *x = a, *y = b;

	if (x->has_quic_id != y->has_quic_id)
		return x->has_quic_id ? -1 : 1;
	if (addr_is_v4(&x->addr) != addr_is_v4(&y->addr))
		return addr_is_v4(&x->addr) ? -1 : 1;
	return (int)x->quic_id - (int)y->quic_id;
}

/* A backend that is there twice, or one whose number of connection ids is (with `by_id`); *twice is
 * it then. -ENOMEM. */
static int find_twice(const struct balancer *b, bool by_id, struct balance_backend *twice)
{
	autofree struct balance_backend *v = array_new(b->n, sizeof(*v));

	if (b->n && !v)
		return -ENOMEM;
	if (b->n < 2)
		return 0;
	memcpy(v, b->backends, b->n * sizeof(*v));
	qsort(v, b->n, sizeof(*v), by_id ? compare_quic_ids : compare_backends);
	for (size_t i = 1; i < b->n; i++) {
		if (by_id ? balance_backend_same_id(&v[i - 1], &v[i])
			  : compare_backends(&v[i - 1], &v[i]) == 0) {
			*twice = v[i];
			return 1;
		}
	}
	return 0;
}

static int check_balancer(struct checker *c, const struct balancer *b)
{
	char found[QUOTED_LEN], addr[ADDR_STRLEN];
	struct balance_backend twice;
	int code;

	for (size_t i = 0; b->mode != BALANCE_NAT && i < b->n; i++) {
		if (!b->backends[i].port)
			continue;
		snprintf(found, sizeof(found), "balancer %s with a backend's port", b->name);
		return tell(c, SIZE_MAX, found,
			    "no ports with ipip and gue: the packet inside keeps its own");
	}
	code = find_twice(b, false, &twice);
	if (code > 0) {
		snprintf(found, sizeof(found), "balancer %s with %s twice", b->name,
			 addr_format(&twice.addr, addr));
		return tell(c, SIZE_MAX, found, "each backend once (a weight gives it more)");
	}
	code = code < 0 ? code : find_twice(b, true, &twice);
	if (code <= 0)
		return code;
	snprintf(found, sizeof(found), "balancer %s with quic-id %u twice", b->name, twice.quic_id);
	return tell(c, SIZE_MAX, found, "another quic-id for each backend of a family");
}

static int check_header(struct checker *c)
{
	const struct rule_list *l = c->l;
	int code = 0;

	if (l->default_action != AX_VERDICT_PASS && l->default_action != AX_VERDICT_DROP)
		code = tell(c, SIZE_MAX, "the default action", "pass or drop");
	if (code == 0 && l->priority > PRIORITY_MAX)
		code = tell(c, SIZE_MAX, "the priority", "1 to 65535");
	return code;
}

static int check_all(struct checker *c)
{
	const struct rule_list *l = c->l;
	void *names = NULL, *slots = NULL;
	int code = check_header(c);
	size_t backends = 0;

	if (code == 0)
		code = list_check_direction(l, c->found, c->arg);
	for (size_t i = 0; i < l->n_sets; i++)
		c->set_names[i] = l->sets[i].name;
	for (size_t i = 0; i < l->n_balancers; i++)
		c->balancer_names[i] = l->balancers[i].name;
	if (code == 0)
		code = check_defined(c, "set", c->set_names, l->n_sets, SETS_MAX);
	if (code == 0)
		code = check_defined(c, "balancer", c->balancer_names, l->n_balancers,
				     BALANCERS_MAX);
	for (size_t i = 0; i < l->n_balancers && code == 0; i++) {
		code = check_balancer(c, &l->balancers[i]);
		backends += l->balancers[i].n;
	}
	if (code == 0 && backends > AX_REALS_MAX)
		code = tell(c, SIZE_MAX, "too many backends",
			    "at most 4096 in all balancers of a list");
	if (code == 0)
		code = check_rules(c, &names, &slots);
	if (code == 0)
		code = list_check_timed(l, c->found, c->arg);
	tdestroy(names, free_nothing);
	tdestroy(slots, free_nothing);
	return code;
}

int rule_list_each_fault(const struct rule_list *l,
			 int (*f)(void *arg, const struct rule_fault *fault), void *arg)
{
	autofree const char **sets = calloc(l->n_sets + 1, sizeof(*sets));
	autofree const char **balancers = calloc(l->n_balancers + 1, sizeof(*balancers));
	struct checker c = {
		.l = l, .set_names = sets, .balancer_names = balancers, .found = f, .arg = arg};

	return sets && balancers ? check_all(&c) : -ENOMEM;
}

static int note_first(void *arg, const struct rule_fault *f)
{
	return error_set(arg, -EINVAL, "%s is not valid: use %s", f->found, f->want);
}

int rule_list_check(const struct rule_list *l, struct error *e)
{
	int r = rule_list_each_fault(l, note_first, e);

	return r == -ENOMEM ? error_set(e, r, "there is no memory to check the rules") : r;
}
