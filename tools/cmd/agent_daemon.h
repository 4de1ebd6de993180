/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An agent that nothing but itself looks after: begun from a terminal, and ended from one. */
#ifndef AX_CMD_AGENT_DAEMON_H
#define AX_CMD_AGENT_DAEMON_H

#include "daemon/agent.h"

/* Starts one in the background, which writes to <log_dir>/ax.agent.log. 0: it is ready. */
int agent_daemon_start(const struct agent_options *o, struct error *e);
/* Ends the instance's agent, whoever started it, and returns when it is gone. -ENOENT with a
 * sentence: there is none. */
int agent_daemon_stop(const struct instance *inst, struct error *e);
/* Has a new process of ax start one if there is none, and waits for it. What is wrong is on
 * standard error then, and in *e only what that process could not say. */
int agent_daemon_need(const struct instance *inst, struct error *e);

#endif
