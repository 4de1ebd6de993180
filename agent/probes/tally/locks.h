/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_TALLY_LOCKS_H
#define AX_PROBES_TALLY_LOCKS_H

#include "tally_event.h"
#include "probes/watch/watch.h"

struct tally_locks_options {
	uint64_t least_ns; /* shorter waits are none */
	bool all;	   /* also what is no mutex */
};
/* Its records are struct ax_lock_event. */
int tally_locks_load(const struct watch_options *o, const struct tally_locks_options *x,
		     struct watch **ret, struct error *e);

#endif
