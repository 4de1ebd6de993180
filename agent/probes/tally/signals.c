// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/tally/signals.h"
#include "probes/watch/priv.h"
#include "signals.skel.h"

int tally_signals_load(const struct watch_options *o, const struct tally_signals_options *x,
		       struct watch **ret, struct error *e)
{
	struct signals *skel = signals__open();

	if (!skel)
		return watch_not_opened("signals", e);
	skel->rodata->only_signal = x->signal;
	bpf_program__set_autoload(skel->progs.ax_signals_refused, x->refused);
	return watch_load(&(struct watch_parts){.skel = skel,
						.skeleton = skel->skeleton,
						.config = (void *)&skel->rodata->watch},
			  o, ret, e);
}
