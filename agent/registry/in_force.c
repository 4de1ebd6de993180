// SPDX-License-Identifier: GPL-2.0-or-later
/* The rules that hold. */
#include <jansson.h>

#include "registry/in_force.h"
#include "base/address.h"
#include "base/log.h"
#include "config/added_rules.h"
#include "config/config.h"
#include "net/netlink.h"
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

/* Its own, or else the config's for apps like it. */
static struct ax_source source_of(const struct agent *a, const struct app *app)
{
	const struct policy_end end = {.labels = &app->spec.labels,
				       .cluster = a->policy.cluster,
				       .name = app->spec.name,
				       .egress = app_egress_id(app),
				       .own4 = app->vip4,
				       .own6 = app->vip6};
	struct ax_source s = {app->spec.egress.source4, app->spec.egress.source6};

	config_egress_sources(a->sources, a->n_sources, &end, &s.v4, &s.v6);
	return s;
}

void in_force_note(struct agent *a, struct app *app)
{
	app->leaves = policy_leaves(&a->policy, app->party);
	app->confined = policy_confines(&a->policy, app->party);
	app->source = source_of(a, app);
}

static void sources_free(struct config_egress *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		config_egress_free(&v[i]);
	free(v);
}

static bool is_source(const struct config_egress *v, size_t n, const struct ax_addr *addr)
{
	for (size_t i = 0; i < n; i++)
		if (addr_eq(&v[i].egress.source4, addr) || addr_eq(&v[i].egress.source6, addr))
			return true;
	return false;
}

/* (It may come later, as its interface does. Said once of each, and to whoever applies a config.)
 */
static void check_source(struct agent *a, bool known, const struct ax_addr *addr)
{
	char text[ADDR_STRLEN];
	bool local = true;
	json_t *line;

	if (addr_is_zero(addr) || (known && !a->warnings) ||
	    (nl_addr_is_local(a->nl, addr, &local) == 0 && local))
		return;
	log_warn("policy.egress: %s is no address of this machine: what goes out by it gets no "
		 "answers",
		 addr_format(addr, text));
	line = a->warnings ? json_sprintf("policy.egress: %s is no address of this machine: what "
					  "goes out by it gets no answers",
					  text)
			   : NULL;
	if (line)
		json_array_append_new(a->warnings, line);
}

/* A copy: apps come and go while there is another config. */
static int take_sources(struct agent *a, const struct config *c)
{
	struct config_egress *was = a->sources, *v = calloc(c->n_egress + 1, sizeof(*v));
	size_t n_was = a->n_sources, n = 0;
	int r = v ? 0 : -ENOMEM;

	for (size_t i = 0; i < c->n_egress && !r; i++) {
		const struct egress *e = &c->egress[i].egress;

		if (!egress_has_source(e))
			continue;
		r = config_side_copy(&c->egress[i].from, &v[n].from);
		v[n].egress.source4 = e->source4;
		v[n++].egress.source6 = e->source6;
		check_source(a, is_source(was, n_was, &e->source4), &e->source4);
		check_source(a, is_source(was, n_was, &e->source6), &e->source6);
	}
	if (r) {
		sources_free(v, n);
		return r;
	}
	sources_free(was, n_was);
	a->sources = v;
	a->n_sources = n;
	return 0;
}

static int tell(struct agent *a, struct app *app, struct error *e)
{
	const struct ax_source source = app->source;
	bool was = app->leaves, confined = app->confined;
	int r = 0;

	in_force_note(a, app);
	if (!addr_eq(&app->source.v4, &source.v4) || !addr_eq(&app->source.v6, &source.v6) ||
	    app->confined != confined)
		r = app_tell(a, app);
	if (r)
		return error_set(e, r, "cannot tell the kernel how %s goes out: %s", app->spec.name,
				 strerror(-r));
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
static int make_rules(struct agent *a, const struct config *c, const struct config *shared,
		      const struct egress_of *others, size_t n, struct config_rule **ret,
		      size_t *n_ret, struct error *e)
{
	size_t most = count(a->apps) + count(a->lingering) + n;
	autofree struct egress_of *v = calloc(most + 1, sizeof(*v));
	struct lists l = {.v = v};
	const struct config_beside beside = {
		.services = a->added_config, .added = a->added_rules, .shared = shared};

	if (!v)
		return error_set(e, -ENOMEM, "out of memory");
	add(&l, a->apps);
	add(&l, a->lingering);
	for (size_t i = 0; i < n; i++)
		l.v[l.n++] = others[i];
	return egress_rules(c, &beside, l.v, l.n, ret, n_ret, e);
}

static int apply(struct agent *a, const struct config *c, const struct egress_of *others, size_t n,
		 struct error *e)
{
	const uint32_t set = a->ctl.rule_set;
	struct config_rule *rules;
	size_t n_rules;
	int r = make_rules(a, c, a->shared_config, others, n, &rules, &n_rules, e);

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
	if (!r && take_sources(a, c))
		r = error_set(e, -ENOMEM, "out of memory");
	for (struct app *app = a->apps; app && !r; app = app->next)
		r = tell(a, app, e);
	return r;
}

int in_force_room(struct agent *a, const struct config *c, const struct config *shared,
		  struct error *e)
{
	struct config_rule *rules;
	size_t n;
	int r = make_rules(a, c, shared, NULL, 0, &rules, &n, e);

	if (!r)
		config_rules_free(rules, n);
	return r && !e->text[0] ? error_set(e, r, "out of memory") : r;
}

static bool rules_name(const struct config *c, const char *service)
{
	for (size_t i = 0; c && i < c->n_rules; i++)
		if (config_side_has_name(&c->rules[i].from, service) ||
		    config_side_has_name(&c->rules[i].to, service))
			return true;
	return false;
}

bool in_force_names(const struct agent *a, const char *service)
{
	if (rules_name(&a->config, service) || rules_name(a->shared_config, service))
		return true;
	for (size_t i = 0; i < a->config.n_egress; i++)
		if (config_side_has_name(&a->config.egress[i].from, service))
			return true;
	return added_rules_have_name(a->added_rules, service);
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
	sources_free(a->sources, a->n_sources);
	a->sources = NULL;
	a->n_sources = 0;
}
