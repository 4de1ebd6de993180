// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/added_rules.h"
#include "config/config.h"
#include "rules/priv.h"

static const char *const places[RULE_PLACES] = {"first", "last", "before", "after"};

const char *rule_place_name(enum rule_place p)
{
	return places[p];
}

/* A name has no blank, and what a rule says has several. */
char *added_rule_key(const struct config_rule *r)
{
	return r->name ? strdup(r->name) : config_rule_text(r);
}

static bool has_key(const struct config_rule *r, const char *key)
{
	autofree char *text = NULL;

	if (r->name || !strchr(key, ' '))
		return r->name && streq(r->name, key);
	text = config_rule_text(r);
	return text && streq(text, key);
}

size_t added_rule_find(const struct config_rule *v, size_t n, const char *key)
{
	size_t i = 0;

	while (i < n && !has_key(&v[i], key))
		i++;
	return i;
}

bool config_has_rule(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_egress; i++)
		if (c->egress[i].name && streq(c->egress[i].name, name))
			return true;
	return added_rule_find(c->rules, c->n_rules, name) < c->n_rules;
}

static size_t place_of(const struct added_rule *a, const struct config_rule *v, size_t n)
{
	size_t at;

	if (a->place == RULE_FIRST || a->place == RULE_LAST)
		return a->place == RULE_FIRST ? 0 : n;
	at = added_rule_find(v, n, a->at);
	if (at == n)
		return a->rule->action == RULE_ALLOW ? n : 0;
	return at + (a->place == RULE_AFTER);
}

/* (The config's services are in its own rules since it was read.) */
static int copy_one(const struct added_rule *a, const struct config *c, struct config_rule *ret)
{
	int r = config_rule_copy(a->rule, ret);

	if (r)
		return r;
	ret->origin = RULE_ADDED;
	ret->audit |= c->policy_audit && ret->action == RULE_DENY;
	r = config_side_derive(&ret->from, c->services, c->n_services);
	r = r ? r : config_side_derive(&ret->to, c->services, c->n_services);
	if (r)
		config_rule_free(ret);
	return r;
}

int added_rules_place(const struct added_rules *a, const struct config *c, struct config_rule **v,
		      size_t *n)
{
	for (size_t i = 0; a && i < a->n; i++) {
		struct config_rule one;
		size_t at;
		int r;

		if (config_has_rule(c, a->v[i].rule->name))
			continue;
		r = array_grow(v, *n, sizeof(**v));
		r = r ? r : copy_one(&a->v[i], c, &one);
		if (r)
			return r;
		at = place_of(&a->v[i], *v, *n);
		memmove(*v + at + 1, *v + at, (*n - at) * sizeof(**v));
		(*v)[at] = one;
		++*n;
	}
	return 0;
}

/* (One that the config takes over stands beside nobody, if that is an egress list.) */
static bool is_added(const struct added_rules *a, size_t before, const char *name,
		     const struct config *c)
{
	for (size_t i = 0; i < before; i++)
		if (streq(a->v[i].rule->name, name))
			return !config_has_rule(c, name);
	return false;
}

const struct added_rule *added_rules_lost(const struct added_rules *a, const struct config *c)
{
	for (size_t i = 0; a && i < a->n; i++) {
		const char *at = a->v[i].at;

		if (at && !config_has_rule(c, a->v[i].rule->name) &&
		    added_rule_find(c->rules, c->n_rules, at) == c->n_rules &&
		    !is_added(a, i, at, c))
			return &a->v[i];
	}
	return NULL;
}

bool added_rules_have_name(const struct added_rules *a, const char *name)
{
	for (size_t i = 0; a && i < a->n; i++)
		if (config_side_has_name(&a->v[i].rule->from, name) ||
		    config_side_has_name(&a->v[i].rule->to, name))
			return true;
	return false;
}
