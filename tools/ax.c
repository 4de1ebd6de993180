/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax: the command line. Finds the command and hands over to it. */
#include "base/near.h"
#include "tools/lib/cmd.h"
#include "tools/trace/trace.h"
#include "tools/xdp/xdp.h"

struct command {
	const char *name;
	int (*run)(struct cmd *c, int argc, char **argv);
	const char *about;
};

static int cmd_help(struct cmd *c, int argc, char **argv);

static const struct command commands[] = {
	{"agent", cmd_agent, "run the agent in the foreground"},
	{"run", cmd_run, "run a command as an app with a virtual IP and a name"},
	{"get", cmd_get, "list apps, services, servers, connections or names"},
	{"status", cmd_status, "show what the agent is and what it counts"},
	{"stop", cmd_stop, "stop apps"},
	{"logs", cmd_logs, "print the output of a detached app"},
	{"events", cmd_events, "print launches, connections and more as they happen"},
	{"config", cmd_config, "check a config file or apply one"},
	{"xdp", cmd_xdp, "filter, redirect, capture and balance packets of an interface"},
	{"trace", cmd_trace, "attach probes to programs and the kernel, and show what they see"},
	{"doctor", cmd_doctor, "tell which features of the kernel ax can use"},
	{"help", cmd_help, "explain ax or one of these commands"},
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (streq(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static void put_overview(const struct opt_syntax *s, FILE *to)
{
	opt_help(s, to);
	fputs("\nCommands:\n", to);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].about);
	fputs("\n'ax COMMAND --help' explains a command. The manual: man ax\n", to);
}

static int unknown_command(const struct cmd *c, const char *name)
{
	const char *names[ARRAY_SIZE(commands)], *near;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		names[i] = commands[i].name;
	near = nearest_word(name, names, ARRAY_SIZE(commands));
	if (near)
		return cmd_usage(c, "there is no command '%.60s': did you mean '%s'?", name, near);
	return cmd_usage(c, "there is no command '%.60s'", name);
}

static int run_command(struct cmd *c, const char *name, int argc, char **argv)
{
	const struct command *command = find_command(name);

	if (!command)
		return unknown_command(c, name);
	c->name = command->name;
	return command->run(c, argc, argv);
}

static const struct opt_syntax overview = {
	.usage = "ax [--instance NAME] [--socket PATH] COMMAND ...",
	.about = "Gives programs virtual IPs and names, and switches their connections inside the "
		 "kernel.",
	.command_follows = true,
};

static int cmd_help(struct cmd *c, int argc, char **argv)
{
	static char option[] = "--help";
	char *help_argv[] = {option, NULL};
	const struct opt_syntax s = {
		.usage = "ax help [COMMAND]",
		.about = "Explains ax, or one of its commands.",
	};
	struct opt globals[CMD_GLOBALS];
	struct opt_syntax all = overview;
	int status;

	if (!cmd_begin(c, &s, &argc, argv, &status))
		return status;
	if (argc > 1)
		return cmd_usage(c, "give one command");
	if (argc == 1)
		return run_command(c, argv[0], 1, help_argv);
	cmd_globals(c, globals);
	all.common = (struct opt_list){globals, CMD_GLOBALS};
	put_overview(&all, stdout);
	return cmd_finish(c, CMD_OK);
}

int main(int argc, char **argv)
{
	struct cmd c = {0};
	struct opt globals[CMD_GLOBALS];
	struct opt_syntax s = overview;
	struct error e = {0};
	int n;

	cmd_globals(&c, globals);
	s.common = (struct opt_list){globals, CMD_GLOBALS};
	n = opt_parse(&s, argc > 0 ? argc - 1 : 0, argv + 1, &e);
	if (n < 0)
		return cmd_usage(&c, "%s", e.text);
	if (c.version && !n) {
		printf("ax %s\n", AX_VERSION);
		return cmd_finish(&c, CMD_OK);
	}
	if (c.help && !n) {
		put_overview(&s, stdout);
		return cmd_finish(&c, CMD_OK);
	}
	if (!n) {
		put_overview(&s, stderr);
		return CMD_USAGE;
	}
	return run_command(&c, argv[1], n - 1, argv + 2);
}
