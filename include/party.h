/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who may talk to whom: parties and rules, as the programs see them.
 *
 * A party is all apps that have the same set of labels and, where a rule names apps, the same name,
 * or where it names an address of an app, that address;
 * apps and addresses name theirs by its index in map `parties`. Labels are interned by the agent,
 * one bit for each distinct key=value; two parties may talk if they share a bit. Rules of the
 * config come first. Three vectors have a bit for each rule: those that match the client's side,
 * those that match the server's, and those that match protocol and port; the lowest bit that is in
 * all three is the first rule that matches. Addresses that are not ax's have vectors by prefix
 * instead of a party.
 *
 * There are two sets of rules, and ax_ctl.rule_set says which one holds: a change writes the other
 * one for all parties and then that number, so that every verdict is by the old rules or by the new
 * ones. Entries are written in place and keep their meaning while anybody names them.
 */
#ifndef AX_PARTY_H
#define AX_PARTY_H

#include <linux/types.h>
#include "addr.h"

#define AX_LABEL_WORDS 4
#define AX_LABELS_MAX  (AX_LABEL_WORDS * 64)
#define AX_RULE_WORDS  16
#define AX_RULES_MAX   (AX_RULE_WORDS * 64)
#define AX_RULE_SETS   2
#define AX_PARTIES_MAX 8192
#define AX_PARTY_NONE  0 /* of services, the host and the world: its entries stay empty */
#define AX_PARTY_NOBODY                                                               \
	0xffffffffu /* of an app whose labels could not be kept: it has no entry, and \
		       shares no label with anybody */
#define AX_PARTY_NAME 64
#define AX_PARTY_USED 1

/* Map `parties`, an array. */
struct ax_party {
	__u64 labels[AX_LABEL_WORDS];
	char name[AX_PARTY_NAME]; /* of its apps, "": no rule names them; for the next agent */
	__u64 used;	     /* 0: nobody has it; AX_PARTY_USED, or what their egress lists have in
				common; for the next agent */
	struct ax_addr own4; /* of its app, zero: no rule names it; for the next agent */
	struct ax_addr own6;
};
_Static_assert(sizeof(struct ax_party) == 136, "struct ax_party is a map value");

/* A bit for each rule. */
struct ax_rule_bits {
	__u64 w[AX_RULE_WORDS];
};

/* Map `party_rules`, an array by set * AX_PARTIES_MAX + party. */
struct ax_party_rules {
	struct ax_rule_bits from;
	struct ax_rule_bits to;
};
_Static_assert(sizeof(struct ax_party_rules) == 256, "struct ax_party_rules is a map value");

/* Map `outside_rules` (LPM trie): the same for addresses that are not ax's. */
struct ax_outside_key {
	__u32 len; /* in bits: 32 and those of the prefix in the mapped form */
	__be32 set;
	struct ax_addr addr;
};
_Static_assert(sizeof(struct ax_outside_key) == 24, "struct ax_outside_key is a map key");
#define AX_OUTSIDE_MAX 4096 /* prefixes of a set */
#define AX_LEARNT_MAX  4096 /* addresses of names, besides */

/* Map `learnt`: addresses of names of the DNS that rules speak of; for the agent, and the next. */
struct ax_learnt_key {
	struct ax_addr addr;
	char name[256]; /* the rest is zero */
};
_Static_assert(sizeof(struct ax_learnt_key) == 272, "struct ax_learnt_key is a map key");
struct ax_learnt {
	__u64 until_ns; /* CLOCK_BOOTTIME */
	__u32 app;	/* who had asked */
	__u32 pad;
};
_Static_assert(sizeof(struct ax_learnt) == 16, "struct ax_learnt is a map value");

enum ax_rule_set_flag {
	AX_RULES_PORTS = 1 << 0,   /* a rule names a protocol or ports */
	AX_RULES_OUTSIDE = 1 << 1, /* a rule names an address */
	AX_RULES_PASS = 1 << 2,	   /* a rule decides nothing */
};

/* Map `rule_sets`, an array by set. */
struct ax_rule_set {
	__u32 n_words;		    /* of the vectors, that may have a bit */
	__u32 flags;		    /* enum ax_rule_set_flag */
	struct ax_rule_bits decide; /* each is in one of these: it decides, */
	struct ax_rule_bits audit;  /* only counts what it would have decided, */
	struct ax_rule_bits log;    /* or tells of it */
	struct ax_rule_bits allow;  /* of those that decide */
};
_Static_assert(sizeof(struct ax_rule_set) == 520, "struct ax_rule_set is a map value");

/*
 * Ports: map `rule_ports`, an array of blocks, has the class of each (set, protocol, port), and map
 * `port_rules`, an array by set * AX_PORT_CLASSES + class, its vector. A later fragment has no
 * port: it goes by what its first one may have been let in by.
 */
#define AX_PORT_BLOCK	32 /* ports */
#define AX_PORT_BLOCKS	(65536 / AX_PORT_BLOCK)
#define AX_PORT_CLASSES 4104
enum ax_port_class {
	AX_PORTS_NONE,	       /* protocols without ports */
	AX_PORTS_TCP_FRAGMENT, /* later fragments */
	AX_PORTS_UDP_FRAGMENT,
	AX_PORTS_CLASSES, /* those of ports, from here on */
};
struct ax_port_block { /* at set * 2 * AX_PORT_BLOCKS + (UDP: AX_PORT_BLOCKS) + port / BLOCK */
	__u16 class_of[AX_PORT_BLOCK];
};
_Static_assert(sizeof(struct ax_port_block) == 64, "struct ax_port_block is a map value");

/* Map `rule_hits`, per CPU, by set * AX_RULES_MAX + rule. */
struct ax_rule_hits {
	__u64 hits;
	__u64 last_ns; /* CLOCK_BOOTTIME */
};

/* Map `rule_marks`, the same index: for the agent, which carries counts from set to set. */
struct ax_rule_mark {
	__u64 id; /* of the rule's text */
	struct ax_rule_hits before;
};
_Static_assert(sizeof(struct ax_rule_mark) == 24, "struct ax_rule_mark is a map value");

#endif
