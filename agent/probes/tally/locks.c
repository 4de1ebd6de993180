// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/tally/locks.h"
#include "probes/watch/priv.h"
#include "locks.skel.h"

int tally_locks_load(const struct watch_options *o, const struct tally_locks_options *x,
		     struct watch **ret, struct error *e)
{
	struct locks *skel = locks__open();

	if (!skel)
		return watch_not_opened("locks", e);
	skel->rodata->wanted.least_ns = x->least_ns;
	skel->rodata->wanted.all = x->all;
	return watch_load(&(struct watch_parts){.skel = skel,
						.skeleton = skel->skeleton,
						.config = (void *)&skel->rodata->watch},
			  o, ret, e);
}
