/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax help: the help of ax or of a command. */
#include "tools/cmd/commands.h"

static int run(struct cmd *c, int argc, char **argv)
{
	static char option[] = "--help";
	char *help_argv[] = {option, NULL};
	const struct command *command;
	int status;

	if (!cmd_begin(c, NULL, &argc, argv, &status))
		return status;
	if (argc > 1)
		return cmd_usage(c, "give one command");
	if (argc == 1) {
		command = command_find(c, c->root, argv[0], &status);
		return command ? command_run(c, command, 1, help_argv) : status;
	}
	command_help(c, c->root, stdout);
	return cmd_finish(c, CMD_OK);
}

const struct command cmd_help = {
	.name = "help",
	.about = "explain ax or one of these commands",
	.run = run,
	.syntax =
		{
			.usage = "ax help [COMMAND]",
			.about = "Explains ax, or one of its commands.",
			.args = {&words_command},
		},
};
