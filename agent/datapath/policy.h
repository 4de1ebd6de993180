/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parties and rules in the dataplane's maps: include/party.h says what each is. All return 0 or a
 * negative errno. */
#ifndef AX_DATAPATH_POLICY_H
#define AX_DATAPATH_POLICY_H

#include "party.h"
#include "base/util.h"

struct datapath;

int datapath_party_get(struct datapath *dp, uint32_t party, struct ax_party *ret);
int datapath_party_set(struct datapath *dp, uint32_t party, const struct ax_party *p);
int datapath_party_rules_set(struct datapath *dp, unsigned set, uint32_t party,
			     const struct ax_party_rules *r);

/* A set that does not hold now: its tables but for those of parties, and its prefixes are none
 * until they are added. */
struct datapath_rules {
	const struct ax_rule_set *set;
	const struct ax_rule_bits *classes;
	unsigned n_classes;
	const uint16_t *class_of; /* of 65536 TCP ports, then as many UDP ports */
};
int datapath_rules_set(struct datapath *dp, unsigned set, const struct datapath_rules *r);
int datapath_outside_add(struct datapath *dp, unsigned set, const struct ax_addr *addr,
			 unsigned len, const struct ax_party_rules *r);

int datapath_outside_del(struct datapath *dp, unsigned set, const struct ax_addr *addr,
			 unsigned len);

/* Addresses of names, see map `learnt`. f returns 1 to delete one, else 0. */
int datapath_learnt_set(struct datapath *dp, const struct ax_addr *addr, const char *name,
			uint64_t until_ns, uint32_t app);
int datapath_learnt_del(struct datapath *dp, const struct ax_addr *addr, const char *name);
int datapath_learnt_each(struct datapath *dp,
			 int (*f)(void *arg, const struct ax_addr *addr, const char *name,
				  uint64_t until_ns, uint32_t app),
			 void *arg);
/* Connections of private apps to the outside that a rule has let; by the app's id, which may come
 * again and again. f returns 1 for those that are to be judged anew, 0 for the others, or a
 * negative errno. */
int datapath_leavers_each(struct datapath *dp, int (*f)(void *arg, uint32_t app), void *arg);

int datapath_rule_mark_get(struct datapath *dp, unsigned set, unsigned rule,
			   struct ax_rule_mark *ret);
int datapath_rule_mark_set(struct datapath *dp, unsigned set, unsigned rule,
			   const struct ax_rule_mark *m);
/* Of all processors. */
int datapath_rule_hits(struct datapath *dp, unsigned set, unsigned rule, struct ax_rule_hits *ret);
int datapath_rule_hits_zero(struct datapath *dp, unsigned set, unsigned n_rules);

/* Asks the programs' own verdict; nothing is counted. -EOPNOTSUPP: see doctor. */
struct ax_question;
int datapath_ask(struct datapath *dp, struct ax_question *x);

/* Who was refused (include/seen.h). f: 1 to forget it, 0 to keep it, or a negative errno. */
struct ax_seen_key;
struct ax_seen;
int datapath_seen_each(struct datapath *dp,
		       int (*f)(void *arg, const struct ax_seen_key *key,
				const struct ax_seen *seen),
		       void *arg);
void datapath_seen_forget(struct datapath *dp, const struct ax_seen_key *key);
/* When anything was (CLOCK_BOOTTIME), and is in its entry; and whether there are at least n entries
 * more since this was true last. */
uint64_t datapath_seen_last(struct datapath *dp);
bool datapath_seen_many(struct datapath *dp, uint32_t n);

#endif
