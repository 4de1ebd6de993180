/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_WATCH_EXEC_H
#define AX_PROBES_WATCH_EXEC_H

#include "probes/watch/watch.h"

struct watch_exec_options {
	bool env, cwd;
	bool failed; /* those that did not succeed, too */
	bool exits;
};
int watch_exec_load(const struct watch_options *o, const struct watch_exec_options *x,
		    struct watch **ret, struct error *e);

#endif
