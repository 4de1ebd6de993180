/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Maglev hashing (Eisenbud et al., NSDI 2016): a ring of slots, each a backend, in which every
 * backend has as many slots as its weight entitles it to, and which changes little when backends
 * come and go. It depends on the backends' addresses, ports and weights alone, not on their order,
 * so machines with the same backends have the same ring.
 */
#ifndef AX_BASE_MAGLEV_H
#define AX_BASE_MAGLEV_H

#include "base/address.h"

struct maglev_backend {
	struct ax_addr addr;
	uint16_t port;	 /* host byte order */
	uint16_t weight; /* 1.. */
	uint16_t number; /* what stands in its slots */
};

/* Fills all slots, whose number is a prime. -EINVAL: there are no backends, or more than slots;
 * -ENOMEM. */
int maglev_build(const struct maglev_backend *b, size_t n, uint16_t *ring, uint32_t slots);

#endif
