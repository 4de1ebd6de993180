/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The balancer's part of a compiled rule list (xdp.h), and its flow tables. */
#ifndef AX_BALANCE_H
#define AX_BALANCE_H

#include <linux/types.h>
#include "addr.h"

#define AX_MAGLEV_SLOTS	 65537 /* a prime, as the algorithm needs */
#define AX_REALS_MAX	 4096  /* backends of all balancers of an interface */
#define AX_BALANCE_FLOWS (1 << 18)

enum ax_balance_mode { AX_BALANCE_NAT, AX_BALANCE_IPIP, AX_BALANCE_GUE };

struct ax_balancer {
	__u32 ring;  /* arena offset of __u16[AX_MAGLEV_SLOTS]: numbers of backends; 0: none */
	__u32 ring6; /* the same of its IPv6 backends */
	__u32 mode;  /* enum ax_balance_mode */
	__u16 id;    /* in the flow tables' keys */
	__be16 gue_port_be;
	struct ax_addr source4, source6; /* outer source, or NAT's; zero: not set */
};
_Static_assert(sizeof(struct ax_balancer) == 48, "struct ax_balancer is part of the arena");

enum ax_real_flag {
	AX_REAL_PRESENT = 1 << 0, /* it belongs to a balancer of this list */
	AX_REAL_DRAIN = 1 << 1,	  /* keeps its flows, gets no new ones */
	AX_REAL_DOWN = 1 << 2,	  /* loses its flows too */
};
/* A backend. Its number is kept while it is in the list, over all generations. */
struct ax_real {
	struct ax_addr addr;
	__be16 port_be; /* 0: the packet's */
	__u16 flags;	/* enum ax_real_flag */
	__u32 balancer;
};
_Static_assert(sizeof(struct ax_real) == 24, "struct ax_real is part of the arena");

struct ax_real_count {
	__u64 packets;
	__u64 bytes;
	__u64 flows; /* new ones */
};
_Static_assert(sizeof(struct ax_real_count) == 24, "struct ax_real_count is a map value");

/* Maps `flows4`, `flows6` (LRU): a client's flow -> its backend. */
struct ax_flow4 {
	__be32 client;
	__be16 client_port_be;
	__be16 port_be; /* the service's */
	__u16 balancer;
	__u8 proto;
	__u8 pad;
};
_Static_assert(sizeof(struct ax_flow4) == 12, "struct ax_flow4 is a map key");
struct ax_flow6 {
	struct ax_addr client;
	__be16 client_port_be;
	__be16 port_be;
	__u16 balancer;
	__u8 proto;
	__u8 pad;
};
_Static_assert(sizeof(struct ax_flow6) == 24, "struct ax_flow6 is a map key");
struct ax_flow_real {
	__u16 real; /* number of the backend */
	__be16 nat_port_be;
	__u32 pad;
};
_Static_assert(sizeof(struct ax_flow_real) == 8, "struct ax_flow_real is a map value");

/* Map `nat` (LRU): (backend, our NAT address and port) -> the client and what it asked for. */
struct ax_nat_key {
	struct ax_addr real, source;
	__be16 real_port_be, source_port_be;
	__u8 proto;
	__u8 pad[3];
};
_Static_assert(sizeof(struct ax_nat_key) == 40, "struct ax_nat_key is a map key");
struct ax_nat {
	struct ax_addr client, service;
	__be16 client_port_be, service_port_be;
	__u32 pad;
};
_Static_assert(sizeof(struct ax_nat) == 40, "struct ax_nat is a map value");

#endif
