/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rules beside those of the config's `policy: rules:`, and where among them they stand. Each is put
 * there in the order in which they were added, so that the same list always makes the same order.
 */
#ifndef AX_CONFIG_ADDED_RULES_H
#define AX_CONFIG_ADDED_RULES_H

#include "config/policy.h"

struct config;

enum rule_place {
	RULE_FIRST, /* before all that are there when it is put there */
	RULE_LAST,  /* and behind them; before what egress lists become */
	RULE_BEFORE,
	RULE_AFTER,
};
#define RULE_PLACES 4
const char *rule_place_name(enum rule_place p);

struct added_rule {
	const struct config_rule *rule; /* has a name */
	enum rule_place place;
	const char *at; /* RULE_BEFORE, RULE_AFTER: added_rule_key() of one of the config or of one
			   that was added earlier */
};
struct added_rules {
	struct added_rule *v;
	size_t n;
};

/* What a rule is known by when others come and go: its name, or else what it says. malloc'ed, NULL:
 * out of memory. */
char *added_rule_key(const struct config_rule *r);
/* The first of them that is known by that key; n: none. */
size_t added_rule_find(const struct config_rule *v, size_t n, const char *key);

/* Whether the config has a rule or an egress list of that name: an added rule of it is left out. */
bool config_has_rule(const struct config *c, const char *name);

/*
 * Puts copies of them among the rules of c. One whose neighbour is not there any more comes where
 * it lets the least through: first if it denies or tells, last if it allows. 0 or -ENOMEM.
 */
int added_rules_place(const struct added_rules *a, const struct config *c, struct config_rule **v,
		      size_t *n);
/* The first whose neighbour neither c nor they themselves have; NULL: none. */
const struct added_rule *added_rules_lost(const struct added_rules *a, const struct config *c);
/* Whether one of them names that service or app. NULL has none. */
bool added_rules_have_name(const struct added_rules *a, const char *name);

#endif
