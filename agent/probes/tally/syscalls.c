// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/tally/syscalls.h"
#include "probes/watch/priv.h"
#include "syscalls.skel.h"

int tally_syscalls_load(const struct watch_options *o, enum ax_tally_by by, struct watch **ret,
			struct error *e)
{
	struct syscalls *skel = syscalls__open();

	if (!skel)
		return watch_not_opened("syscalls", e);
	skel->rodata->tally_by = by;
	return watch_load(&(struct watch_parts){.skel = skel,
						.skeleton = skel->skeleton,
						.config = (void *)&skel->rodata->watch},
			  o, ret, e);
}
