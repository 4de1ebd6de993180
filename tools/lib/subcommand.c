/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/lib/subcommand.h"

#include "base/near.h"

static const struct subcommand *find_subcommand(const struct command_group *g, const char *name)
{
	for (size_t i = 0; i < g->n; i++)
		if (streq(g->v[i].name, name))
			return &g->v[i];
	return NULL;
}

static int unknown_subcommand(const struct cmd *c, const struct command_group *g, const char *name)
{
	autofree const char **names = calloc(g->n, sizeof(*names));
	const char *near = NULL;

	for (size_t i = 0; names && i < g->n; i++)
		names[i] = g->v[i].name;
	if (names)
		near = nearest_word(name, names, g->n);
	if (near)
		return cmd_usage(c, "there is no command 'ax %s %.60s': did you mean '%s'?",
				 c->name, name, near);
	return cmd_usage(c, "there is no command 'ax %s %.60s'", c->name, name);
}

static void put_group(const struct command_group *g, const struct opt_syntax *s)
{
	opt_help(s, stdout);
	fputs("\nCommands:\n", stdout);
	for (size_t i = 0; i < g->n; i++)
		printf("  %-9s %s\n", g->v[i].name, g->v[i].about);
}

int cmd_dispatch(struct cmd *c, const struct command_group *g, int argc, char **argv)
{
	struct opt globals[CMD_GLOBALS];
	struct opt_syntax s = g->syntax;
	const struct subcommand *sub;
	struct error e = {0};
	int n;

	cmd_globals(c, globals);
	s.common = (struct opt_list){globals, CMD_GLOBALS};
	s.command_follows = true;
	n = opt_parse(&s, argc, argv, &e);
	if (n < 0)
		return cmd_usage(c, "%s", e.text);
	if (c->version) {
		printf("ax %s\n", AX_VERSION);
		return cmd_finish(c, CMD_OK);
	}
	if (!n && c->help) {
		put_group(g, &s);
		return cmd_finish(c, CMD_OK);
	}
	if (!n)
		return cmd_usage(c, "say what to do: %s", g->example);
	sub = find_subcommand(g, argv[0]);
	if (!sub)
		return unknown_subcommand(c, g, argv[0]);
	c->name = sub->full_name;
	return sub->run(c, n - 1, argv + 1);
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
