/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the arena says of balancers and their backends. */
#ifndef AX_BALANCE_ARENA_BPF_H
#define AX_BALANCE_ARENA_BPF_H

#include "rules.bpf.h"

static __always_inline const struct ax_balancer *balancer_of(const __u8 *a, __u32 n)
{
	opaque(n);
	if (n >= layout.balancers_n)
		return NULL;
	return (const void *)(a + layout.balancers + n * sizeof(struct ax_balancer));
}

static __always_inline const struct ax_real *real_of(const __u8 *a, __u32 n)
{
	opaque(n);
	if (n >= layout.backends_n)
		return NULL;
	return (const void *)(a + layout.backends + n * sizeof(struct ax_real));
}

/* The backend of that number, if it is the balancer's and may have flows. */
static __always_inline const struct ax_real *real_in_use(const __u8 *a, __u32 n, __u32 balancer)
{
	const struct ax_real *r = real_of(a, n);

	if (!r || r->balancer != balancer ||
	    (r->flags & (AX_REAL_PRESENT | AX_REAL_DOWN)) != AX_REAL_PRESENT)
		return NULL;
	return r;
}

#endif
