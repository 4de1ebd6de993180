/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/xdp/heavy.h"

#define SLOTS (2 * HEAVY_ENTRIES) /* a power of two */

int heavy_init(struct heavy *h, uint64_t seed)
{
	*h = (struct heavy){.v = calloc(SLOTS, sizeof(*h->v)), .seed = seed};
	return h->v ? 0 : -ENOMEM;
}

void heavy_free(struct heavy *h)
{
	free(h->v);
	*h = (struct heavy){0};
}

void heavy_clear(struct heavy *h)
{
	memset(h->v, 0, SLOTS * sizeof(*h->v));
	h->n = 0;
}

/* Each word goes through a multiplication with what came before, from a seed that nobody knows. */
static size_t slot_of(const struct heavy *h, const uint8_t *key)
{
	uint64_t x = h->seed | 1;
	uint32_t w;

	for (size_t i = 0; i < HEAVY_KEY; i += sizeof(w)) {
		memcpy(&w, key + i, sizeof(w));
		x = (x ^ w) * 0x9e3779b97f4a7c15ull;
		x = (x ^ h->seed ^ x >> 29) * 0xbf58476d1ce4e5b9ull;
		x ^= x >> 32;
	}
	return x & (SLOTS - 1);
}

/* Where the key is, or would be. */
static struct heavy_entry *find(const struct heavy *h, const uint8_t *key)
{
	size_t i = slot_of(h, key);

	while (h->v[i].packets > 0 && memcmp(h->v[i].key, key, HEAVY_KEY) != 0)
		i = (i + 1) & (SLOTS - 1);
	return &h->v[i];
}

static int by_weight(const void *a, const void *b)
{
	const struct heavy_entry *x = a, *y = b;

	if (x->packets != y->packets)
		return x->packets < y->packets ? 1 : -1;
	return memcmp(x->key, y->key, HEAVY_KEY);
}

/* All that are there, the heaviest first. */
static size_t sorted(const struct heavy *h, struct heavy_entry *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < SLOTS; i++)
		if (h->v[i].packets > 0)
			ret[n++] = h->v[i];
	qsort(ret, n, sizeof(*ret), by_weight);
	return n;
}

static void halve(struct heavy *h)
{
	static struct heavy_entry all[HEAVY_ENTRIES];
	size_t n = sorted(h, all);
	double median = all[HEAVY_KEEP].packets;

	heavy_clear(h);
	for (size_t i = 0; i < n && all[i].packets > median; i++) {
		struct heavy_entry *e = find(h, all[i].key);

		*e = all[i];
		e->packets -= median;
		e->bytes *= e->packets / all[i].packets;
		h->n++;
	}
}

void heavy_add(struct heavy *h, const void *key, double packets, double bytes)
{
	struct heavy_entry *e = find(h, key);

	if (!(e->packets > 0)) {
		if (h->n == HEAVY_ENTRIES) {
			halve(h);
			e = find(h, key);
		}
		memcpy(e->key, key, HEAVY_KEY);
		h->n++;
	}
	e->packets += packets;
	e->bytes += bytes;
}

size_t heavy_top(const struct heavy *h, struct heavy_entry *ret, size_t max)
{
	static struct heavy_entry all[HEAVY_ENTRIES];
	size_t n = sorted(h, all);

	if (n > max)
		n = max;
	memcpy(ret, all, n * sizeof(*ret));
	return n;
}
