/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whom an unconnected UDP socket has asked through a service (struct ax_replies). Of two threads
 * that use one socket at the same moment one may read what the other is writing, when the ring has
 * gone round: a wrong name for one answer, among those whom that socket has asked. */
#ifndef AX_REPLIES_BPF_H
#define AX_REPLIES_BPF_H

#include <linux/errno.h>

#include "endpoint.bpf.h"
#include "service.h"
#include "verifier.bpf.h"

/* In one, not in one branch for each word: the verifier follows all there are in the loop. */
static __always_inline __u32 endpoint_diff(const struct ax_endpoint *a, const struct ax_endpoint *b)
{
	__u32 diff = a->addr.w[0] ^ b->addr.w[0];

	diff |= a->addr.w[1] ^ b->addr.w[1];
	diff |= a->addr.w[2] ^ b->addr.w[2];
	diff |= a->addr.w[3] ^ b->addr.w[3];
	diff |= (__u32)(a->port_be ^ b->port_be);
	opaque(diff);
	return diff;
}

/* The index of the entry for what comes from there, or -ENOENT. Global functions: the verifier
 * judges them once, and not with all that their callers did before. */
__weak __noinline int reply_find(const struct ax_replies *all, const struct ax_endpoint *from)
{
	if (!all || !from)
		return -ENOENT;
	for (__u32 i = 0; i < AX_REPLIES_MAX && i < all->n; i++)
		if (!endpoint_diff(&all->r[i].from, from))
			return (int)i;
	return -ENOENT;
}

__weak __noinline int reply_set(struct ax_replies *all, const struct ax_endpoint *from,
				const struct ax_endpoint *asked)
{
	__u32 i;
	int at;

	if (!all || !from || !asked)
		return 0;
	at = reply_find(all, from);
	i = at >= 0 ? (__u32)at : __sync_fetch_and_add(&all->n, 1) % AX_REPLIES_MAX;
	opaque(i);
	if (i >= AX_REPLIES_MAX)
		return 0;
	if (at < 0 || !endpoint_eq(&all->r[i].asked, asked)) {
		all->r[i].from.port_be = 0;
		all->r[i].asked = *asked;
		all->r[i].from = *from;
	}
	return 0;
}

#endif
