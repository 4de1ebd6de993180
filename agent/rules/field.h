/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fields of a packet that rules can ask about: one row each, in the order of a rule's line.
 * Reading and writing rules, checking, comparing, copying and compiling them, the YAML keys and the
 * tests' random rules go by these rows.
 *
 * To add a field:
 *   include/xdp.h          its number (enum ax_field) and the index for packets without it
 *   xdp/parse.bpf.h        the parser fills it in, packet_value() returns it
 *   agent/rules/fields.c   its row; agent/rules/rule.h lists the keys
 *   tools/share/ax-xdp.8   what it means
 *   tests/unit/match_packet.h, tests/unit/test_rule.c   the same for the tests' packets; its text
 */
#ifndef AX_RULES_FIELD_H
#define AX_RULES_FIELD_H

#include <stdio.h>

#include "rules/list.h"

struct rule_fault;
struct rule_field;

/* How values of a field are kept in a rule, and how the compiler makes classes of them. */
enum field_kind {
	FIELD_ADDRESS, /* struct prefix; IPv4 and IPv6 */
	FIELD_NUMBER,  /* struct range; the packet's value is an index into a table */
	FIELD_BITS,    /* struct rule_bits; an index into a table, too */
	FIELD_MAC,     /* struct rule_mac; searched */
	FIELD_PAYLOAD, /* struct rule_payload; an index into a table: which of them it has */
	FIELD_NAME,    /* struct rule_name; a tree, by which a name is an index into a table */
	FIELD_FLOW,    /* none, but sets; an index into a table: which of them it is in */
	FIELD_MARK,    /* struct rule_mark; an index into a table: which of them it has */
	FIELD_GROUP,   /* struct rule_group; not compiled: the interface has it, no packet */
	FIELD_KINDS
};

/* Which packets have it. */
enum field_layer {
	LAYER_FRAME,	 /* all */
	LAYER_IP,	 /* IPv4 and IPv6 */
	LAYER_TRANSPORT, /* those of some protocols, but for their later fragments */
};

/* Fields of a transport header: what the same rule must not demand besides. */
struct field_header {
	uint8_t protos[2]; /* the protocols that have it */
	const char *other; /* what other protocols are, and what to write instead */
	const char *want_proto;
	const char *want_icmp, *want_later; /* with icmp, with fragment later */
};

/* What values are written to, with commas between. */
struct field_text {
	FILE *f;
	size_t n;
};

/* A key that the field has in rules. */
struct field_key {
	const char *name;
	const char *want; /* what its value is, as a sentence has it behind "expected" */
	/* The numbers, or kinds of names, that this key speaks of, when others have another key;
	 * 0-0: all. */
	struct range part;
	/* One item of the value's list. 0, -ENOMEM, or -EINVAL, with the fault set where more is
	 * to be said than `want`. */
	int (*add)(const struct rule_field *row, struct condition *c, const char *item,
		   struct rule_fault *f);
	/* One item of the condition, which is of the kind's type; add() has to take it again. */
	void (*write)(struct field_text *to, const struct rule_field *row, const void *item);
	/* Instead: all of them, which is less. Numbers are sorted, and joined where they touch. */
	void (*write_all)(struct field_text *to, const struct condition *c);
};
#define FIELD_KEYS_MAX 3

struct rule_field {
	enum ax_field number;
	enum field_kind kind;
	enum field_layer layer;
	struct field_key keys[FIELD_KEYS_MAX]; /* the first is the field's name, too */
	bool sets;			       /* takes @SET, see field_set_kind() */
	/* Of numbers and bits: how many indexes there are (the last one is of packets without the
	 * field, where there are such), and the greatest that a rule can name. */
	uint32_t size, last;
	const struct field_header *header; /* TCP's and UDP's fields; NULL: of none of them */
	/* Of numbers: the index for which every condition holds, since it is not known yet; 0:
	 * there is none */
	uint32_t unasked;
};
extern const struct rule_field rule_fields[RULE_FIELDS];

/* The row of a field. */
const struct rule_field *rule_field(enum ax_field number);
const char *rule_field_name(enum ax_field number);
/* What the sets have in them that the field takes. */
enum set_kind field_set_kind(const struct rule_field *row);

/* What goes between one value and the next. */
void field_separate(struct field_text *to);
/* One more of a condition on numbers. 0, -ENOMEM. */
int field_add_range(struct condition *c, const struct range *range);

/* tos.c: keys' add() and write(). */
int dscp_add(const struct rule_field *row, struct condition *c, const char *item,
	     struct rule_fault *f);
void dscp_write(struct field_text *to, const struct rule_field *row, const void *item);
int ecn_add(const struct rule_field *row, struct condition *c, const char *item,
	    struct rule_fault *f);
void ecn_write(struct field_text *to, const struct rule_field *row, const void *item);
#define WANT_DSCP \
	"codepoints such as ef, af11, cs1 or le, numbers of 0 to 63 or ranges of them such as 1-8"
#define WANT_ECN "not-ect, ect0, ect1 or ce"

/* time.c: a key's add() and write_all(). */
int time_add(const struct rule_field *row, struct condition *c, const char *item,
	     struct rule_fault *f);
void time_write(struct field_text *to, const struct condition *c);
#define WANT_TIME "times such as 08:00-18:00, mon-fri/08:00-18:00, fri/22:00-06:00 or sat-sun"

/* payload.c: a key's add() and write(). */
int payload_add(const struct rule_field *row, struct condition *c, const char *item,
		struct rule_fault *f);
void payload_write(struct field_text *to, const struct rule_field *row, const void *item);
#define WANT_PAYLOAD                                                                        \
	"at OFFSET BYTE... such as at 0 0x17 0x03 or at 4 0x01/0x0f, of up to 8 bytes, up " \
	"to 4 times, or quic-long"
/* Whether a word is part of such a value. */
bool payload_goes_on(const char *word);

/* mark.c: a key's add() and write(). */
int mark_add(const struct rule_field *row, struct condition *c, const char *item,
	     struct rule_fault *f);
void mark_write(struct field_text *to, const struct rule_field *row, const void *item);
#define WANT_MARK "marks of 32 bits such as 0x10 or 16, with a mask if wanted: 0x10/0xff"

/* group.c: the same. */
int group_add(const struct rule_field *row, struct condition *c, const char *item,
	      struct rule_fault *f);
void group_write(struct field_text *to, const struct rule_field *row, const void *item);
#define WANT_GROUP                                                                       \
	"groups of interfaces such as 5, 10-19 or lan, or those that it must not be in " \
	"with ! before each: !5,!lan"

/* set_flow.c: a key's add(), which takes nothing: flows are in sets. */
int set_flow_add(const struct rule_field *row, struct condition *c, const char *item,
		 struct rule_fault *f);
#define WANT_FLOW "@ and the name of a set of flows, such as @open"

/* name.c: keys' add() and write(), and the order of the items. */
int dns_name_add(const struct rule_field *row, struct condition *c, const char *item,
		 struct rule_fault *f);
int tls_sni_add(const struct rule_field *row, struct condition *c, const char *item,
		struct rule_fault *f);
int http_host_add(const struct rule_field *row, struct condition *c, const char *item,
		  struct rule_fault *f);
void name_write(struct field_text *to, const struct rule_field *row, const void *item);
void names_sort(struct condition *c);
#define WANT_NAMES "names such as example.org, each of which stands for all names under it, too"

/* Writes the field's keys and values, " " behind each, or nothing for an empty condition. */
void field_write(const struct rule_field *row, const struct condition *c, FILE *f);
/* Reads the value of a key into an empty condition (or one that the field's other key was read
 * into). 0, -ENOMEM, -EINVAL with what is known of the fault. */
int field_read(const struct rule_field *row, const struct field_key *key, struct condition *c,
	       const char *value, struct rule_fault *f);

/* Conditions of the kind's items: their life. */
void condition_free(struct condition *c);
int condition_copy(enum field_kind kind, const struct condition *from, struct condition *to);
bool condition_eq(enum field_kind kind, const struct condition *a, const struct condition *b);

#endif
