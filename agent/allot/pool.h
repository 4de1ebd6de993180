/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses to give out: a bit map of a prefix; its first address is the host's. Knows no apps. */
#ifndef AX_ALLOT_POOL_H
#define AX_ALLOT_POOL_H

#include "base/address.h"

struct pool {
	struct prefix prefix; /* len 0: no such pool */
	unsigned char *used;
	unsigned char *shut; /* those that are not to be given out; NULL: all are */
	uint32_t size, in_use, next;
	uint32_t n_shut;
};

/* A pool of the prefix's addresses (of its first 2^20); len 0: one that has none. -ENOMEM. */
int pool_init(struct pool *p, const struct prefix *prefix);
void pool_free(struct pool *p);

/* The host's own address, zero: there is no pool. */
struct ax_addr pool_host(const struct pool *p);

/* An IPv4 pool's last address, which is given to nobody, for what is the instance's too; zero:
 * there is no pool. */
struct ax_addr pool_last(const struct pool *p);

/* -ENOSPC when none is left. */
int pool_take(struct pool *p, struct ax_addr *ret);

/* From now on none is given out, but for those that are opened: a part of a pool that is shared
 * with other machines. Others can be marked all the same. -ENOMEM. */
int pool_shut(struct pool *p);
/* Opens or shuts those of a prefix, of 8 addresses at least. */
void pool_open(struct pool *p, const struct prefix *part, bool open);
/* How many could be given out now. */
uint32_t pool_left(const struct pool *p);

/* Addresses: nobody foresees which one of them is next after a jump by chance. */
#define POOL_LARGE 4096

/* Goes on giving out at another place, so many addresses further on; in a large pool not in its
 * first quarter, but once the rest has been gone through. */
void pool_jump(struct pool *p, uint32_t by);

/* Marks or clears one address; those outside of the pool are ignored. */
void pool_mark(struct pool *p, const struct ax_addr *addr, bool used);

#endif
