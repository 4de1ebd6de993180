// SPDX-License-Identifier: GPL-2.0-or-later
/* The tables of an arena that packets are judged by: new buckets beside the old ones, and then the
 * words that lead to them. */
#include "compile/patch.h"

#define PIECES_MAX     256  /* that one element may change */
#define ALL_PIECES_MAX 4096 /* of more the list is compiled as fast */
#define FOUND_MAX      (65536 + 2)

void patch_tables_free(struct patch *c)
{
	for (size_t i = 0; i < c->n_pieces; i++)
		free(c->pieces[i].v);
	free(c->pieces);
	for (int f = 0; f < AX_FIELDS; f++) {
		free(c->ports[f].cls);
		free(c->ports[f].changed);
	}
}

/* --- what is there --- */

static uint32_t *root4_at(const struct patch *c, enum ax_field f, uint32_t index)
{
	return view_at(c->v, c->layout->field[f].table + index * sizeof(uint32_t),
		       sizeof(uint32_t));
}

static struct ax_key128 *root6_at(const struct patch *c, enum ax_field f, uint32_t index)
{
	return view_at(c->v, c->layout->field[f].table6 + index * sizeof(struct ax_key128),
		       sizeof(struct ax_key128));
}

static u128 key_of(const struct ax_key128 *k)
{
	return (u128)k->hi << 64 | k->lo;
}

static void put_mark(struct mark *v, size_t *n, u128 at, uint32_t cls)
{
	if (*n == 0 || v[*n - 1].cls != cls)
		v[(*n)++] = (struct mark){at, cls};
}

/* Of the points in a bucket's row, those before what fills it up. */
static void put_points(const struct ax_field_layout *l, u128 first, const uint16_t *row,
		       struct mark *v, size_t *n, uint32_t shift, uint32_t number)
{
	for (int i = 0; i < AX_POINTS; i++) {
		u128 at = first | row[i];

		if ((uint32_t)row[i] >> shift != number || (i && row[i] <= row[i - 1]))
			break;
		if (v[*n - 1].at == at) /* its neighbour is one, too */
			--*n;
		put_mark(v, n, at, l->points >> 16);
		if (row[i] != 0xffff)
			put_mark(v, n, at + 1, l->points & 0xffff);
	}
}

static size_t read_points(const struct patch *c, const struct patch_piece *p, uint32_t root,
			  struct mark *v)
{
	const struct ax_field_layout *l = &c->layout->field[p->f];
	uint32_t log2 = root & AX_POINTS_LOG2_MAX, rows = 1u << log2;
	uint64_t off = (uint64_t)(root & ~AX_POINTS_LOG2_MAX) * sizeof(uint32_t);
	uint64_t bytes = (uint64_t)rows * AX_POINTS_SIZE;
	const uint8_t *at = NULL;
	size_t n = 0;

	if (l->points && off + bytes <= l->buckets4_size)
		at = view_at(c->v, l->buckets4 + off, bytes);
	if (!at)
		return 0;
	put_mark(v, &n, p->first, l->points & 0xffff);
	for (uint32_t i = 0; i < rows; i++)
		put_points(l, p->first, (const uint16_t *)at + (size_t)i * AX_POINTS, v, &n,
			   16 - log2, i);
	return n;
}

/* What a word of root4 leads to; `v` has room for FOUND_MAX. Returns how many, 0: this is not how
 * tables are. */
static size_t read_bucket4(const struct patch *c, const struct patch_piece *p, struct mark *v)
{
	const struct ax_field_layout *l = &c->layout->field[p->f];
	const uint32_t *word = root4_at(c, p->f, p->index);
	uint32_t root = word ? *word : 0, kind = root >> AX_ROOT_OFFSET_BITS & 31;
	uint64_t off = (uint64_t)(root & ((1u << AX_ROOT_OFFSET_BITS) - 1)) * sizeof(uint32_t);
	uint32_t direct = kind > AX_ROOT_LOG2_MAX ? kind - AX_ROOT_LOG2_MAX : 0;
	uint32_t size = 1u << (direct ? 16 - direct : kind);
	uint64_t bytes = (direct ? 2ull : 4ull) * size;
	const uint8_t *at;
	size_t n = 0;

	if (root & AX_ROOT_CLASS) {
		put_mark(v, &n, p->first, root & 0xffff);
		return n;
	}
	if (word && !kind)
		return read_points(c, p, root, v);
	if (!word || off + bytes > l->buckets4_size)
		return 0;
	at = view_at(c->v, l->buckets4 + off, bytes);
	for (uint32_t i = 0; at && i < size; i++) {
		if (direct)
			put_mark(v, &n, p->first | i << direct, ((const uint16_t *)at)[i]);
		else
			put_mark(v, &n, p->first | ((const uint32_t *)at)[i] >> 16,
				 ((const uint32_t *)at)[i] & 0xffff);
	}
	return n;
}

static size_t read_bucket6(const struct patch *c, const struct patch_piece *p, struct mark *v)
{
	const struct ax_field_layout *l = &c->layout->field[p->f];
	const struct ax_key128 *root = root6_at(c, p->f, p->index), *at;
	uint64_t leads = root ? root->value : 0, size = leads >> 32;
	uint64_t off = (leads & UINT32_MAX) * sizeof(uint64_t);
	size_t n = 0;

	if (!size || size >> AX_BUCKET6_LOG2_MAX || off + size * sizeof(*at) > l->buckets6_size)
		return 0;
	at = view_at(c->v, l->buckets6 + off, size * sizeof(*at));
	for (uint64_t i = 0; at && i < size; i++)
		put_mark(v, &n, key_of(&at[i]), (uint32_t)at[i].value);
	return n;
}

/* --- as it is to be --- */

static struct patch_piece *find_piece(const struct patch *c, enum ax_field f, enum line line,
				      uint32_t index)
{
	for (size_t i = c->n_pieces; i-- > 0;) {
		struct patch_piece *p = &c->pieces[i];

		if (p->index == index && p->line == line && p->f == f)
			return p;
	}
	return NULL;
}

static int piece_bounds(const struct patch *c, struct patch_piece *p)
{
	const struct ax_key128 *root;

	if (p->line == LINE_V4) {
		p->first = (u128)p->index << 16;
		p->last = p->first | 0xffff;
		return 0;
	}
	root = root6_at(c, p->f, p->index);
	if (!root)
		return -EPROTO;
	p->first = key_of(root);
	p->last = ~(u128)0;
	if (p->index + 1 == c->layout->field[p->f].entries)
		return 0;
	root = root6_at(c, p->f, p->index + 1);
	if (!root)
		return -EPROTO;
	p->last = key_of(root) - 1;
	return 0;
}

/* The piece, read if nothing was to become of it before. */
static int take_piece(struct patch *c, enum ax_field f, enum line line, uint32_t index,
		      struct patch_piece **ret)
{
	struct patch_piece p = {.f = f, .line = line, .index = index};
	struct mark *v;
	int r;

	*ret = find_piece(c, f, line, index);
	if (*ret)
		return 0;
	if (c->n_pieces == ALL_PIECES_MAX)
		return -E2BIG;
	if (c->n_pieces == c->room) {
		size_t room = c->room ? 2 * c->room : 16;
		struct patch_piece *more = realloc(c->pieces, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		c->pieces = more;
		c->room = room;
	}
	r = piece_bounds(c, &p);
	if (r < 0)
		return r;
	p.v = malloc(FOUND_MAX * sizeof(*v));
	if (!p.v)
		return -ENOMEM;
	p.n = line == LINE_V4 ? read_bucket4(c, &p, p.v) : read_bucket6(c, &p, p.v);
	v = realloc(p.v, (p.n + 1) * sizeof(*v));
	p.v = v ? v : p.v;
	*ret = &c->pieces[c->n_pieces++];
	**ret = p;
	return p.n ? 0 : -EPROTO;
}

static uint32_t class_at(const struct mark *v, size_t n, u128 x)
{
	uint32_t cls = v[0].cls;

	for (size_t i = 1; i < n && v[i].at <= x; i++)
		cls = v[i].cls;
	return cls;
}

/* The values of s that are in the piece get the classes v. */
static int change_piece(struct patch_piece *p, const struct span *s, const struct mark *v, size_t n)
{
	struct mark *to = malloc((p->n + n + 2) * sizeof(*to));
	u128 first = s->first > p->first ? s->first : p->first;
	u128 last = s->last < p->last ? s->last : p->last;
	size_t k = 0, i;

	if (!to)
		return -ENOMEM;
	for (i = 0; i < p->n && p->v[i].at < first; i++)
		put_mark(to, &k, p->v[i].at, p->v[i].cls);
	put_mark(to, &k, first, class_at(v, n, first));
	for (i = 0; i < n; i++)
		if (v[i].at > first && v[i].at <= last)
			put_mark(to, &k, v[i].at, v[i].cls);
	if (last < p->last)
		put_mark(to, &k, last + 1, class_at(p->v, p->n, last + 1));
	for (i = 0; i < p->n && last < p->last; i++)
		if (p->v[i].at > last + 1)
			put_mark(to, &k, p->v[i].at, p->v[i].cls);
	free(p->v);
	p->v = to;
	p->n = k;
	return 0;
}

/* The entry of root6 that holds for x. */
static uint32_t find_root6(const struct patch *c, enum ax_field f, u128 x)
{
	uint32_t lo = 0, hi = c->layout->field[f].entries;

	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct ax_key128 *k = root6_at(c, f, mid);

		if (k && key_of(k) <= x)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

static int put_ports(struct patch *c, enum ax_field f, const struct span *s, const struct mark *v,
		     size_t n)
{
	struct patch_ports *p = &c->ports[f];
	size_t size = rule_field(f)->size;

	if (!p->cls) {
		p->cls = calloc(size, sizeof(*p->cls));
		p->changed = calloc(size, sizeof(*p->changed));
	}
	if (!p->cls || !p->changed)
		return -ENOMEM;
	for (uint32_t i = (uint32_t)s->first; i <= (uint32_t)s->last && i < size; i++) {
		p->cls[i] = (uint16_t)class_at(v, n, i);
		p->changed[i] = true;
	}
	/* packets will find it there: what cannot be reached is known now */
	return view_at(c->v, c->layout->field[f].table, size * sizeof(*p->cls)) ? 0 : -EPROTO;
}

int patch_put(struct patch *c, enum ax_field f, const struct span *s, const struct mark *v,
	      size_t n)
{
	uint32_t from, to;
	int r = 0;

	if (s->line == LINE_PORTS)
		return put_ports(c, f, s, v, n);
	from = s->line == LINE_V4 ? (uint32_t)(s->first >> 16) : find_root6(c, f, s->first);
	to = s->line == LINE_V4 ? (uint32_t)(s->last >> 16) : find_root6(c, f, s->last);
	if (to - from >= PIECES_MAX)
		return -E2BIG;
	for (uint32_t i = from; i <= to && r == 0; i++) {
		struct patch_piece *p;

		r = take_piece(c, f, s->line, i, &p);
		r = r == 0 ? change_piece(p, s, v, n) : r;
	}
	return r;
}

/* --- into the arena --- */

/* Its bucket behind those in `a`, which begin at `base` in the arena's. */
static int compile_piece(const struct patch *c, struct patch_piece *p, uint32_t base,
			 struct arena *a)
{
	autofree struct cut *cuts = calloc(p->n, sizeof(*cuts));
	int64_t word;

	if (!cuts)
		return -ENOMEM;
	for (size_t i = 0; i < p->n; i++) {
		cuts[i] = (struct cut){(uint64_t)(p->v[i].at >> 64), (uint64_t)p->v[i].at,
				       p->v[i].cls};
		if (p->line == LINE_V4)
			cuts[i] = (struct cut){(uint64_t)p->v[i].at << 32, 0, p->v[i].cls};
	}
	/* offsets are from where the arena's buckets begin: `a` stands for what is at base */
	if (p->line == LINE_V6) {
		word = compile_bucket6(a, 0, cuts, p->n);
		p->word = (uint64_t)word + base / sizeof(uint64_t);
	} else {
		word = compile_root4(a, 0, &c->layout->field[p->f], cuts, p->n, 0);
		p->word = (uint64_t)word;
		if (word >= 0 && !(word & AX_ROOT_CLASS))
			p->word += base / sizeof(uint32_t);
		if (word >= 0 && (p->word ^ (uint64_t)word) >> AX_ROOT_OFFSET_BITS)
			return -ENOSPC;
	}
	return word < 0 ? (int)word : 0;
}

static int write_buckets(struct patch *c, enum ax_field f, enum line line)
{
	const struct ax_field_layout *l = &c->layout->field[f];
	uint32_t size = line == LINE_V4 ? l->buckets4_size : l->buckets6_size;
	uint32_t spare = line == LINE_V4 ? l->spare4 : l->spare6;
	uint32_t *used = line == LINE_V4 ? &c->spare4[f] : &c->spare6[f];
	struct arena a CLEANUP(arena_free) = {0};
	uint32_t base = size - spare + *used;
	uint8_t *to;
	int r = 0;

	for (size_t i = 0; i < c->n_pieces && r == 0; i++)
		if (c->pieces[i].f == f && c->pieces[i].line == line)
			r = compile_piece(c, &c->pieces[i], base, &a);
	if (r < 0 || !a.size)
		return r;
	if (*used > spare || a.size > spare - *used)
		return -ENOSPC;
	to = view_at(c->v, (line == LINE_V4 ? l->buckets4 : l->buckets6) + base, a.size);
	if (!to)
		return -EPROTO;
	memcpy(to, a.data, a.size);
	*used += (uint32_t)((a.size + AX_POINTS_SIZE - 1) & ~(size_t)(AX_POINTS_SIZE - 1));
	return 0;
}

int patch_write(struct patch *c)
{
	static const enum ax_field fields[] = {AX_FIELD_SRC, AX_FIELD_DST};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fields) && r == 0; i++) {
		r = write_buckets(c, fields[i], LINE_V4);
		r = r == 0 ? write_buckets(c, fields[i], LINE_V6) : r;
	}
	return r;
}

static void show_ports(struct patch *c, enum ax_field f)
{
	const struct patch_ports *p = &c->ports[f];
	size_t size = rule_field(f)->size;
	uint16_t *table = view_at(c->v, c->layout->field[f].table, size * sizeof(*table));

	for (size_t i = 0; table && i < size; i++)
		if (p->changed[i])
			__atomic_store_n(&table[i], p->cls[i], __ATOMIC_RELEASE);
}

void patch_show(struct patch *c)
{
	for (size_t i = 0; i < c->n_pieces; i++) {
		const struct patch_piece *p = &c->pieces[i];

		if (p->line == LINE_V4)
			__atomic_store_n(root4_at(c, p->f, p->index), (uint32_t)p->word,
					 __ATOMIC_RELEASE);
		else
			__atomic_store_n(&root6_at(c, p->f, p->index)->value, p->word,
					 __ATOMIC_RELEASE);
	}
	for (int f = 0; f < AX_FIELDS; f++)
		if (c->ports[f].cls)
			show_ports(c, (enum ax_field)f);
}
