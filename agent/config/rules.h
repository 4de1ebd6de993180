/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Readers of rule lists from nodes, for rule files and the config's `xdp:` section. */
#ifndef AX_CONFIG_RULES_H
#define AX_CONFIG_RULES_H

#include "yaml/read.h"
#include "rules/priv.h"

struct list_reading {
	struct rule_list list;
	const struct rule_list *shared; /* whose names are taken too; may be NULL */
	/* where the rules are, so that what only the whole list shows is reported there */
	const struct node *rules_key, *rules;
};

/* Each reads the value of one key; `to` is a struct list_reading. */
void list_read_mode(struct reader *r, const struct node *n, void *to);
void list_read_priority(struct reader *r, const struct node *n, void *to);
void list_read_direction(struct reader *r, const struct node *n, void *to);
void list_read_track(struct reader *r, const struct node *n, void *to);
void list_read_default(struct reader *r, const struct node *n, void *to);
void list_read_classes(struct reader *r, const struct node *n, void *to);
void list_read_sets(struct reader *r, const struct node *n, void *to);
void list_read_balancers(struct reader *r, const struct node *n, void *to);
void list_read_rules(struct reader *r, const struct node *n, void *to);

/* Reports what rule_list_check() would: at the rule, else at `at`. */
void list_report_faults(struct reader *r, const struct list_reading *l, const struct node *at);

#endif
