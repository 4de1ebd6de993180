/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where apps may go outside ax, in words that flags, the file and the control socket share. A list
 * becomes rules behind those of `policy: rules:`: one that allows for each entry, and one that
 * denies the rest.
 */
#ifndef AX_CONFIG_EGRESS_H
#define AX_CONFIG_EGRESS_H

#include "base/address.h"
#include "base/strv.h"
#include "config/policy.h"

enum egress_mode {
	EGRESS_DEFAULT, /* of apps with a network of their own: none; of others: all */
	EGRESS_NONE,
	EGRESS_ALL,
	EGRESS_LIST,
};

struct egress {
	enum egress_mode mode;
	bool audit;			 /* what is not in the list is only counted */
	struct strv to;			 /* entries of a list, as egress_entry() takes them */
	struct ax_addr source4, source6; /* of the host; zero: what the route says */
};
void egress_free(struct egress *e);
int egress_copy(const struct egress *from, struct egress *to);
bool egress_eq(const struct egress *a, const struct egress *b);
static inline bool egress_has_source(const struct egress *e)
{
	return !addr_is_zero(&e->source4) || !addr_is_zero(&e->source6);
}

#define EGRESS_ENTRIES_MAX 256 /* of a list */

/* "DEST[:PORT[-PORT]][/tcp|/udp|/icmp]", DEST an address, a prefix ("[...]" for IPv6 with a port)
 * or a name of the DNS: into the rule's `to`, ports and protocols (rule NULL: only looked at).
 * Returns NULL, or what was expected instead; *r is -ENOMEM where memory is out, else 0. */
const char *want_egress_entry(const char *s, struct config_rule *rule, int *r);
/* "all", "none", or entries with commas. Leaves audit and source alone. */
const char *want_egress(const char *s, struct egress *e, int *r);
/* The same for flags. */
int spec_parse_egress(const char *s, struct egress *e, struct error *err);
/* "all", "none", "10.0.0.0/8:443,*.example.com", "" for the default; malloc'ed. */
char *egress_format(const struct egress *e);

/* What apps have in common whose lists say the same: not 0. 0: there are no rules for it. */
uint64_t egress_id(const struct egress *e);
/* Whether it lets an app out where no rule says a word. */
bool egress_is_open(const struct egress *e, bool host_mode);

/* An entry of `policy: egress:`. EGRESS_DEFAULT: it has a source and nothing else. */
struct config_egress {
	struct config_side from;
	char *name; /* of its rules, NULL: none */
	struct egress egress;
};
void config_egress_free(struct config_egress *e);
bool config_egress_eq(const struct config_egress *a, const struct config_egress *b);
/* The sources of the first of them that speak of that app, one of each family; none: left alone. */
void config_egress_sources(const struct config_egress *v, size_t n, const struct policy_end *app,
			   struct ax_addr *source4, struct ax_addr *source6);

/* An app whose list is to hold. */
struct egress_of {
	const char *name;
	const struct egress *egress;
};

struct config;
struct added_rules;
/* What holds besides a config. NULL: nothing. */
struct config_beside {
	const struct config *services; /* that rules may name */
	const struct added_rules *added;
	const struct config *shared; /* services, and rules behind the config's and the added */
};
/* All rules that hold: the config's with those added among them, the shared ones, then those of its
 * lists, its apps' and the others', each list once. beside may be NULL. -ENOMEM, or -ENOSPC with a
 * sentence. Free them with config_rules_free(). */
int egress_rules(const struct config *c, const struct config_beside *beside,
		 const struct egress_of *others, size_t n, struct config_rule **ret, size_t *n_ret,
		 struct error *e);
void config_rules_free(struct config_rule *v, size_t n);

#endif
