/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent itself: `ax agent`. */
#ifndef AX_DAEMON_AGENT_H
#define AX_DAEMON_AGENT_H

#include "machine/instance.h"

struct agent_options {
	const struct instance *inst;
	const char *config_path;
	bool flush;
};

/* Returns the exit status. */
int agent_run(const struct agent_options *o);

#endif
