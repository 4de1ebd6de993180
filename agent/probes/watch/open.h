/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_WATCH_OPEN_H
#define AX_PROBES_WATCH_OPEN_H

#include "probes/watch/watch.h"

struct watch_open_options {
	bool failed_only;
	bool latency;	    /* how long each took: entries are seen too */
	const char *prefix; /* of the names, "": of all; what is longer than AX_OPEN_PREFIX - 1 is
			       cut off */
};
int watch_open_load(const struct watch_options *o, const struct watch_open_options *x,
		    struct watch **ret, struct error *e);

#endif
