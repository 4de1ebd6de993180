/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses and endpoints in BPF programs. */
#ifndef AX_ENDPOINT_BPF_H
#define AX_ENDPOINT_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "addr.h"

#define AF_INET	 2
#define AF_INET6 10

static __always_inline bool addr_is_zero(const struct ax_addr *a)
{
	return !(a->w[0] | a->w[1] | a->w[2] | a->w[3]);
}

static __always_inline bool addr_eq(const struct ax_addr *a, const struct ax_addr *b)
{
	return a->w[0] == b->w[0] && a->w[1] == b->w[1] && a->w[2] == b->w[2] && a->w[3] == b->w[3];
}

static __always_inline bool addr_is_v4(const struct ax_addr *a)
{
	return !a->w[0] && !a->w[1] && a->w[2] == bpf_htonl(0xffff);
}

static __always_inline void addr_set_v4(struct ax_addr *a, __be32 v4)
{
	a->w[0] = 0;
	a->w[1] = 0;
	a->w[2] = bpf_htonl(0xffff);
	a->w[3] = v4;
}

/* 0.0.0.0, ::ffff:0.0.0.0 or :: */
static __always_inline bool addr_is_wildcard(const struct ax_addr *a)
{
	return !a->w[3] && !a->w[1] && !a->w[0] && (!a->w[2] || a->w[2] == bpf_htonl(0xffff));
}

/* 127.0.0.0/8, ::1, and the wildcard, which connect() takes for the loopback address */
static __always_inline bool addr_is_loopback(const struct ax_addr *a)
{
	if (addr_is_v4(a))
		return a->b[12] == 127 || !a->w[3];
	return !a->w[0] && !a->w[1] && !a->w[2] && (!a->w[3] || a->w[3] == bpf_htonl(1));
}

/* 127.0.0.1 or ::1 */
static __always_inline void addr_set_loopback(struct ax_addr *a, bool v4)
{
	__be32 third = v4 ? bpf_htonl(0xffff) : 0, fourth = bpf_htonl(v4 ? 0x7f000001 : 1);

	a->w[0] = 0;
	a->w[1] = 0;
	a->w[2] = third;
	a->w[3] = fourth;
}

/* The wildcard of the family of `like`. */
static __always_inline void addr_set_wildcard(struct ax_addr *a, const struct ax_addr *like)
{
	__be32 third = addr_is_v4(like) ? bpf_htonl(0xffff) : 0;

	a->w[0] = 0;
	a->w[1] = 0;
	a->w[2] = third;
	a->w[3] = 0;
}

static __always_inline bool endpoint_eq(const struct ax_endpoint *a, const struct ax_endpoint *b)
{
	return addr_eq(&a->addr, &b->addr) && a->port_be == b->port_be && a->proto == b->proto;
}

#endif
