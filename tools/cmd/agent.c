/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax agent: the daemon in the foreground. */
#include "daemon/agent.h"
#include "tools/cmd/commands.h"
#include "base/log.h"

struct args {
	const char *config;
	bool flush;
	int level;
};

static int run(struct cmd *c, int argc, char **argv)
{
	struct agent_options o = {.inst = &c->inst};
	struct args a = {.level = LOG_LEVEL_INFO};
	int status;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (argc)
		return cmd_usage(c, "'%.60s' is not understood: give the config file with --config",
				 argv[0]);
	log_set_level((enum log_level)a.level);
	o.config_path = a.config;
	o.flush = a.flush;
	return agent_run(&o);
}

/* in the order of enum log_level */
static const char *const levels[] = {"error", "warn", "info", "debug", NULL};
static const struct words level_words = {.choices = levels};

static const struct opt options[] = {
	{"config", 0, OPT_STRING, "FILE", "the config file; see ax.yaml(5)",
	 offsetof(struct args, config), &words_file},
	{"flush", 0, OPT_FLAG, NULL,
	 "remove everything of this instance from the machine, running apps too, and end",
	 offsetof(struct args, flush), NULL},
	{"log-level", 0, OPT_CHOICE, "LEVEL", "error, warn, info (the default) or debug",
	 offsetof(struct args, level), &level_words},
};

const struct command cmd_agent = {
	.name = "agent",
	.about = "run the agent in the foreground",
	.run = run,
	.syntax =
		{
			.usage = "ax agent [--config FILE] [--flush] [--log-level LEVEL]",
			.about = "Runs the agent in the foreground. SIGHUP reads the config file "
				 "again, SIGTERM ends the agent and leaves the apps running.",
			.own = {{options, ARRAY_SIZE(options), 0}},
		},
};
