/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rule compiler's inside: only files of this room include it.
 *
 * Rules are numbered as in the arena here: those of the list up to the first that has no
 * condition, each balancing rule followed by its companion (see compile.c).
 */
#ifndef AX_COMPILE_PRIV_H
#define AX_COMPILE_PRIV_H

#include "compile/compile.h"
#include "rules/field.h"

#define CLASSES_MAX 65536      /* tables hold them as 16 bits */
#define ITEMS_MAX   (4u << 20) /* written in the rules, of one field */
#define CUTS_MAX    (32u << 20)

/* What a bit vector over the rules looks like. */
struct shape {
	uint32_t rules;
	uint32_t words, summary; /* 64-bit words: of the bits, of the summary in front of them */
	uint32_t row_size;	 /* of both in bytes */
};

static inline void bit_set(uint64_t *bits, uint32_t i)
{
	bits[i / 64] |= 1ull << (i % 64);
}
static inline void bit_clear(uint64_t *bits, uint32_t i)
{
	bits[i / 64] &= ~(1ull << (i % 64));
}
static inline void bits_or(uint64_t *to, const uint64_t *from, uint32_t words)
{
	for (uint32_t w = 0; w < words; w++)
		to[w] |= from[w];
}
/* The lowest bit, or shape->rules: the default. */
uint32_t bits_first(const struct shape *s, const uint64_t *bits);

/* The classes of a field: each has a row in the arena `rows`, one behind the other. */
struct classes {
	const struct shape *shape;
	struct arena *rows;
	size_t first; /* where class 0's row is */
	uint32_t n;
	uint64_t *slots; /* hash table: high half of the hash << 32 | class + 1 */
	size_t n_slots;
};
int classes_init(struct classes *c, const struct shape *shape, struct arena *rows);
void classes_free(struct classes *c);
/* The class with these bits, a new one if need be. `bits` must not lie in the arena. -E2BIG: there
 * are too many, -EFBIG: the arena is full. */
int class_of(struct classes *c, const uint64_t *bits);
const uint64_t *class_bits(const struct classes *c, uint32_t cls);

/* From here on values are of a class, up to the next cut. IPv4 addresses are the upper 32 bits of
 * hi, MAC addresses the upper 48; values of fields that are looked up by index are hi itself. */
struct cut {
	uint64_t hi, lo;
	uint32_t cls;
};
struct cuts { /* the first is at 0 */
	struct cut *v;
	size_t n, cap;
};
/* In order. Replaces a cut at the same place; none is made between equal classes. */
int cuts_add(struct cuts *t, uint64_t hi, uint64_t lo, uint32_t cls);

struct field {
	bool used;
	struct classes classes; /* of addresses class 0 is what no condition matches */
	struct cuts v4, cuts;	/* v4: IPv4; cuts: IPv6 and everything else */
	/* of addresses, see struct ax_field_layout: what stands in `timed`; NULL: nothing */
	uint16_t *timed;
	uint32_t timed_asked;
};

/* The tree of the names that rules ask for, see struct ax_name. The first nodes are the roots, by
 * their kind; parents come before their children. */
struct names {
	struct name_node {
		uint64_t number;
		uint32_t parent;
		uint32_t cls;
	} * nodes;
	uint32_t n, cap;
	uint32_t *slots; /* hash table by number: node + 1 */
	uint32_t n_slots;
	struct name_use { /* a rule's name ends at the node */
		uint32_t node, rule;
	} * uses;
	size_t n_uses;
	uint32_t kinds; /* bits: there are names of 1 << enum ax_name_kind */
	uint64_t key[2];
};

struct companion {
	struct rule rule; /* owns nothing */
	struct range protos[2];
	struct range later;
};

struct compiler {
	const struct rule_list *list;
	const struct rule **rules; /* shape.rules of them */
	uint16_t *list_rule;	   /* where each comes from */
	struct companion *companions;
	const struct rule_binding *bind; /* NULL: as if all rules were for this interface */
	struct rule *off;		 /* what stands for rules that are not; they own nothing */
	struct range never;
	struct shape shape;
	struct arena rows; /* room for the layout, then the classes' rows */
	struct field field[AX_FIELDS];
	const struct rule_payload *payloads[AX_PAYLOADS_MAX]; /* of the rules, each once */
	uint32_t n_payloads;
	struct rule_mark marks[AX_MARKS_MAX]; /* the same */
	uint32_t n_marks;
	struct names names;
	struct timed_set timed[AX_TIMED_SETS];
	uint32_t n_timed;
	bool in_place; /* elements of sets are to come and go in the arena */
	struct error *e;
};
/* Which rules there are: c->rules, list_rule, companions and the shape. */
int compile_rules(struct compiler *c);
void compiler_free(struct compiler *c);

/* The sets that a field's rules name: which rules, and by number in the list. */
struct set_users {
	size_t n;	/* sets of the list */
	uint64_t **who; /* bit vectors; NULL: no rule names it */
};
int set_users_init(struct compiler *c, const struct rule_field *row, struct set_users *ret);
void set_users_free(struct set_users *u);
/* Makes classes that no value has yet: what changes in place finds but those that are there. Of
 * values that one set has and nothing else, and, if they are few, of those of each class that one
 * set has besides. */
int compile_set_classes(struct compiler *c, enum ax_field f, const struct set_users *users);
/* A vector (malloc'ed) of the rules without a condition on the field. */
uint64_t *compile_base(const struct compiler *c, enum ax_field f);

/* timed.c: what classes become with elements for a time, once the field's others are there. */
int compile_timed(struct compiler *c, const struct rule_field *row);
/* Writes that down, and which sets they are (in slots as they come). */
int write_timed(const struct compiler *c, struct arena *a, struct ax_layout *layout);
/* Which sets flows are in. */
int compile_flows(struct compiler *c, const struct rule_field *row);
/* What a rule learns. */
struct ax_learn learn_of(const struct compiler *c, const struct rule *r);

/* Fill the field's classes and cuts, each for one kind of fields. */
int compile_numbers(struct compiler *c, const struct rule_field *row);
int compile_bits(struct compiler *c, const struct rule_field *row);
int compile_payloads(struct compiler *c, const struct rule_field *row);
int compile_marks(struct compiler *c, const struct rule_field *row);
int compile_names(struct compiler *c, const struct rule_field *row);
int compile_addresses(struct compiler *c, const struct rule_field *row);
int compile_macs(struct compiler *c, const struct rule_field *row);

/* Chooses the way of matching and writes the tables; the arena is c->rows or a new one. */
int compile_match(struct compiler *c, struct arena *a, struct ax_layout *layout);
/* The tables of a field; map: what stands in them for each class. */
int compile_table(struct compiler *c, const struct rule_field *row, const uint16_t *map,
		  struct arena *a, struct ax_field_layout *layout);

/* points.c: single addresses of one class among those of another. */
struct points {
	uint16_t at[AX_POINTS << AX_POINTS_LOG2_MAX]; /* in order */
	size_t n;
	uint32_t log2; /* rows */
};
/* Which two classes the field's points have: those that most of the cuts are about. */
void points_choose(const struct cuts *t, struct ax_field_layout *l);
/* The points that the cuts of an upper half are. False: they are not such, or would take more than
 * `size` bytes. */
bool points_of(const struct ax_field_layout *l, const struct cut *v, size_t n, uint32_t before,
	       size_t size, struct points *ret);
/* Adds their bucket to the arena, which begins at a multiple of AX_POINTS_SIZE. */
int64_t points_write(const struct points *p, struct arena *a);

static inline uint32_t upper4(const struct cut *cut)
{
	return (uint32_t)(cut->hi >> 48);
}
static inline uint32_t lower4(const struct cut *cut)
{
	return (uint32_t)(cut->hi >> 32) & 0xffff;
}

/* The word of root4 for an upper half with the cuts v (all in it), whose bucket is added to the
 * arena, at offsets from `buckets4`; `before` holds up to the first of them. -EFBIG, -ENOMEM. */
int64_t compile_root4(struct arena *a, uint32_t buckets4, const struct ax_field_layout *l,
		      const struct cut *v, size_t n, uint32_t before);
/* `value` of root6 for a bucket with these cuts. */
int64_t compile_bucket6(struct arena *a, uint32_t buckets6, const struct cut *v, size_t n);

/* The payloads that rules ask for, see struct ax_payload, and the marks. */
void compile_write_payloads(const struct compiler *c, struct ax_layout *layout);
void compile_write_marks(const struct compiler *c, struct ax_layout *layout);
/* Classes by which of n numbered things packets have: value `none` + a bit for each. wants: those
 * that each rule asks for, one of which has to be there. */
int compile_combinations(struct compiler *c, enum ax_field f, const uint32_t *wants, uint32_t n,
			 uint32_t none);

/* The tree of names. */
int compile_write_names(const struct compiler *c, struct arena *a, struct ax_layout *layout);
void name_tree_free(struct names *n);

int compile_actions(struct compiler *c, struct arena *a, struct ax_layout *layout);

/* Turns the errors of arena_add() and class_of() into sentences. */
int compile_failed(struct compiler *c, int64_t r, const char *field);

/* clock.c: how local time goes, if a rule asks for it. */
void compile_clocks(struct ax_layout *layout);

#endif
