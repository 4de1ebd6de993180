// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/watch/priv.h"
#include "probes/watch/stacks.h"
#include "offcpu.skel.h"

int watch_offcpu_load(const struct watch_options *o, const struct watch_offcpu_options *x,
		      struct watch **ret, struct error *e)
{
	struct offcpu *skel = offcpu__open();

	if (!skel)
		return watch_not_opened("offcpu", e);
	skel->rodata->wanted.preempted = x->preempted;
	skel->rodata->wanted.kernel_threads = x->kernel_threads;
	skel->rodata->wanted.least_ns = x->least_ns;
	bpf_map__set_max_entries(skel->maps.records, WATCH_PROFILE_RING);
	return watch_load(&(struct watch_parts){.skel = skel,
						.skeleton = skel->skeleton,
						.config = (void *)&skel->rodata->watch},
			  o, ret, e);
}
