/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Next hops, and their link-layer addresses kept known: a packet that XDP sends by
 * bpf_fib_lookup() is lost while the kernel does not know the neighbour's, and nobody but the
 * kernel's own stack makes it ask.
 */
#ifndef AX_NET_NEIGHBOUR_H
#define AX_NET_NEIGHBOUR_H

#include "net/netlink.h"

struct next_hop {
	unsigned ifindex;
	struct ax_addr addr; /* the gateway, or the destination itself; may be of the other family
			      */
};

/* Where packets to an address go now. -EHOSTUNREACH: nowhere; -EADDRINUSE: it is this machine's
 * own. */
int next_hop_find(struct nl *nl, const struct ax_addr *to, struct next_hop *ret);

/*
 * Makes the kernel resolve a next hop and keep it resolved (NTF_EXT_MANAGED, Linux 5.16; before,
 * it is resolved once), or no more. It is one flag of the entry, so the caller counts who needs it.
 * A link that goes down loses its entries and so the flag: ask again from time to time.
 */
int next_hop_keep(struct nl *nl, const struct next_hop *hop, bool on);

/* Both: finds the next hop, has it kept or not, and returns it in *ret (may be NULL). To undo it
 * after routes have changed, give what was returned to next_hop_keep(). */
int neighbour_manage(struct nl *nl, const struct ax_addr *to, bool on, struct next_hop *ret);

#endif
