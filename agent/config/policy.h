/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules of the config's `policy:`, and the only place outside of the kernel that says what they
 * decide: for the agent, which makes tables of them, and for whoever asks why. */
#ifndef AX_CONFIG_POLICY_H
#define AX_CONFIG_POLICY_H

#include "base/address.h"
#include "base/labels.h"
#include "base/strv.h"

enum rule_action { RULE_DENY, RULE_ALLOW, RULE_LOG };
const char *rule_action_name(enum rule_action a);

enum rule_origin {
	RULE_OF_CONFIG,
	RULE_ADDED,	 /* added_rules.h */
	RULE_OF_CLUSTER, /* shared.h */
	RULE_OF_EGRESS
};
const char *rule_origin_name(enum rule_origin o);

enum who_kind {
	WHO_LABELS,
	WHO_NAME,
	WHO_PREFIX,
	WHO_DOMAIN, /* addresses that the agent's DNS has given for names of that pattern */
	WHO_EGRESS, /* apps with that list of egress.h */
};
struct config_who {
	enum who_kind kind;
	bool derived; /* one who serves the service that is named before: a prefix is then an
			 address, maybe of an app */
	struct labels labels; /* has all of these */
	char *name;	      /* an app's or a service's; a pattern; who has the list */
	struct prefix prefix; /* addresses that are not ax's */
	uint64_t egress;      /* egress_id() */
};

struct config_side {
	struct config_who *v; /* one of them; none: every app */
	size_t n;
};

void config_side_free(struct config_side *s);
bool config_side_eq(const struct config_side *a, const struct config_side *b);
int config_side_copy(const struct config_side *from, struct config_side *to);
size_t config_side_prefixes(const struct config_side *s);
struct config_service;
/* Adds who serves the services that the side names: of these. 0 or -ENOMEM. */
int config_side_derive(struct config_side *s, const struct config_service *v, size_t n);
bool config_side_has_name(const struct config_side *s, const char *name);

struct port_range {
	uint16_t first, last;
};

enum rule_protocol { RULE_TCP = 1 << 0, RULE_UDP = 1 << 1, RULE_OTHER = 1 << 2 };

struct config_rule {
	enum rule_action action;
	enum rule_origin origin; /* says nothing of what it decides */
	bool audit;		 /* only counts */
	char *name;		 /* NULL: none */
	struct config_side from, to;
	struct port_range *ports; /* the server's, one of them; none: all */
	size_t n_ports;
	unsigned protocols; /* enum rule_protocol, one of them; 0: all */
};
void config_rule_free(struct config_rule *r);
int config_rule_copy(const struct config_rule *from, struct config_rule *to);
bool config_rule_eq(const struct config_rule *a, const struct config_rule *b);
/* By which number users know v[i], from 1: added rules have names, and change no other's number. 0:
 * it is one. */
unsigned rule_number(const struct config_rule *v, size_t i);
/* "deny role=guest -> db port 5432/tcp", malloc'ed; NULL: out of memory. */
char *config_rule_text(const struct config_rule *r);

/* --- what they decide --- */

/* An end of a connection: an app, or an address that is not ax's. */
struct policy_end {
	const struct labels *labels; /* of an app, NULL: it is none */
	const char *cluster;	     /* of the node that asks; NULL: it is in none */
	const char *name;	     /* of the app, NULL: none that counts */
	uint64_t egress;	     /* egress_id() of the app's list, 0: none */
	struct ax_addr own4, own6;   /* the app's, zero: none that counts */
	struct ax_addr addr;	     /* of who is no app, */
	const struct strv *names;    /* and what it is called; NULL: nobody knows */
	bool somewhere; /* the address is not known: of prefixes only those of all have it */
};

struct policy_port {
	uint8_t proto;
	uint16_t port; /* host byte order */
	bool fragment; /* a later one: its port is not known */
};

bool policy_side_is(const struct config_side *s, const struct policy_end *end);
bool policy_port_is(const struct config_rule *r, const struct policy_port *p);

/* Whether it names names of the DNS, and that one (NULL: any). */
bool policy_side_names(const struct config_side *s, const char *name);
/* The first rule that decides whether the client may ask the DNS for a name; -1: none. Rules about
 * anywhere outside are about every name, those about some ports deny none. */
int policy_judge_name(const struct config_rule *rules, size_t n, const struct policy_end *client,
		      const char *name);

/* Indexes of rules, -1: none. */
struct policy_verdict {
	int rule;  /* the one that decides */
	int audit; /* the first that would have decided, and only counts */
	int log;
	bool deny;
	bool no_label; /* no rule, and two apps that have no label in common */
};
/* The first rule that matches. */
void policy_judge(const struct config_rule *rules, size_t n, const struct policy_end *client,
		  const struct policy_end *server, const struct policy_port *port,
		  struct policy_verdict *ret);

#endif
