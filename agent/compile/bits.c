// SPDX-License-Identifier: GPL-2.0-or-later
/* Bit vectors over rules, the classes of a field (each different vector is one), and cuts. */
#include "compile/priv.h"

#define SLOTS_FIRST 64

uint32_t bits_first(const struct shape *s, const uint64_t *bits)
{
	for (uint32_t w = 0; w < s->words; w++)
		if (bits[w])
			return w * 64 + (uint32_t)__builtin_ctzll(bits[w]);
	return s->rules;
}

/* Four lanes, because one multiplication has to wait for the one before it. */
static uint64_t hash_bits(const uint64_t *bits, uint32_t words)
{
	const uint64_t k = 0x9e3779b97f4a7c15ull;
	uint64_t h[4] = {1, 2, 3, 4}, r = 0;
	uint32_t w = 0;

	for (; w + 4 <= words; w += 4)
		for (int i = 0; i < 4; i++) {
			uint64_t x = (h[i] ^ bits[w + i]) * k;

			h[i] = x ^ (x >> 32);
		}
	for (; w < words; w++) {
		uint64_t x = (h[0] ^ bits[w]) * k;

		h[0] = x ^ (x >> 32);
	}
	for (int i = 0; i < 4; i++) {
		r = (r ^ h[i]) * k;
		r ^= r >> 29;
	}
	return r;
}

int classes_init(struct classes *c, const struct shape *shape, struct arena *rows)
{
	int64_t first = arena_add(rows, 0, sizeof(uint64_t));

	if (first < 0)
		return (int)first;
	*c = (struct classes){.shape = shape, .rows = rows, .first = (size_t)first};
	c->n_slots = SLOTS_FIRST;
	c->slots = calloc(c->n_slots, sizeof(*c->slots));
	return c->slots ? 0 : -ENOMEM;
}

void classes_free(struct classes *c)
{
	free(c->slots);
	c->slots = NULL;
}

const uint64_t *class_bits(const struct classes *c, uint32_t cls)
{
	const uint8_t *row = c->rows->data + c->first + (size_t)cls * c->shape->row_size;

	return (const uint64_t *)row + c->shape->summary;
}

static uint64_t *slot_of(const struct classes *c, uint64_t hash, const uint64_t *bits)
{
	size_t mask = c->n_slots - 1, i = hash & mask;

	for (; c->slots[i]; i = (i + 1) & mask)
		if (c->slots[i] >> 32 == hash >> 32 &&
		    memcmp(class_bits(c, (uint32_t)c->slots[i] - 1), bits,
			   c->shape->words * sizeof(*bits)) == 0)
			break;
	return &c->slots[i];
}

static int more_slots(struct classes *c)
{
	uint64_t *old = c->slots;
	size_t n_old = c->n_slots;

	c->slots = calloc(n_old * 2, sizeof(*c->slots));
	if (!c->slots) {
		c->slots = old;
		return -ENOMEM;
	}
	c->n_slots = n_old * 2;
	for (size_t i = 0; i < n_old; i++) {
		const uint64_t *bits;

		if (!old[i])
			continue;
		bits = class_bits(c, (uint32_t)old[i] - 1);
		*slot_of(c, hash_bits(bits, c->shape->words), bits) = old[i];
	}
	free(old);
	return 0;
}

static void write_row(const struct shape *s, uint64_t *row, const uint64_t *bits)
{
	memcpy(row + s->summary, bits, s->words * sizeof(*bits));
	for (uint32_t w = 0; w < s->words; w++)
		if (bits[w])
			bit_set(row, w);
}

int class_of(struct classes *c, const uint64_t *bits)
{
	uint64_t hash = hash_bits(bits, c->shape->words), *slot = slot_of(c, hash, bits);
	int64_t at;

	if (*slot)
		return (int)((uint32_t)*slot - 1);
	if (c->n == CLASSES_MAX)
		return -E2BIG;
	at = arena_add(c->rows, c->shape->row_size, sizeof(uint64_t));
	if (at < 0)
		return (int)at;
	write_row(c->shape, (uint64_t *)(c->rows->data + at), bits);
	*slot = (hash >> 32 << 32) | ++c->n;
	if (c->n * 2 > c->n_slots && more_slots(c) < 0)
		return -ENOMEM;
	return (int)c->n - 1;
}

int cuts_add(struct cuts *t, uint64_t hi, uint64_t lo, uint32_t cls)
{
	if (t->n && t->v[t->n - 1].hi == hi && t->v[t->n - 1].lo == lo)
		t->n--; /* what began here has given way to what is inside it, or goes on behind */
	if (t->n && t->v[t->n - 1].cls == cls)
		return 0;
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 64;
		struct cut *v;

		if (t->n == CUTS_MAX)
			return -EFBIG;
		v = realloc(t->v, cap * sizeof(*v));
		if (!v)
			return -ENOMEM;
		t->v = v;
		t->cap = cap;
	}
	t->v[t->n++] = (struct cut){hi, lo, cls};
	return 0;
}
