/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_TALLY_SIGNALS_H
#define AX_PROBES_TALLY_SIGNALS_H

#include "tally_event.h"
#include "probes/watch/watch.h"

struct tally_signals_options {
	int signal;   /* only this one, 0: all */
	bool refused; /* also those that the kernel did not send */
};
/* Its records are struct ax_signal_event. */
int tally_signals_load(const struct watch_options *o, const struct tally_signals_options *x,
		       struct watch **ret, struct error *e);

#endif
