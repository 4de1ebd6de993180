/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who answers an echo request, by which interface, and how large a packet may be on the way. */
#ifndef AX_CHECKUP_PING_H
#define AX_CHECKUP_PING_H

#include "base/address.h"
#include "base/util.h"

struct ping {
	struct ax_addr addr; /* zero: nobody is asked */
	unsigned mtu;	     /* bytes, IP's header included: the largest packet that is tried */

	/* what was found */
	bool answered;
	unsigned ifindex; /* by which the first answer came */
	unsigned rtt_us;
	unsigned size; /* of the largest packet that was answered */
	int tcp;       /* where no echo was answered: what became of a connection to a port that
			  nobody listens at; 0: the machine refused it, so it is there; -ETIMEDOUT:
			  nothing came, else a negative errno */
};

/* All of a family at once; some 5 seconds for each where somebody does not answer, else as long as
 * that takes. 0,
 * -ENOMEM, or -EPERM: this process may send no echo requests, and all were asked by TCP alone. */
int ping_all(struct ping *v, size_t n);

/* What an echo reply (any bytes; with IP's header before it if raw) says of its request. */
struct ping_reply {
	uint32_t index;
	uint16_t size;
	uint64_t sent_ns;
};
bool ping_read(const void *data, size_t len, bool v4, bool raw, uint64_t nonce,
	       struct ping_reply *ret);

#endif
