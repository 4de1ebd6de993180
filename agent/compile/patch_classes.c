// SPDX-License-Identifier: GPL-2.0-or-later
/* Of which class values are, by what the rules and the sets say of them. */
#include "compile/patch.h"

/* --- a field --- */

void patch_field_free(struct patch_field *p)
{
	set_users_free(&p->users);
	free(p->base);
	free(p->bits);
	free(p->own);
	free(p->memo);
	*p = (struct patch_field){0};
}

static size_t count_own(const struct compiler *c, enum ax_field f)
{
	size_t n = 0;

	for (uint32_t i = 0; i < c->shape.rules; i++)
		n += c->rules[i]->in[f].n;
	return n;
}

static int collect_own(const struct compiler *c, const struct rule_field *row,
		       struct patch_field *p)
{
	p->own = calloc(count_own(c, row->number) + 1, sizeof(*p->own));
	if (!p->own)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->shape.rules; i++) {
		const struct condition *own = &c->rules[i]->in[row->number];

		for (size_t k = 0; k < own->n; k++)
			p->own[p->n_own++] = (struct patch_rule_span){
				.rule = i,
				.span = row->kind == FIELD_ADDRESS
						? span_of_prefix(&own->prefixes[k])
						: span_of_range(&own->ranges[k], row->last),
			};
	}
	return 0;
}

int patch_field_init(struct patch *c, enum ax_field f)
{
	const struct rule_field *row = rule_field(f);
	struct patch_field *p = &c->field[f];
	size_t words = c->c.shape.words;
	int r;

	if (!row->sets || !c->layout->field[f].used)
		return 0;
	p->memo_cls = -1;
	p->base = compile_base(&c->c, f);
	p->bits = calloc(words, sizeof(*p->bits));
	p->memo = calloc(words, sizeof(*p->memo));
	if (!p->base || !p->bits || !p->memo)
		return -ENOMEM;
	r = set_users_init(&c->c, row, &p->users);
	if (r == 0)
		r = collect_own(&c->c, row, p);
	p->used = r == 0;
	return r;
}

/* --- classes --- */

/* By the rows that the arena has of them. */
static int64_t find_row(struct patch *c, enum ax_field f)
{
	const struct ax_field_layout *l = &c->layout->field[f];
	const struct shape *s = &c->c.shape;
	const uint8_t *rows = NULL;

	if (l->rows)
		rows = view_at(c->v, l->rows, (size_t)l->classes * s->row_size);
	for (uint32_t cls = 0; rows && cls < l->classes; cls++) {
		const uint64_t *row = (const void *)(rows + (size_t)cls * s->row_size);

		if (!memcmp(row + s->summary, c->field[f].bits, s->words * sizeof(*row)))
			return cls;
	}
	return -ENOENT;
}

/* What stands in the tables for the values that these rules hold for (p->bits). */
static int64_t class_of_bits(struct patch *c, enum ax_field f)
{
	struct patch_field *p = &c->field[f];
	size_t size = c->c.shape.words * sizeof(*p->bits);
	int64_t cls;

	if (c->layout->match == AX_MATCH_SINGLE)
		return bits_first(&c->c.shape, p->bits);
	if (p->memo_cls >= 0 && !memcmp(p->memo, p->bits, size))
		return p->memo_cls;
	cls = find_row(c, f);
	memcpy(p->memo, p->bits, size);
	p->memo_cls = cls;
	return cls;
}

static int64_t class_of_value(struct patch *c, enum ax_field f, enum line line, u128 x)
{
	struct patch_field *p = &c->field[f];
	uint32_t words = c->c.shape.words;
	bool in[SETS_MAX];

	memcpy(p->bits, p->base, words * sizeof(*p->bits));
	patch_holders(c, &p->users, line, x, in);
	for (size_t i = 0; i < p->users.n; i++)
		if (in[i])
			bits_or(p->bits, p->users.who[i], words);
	for (size_t i = 0; i < p->n_own; i++)
		if (span_holds(&p->own[i].span, line, x))
			bit_set(p->bits, p->own[i].rule);
	return class_of_bits(c, f);
}

/* --- where they change --- */

static int u128_cmp(const void *a, const void *b)
{
	u128 x = *(const u128 *)a, y = *(const u128 *)b;

	return (x > y) - (x < y);
}

static int own_borders(const struct patch_field *p, const struct span *s, u128 *at, size_t *n)
{
	for (size_t i = 0; i < p->n_own && s->first != s->last; i++) {
		const struct span *own = &p->own[i].span;

		if (own->line != s->line)
			continue;
		if (*n + 2 > MARKS_MAX)
			return -E2BIG;
		if (own->first > s->first && own->first <= s->last)
			at[(*n)++] = own->first;
		if (own->last >= s->first && own->last < s->last)
			at[(*n)++] = own->last + 1;
	}
	return 0;
}

int patch_marks(struct patch *c, enum ax_field f, const struct span *s, struct mark *v)
{
	struct patch_field *p = &c->field[f];
	u128 at[MARKS_MAX + 1] = {s->first};
	size_t n = 1, k = 0;
	int r = patch_borders(c, &p->users, s, at, &n);

	if (r == 0)
		r = own_borders(p, s, at, &n);
	if (r < 0)
		return r;
	qsort(at, n, sizeof(*at), u128_cmp);
	for (size_t i = 0; i < n; i++) {
		int64_t cls;

		if (i && at[i] == at[i - 1])
			continue;
		cls = class_of_value(c, f, s->line, at[i]);
		if (cls < 0)
			return (int)cls;
		v[k++] = (struct mark){at[i], (uint32_t)cls};
	}
	return (int)k;
}
