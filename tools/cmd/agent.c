/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/agent.h"
#include "tools/lib/cmd.h"
#include "base/log.h"

int cmd_agent(struct cmd *c, int argc, char **argv)
{
	static const char *const levels[] = {"error", "warn", "info", "debug", NULL};
	struct agent_options o = {.inst = &c->inst};
	int level = LOG_LEVEL_INFO, status;
	const struct opt opts[] = {
		{"config", 0, OPT_STRING, "FILE", "the config file; see ax.yaml(5)", &o.config_path,
		 NULL},
		{"flush", 0, OPT_FLAG, NULL,
		 "remove everything of this instance from the machine, running apps too, and end",
		 &o.flush, NULL},
		{"log-level", 0, OPT_CHOICE, "LEVEL", "error, warn, info (the default) or debug",
		 &level, levels},
	};
	const struct opt_syntax s = {
		.usage = "ax agent [--config FILE] [--flush] [--log-level LEVEL]",
		.about = "Runs the agent in the foreground. SIGHUP reads the config file again, "
			 "SIGTERM ends the agent and leaves the apps running.",
		.own = {opts, ARRAY_SIZE(opts)},
	};

	if (!cmd_begin(c, &s, &argc, argv, &status))
		return status;
	if (argc)
		return cmd_usage(c, "'%.60s' is not understood: give the config file with --config",
				 argv[0]);
	log_set_level((enum log_level)level);
	return agent_run(&o);
}
