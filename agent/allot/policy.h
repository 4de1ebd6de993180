/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Labels to bits, sets of labels to parties, rules to vectors; see include/party.h. */
#ifndef AX_ALLOT_POLICY_H
#define AX_ALLOT_POLICY_H

#include "party.h"
#include "config/config.h"

struct policy {
	struct {
		char *text; /* "": of an older agent, which did not say */
		uint32_t refs;
		uint32_t others; /* parties with it that apps of other nodes are in */
		bool held;	 /* one of refs: known from the last agent */
	} labels[AX_LABELS_MAX];
	struct policy_parties *parties; /* NULL: none was asked for yet */
	unsigned next_label, next_party;
	unsigned others;		 /* parties that apps of other nodes are in */
	const struct config_rule *rules; /* the config's */
	size_t n_rules;
	const char *cluster;		    /* this node's; NULL: it is in none */
	struct policy_names *names;	    /* of apps that have parties of their own; NULL: none */
	struct policy_addresses *addresses; /* whose apps have, too; NULL: none */
	bool changed;			    /* since policy_save() */
	struct learnt *learnt;		    /* addresses of names; NULL: none */
};

/* Apps that a rule names, by name or by an address of a service's backend, have parties of their
 * own: those that these rules name, and with `also` those that had them before. 0 or -ENOMEM. */
int policy_name(struct policy *p, const struct config_rule *rules, size_t n, bool also);

/* Who is an app: its name (NULL: none), its addresses (NULL, or zero: none), and its list of where
 * it may go (egress_id()). */
struct policy_who {
	const char *name;
	const struct ax_addr *ip4, *ip6;
	uint64_t egress;
	bool other; /* of another node */
};
/* Whether an app that is in the party is where policy_ref() would put it. */
bool policy_fits(const struct policy *p, uint32_t party, const struct policy_who *who);
/* Whether a rule lets those of the party reach an address that is not ax's. */
bool policy_leaves(const struct policy *p, uint32_t party);
/* Whether one keeps pings of theirs from any, as an egress list does. */
bool policy_confines(const struct policy *p, uint32_t party);

/* Apps of other nodes have no more than these: the rest is for those of this node, whatever the
 * others say. */
#define POLICY_OTHERS_LABELS_MAX  (AX_LABELS_MAX / 2)
#define POLICY_OTHERS_PARTIES_MAX (AX_PARTIES_MAX / 2)

/* Takes a reference on the party of apps like that one with these labels. 0, 1 when it is new, or
 * -ENOSPC with a sentence when there are too many labels or parties. */
int policy_ref(struct policy *p, const struct labels *l, const struct policy_who *who,
	       uint32_t *ret, struct error *e);
/* True when nobody has it any more. To be called when no program can find it by an app or an
 * address: its number will be another's. */
bool policy_unref(struct policy *p, uint32_t party);
/* The same of one that was taken for an app of another node. */
bool policy_unref_other(struct policy *p, uint32_t party);

/* As the programs are to see it; NULL: nobody has it. */
const struct ax_party *policy_party(const struct policy *p, uint32_t party);
/* And by p->rules; all zero: nobody has it. */
void policy_party_rules(const struct policy *p, uint32_t party, struct ax_party_rules *ret);

/* The same of an address outside, with its names. False: no rule names it, but maybe a prefix. */
bool policy_address_rules(const struct policy *p, const struct ax_addr *addr,
			  struct ax_party_rules *ret);

/* About names of the DNS that a party asks for: the rule that decides (NULL: none), whether any
 * speaks of that name, and whether any speaks of names. */
const struct config_rule *policy_name_rule(const struct policy *p, uint32_t party,
					   const char *name);
bool policy_learns(const struct policy *p, uint32_t party, const char *name);
bool policy_speaks_of_names(const struct policy *p, uint32_t party);

/* What the programs are to know of p->rules besides. */
struct policy_outside {
	struct prefix prefix;
	struct ax_party_rules rules;
};
struct policy_tables {
	struct ax_rule_set set;
	struct ax_rule_bits classes[AX_PORT_CLASSES];
	uint64_t hashes[AX_PORT_CLASSES];
	unsigned n_classes;
	uint16_t class_of[2][65536]; /* TCP, UDP; by port in host byte order */
	struct policy_outside *outside;
	size_t n_outside;
};
/* NULL: out of memory. */
struct policy_tables *policy_compile(const struct policy *p);
void policy_tables_free(struct policy_tables *t);
/* What a rule goes by when rules change: its name, or else what it says. */
uint64_t policy_rule_id(const struct config_rule *r);

/* The end that an app of the party is. */
struct policy_end policy_end_of(const struct policy *p, uint32_t party);
/* What bpf/verdict.bpf.h decides of two parties: whether they may talk. */
bool policy_may(const struct policy *p, uint32_t client, uint32_t server,
		const struct policy_port *port);

/*
 * Labels and parties keep their numbers from one agent to the next, as running apps go by them: the
 * labels' are a record of the instance's cgroup (its path), written if it changed and before a
 * program is told of a new one; of parties the programs have a table. What is loaded and adopted at
 * start is held until it is released. 0 or -ENOMEM.
 */
void policy_save(struct policy *p, const char *cgroup);
int policy_load(struct policy *p, const char *cgroup);
int policy_adopt(struct policy *p, uint32_t party, const struct ax_party *masks);
bool policy_release_party(struct policy *p, uint32_t party); /* as policy_unref() */
void policy_release(struct policy *p, const char *cgroup);   /* the labels, after all parties */

void policy_free(struct policy *p);

#endif
