/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Health checks that are commands (`check: {type: exec}`). Only root can say one: the config and
 * `ax service` are root's. */
#ifndef AX_SECTIONS_CHECK_COMMANDS_H
#define AX_SECTIONS_CHECK_COMMANDS_H

#include "health/health.h"

/* struct health_ops.start; arg: the agent. */
int check_command_start(void *arg, const struct health_target *t, const struct service_check *c,
			const char *name, int *output);

#endif
