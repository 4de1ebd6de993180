// SPDX-License-Identifier: GPL-2.0-or-later
/* Chooses how the classes of a packet's fields become a rule, and writes what that needs. */
#include "compile/priv.h"

#define PRODUCTS_MAX 262144

/* --- the product of the classes --- */

struct product {
	const struct compiler *c;
	const struct classes *field[AX_FIELDS]; /* those with the most classes last */
	uint32_t stride[AX_FIELDS];
	size_t n;
	uint64_t *scratch; /* n vectors */
	uint16_t *rules;
};

/* The rules that are left lie in the words [from, to). */
static void fill_last(struct product *p, const uint64_t *left, uint32_t from, uint32_t to,
		      uint32_t index)
{
	const struct classes *classes = p->field[p->n - 1];

	for (uint32_t cls = 0; cls < classes->n; cls++, index += p->stride[p->n - 1]) {
		const uint64_t *bits = class_bits(classes, cls);

		for (uint32_t w = from; w < to; w++) {
			uint64_t both = left[w] & bits[w];

			if (!both)
				continue;
			p->rules[index] = (uint16_t)(w * 64 + (uint32_t)__builtin_ctzll(both));
			break;
		}
	}
}

static void fill(struct product *p, size_t depth, const uint64_t *left, uint32_t from, uint32_t to,
		 uint32_t index)
{
	const struct classes *classes = p->field[depth];
	uint64_t *next = p->scratch + depth * p->c->shape.words;

	if (depth == p->n - 1) {
		fill_last(p, left, from, to, index);
		return;
	}
	for (uint32_t cls = 0; cls < classes->n; cls++, index += p->stride[depth]) {
		const uint64_t *bits = class_bits(classes, cls);
		uint32_t lo = to, hi = from;

		for (uint32_t w = from; w < to; w++) {
			next[w] = left[w] & bits[w];
			if (!next[w])
				continue;
			lo = w < lo ? w : lo;
			hi = w + 1;
		}
		if (lo < hi) /* else no rule is left, whatever the other fields are */
			fill(p, depth + 1, next, lo, hi, index);
	}
}

static void product_field(struct product *p, const struct classes *classes, uint32_t stride)
{
	size_t at = p->n++;

	for (; at > 0 && p->field[at - 1]->n > classes->n; at--) {
		p->field[at] = p->field[at - 1];
		p->stride[at] = p->stride[at - 1];
	}
	p->field[at] = classes;
	p->stride[at] = stride;
}

static int write_products(struct compiler *c, struct arena *a, struct ax_layout *layout)
{
	uint32_t words = c->shape.words, n = 1;
	autofree uint64_t *scratch = calloc((size_t)words * (AX_FIELDS + 1), sizeof(*scratch));
	uint64_t *all = scratch ? scratch + (size_t)words * AX_FIELDS : NULL;
	struct product p = {.c = c, .scratch = scratch};
	int64_t at;

	if (!scratch)
		return -ENOMEM;
	for (int f = 0; f < AX_FIELDS; f++) {
		if (!c->field[f].used)
			continue;
		layout->field[f].stride = n;
		product_field(&p, &c->field[f].classes, n);
		n *= c->field[f].classes.n;
	}
	at = arena_add(a, n * sizeof(uint16_t), 64);
	if (at < 0)
		return (int)at;
	layout->products = (uint32_t)at;
	layout->products_n = n;
	p.rules = (uint16_t *)(a->data + at);
	for (uint32_t i = 0; i < n; i++)
		p.rules[i] = (uint16_t)c->shape.rules;
	memset(all, 0xff, words * sizeof(*all));
	fill(&p, 0, all, 0, words, 0);
	return 0;
}

/* --- which way --- */

/* AX_MATCH_NONE: every rule holds for every packet, so the first does what there is to do; without
 * rules 0 is the number of the default. */
static enum ax_match choose(const struct compiler *c)
{
	uint64_t product = 1;
	unsigned used = 0;
	bool timed = false;

	for (int f = 0; f < AX_FIELDS; f++) {
		if (!c->field[f].used)
			continue;
		used++;
		timed |= c->field[f].timed != NULL;
		if (product <= PRODUCTS_MAX)
			product *= c->field[f].classes.n;
	}
	if (used == 0)
		return AX_MATCH_NONE;
	if (used == 1 && !timed) /* where its classes are not there any more */
		return AX_MATCH_SINGLE;
	return product <= PRODUCTS_MAX ? AX_MATCH_PRODUCT : AX_MATCH_BITMAP;
}

/* What stands in a field's table for its classes. */
static void make_map(const struct compiler *c, const struct classes *classes, enum ax_match match,
		     uint16_t *map)
{
	for (uint32_t cls = 0; cls < classes->n; cls++)
		map[cls] = match == AX_MATCH_SINGLE
				   ? (uint16_t)bits_first(&c->shape, class_bits(classes, cls))
				   : (uint16_t)cls;
}

#define ROWS_MAX ((size_t)4 << 20) /* of a field, in bytes */

/* What the classes of a field with sets are, for changes in place. */
static int keep_rows(const struct compiler *c, const struct classes *classes, struct arena *a,
		     struct ax_field_layout *l)
{
	size_t size = (size_t)classes->n * c->shape.row_size;
	int64_t at;

	if (size > ROWS_MAX)
		return 0;
	at = arena_add(a, size, sizeof(uint64_t));
	if (at < 0)
		return (int)at;
	memcpy(a->data + at, c->rows.data + classes->first, size);
	l->rows = (uint32_t)at;
	return 0;
}

static int write_field(struct compiler *c, const struct rule_field *row, struct arena *a,
		       struct ax_layout *layout)
{
	struct ax_field_layout *l = &layout->field[row->number];
	const struct classes *classes = &c->field[row->number].classes;
	autofree uint16_t *map = malloc(classes->n * sizeof(*map));

	if (!map)
		return -ENOMEM;
	l->used = 1;
	l->classes = layout->match == AX_MATCH_SINGLE ? c->shape.rules + 1 : classes->n;
	if (layout->match == AX_MATCH_BITMAP)
		l->rows = (uint32_t)classes->first;
	if (layout->match == AX_MATCH_PRODUCT && c->in_place && row->sets) {
		int r = keep_rows(c, classes, a, l);

		if (r < 0)
			return r;
	}
	make_map(c, classes, layout->match, map);
	return compile_table(c, row, map, a, l);
}

static int write_fields(struct compiler *c, struct arena *a, struct ax_layout *layout)
{
	for (int f = 0; f < AX_FIELDS; f++) {
		const struct rule_field *row = rule_field((enum ax_field)f);
		int r;

		if (!c->field[f].used)
			continue;
		r = write_field(c, row, a, layout);
		if (r < 0)
			return compile_failed(c, r, rule_field_name(row->number));
	}
	return 0;
}

int compile_match(struct compiler *c, struct arena *a, struct ax_layout *layout)
{
	int r = 0;

	layout->match = choose(c);
	if (layout->match == AX_MATCH_BITMAP) {
		/* the rows are where they have to be */
		*a = c->rows;
		c->rows = (struct arena){0};
	} else if (arena_add(a, sizeof(*layout), 64) < 0) {
		return -ENOMEM;
	}
	if (layout->match == AX_MATCH_PRODUCT)
		r = write_products(c, a, layout);
	return r < 0 ? r : write_fields(c, a, layout);
}
