// SPDX-License-Identifier: GPL-2.0-or-later
/* The tables of the fields, as include/xdp.h has them. */
#include "compile/priv.h"

/* Classes become what stands in the table, and cuts between equals disappear. */
static void map_cuts(struct cuts *t, const uint16_t *map)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		struct cut cut = t->v[i];

		cut.cls = map[cut.cls];
		if (n == 0 || cut.cls != t->v[n - 1].cls)
			t->v[n++] = cut;
	}
	t->n = n;
}

static int write_index(const struct cuts *t, size_t size, struct arena *a,
		       struct ax_field_layout *layout)
{
	int64_t at = arena_add(a, size * sizeof(uint16_t), 64);
	uint16_t *to;

	if (at < 0)
		return (int)at;
	to = (uint16_t *)(a->data + at);
	for (size_t i = 0; i < t->n; i++) {
		size_t end = i + 1 < t->n ? (size_t)t->v[i + 1].hi : size;

		for (size_t v = (size_t)t->v[i].hi; v < end; v++)
			to[v] = (uint16_t)t->v[i].cls;
	}
	layout->table = (uint32_t)at;
	return 0;
}

static uint32_t log2_up(size_t n)
{
	uint32_t r = 0;

	while ((size_t)1 << r < n)
		r++;
	return r;
}

/* --- IPv4 --- */

/*
 * The bucket of the cuts [i, end), all in one upper half; `before` holds up to the first of them.
 * What fills it up to a power of two says what holds for the last address, so that a search may
 * end there.
 */
static int64_t write_bucket(struct arena *a, const struct cut *v, size_t n, uint32_t before)
{
	bool first = lower4(&v[0]) != 0;
	uint32_t log2 = log2_up(n + first);
	size_t size = (size_t)1 << log2, k = 0;
	int64_t at = arena_add(a, size * sizeof(uint32_t), sizeof(uint32_t));
	uint32_t *to;

	if (at < 0)
		return at;
	to = (uint32_t *)(a->data + at);
	if (first)
		to[k++] = before;
	for (size_t i = 0; i < n; i++)
		to[k++] = lower4(&v[i]) << 16 | v[i].cls;
	while (k < size)
		to[k++] = 0xffffu << 16 | v[n - 1].cls;
	return at;
}

#define DIRECT_MIN 4 /* cuts; fewer are searched as fast */
#define DIRECT_FEW 8 /* how many times the memory a direct table may take */

/*
 * Where all cuts are prefixes of at most 32 - n bits, a table by the upper bits of the lower half
 * needs no search: n, or 0 where it would be too large for what it saves.
 */
static uint32_t direct_shift(const struct cut *v, size_t n)
{
	uint32_t all = 1u << 15, shift;

	for (size_t i = 0; i < n; i++)
		all |= lower4(&v[i]);
	shift = (uint32_t)__builtin_ctz(all);
	if (n <= DIRECT_MIN || !shift)
		return 0;
	if (sizeof(uint16_t) << (16 - shift) > 2 * DIRECT_FEW * n * sizeof(uint32_t))
		return 0;
	return shift;
}

static int64_t write_direct(struct arena *a, const struct cut *v, size_t n, uint32_t before,
			    uint32_t shift)
{
	uint32_t size = 1u << (16 - shift), k = 0;
	int64_t at = arena_add(a, size * sizeof(uint16_t), sizeof(uint32_t));
	uint16_t *to;

	if (at < 0)
		return at;
	to = (uint16_t *)(a->data + at);
	for (uint32_t i = 0; i < size; i++) {
		if (k < n && lower4(&v[k]) == i << shift)
			before = v[k++].cls;
		to[i] = (uint16_t)before;
	}
	return at;
}

int64_t compile_root4(struct arena *a, uint32_t buckets4, const struct ax_field_layout *l,
		      const struct cut *v, size_t n, uint32_t before)
{
	uint32_t shift = direct_shift(v, n);
	uint32_t kind = shift ? AX_ROOT_LOG2_MAX + shift : log2_up(n + (lower4(&v[0]) != 0));
	struct points points;
	uint32_t rows_log2 = 0;
	int64_t at, off;

	if (n == 1 && lower4(&v[0]) == 0)
		return AX_ROOT_CLASS | v[0].cls;
	if (!shift && points_of(l, v, n, before, sizeof(uint32_t) << kind, &points)) {
		kind = 0;
		rows_log2 = points.log2;
		at = points_write(&points, a);
	} else {
		at = shift ? write_direct(a, v, n, before, shift) : write_bucket(a, v, n, before);
	}
	if (at < 0)
		return at;
	off = (at - buckets4) / (int64_t)sizeof(uint32_t) | rows_log2;
	return off >> AX_ROOT_OFFSET_BITS ? -EFBIG : (int64_t)kind << AX_ROOT_OFFSET_BITS | off;
}

static int write_root4(const struct cuts *t, struct arena *a, struct ax_field_layout *layout)
{
	uint32_t cls = t->v[0].cls;
	size_t i = 0;

	for (uint32_t up = 0; up < 65536; up++) {
		size_t from = i;
		int64_t word = AX_ROOT_CLASS | cls;

		while (i < t->n && upper4(&t->v[i]) == up)
			i++;
		if (i > from) {
			word = compile_root4(a, layout->buckets4, layout, &t->v[from], i - from,
					     cls);
			if (word < 0)
				return (int)word;
			cls = t->v[i - 1].cls;
		}
		((uint32_t *)(a->data + layout->table))[up] = (uint32_t)word;
	}
	return 0;
}

/* The largest lists need what room there is. */
#define SPARE_SHARE 16 /* one part of so many */
#define SPARE_MIN   ((size_t)256 << 10)
#define SPARE_MAX   ((size_t)4 << 20)

/* Room behind the buckets from `first` on, for those that come later, points among them. */
static int add_spare(struct arena *a, uint32_t first, uint32_t *spare)
{
	size_t size = (a->size - first) / SPARE_SHARE & ~(size_t)(AX_POINTS_SIZE - 1);

	if (a->size > ARENA_MAX / 2)
		return 0;
	size = size < SPARE_MIN ? SPARE_MIN : size < SPARE_MAX ? size : SPARE_MAX;
	*spare = (uint32_t)size;
	return arena_add(a, size, AX_POINTS_SIZE) < 0 ? -ENOMEM : 0;
}

static int write_v4(const struct cuts *t, bool in_place, struct arena *a,
		    struct ax_field_layout *layout)
{
	int64_t at = arena_add(a, 65536 * sizeof(uint32_t), 64);
	int r;

	if (at < 0)
		return (int)at;
	layout->table = (uint32_t)at;
	layout->buckets4 = (uint32_t)a->size; /* a multiple of 64 */
	points_choose(t, layout);
	r = write_root4(t, a, layout);
	if (r == 0 && in_place)
		r = add_spare(a, layout->buckets4, &layout->spare4);
	layout->buckets4_size = (uint32_t)a->size - layout->buckets4;
	if (layout->buckets4_size < AX_POINTS_SIZE) /* there is none, and cannot be one */
		layout->points = 0;
	return r;
}

/* --- IPv6 --- */

#define BUCKET6_CUTS 32 /* a change writes one anew, and root6 is to fit into the caches */

int64_t compile_bucket6(struct arena *a, uint32_t buckets6, const struct cut *v, size_t n)
{
	int64_t at = n >> AX_BUCKET6_LOG2_MAX
			     ? -EFBIG
			     : arena_add(a, n * sizeof(struct ax_key128), sizeof(uint64_t));
	struct ax_key128 *to;

	if (at < 0)
		return at;
	to = (struct ax_key128 *)(a->data + at);
	for (size_t i = 0; i < n; i++)
		to[i] = (struct ax_key128){v[i].hi, v[i].lo, v[i].cls};
	return (int64_t)n << 32 | (at - buckets6) / (int64_t)sizeof(uint64_t);
}

static int write_v6(const struct cuts *t, bool in_place, struct arena *a,
		    struct ax_field_layout *layout)
{
	size_t n = (t->n + BUCKET6_CUTS - 1) / BUCKET6_CUTS;
	int64_t at =
		n >> AX_ROOT6_LOG2_MAX ? -EFBIG : arena_add(a, n * sizeof(struct ax_key128), 64);
	int r = 0;

	if (at < 0)
		return (int)at;
	layout->table6 = (uint32_t)at;
	layout->entries = (uint32_t)n;
	layout->buckets6 = (uint32_t)((a->size + 7) & ~(size_t)7);
	for (size_t i = 0; i < n; i++) {
		const struct cut *v = &t->v[i * BUCKET6_CUTS];
		size_t left = t->n - i * BUCKET6_CUTS;
		int64_t leads = compile_bucket6(a, layout->buckets6, v,
						left < BUCKET6_CUTS ? left : BUCKET6_CUTS);

		if (leads < 0)
			return (int)leads;
		((struct ax_key128 *)(a->data + at))[i] =
			(struct ax_key128){v->hi, v->lo, (uint64_t)leads};
	}
	if (in_place)
		r = add_spare(a, layout->buckets6, &layout->spare6);
	layout->buckets6_size = (uint32_t)a->size - layout->buckets6;
	return r;
}

/* --- by the field's kind --- */

static int write_mac(struct compiler *c, const struct rule_field *row, const uint16_t *map,
		     struct arena *a, struct ax_field_layout *layout)
{
	const struct cuts *t = &c->field[row->number].cuts;
	int64_t at = arena_add(a, t->n * sizeof(struct ax_key64), 64);

	if (at < 0)
		return (int)at;
	layout->none = map[0];
	layout->table = (uint32_t)at;
	layout->entries = (uint32_t)t->n;
	for (size_t i = 0; i < t->n; i++)
		((struct ax_key64 *)(a->data + at))[i] =
			(struct ax_key64){.key = t->v[i].hi >> 16, .cls = (uint16_t)t->v[i].cls};
	return 0;
}

static int write_addresses(struct compiler *c, const struct rule_field *row, const uint16_t *map,
			   struct arena *a, struct ax_field_layout *layout)
{
	struct field *field = &c->field[row->number];
	int r;

	layout->none = map[0];
	map_cuts(&field->v4, map);
	r = write_v4(&field->v4, c->in_place, a, layout);
	return r < 0 ? r : write_v6(&field->cuts, c->in_place, a, layout);
}

static int write_indexes(struct compiler *c, const struct rule_field *row, const uint16_t *map,
			 struct arena *a, struct ax_field_layout *layout)
{
	(void)map;
	return write_index(&c->field[row->number].cuts, row->size, a, layout);
}

/* As many as there are classes, and what stands for no name. */
static int write_names(struct compiler *c, const struct rule_field *row, const uint16_t *map,
		       struct arena *a, struct ax_field_layout *layout)
{
	const struct field *field = &c->field[row->number];

	(void)map;
	layout->entries = AX_NAME_FIRST + field->classes.n;
	return write_index(&field->cuts, layout->entries, a, layout);
}

int compile_table(struct compiler *c, const struct rule_field *row, const uint16_t *map,
		  struct arena *a, struct ax_field_layout *layout)
{
	static int (*const write[FIELD_KINDS])(struct compiler * c, const struct rule_field *row,
					       const uint16_t *map, struct arena *a,
					       struct ax_field_layout *layout) = {
		[FIELD_ADDRESS] = write_addresses, [FIELD_NUMBER] = write_indexes,
		[FIELD_BITS] = write_indexes,	   [FIELD_MAC] = write_mac,
		[FIELD_PAYLOAD] = write_indexes,   [FIELD_NAME] = write_names,
		[FIELD_FLOW] = write_indexes,	   [FIELD_MARK] = write_indexes,
	};

	map_cuts(&c->field[row->number].cuts, map);
	return write[row->kind](c, row, map, a, layout);
}
