/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What rules with `action route` (xdp/route.bpf.c) and `action challenge` (xdp/challenge.bpf.c, the
 * first half alone) know of this host's interfaces besides what
 * bpf_fib_lookup() says: by which of them packets come in that are for its network stack, and to
 * which of them frames can be handed in the driver. User space writes it (agent/iface/ways.c). What
 * is not in here goes to the kernel: what nobody has thought of is routed as it always was.
 */
#ifndef AX_ROUTE_H
#define AX_ROUTE_H

#include <linux/types.h>

#define AX_WAYS 8192 /* the most; none is allocated before it is there */

/* An instance's lists may be in several network namespaces, where interfaces' numbers are others'.
 */
struct ax_way_key {
	__u64 netns_cookie;
	__u32 ifindex;
	__u16 vlan; /* AX_WAY_IN: the frame's only tag, AX_VLAN_NONE: it has none; else 0 */
	__u8 kind;  /* enum ax_way_kind */
	__u8 pad;
};
_Static_assert(sizeof(struct ax_way_key) == 16, "struct ax_way_key is a map key");

enum ax_way_kind {
	/* ifindex: the device that has the list. The way: the interface that the stack takes the
	 * packet to have come in by (a VLAN's on the device), and its address. */
	AX_WAY_IN,
	/* ifindex: the interface to which a route leads. The way: the device that the frame is
	 * handed to, and the tag that it gets. */
	AX_WAY_OUT,
};

enum ax_way_flag {
	/* AX_WAY_IN: the kernel forwards no IPv6 that comes in here, whatever bpf_fib_lookup()
	 * says, which asks the interface's own sysctl alone */
	AX_WAY_NO_IPV6 = 1 << 0,
	AX_WAY_VRF = 1 << 1, /* AX_WAY_IN: it is part of a VRF, by which sockets are looked for */
};

/* Map `ways` */
struct ax_way {
	__u32 ifindex;
	__u16 vlan;	     /* AX_VLAN_NONE: none */
	__be16 ethertype_be; /* of the tag: 802.1Q's or 802.1ad's; 0: none */
	__u8 mac[6];	     /* AX_WAY_IN: what frames for it are addressed to */
	__u16 flags;	     /* enum ax_way_flag */
};
_Static_assert(sizeof(struct ax_way) == 16, "struct ax_way is a map value");

#endif
