/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A look at etcd's members from outside, beside an agent: who answers, and by which certificate. */
#ifndef AX_ETCD_LOOK_H
#define AX_ETCD_LOOK_H

#include <time.h>

#include "etcd/etcd.h"

struct etcd_look {
	bool answered; /* etcd's HTTP server, which proved who it is if its URL is https */
	char why[320]; /* why it did not, as a sentence's part */
	time_t until;  /* its certificate holds so long, UNIX time; 0: not known, or none */
	bool clock_known;
	int64_t clock_s; /* as etcd_state has it */
};

/* Asks all endpoints of o at once, of which ret has one each, and waits for no longer than that.
 * -ENOTSUP (there is no libcurl), -ENOMEM. */
int etcd_look(const struct etcd_options *o, unsigned timeout_ms, struct etcd_look *ret,
	      struct error *e);

/* A clock that said a second somewhere between two times of this machine's (UNIX time, ns) is ahead
 * of that by so many whole seconds at least; 0: by none, or less than one. */
int64_t etcd_clock_ahead(time_t said, uint64_t from_ns, uint64_t to_ns);

#endif
