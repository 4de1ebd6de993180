/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one address type: 16 bytes in network byte order, IPv4 in v4-mapped form (::ffff:a.b.c.d),
 * so that every map key, every comparison and every table has one code path for both families.
 */
#ifndef AX_ADDR_H
#define AX_ADDR_H

#include <linux/types.h>

struct ax_addr {
	union {
		__u8 b[16];
		__be32 w[4]; /* w[3] is the IPv4 address of a mapped one */
	};
};
_Static_assert(sizeof(struct ax_addr) == 16, "struct ax_addr is a map key");

/* Map `reserved` (LPM trie): prefixes whose addresses ax gives out. The value is unused. */
struct ax_prefix {
	__u32 len; /* in bits of the mapped form: 96 and more for IPv4 */
	struct ax_addr addr;
};
_Static_assert(sizeof(struct ax_prefix) == 20, "struct ax_prefix is a map key");

/* A transport endpoint; the key of whatever is known by address, port and protocol. */
struct ax_endpoint {
	struct ax_addr addr;
	__be16 port_be; /* 0: every port */
	__u8 proto;	/* IPPROTO_TCP or IPPROTO_UDP */
	__u8 pad;
};
_Static_assert(sizeof(struct ax_endpoint) == 20, "struct ax_endpoint is a map key");

#endif
