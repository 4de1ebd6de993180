/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random rule lists, and packets that lie at the boundaries of a list's conditions. The same seed
 * gives the same.
 */
#ifndef AX_TESTS_RULE_RANDOM_H
#define AX_TESTS_RULE_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/lib/matcher.h"

struct rnd {
	uint64_t s;
};

uint64_t rnd_next(struct rnd *r);
/* Less than n. */
uint32_t rnd_below(struct rnd *r, uint32_t n);
bool rnd_one_in(struct rnd *r, uint32_t n);

/* Zeros; it never fails. */
void *rnd_alloc(size_t n, size_t size);

/* Appends a copy. */
void rnd_name(struct strv *s, const char *name);

/* Takes the bits behind its length out of a prefix. */
void rnd_mask(struct prefix *p);

/* This value alone. */
void rnd_one_number(struct condition *c, uint32_t value);

/* A condition on one field. */
void rnd_condition(struct rnd *r, const struct rule_list *l, enum ax_field f, struct rule *to);

/* Any number of rules with conditions on a random choice of the fields in `fields` (bits). */
void rnd_list(struct rnd *r, uint32_t fields, bool balance, struct rule_list *l);

/* A set whose tables are as deep as they get. */
#define DENSE_V4 32768	/* every other address of a /16 */
#define DENSE_V6 131072 /* every other /64 of a /46, and every other address of a /110 */

void dense_set(struct rule_set_def *s);

/* One of its addresses, or (*in false) one beside it. */
struct ax_addr dense_pick(struct rnd *r, bool *in);

/* A packet that one of the rules, or nearly one of them, matches. */
void rnd_packet(struct rnd *r, const struct rule_list *l, struct match_packet *p);

#endif
