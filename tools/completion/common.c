/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the scripts of all shells are made of. */
#include "tools/completion/completion.h"

void completion_each(const struct command *cmd, FILE *to,
		     void (*f)(const struct command *cmd, FILE *to))
{
	f(cmd, to);
	for (const struct command *const *sub = cmd->sub; sub && *sub; sub++)
		completion_each(*sub, to, f);
}

const char *completion_name(const struct command *cmd)
{
	return cmd->name ? cmd->name : "";
}

bool completion_runs_program(const struct command *cmd)
{
	return cmd->syntax.command_follows && cmd->run;
}

size_t completion_leading(const struct command *cmd)
{
	size_t n = 0;

	while (n < OPT_ARGS && cmd->syntax.args[n] && cmd->syntax.args[n]->kind != WORDS_PROGRAM)
		n++;
	return n;
}

void completion_put_choices(const struct command *root, const struct words *w, FILE *to)
{
	const char *word;

	if (w->kind == WORDS_COMMAND) {
		for (const struct command *const *sub = root->sub; *sub; sub++)
			fprintf(to, " %s", command_word(*sub));
		return;
	}
	for (size_t i = 0; (word = words_choice(w, i)); i++)
		fprintf(to, " %s", word);
}
