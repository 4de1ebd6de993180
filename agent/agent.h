/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent itself: `ax agent`. */
#ifndef AX_AGENT_H
#define AX_AGENT_H

#include "instance.h"

struct agent_options {
	const struct instance *inst;
	const char *config_path;
	bool flush;
};

/* Returns the exit status. */
int agent_run(const struct agent_options *o);

#endif
