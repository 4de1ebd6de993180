/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Elements of sets that come and go in an arena which packets are judged by (struct ax_journal).
 * Between patch.c, patch_sets.c (what is in the sets), patch_classes.c (of which class a value is
 * then) and patch_tables.c (where that is written).
 *
 * All is worked out first, from what the sets and rules say: the values of the element, cut where
 * another element or a rule begins or ends, and the class of each piece. So it is exact whatever
 * overlaps. What packets look at is touched when nothing can fail any more.
 */
#ifndef AX_COMPILE_PATCH_H
#define AX_COMPILE_PATCH_H

#include "compile/priv.h"

typedef unsigned __int128 u128;

/* What values lie on. Elements of sets are intervals of it: of two, one holds the other or they do
 * not meet, but for ports. */
enum line { LINE_V4, LINE_V6, LINE_PORTS };
struct span {
	enum line line;
	u128 first, last;
};
/* From here on values are of a class. */
struct mark {
	u128 at;
	uint32_t cls;
};
#define MARKS_MAX 128 /* in one element: it may have half as many others in it */

struct patch_rule_span { /* a value that a rule has itself */
	struct span span;
	uint32_t rule;
};

/* One field whose rules name some set. */
struct patch_field {
	bool used;
	struct set_users users;
	uint64_t *base;		     /* the rules without a condition on it */
	uint64_t *bits;		     /* room for a vector */
	struct patch_rule_span *own; /* what the rules name besides sets */
	size_t n_own;
	uint64_t *memo;	  /* the vector of the class that was found last, */
	int64_t memo_cls; /* -1: none was */
};

/* A bucket, or what a word of root4 says without one, as it is to be. */
struct patch_piece {
	enum ax_field f;
	enum line line;
	uint32_t index; /* in root4 or root6 */
	u128 first, last;
	struct mark *v;
	size_t n;
	uint64_t word; /* that leads to it */
};
struct patch_ports { /* of AX_FIELD_SPORT and AX_FIELD_DPORT */
	uint16_t *cls;
	bool *changed;
};

struct patch {
	struct lazy_view *v; /* of the arena */
	const struct ax_layout *layout;
	struct ax_journal *journal;
	uint32_t n; /* entries of the journal, with those that are not valid yet */
	struct rule_outline o;
	struct compiler c; /* its rules and their shape */
	struct error e;	   /* of these */
	struct patch_field field[AX_FIELDS];
	struct patch_piece *pieces;
	size_t n_pieces, room;
	struct patch_ports ports[AX_FIELDS];
	uint32_t spare4[2], spare6[2]; /* used, with what is written */
};

/* --- patch_sets.c --- */
struct span span_of_prefix(const struct prefix *p);
struct span span_of_range(const struct range *r, uint32_t last);
static inline bool span_holds(const struct span *s, enum line line, u128 x)
{
	return s->line == line && s->first <= x && x <= s->last;
}
bool patch_is_element(const struct patch *c, size_t set, const struct span *s);
/* Says which sets have an element that holds x, of those that `users` has. */
void patch_holders(const struct patch *c, const struct set_users *users, enum line line, u128 x,
		   bool in[SETS_MAX]);
/* Adds where elements of these sets begin in s, but for its first value, and what comes behind
 * those that end in it. -E2BIG: there are too many. */
int patch_borders(const struct patch *c, const struct set_users *users, const struct span *s,
		  u128 *at, size_t *n);

/* --- patch_classes.c --- */
int patch_field_init(struct patch *c, enum ax_field f);
void patch_field_free(struct patch_field *p);
/* The classes of the values of s, in order. Returns how many marks, or a negative errno; -E2BIG and
 * -ENOENT (no class is this one): the list has to be compiled. */
int patch_marks(struct patch *c, enum ax_field f, const struct span *s, struct mark *v);

/* --- patch_tables.c --- */
/* Gives the values of s their classes, where no packet looks yet. Errors as above. */
int patch_put(struct patch *c, enum ax_field f, const struct span *s, const struct mark *v,
	      size_t n);
/* Writes the new buckets into the spare room. -ENOSPC */
int patch_write(struct patch *c);
/* From here on packets find them. Cannot fail. */
void patch_show(struct patch *c);
void patch_tables_free(struct patch *c);

#endif
