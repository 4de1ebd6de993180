// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The classes of addresses. The prefixes of all rules and sets, merged in order of their first
 * address, the wider first, are swept once with a stack of those that are open. A prefix's class
 * is that of the prefix around it and the rules that name the prefix; both are small numbers, and
 * what they give is remembered, so a set of a million prefixes costs a table look-up for each.
 */
#include <endian.h>

#include "compile/priv.h"

#define NEST_MAX 129 /* prefixes around each other: one of each length */

/* Prefixes as they are swept: left-aligned, see struct cut. */
struct key {
	uint64_t hi, lo;
	uint32_t len;
};
/* Where prefixes come from: the sets of the list by their number, behind them the rules. */
struct item {
	struct key key;
	uint32_t source;
};
struct items {
	struct item *v;
	size_t n, cap;
};

enum family { FAMILY_V4, FAMILY_V6, FAMILY_MAC };

/* --- sorted runs, merged by a heap of their first items --- */

struct run {
	struct item head;
	const struct item *item, *item_end;	  /* of the rules, */
	const struct prefix *prefix, *prefix_end; /* or of a set */
};
struct merge {
	struct compiler *c;
	enum family family;
	struct run *heap;
	size_t n;
};

static int key_cmp(const struct key *a, const struct key *b)
{
	if (a->hi != b->hi)
		return a->hi < b->hi ? -1 : 1;
	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	return a->len < b->len ? -1 : a->len > b->len;
}

static int item_cmp(const void *pa, const void *pb)
{
	const struct item *a = pa, *b = pb;
	int r = key_cmp(&a->key, &b->key);

	return r ? r : a->source < b->source ? -1 : a->source > b->source;
}

static void key_mask(uint32_t len, uint64_t *hi, uint64_t *lo)
{
	*hi = len == 0 ? 0 : len >= 64 ? ~0ull : ~0ull << (64 - len);
	*lo = len <= 64 ? 0 : len >= 128 ? ~0ull : ~0ull << (128 - len);
}

static struct key key_of(const struct prefix *p, enum family family)
{
	uint64_t mask_hi, mask_lo;
	struct key k;

	if (family == FAMILY_V4) {
		k = (struct key){(uint64_t)be32toh(p->addr.w[3]) << 32, 0, p->len - 96};
	} else {
		memcpy(&k.hi, &p->addr.b[0], 8);
		memcpy(&k.lo, &p->addr.b[8], 8);
		k = (struct key){be64toh(k.hi), be64toh(k.lo), p->len};
	}
	key_mask(k.len, &mask_hi, &mask_lo);
	k.hi &= mask_hi;
	k.lo &= mask_lo;
	return k;
}

/* An IPv6 prefix that holds the mapped addresses is not one of IPv4. */
static bool prefix_is(const struct prefix *p, enum family family)
{
	bool v4 = p->len >= 96 && addr_is_v4(&p->addr);

	return v4 == (family == FAMILY_V4);
}

/* The next item of a run into its head. */
static bool run_next(struct run *r, enum family family)
{
	if (r->item < r->item_end) {
		r->head = *r->item++;
		return true;
	}
	while (r->prefix < r->prefix_end && !prefix_is(r->prefix, family))
		r->prefix++;
	if (r->prefix == r->prefix_end)
		return false;
	r->head.key = key_of(r->prefix++, family);
	return true;
}

static void sift_down(struct merge *m, size_t i)
{
	struct run moved = m->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= m->n)
			break;
		if (child + 1 < m->n &&
		    item_cmp(&m->heap[child + 1].head, &m->heap[child].head) < 0)
			child++;
		if (item_cmp(&moved.head, &m->heap[child].head) <= 0)
			break;
		m->heap[i] = m->heap[child];
		i = child;
	}
	m->heap[i] = moved;
}

/* Removes the first item of all. -EINVAL: a set is not sorted. */
static int merge_next(struct merge *m, struct item *ret)
{
	struct run *r = &m->heap[0];

	*ret = r->head;
	if (!run_next(r, m->family)) {
		m->heap[0] = m->heap[--m->n];
	} else if (key_cmp(&r->head.key, &ret->key) < 0) {
		const struct rule_set_def *s = &m->c->list->sets[ret->source];

		return error_set(m->c->e, -EINVAL, "the set %s is not sorted: load it anew",
				 s->name);
	}
	if (m->n)
		sift_down(m, 0);
	return 0;
}

static void merge_add(struct merge *m, struct run run)
{
	if (!run_next(&run, m->family))
		return;
	m->heap[m->n++] = run;
}

static int merge_init(struct merge *m, const struct items *own, const struct set_users *users)
{
	m->heap = calloc(1 + users->n, sizeof(*m->heap));
	if (!m->heap)
		return -ENOMEM;
	merge_add(m, (struct run){.item = own->v, .item_end = own->v + own->n});
	for (size_t i = 0; i < users->n; i++) {
		const struct rule_set_def *set = &m->c->list->sets[i];

		if (users->who[i] && set->n)
			merge_add(m, (struct run){.head.source = (uint32_t)i,
						  .prefix = set->prefixes,
						  .prefix_end = set->prefixes + set->n});
	}
	for (size_t i = m->n / 2; i-- > 0;)
		sift_down(m, i);
	return 0;
}

/* --- what the rules name themselves --- */

static int items_add(struct items *t, struct key key, uint32_t source)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 64;
		struct item *v = t->n < ITEMS_MAX ? realloc(t->v, cap * sizeof(*v)) : NULL;

		if (!v)
			return t->n < ITEMS_MAX ? -ENOMEM : -EFBIG;
		t->v = v;
		t->cap = cap;
	}
	t->v[t->n++] = (struct item){key, source};
	return 0;
}

static struct key mac_key(const struct rule_mac *mac)
{
	uint64_t v = 0;

	for (int i = 0; i < 6; i++)
		v = v << 8 | mac->b[i];
	return (struct key){v << 16, 0, 48};
}

static int add_own(struct items *t, const struct rule *r, enum ax_field f, enum family family,
		   uint32_t source)
{
	const struct condition *c = &r->in[f];
	int err = 0;

	for (size_t i = 0; i < c->n && err == 0; i++) {
		if (family == FAMILY_MAC)
			err = items_add(t, mac_key(&c->macs[i]), source);
		else if (prefix_is(&c->prefixes[i], family))
			err = items_add(t, key_of(&c->prefixes[i], family), source);
	}
	return err;
}

static int collect_own(struct compiler *c, enum ax_field f, enum family family, struct items *t)
{
	for (uint32_t i = 0; i < c->shape.rules; i++) {
		int r = add_own(t, c->rules[i], f, family, (uint32_t)c->list->n_sets + i);

		if (r == -EFBIG)
			return error_set(c->e, -E2BIG,
					 "the rules have more than %u values of '%s': use sets",
					 ITEMS_MAX, rule_field_name(f));
		if (r < 0)
			return r;
	}
	if (t->n)
		qsort(t->v, t->n, sizeof(*t->v), item_cmp);
	return 0;
}

/* --- groups: the sources that name one prefix; and what a class and a group give --- */

struct group {
	size_t first, n; /* in the pool */
};
struct groups {
	uint32_t *pool;
	size_t pool_n, pool_cap;
	struct group *v;
	size_t n, cap;
	uint32_t *slots; /* hash table: group + 1 */
	size_t n_slots;
};
struct memo {
	uint64_t *keys; /* (class << 32 | group) + 1 */
	uint32_t *classes;
	size_t n, cap;
};

static void groups_free(struct groups *g)
{
	free(g->pool);
	free(g->v);
	free(g->slots);
}

static void memo_free(struct memo *m)
{
	free(m->keys);
	free(m->classes);
}

static size_t mix(uint64_t x)
{
	x *= 0x9e3779b97f4a7c15ull;
	return (size_t)(x ^ (x >> 32));
}

static uint32_t *group_slot(const struct groups *g, const uint32_t *sources, size_t n)
{
	size_t mask = g->n_slots - 1, h = n;

	for (size_t i = 0; i < n; i++)
		h = mix(h ^ sources[i]);
	for (h &= mask; g->slots[h]; h = (h + 1) & mask) {
		const struct group *have = &g->v[g->slots[h] - 1];

		if (have->n == n &&
		    memcmp(&g->pool[have->first], sources, n * sizeof(*sources)) == 0)
			break;
	}
	return &g->slots[h];
}

static int groups_grow(struct groups *g)
{
	size_t n_slots = g->n_slots ? g->n_slots * 2 : 256;
	uint32_t *slots = calloc(n_slots, sizeof(*slots));
	struct group *v = realloc(g->v, n_slots / 2 * sizeof(*v));

	if (v)
		g->v = v;
	if (!slots || !v) {
		free(slots);
		return -ENOMEM;
	}
	free(g->slots);
	g->slots = slots;
	g->n_slots = n_slots;
	g->cap = n_slots / 2;
	for (size_t i = 0; i < g->n; i++)
		*group_slot(g, &g->pool[v[i].first], v[i].n) = (uint32_t)i + 1;
	return 0;
}

/* The last `n` sources of the pool: either they become a group there, or are dropped for the one
 * that is there already. */
static int64_t group_of(struct groups *g, size_t n)
{
	size_t first = g->pool_n - n;
	uint32_t *slot;

	if (g->n == g->cap) {
		int r = groups_grow(g);

		if (r < 0)
			return r;
	}
	slot = group_slot(g, &g->pool[first], n);
	if (*slot) {
		g->pool_n = first;
		return *slot - 1;
	}
	g->v[g->n++] = (struct group){first, n};
	*slot = (uint32_t)g->n;
	return (int64_t)g->n - 1;
}

static int pool_add(struct groups *g, uint32_t source)
{
	if (g->pool_n == g->pool_cap) {
		size_t cap = g->pool_cap ? g->pool_cap * 2 : 256;
		uint32_t *p = realloc(g->pool, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		g->pool = p;
		g->pool_cap = cap;
	}
	g->pool[g->pool_n++] = source;
	return 0;
}

static size_t memo_slot(const struct memo *m, uint64_t key)
{
	size_t mask = m->cap - 1, h = mix(key) & mask;

	while (m->keys[h] && m->keys[h] != key)
		h = (h + 1) & mask;
	return h;
}

static int memo_grow(struct memo *m)
{
	struct memo old = *m, new = {.n = old.n, .cap = old.cap ? old.cap * 2 : 256};

	new.keys = calloc(new.cap, sizeof(*new.keys));
	new.classes = calloc(new.cap, sizeof(*new.classes));
	if (!new.keys || !new.classes) {
		memo_free(&new);
		return -ENOMEM;
	}
	for (size_t i = 0; i < old.cap; i++) {
		size_t to;

		if (!old.keys[i])
			continue;
		to = memo_slot(&new, old.keys[i]);
		new.keys[to] = old.keys[i];
		new.classes[to] = old.classes[i];
	}
	memo_free(&old);
	*m = new;
	return 0;
}

/* --- the sweep --- */

struct open {
	uint64_t hi, lo; /* its last address */
	uint32_t cls;
};
struct nesting {
	struct compiler *c;
	enum ax_field f;
	struct classes *classes;
	struct set_users users;
	struct groups groups;
	struct memo memo;
	uint64_t *bits;
	struct cuts *cuts;
	struct open stack[NEST_MAX + 1]; /* [0]: everything */
	size_t depth;
};

static void nesting_free(struct nesting *s)
{
	set_users_free(&s->users);
	groups_free(&s->groups);
	memo_free(&s->memo);
	free(s->bits);
}

static int make_class(struct nesting *s, uint32_t around, uint32_t group)
{
	const struct group *g = &s->groups.v[group];
	size_t n_sets = s->c->list->n_sets;

	memcpy(s->bits, class_bits(s->classes, around), s->c->shape.words * sizeof(*s->bits));
	for (size_t i = 0; i < g->n; i++) {
		uint32_t source = s->groups.pool[g->first + i];

		if (source < n_sets)
			bits_or(s->bits, s->users.who[source], s->c->shape.words);
		else
			bit_set(s->bits, source - (uint32_t)n_sets);
	}
	return class_of(s->classes, s->bits);
}

static int class_within(struct nesting *s, uint32_t around, uint32_t group)
{
	uint64_t key = ((uint64_t)around << 32 | group) + 1;
	size_t slot;
	int cls;

	if (s->memo.n * 2 >= s->memo.cap && memo_grow(&s->memo) < 0)
		return -ENOMEM;
	slot = memo_slot(&s->memo, key);
	if (s->memo.keys[slot])
		return (int)s->memo.classes[slot];
	cls = make_class(s, around, group);
	if (cls < 0)
		return cls;
	s->memo.keys[slot] = key;
	s->memo.classes[slot] = (uint32_t)cls;
	s->memo.n++;
	return cls;
}

/* Ends the innermost prefix: behind it goes on what is around it. */
static int close_one(struct nesting *s)
{
	const struct open *o = &s->stack[s->depth--];
	uint64_t lo = o->lo + 1, hi = o->hi + (lo == 0);

	if (!hi && !lo) /* nothing is behind the last address */
		return 0;
	return cuts_add(s->cuts, hi, lo, s->stack[s->depth].cls);
}

static int open_one(struct nesting *s, const struct key *k, uint32_t group)
{
	uint64_t mask_hi, mask_lo;
	int cls, r = 0;

	while (s->depth && r == 0) {
		const struct open *o = &s->stack[s->depth];

		if (k->hi < o->hi || (k->hi == o->hi && k->lo <= o->lo))
			break;
		r = close_one(s);
	}
	if (r < 0)
		return r;
	cls = class_within(s, s->stack[s->depth].cls, group);
	if (cls < 0)
		return cls;
	key_mask(k->len, &mask_hi, &mask_lo);
	s->stack[++s->depth] = (struct open){k->hi | ~mask_hi, k->lo | ~mask_lo, (uint32_t)cls};
	return cuts_add(s->cuts, k->hi, k->lo, (uint32_t)cls);
}

/* Everybody who names the first prefix of those that are left. */
static int64_t take_group(struct nesting *s, struct merge *m, struct key *key)
{
	size_t n = 0;

	*key = m->heap[0].head.key;
	while (m->n && key_cmp(&m->heap[0].head.key, key) == 0) {
		struct item item;
		int r = merge_next(m, &item);

		if (r == 0 && (n == 0 || s->groups.pool[s->groups.pool_n - 1] != item.source)) {
			r = pool_add(&s->groups, item.source);
			n++;
		}
		if (r < 0)
			return r;
	}
	return group_of(&s->groups, n);
}

static int sweep(struct nesting *s, struct merge *m)
{
	int r = cuts_add(s->cuts, 0, 0, 0);

	s->depth = 0;
	s->stack[0] = (struct open){~0ull, ~0ull, 0};
	while (m->n && r == 0) {
		struct key key;
		int64_t group = take_group(s, m, &key);

		r = group < 0 ? (int)group : open_one(s, &key, (uint32_t)group);
	}
	while (s->depth && r == 0)
		r = close_one(s);
	return r;
}

static int sweep_family(struct nesting *s, enum family family, struct cuts *cuts)
{
	struct merge m = {.c = s->c, .family = family};
	struct items own = {0};
	int r = collect_own(s->c, s->f, family, &own);

	s->cuts = cuts;
	if (r == 0)
		r = merge_init(&m, &own, &s->users);
	if (r == 0)
		r = sweep(s, &m);
	free(m.heap);
	free(own.v);
	return r;
}

/* Class 0 is of packets without an address, and of all addresses that no prefix holds. */
static int nesting_init(struct nesting *s)
{
	s->bits = compile_base(s->c, s->f);
	return s->bits ? class_of(s->classes, s->bits) : -ENOMEM;
}

int compile_macs(struct compiler *c, const struct rule_field *row)
{
	struct field *field = &c->field[row->number];
	struct nesting s CLEANUP(nesting_free) = {
		.c = c, .f = row->number, .classes = &field->classes};
	int r = nesting_init(&s);

	return r < 0 ? r : sweep_family(&s, FAMILY_MAC, &field->cuts);
}

int compile_addresses(struct compiler *c, const struct rule_field *row)
{
	struct field *field = &c->field[row->number];
	struct nesting s CLEANUP(nesting_free) = {
		.c = c, .f = row->number, .classes = &field->classes};
	int r = nesting_init(&s);

	if (r >= 0)
		r = set_users_init(c, row, &s.users);
	if (r == 0)
		r = sweep_family(&s, FAMILY_V4, &field->v4);
	if (r == 0)
		r = sweep_family(&s, FAMILY_V6, &field->cuts);
	return r < 0 ? r : compile_set_classes(c, row->number, &s.users);
}
