// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/tally/files.h"
#include "probes/watch/priv.h"
#include "files.skel.h"

int tally_files_load(const struct watch_options *o, enum ax_tally_by by, bool all,
		     struct watch **ret, struct error *e)
{
	struct files *skel = files__open();

	if (!skel)
		return watch_not_opened("files", e);
	skel->rodata->tally_by = by;
	skel->rodata->all_kinds = all;
	return watch_load(&(struct watch_parts){.skel = skel,
						.skeleton = skel->skeleton,
						.config = (void *)&skel->rodata->watch},
			  o, ret, e);
}
