/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax agent: the daemon, in the foreground or detached. */
#include "tools/cmd/agent_daemon.h"
#include "tools/cmd/commands.h"
#include "base/log.h"

struct args {
	const char *config;
	bool flush, detach, stop;
	int level;
};

static int in_background(const struct cmd *c, const struct args *a, const struct agent_options *o)
{
	struct error e = {0};
	int r = a->stop ? agent_daemon_stop(&c->inst, &e) : agent_daemon_start(o, &e);

	return r ? cmd_failed(c, &e) : CMD_OK;
}

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
	if (a.flush + a.detach + a.stop > 1)
		return cmd_usage(c, "give one of --detach, --stop and --flush");
	if (a.detach || a.stop)
		return in_background(c, &a, &o);
	return agent_run(&o);
}

/* in the order of enum log_level */
static const char *const levels[] = {"error", "warn", "info", "debug", NULL};
static const struct words level_words = {.choices = levels};

static const struct opt options[] = {
	{"config", 0, OPT_STRING, "FILE", "the config file; see ax.yaml(5)",
	 offsetof(struct args, config), &words_file},
	{"detach", 'd', OPT_FLAG, NULL,
	 "start it in the background, and return when it is ready; its log is "
	 "/run/ax/INSTANCE/log/ax.agent.log",
	 offsetof(struct args, detach), NULL},
	{"stop", 0, OPT_FLAG, NULL, "end the agent that runs; apps keep running",
	 offsetof(struct args, stop), NULL},
	{"flush", 0, OPT_FLAG, NULL,
	 "remove everything of this instance from the machine, running apps too, and end",
	 offsetof(struct args, flush), NULL},
	{"log-level", 0, OPT_CHOICE, "LEVEL", "error, warn, info (the default) or debug",
	 offsetof(struct args, level), &level_words},
};

const struct command cmd_agent = {
	.name = "agent",
	.about = "run the agent, or end it",
	.run = run,
	.syntax =
		{
			.usage = "ax agent [--config FILE] [--detach] [--log-level LEVEL]\n"
				 "       ax agent --stop|--flush",
			.about = "Runs the agent, in the foreground unless --detach is given. "
				 "SIGHUP reads the config file "
				 "again, SIGTERM ends the agent and leaves the apps running.",
			.own = {{options, ARRAY_SIZE(options), 0}},
		},
};
