/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heaviest of any number of things, in a table of fixed size (Misra and Gries, 1982, in the
 * form with a table that is halved at once): when it is full, its median is taken off all, and
 * what has nothing left goes. Whoever has more than 1/HEAVY_KEEP of all packets is there in the
 * end, however many others there are, with at most that part too little.
 */
#ifndef AX_TOOLS_XDP_HEAVY_H
#define AX_TOOLS_XDP_HEAVY_H

#include "base/util.h"

#define HEAVY_ENTRIES 2048		  /* before it is halved */
#define HEAVY_KEEP    (HEAVY_ENTRIES / 2) /* after it */
#define HEAVY_KEY     20		  /* bytes */

struct heavy_entry {
	uint8_t key[HEAVY_KEY];
	double packets, bytes; /* packets 0: it is free */
};
struct heavy {
	struct heavy_entry *v; /* a hash table of 2 * HEAVY_ENTRIES */
	size_t n;
	uint64_t seed; /* so that nobody can choose keys that meet */
};
int heavy_init(struct heavy *h, uint64_t seed);
void heavy_free(struct heavy *h);
/* As if nothing had been added. */
void heavy_clear(struct heavy *h);
/* The key's HEAVY_KEY bytes have so many more packets (above 0) and bytes. */
void heavy_add(struct heavy *h, const void *key, double packets, double bytes);
/* The first `max` by packets, the heaviest first. Returns how many. */
size_t heavy_top(const struct heavy *h, struct heavy_entry *ret, size_t max);

#endif
