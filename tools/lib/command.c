/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/lib/command.h"

#include "base/near.h"

const char *command_word(const struct command *cmd)
{
	const char *space = cmd->name ? strrchr(cmd->name, ' ') : NULL;

	if (!cmd->name)
		return "";
	return space ? space + 1 : cmd->name;
}

static int unknown(const struct cmd *c, const struct command *cmd, const char *word)
{
	const char *above = cmd->name ? cmd->name : "", *near = NULL;
	autofree const char **words = NULL;
	char name[160];
	size_t n = 0;

	snprintf(name, sizeof(name), "%s%s%s%.60s", cmd->name ? "ax " : "", above,
		 cmd->name ? " " : "", word);
	for (const struct command_elsewhere *x = cmd->elsewhere; x && x->word; x++)
		if (streq(x->word, word))
			return cmd_usage(c, "there is no command '%s': write %s", name, x->here);
	while (cmd->sub[n])
		n++;
	words = calloc(n, sizeof(*words));
	for (size_t i = 0; words && i < n; i++)
		words[i] = command_word(cmd->sub[i]);
	if (words)
		near = nearest_word(word, words, n);
	if (near)
		return cmd_usage(c, "there is no command '%s': did you mean '%s'?", name, near);
	return cmd_usage(c, "there is no command '%s'", name);
}

const struct command *command_find(struct cmd *c, const struct command *cmd, const char *word,
				   int *status)
{
	for (const struct command *const *sub = cmd->sub; *sub; sub++)
		if (streq(command_word(*sub), word))
			return *sub;
	*status = unknown(c, cmd, word);
	return NULL;
}

static void put_commands(const struct command *cmd, FILE *to)
{
	size_t width = 9; /* the columns of most */

	for (const struct command *const *sub = cmd->sub; *sub; sub++)
		if (strlen(command_word(*sub)) > width)
			width = strlen(command_word(*sub));
	fputs("\nCommands:\n", to);
	for (const struct command *const *sub = cmd->sub; *sub; sub++)
		fprintf(to, "  %-*s %s\n", (int)width, command_word(*sub), (*sub)->about);
}

void command_help(struct cmd *c, const struct command *cmd, FILE *to)
{
	const struct opt_common common = cmd_common(c);

	opt_help(&cmd->syntax, &common, to);
	if (cmd->sub)
		put_commands(cmd, to);
	if (cmd->more)
		fprintf(to, "\n%s\n", cmd->more);
}

/* What it is called without a command below it. */
static int no_word(struct cmd *c, const struct command *cmd)
{
	if (cmd->example)
		return cmd_usage(c, "say what to do: %s", cmd->example);
	command_help(c, cmd, stderr);
	return CMD_USAGE;
}

static int run_below(struct cmd *c, const struct command *cmd, int argc, char **argv)
{
	const struct opt_common common = cmd_common(c);
	const struct command *sub;
	struct error e = {0};
	int n, status;

	n = opt_parse(&cmd->syntax, NULL, &common, argc, argv, &e);
	if (n < 0)
		return cmd_usage(c, "%s", e.text);
	if (c->version && (!n || cmd->name)) {
		printf("ax %s\n", AX_VERSION);
		return cmd_finish(c, CMD_OK);
	}
	if (c->help && !n) {
		command_help(c, cmd, stdout);
		return cmd_finish(c, CMD_OK);
	}
	if (!n)
		return no_word(c, cmd);
	sub = command_find(c, cmd, argv[0], &status);
	return sub ? command_run(c, sub, n - 1, argv + 1) : status;
}

int command_run(struct cmd *c, const struct command *cmd, int argc, char **argv)
{
	c->command = cmd;
	c->name = cmd->name;
	/* one that does something itself, too, has its own words behind an option */
	if (cmd->run && cmd->sub && argc)
		for (const struct command *const *sub = cmd->sub; *sub; sub++)
			if (streq(command_word(*sub), argv[0]))
				return command_run(c, *sub, argc - 1, argv + 1);
	return cmd->run ? cmd->run(c, argc, argv) : run_below(c, cmd, argc, argv);
}

bool cmd_root(const struct cmd *c)
{
	const struct error e = {.code = -EPERM,
				.text = "only root may do that: run it with sudo, or as root"};

	if (geteuid() == 0)
		return true;
	cmd_failed(c, &e);
	return false;
}
