/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The keys of a rule: those of the fields (field.h), and those that say what it does. */
#ifndef AX_RULES_KEY_H
#define AX_RULES_KEY_H

#include "rules/field.h"

/* Numbers of keys: bits of what rule_set() calls `given`. */
enum rule_key_number {
	KEY_NAME,
	KEY_ACTION,
	KEY_SMAC,
	KEY_DMAC,
	KEY_TO,
	KEY_TO_PORT,
	KEY_CHECKSUM,
	KEY_CAPTURE,
	KEY_RATE,
	KEY_LEARN,
	KEY_SAMPLE,
	KEY_LOG,
	KEY_TRIGGER,
	KEY_FIELDS, /* those of the fields from here on, as their rows stand */
};
#define RULE_KEYS_MAX 40

struct rule_key {
	unsigned number; /* enum rule_key_number */
	const char *name;
	const char *want; /* what its value is, as a sentence has it behind "expected" */
	bool list;	  /* takes several values, with commas */
	/* One of: a field's key; what reads the value of another (0, -EINVAL, -ENOMEM). */
	const struct rule_field *field;
	const struct field_key *field_key;
	int (*set)(struct rule *r, const char *value, struct rule_fault *f);
};

/* 0 or -ENOENT. */
int rule_key_find(const char *name, struct rule_key *ret);
/* One that is not a field's. */
const struct rule_key *rule_key(enum rule_key_number number);
/* All of them, in the order of a rule's line. Returns how many. */
size_t rule_key_names(const char *names[RULE_KEYS_MAX]);

/* rule_set(), and what no single key can know, with the fault in its parts. -EINVAL, -ENOMEM. */
int rule_set_value(struct rule *r, const struct rule_key *key, const char *value,
		   struct rule_fault *f);
int rule_find_fault(const struct rule *r, uint64_t given, struct rule_fault *f);

#endif
