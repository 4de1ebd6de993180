/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What somebody expects of a config's policy, and whether the config says so: for `ax policy test`.
 * Nothing is opened here and no agent is asked; one that is judges by the same functions. */
#ifndef AX_CONFIG_EXPECT_H
#define AX_CONFIG_EXPECT_H

#include "config/config.h"
#include "yaml/errors.h"

enum expected { EXPECT_ALLOW, EXPECT_DENY, EXPECT_AUDIT };
const char *expected_name(enum expected x);

/* An app of the config, one that it does not have (then labels are given), an address, or a name of
 * the DNS outside. */
struct expect_end {
	char *name;	      /* NULL: labels, address or names */
	struct labels labels; /* instead of the config's */
	bool labelled;
	struct ax_addr addr; /* zero: an app, or a name outside */
	struct strv names;   /* one of the DNS, or none */
};

struct expectation {
	unsigned line, column;
	char *title; /* NULL: none */
	struct expect_end from, to;
	uint16_t port; /* host byte order */
	uint8_t proto;
	enum expected expected;
	int rule;	 /* its index, -1: whichever */
	char *rule_name; /* or its name; NULL */
	bool no_rule;	 /* labels, or what holds for the outside, decide */
};

struct expectations {
	char *config; /* a path, or the text of a config (it has several lines); NULL: not given */
	unsigned config_line;
	struct expectation *v;
	size_t n;
};

/* -EINVAL with errors, -ENOMEM. For expectations_free() in any case. */
int expectations_parse(const char *text, size_t len, struct expectations *ret,
		       struct config_errors *errs);
void expectations_free(struct expectations *x);

/* 1: as expected; 0: not so; -EINVAL: there is no such app; -ENOMEM. *why (malloc'ed, also where it
 * is as expected) is one line: what was asked, and what was found. */
int expectation_holds(const struct config *c, const struct expectation *x, char **why);
/* The same of what holds: the config's rules are all that there are, those of others and of egress
 * lists among them, and these configs (NULL: no more of them) have services besides its own. */
int expectation_holds_in(const struct config *c, const struct config *const *beside,
			 const struct expectation *x, char **why);

#endif
