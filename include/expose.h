/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ports of the host by which programs outside ax reach apps and services. */
#ifndef AX_EXPOSE_H
#define AX_EXPOSE_H

#include <linux/types.h>
#include "addr.h"

#define AX_EXPOSED_MAX 65536

/*
 * Map `exposed`: an address of the host, or the wildcard of a family (:: or ::ffff:0.0.0.0), and
 * where packets to it come in (0: anywhere) -> what is there instead. An address comes before the
 * wildcard.
 *
 * TCP of host-mode apps needs no packet touched: sk_lookup finds the listener. All else is
 * translated on the host's interfaces (xdp/expose.bpf.c), as flows (struct ax_flow) of which the
 * asked endpoint is the host's. (UDP of host-mode apps, too: sk_lookup would find the socket, but
 * what that answers would come from the app's address.)
 */
struct ax_exposed_key {
	struct ax_endpoint at;
	__u32 ifindex;
};
_Static_assert(sizeof(struct ax_exposed_key) == 24, "struct ax_exposed_key is a map key");

enum ax_exposed_flag {
	AX_EXPOSED_SERVICE = 1 << 0, /* `to` is a service's endpoint, else an app's */
	AX_EXPOSED_PRIVATE = 1 << 1, /* a private app, or a service that has private backends */
	/* apps that connect are led there, nobody else is yet: what apps had connected there before
	 * is being ended (struct ax_unjudged) */
	AX_EXPOSED_SOON = 1 << 2,
};

struct ax_exposed {
	struct ax_endpoint to;
	__u32 flags; /* enum ax_exposed_flag */
};
_Static_assert(sizeof(struct ax_exposed) == 24, "struct ax_exposed is a map value");

/* ax_ctl.exposed */
enum ax_exposed_kind {
	AX_EXPOSED_HOST_TCP = 1 << 0, /* something that sk_lookup has to know */
	AX_EXPOSED_PACKETS = 1 << 1,  /* something that is translated */
	AX_EXPOSED_HOST_UDP = 1 << 2, /* of that, something that this host itself answers */
	AX_EXPOSED_MIXED = 1 << 3,    /* a service with AX_VIP_MIXED: translated at its address */
};

/*
 * Map `exposed_ports`: a bit for each port and protocol of map `exposed`, by which all others are
 * told from these at the cost of one look into an array.
 *
 * Map `local_addrs`: the host's addresses, but for those of ax and for 127.0.0.0/8 and ::1.
 */
#define AX_EXPOSED_WORDS	      2048
#define AX_EXPOSED_WORD(port, is_udp) (((__u32)(port) >> 6) + ((is_udp) ? 1024u : 0u))
#define AX_EXPOSED_BIT(port)	      (1ull << ((port)&63))

/*
 * Map `fragments` (LRU): a datagram of which a first fragment was led to an app or (answer) to the
 * client, as it came in -> what its later fragments get, and where they go. The key's end is laid
 * out as IPv6's fragment header is.
 */
struct ax_exposed_fragment_key {
	struct ax_addr src, dst;
	__u8 proto;
	__u8 answer;
	__u16 pad;
	__be32 id_be; /* of IPv4: 16 bits of it */
};
_Static_assert(sizeof(struct ax_exposed_fragment_key) == 40,
	       "struct ax_exposed_fragment_key is a map key");

struct ax_exposed_fragment {
	struct ax_addr addr; /* its destination; of an answer its source: a loopback address has the
				usual one for its client */
	__u32 ifindex;
};
_Static_assert(sizeof(struct ax_exposed_fragment) == 20,
	       "struct ax_exposed_fragment is a map value");
#define AX_FRAGMENTS_MAX 8192

/* The copy of both maps for XDP lists with `exposed: pass` (xdp/rules.bpf.h): addresses besides. */
#define AX_XDP_EXPOSED (2 * AX_EXPOSED_MAX)

#endif
