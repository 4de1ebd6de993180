// SPDX-License-Identifier: GPL-2.0-or-later
/* The rules that hold. */
#include "registry/in_force.h"
#include "config/config.h"
#include "registry/app_record.h"
#include "registry/app_table.h"
#include "registry/parties.h"
#include "registry/state.h"
#include "registry/vips.h"

struct lists {
	struct egress_of *v;
	size_t n;
};

static size_t count(const struct app *app)
{
	size_t n = 0;

	for (; app; app = app->next)
		n++;
	return n;
}

static void add(struct lists *l, const struct app *app)
{
	for (; app; app = app->next)
		l->v[l->n++] = (struct egress_of){app->spec.name, &app->spec.egress};
}

void in_force_note(struct agent *a, struct app *app)
{
	app->leaves = policy_leaves(&a->policy, app->party);
}

static int tell(struct agent *a, struct app *app, struct error *e)
{
	bool was = app->leaves;
	int r;

	in_force_note(a, app);
	if (app->leaves == was)
		return 0;
	r = vip_resync(a, &app->vip4, e);
	return r ? r : vip_resync(a, &app->vip6, e);
}

static void swap(struct agent *a, struct config_rule **v, size_t *n)
{
	struct config_rule *rules = a->rules;
	size_t n_rules = a->n_rules;

	a->rules = *v;
	a->n_rules = *n;
	*v = rules;
	*n = n_rules;
	a->policy.rules = a->rules;
	a->policy.n_rules = a->n_rules;
}

/* The names of the lists are copied, so that those who have them may go meanwhile. */
static int make_rules(struct agent *a, const struct config *c, const struct egress_of *others,
		      size_t n, struct config_rule **ret, size_t *n_ret, struct error *e)
{
	size_t most = count(a->apps) + count(a->lingering) + n;
	autofree struct egress_of *v = calloc(most + 1, sizeof(*v));
	struct lists l = {.v = v};

	if (!v)
		return error_set(e, -ENOMEM, "out of memory");
	add(&l, a->apps);
	add(&l, a->lingering);
	for (size_t i = 0; i < n; i++)
		l.v[l.n++] = others[i];
	return egress_rules(c, l.v, l.n, ret, n_ret, e);
}

static int apply(struct agent *a, const struct config *c, const struct egress_of *others, size_t n,
		 struct error *e)
{
	const uint32_t set = a->ctl.rule_set;
	struct config_rule *rules;
	size_t n_rules;
	int r = make_rules(a, c, others, n, &rules, &n_rules, e);

	if (r)
		return r;
	r = parties_apply(a, rules, n_rules, e);
	if (!r || a->ctl.rule_set != set) {
		swap(a, &rules, &n_rules);
	} else { /* the old ones hold */
		a->policy.rules = a->rules;
		a->policy.n_rules = a->n_rules;
	}
	config_rules_free(rules, n_rules);
	return r;
}

static bool knows_all(const struct agent *a)
{
	for (const struct app *app = a->apps; app; app = app->next)
		if (!in_force_has(a, &app->spec.egress))
			return false;
	return true;
}

int in_force_apply(struct agent *a, const struct config *c, const struct egress_of *others,
		   size_t n, struct error *e)
{
	int r = apply(a, c, others, n, e);

	/* who came meanwhile, by the list of one that has gone */
	if (!r && !knows_all(a))
		r = apply(a, c, others, n, e);
	for (struct app *app = a->apps; app && !r; app = app->next)
		r = tell(a, app, e);
	return r;
}

bool in_force_has(const struct agent *a, const struct egress *e)
{
	uint64_t id = egress_id(e);

	for (size_t i = 0; i < a->n_rules && id; i++) {
		const struct config_side *from = &a->rules[i].from;

		if (from->n && from->v[0].kind == WHO_EGRESS && from->v[0].egress == id)
			return true;
	}
	return !id;
}

void in_force_free(struct agent *a)
{
	config_rules_free(a->rules, a->n_rules);
	a->rules = NULL;
	a->n_rules = 0;
}
