// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/maglev.h"

#define EMPTY UINT16_MAX

/* A backend while the ring is filled: it walks through its own permutation of the slots. */
struct walker {
	uint64_t hash;
	uint32_t at, skip; /* both below the number of slots */
	uint32_t weight, credit;
	uint16_t number;
};

static uint64_t mix(uint64_t h)
{
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ull;
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ull;
	return h ^ h >> 32;
}

static uint64_t hash_backend(const struct maglev_backend *b)
{
	uint64_t h = b->port;

	/* word by word in a fixed byte order: machines of different kinds agree */
	for (size_t i = 0; i < sizeof(b->addr.b); i += 4)
		h = mix(h ^ ((uint64_t)b->addr.b[i] << 24 | (uint64_t)b->addr.b[i + 1] << 16 |
			     (uint64_t)b->addr.b[i + 2] << 8 | b->addr.b[i + 3]));
	return h;
}

static int by_hash(const void *a, const void *b)
{
	const struct walker *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static void walker_init(struct walker *w, const struct maglev_backend *b, uint32_t slots)
{
	w->hash = hash_backend(b);
	w->at = (uint32_t)(mix(w->hash + 1) % slots);
	w->skip = (uint32_t)(mix(w->hash + 2) % (slots - 1)) + 1; /* slots is a prime */
	w->weight = b->weight;
	w->credit = 0;
	w->number = b->number;
}

static void take_slot(struct walker *w, uint16_t *ring, uint32_t slots)
{
	while (ring[w->at] != EMPTY) {
		w->at += w->skip;
		if (w->at >= slots)
			w->at -= slots;
	}
	ring[w->at] = w->number;
}

int maglev_build(const struct maglev_backend *b, size_t n, uint16_t *ring, uint32_t slots)
{
	autofree struct walker *w = calloc(n ? n : 1, sizeof(*w));
	uint32_t heaviest = 0, free_slots = slots;

	if (!w)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (!b[i].weight || b[i].number == EMPTY)
			return -EINVAL;
		walker_init(&w[i], &b[i], slots);
		heaviest = w[i].weight > heaviest ? w[i].weight : heaviest;
	}
	if (!n || n > slots)
		return -EINVAL;
	qsort(w, n, sizeof(*w), by_hash);
	memset(ring, 0xff, slots * sizeof(*ring));
	/* in each round the heaviest have a turn, the others as often as their weight says */
	for (;;) {
		for (size_t i = 0; i < n; i++) {
			w[i].credit += w[i].weight;
			if (w[i].credit < heaviest)
				continue;
			w[i].credit -= heaviest;
			take_slot(&w[i], ring, slots);
			if (!--free_slots)
				return 0;
		}
	}
}
