/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Health checks that are commands (`check: {type: exec}`). Only root can say one: the config and
 * `ax service` are root's. Each runs in a cgroup of its own, <instance>/.checks/<number>, with
 * which all ends that it has started. */
#ifndef AX_SECTIONS_CHECK_COMMANDS_H
#define AX_SECTIONS_CHECK_COMMANDS_H

#include "health/health.h"

struct agent;

/* struct health_ops.start; arg: the agent. */
int check_command_start(void *arg, const struct health_target *t, const struct service_check *c,
			const char *name, struct health_command *ret);

/* Ends all below the instance's cgroup, and waits a moment for that: what an agent has left that
 * was killed; what health_close() has killed; for `ax agent --flush`. */
void check_commands_flush(const char *cgroup);

/* At a->checks_sweep_at_ns: removes cgroups whose processes are gone. */
void check_commands_due(struct agent *a, uint64_t now_ns);

#endif
