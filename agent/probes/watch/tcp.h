/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_WATCH_TCP_H
#define AX_PROBES_WATCH_TCP_H

#include "probes/watch/watch.h"

struct watch_tcp_options {
	bool live;	   /* each change of state, not only the end */
	const char *asked; /* the socket switch's pinned map of what was asked for; NULL: none */
};
int watch_tcp_load(const struct watch_options *o, const struct watch_tcp_options *x,
		   struct watch **ret, struct error *e);
/* After attaching: finds out whose the sockets are that are there already. */
int watch_tcp_before(struct watch *w, struct error *e);
/* Makes a record (AX_TCP_OPEN) of each connection that has not ended yet. Of those that no process
 * has any more, only in the network namespace of the caller. */
int watch_tcp_open(struct watch *w, struct error *e);

#endif
