/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The completion for bash: functions.bash, and two functions that answer its questions: what there
 * is below a command, and what a word stands for.
 */
#include "tools/completion/completion.h"

static const char functions[] =
#include "tools/completion/functions.bash.inc"
	;

/* --- what is below a command --- */

static void put_options(const struct command *cmd, bool valued, FILE *to)
{
	const struct opt *o;

	for (size_t i = 0; (o = opt_own(&cmd->syntax, i, NULL)); i++) {
		if (valued && !opt_takes_next(o))
			continue;
		fprintf(to, " --%s", o->name);
		if (o->letter)
			fprintf(to, " -%c", o->letter);
	}
}

static void put_row(const struct command *cmd, FILE *to)
{
	fprintf(to, "\t'%s')\n\t\tbelow='", completion_name(cmd));
	for (const struct command *const *sub = cmd->sub; sub && *sub; sub++)
		fprintf(to, " %s", command_word(*sub));
	fputs("'\n\t\toptions='", to);
	put_options(cmd, false, to);
	fputs("'\n\t\tvalued='", to);
	put_options(cmd, true, to);
	fputs("'\n\t\tprogram=", to);
	if (completion_runs_program(cmd)) /* it is this argument */
		fprintf(to, "%zu", completion_leading(cmd));
	fputs("\n\t\t;;\n", to);
}

static void put_table(const struct command *root, FILE *to)
{
	fputs("\n# Sets what belongs to a command.\n_ax_table() # COMMAND\n{\n\tcase $1 in\n", to);
	completion_each(root, to, put_row);
	fputs("\tesac\n\toptions+='", to);
	for (size_t i = 0; i < cmd_globals.n; i++) {
		const struct opt *o = &cmd_globals.v[i];

		fprintf(to, " --%s", o->name);
		if (o->letter)
			fprintf(to, " -%c", o->letter);
	}
	fputs("'\n\tvalued+='", to);
	for (size_t i = 0; i < cmd_globals.n; i++)
		if (opt_takes_next(&cmd_globals.v[i]))
			fprintf(to, " --%s", cmd_globals.v[i].name);
	fputs("'\n}\n", to);
}

/* --- what words stand for --- */

static void put_asked(const struct words *w, FILE *to)
{
	fprintf(to, "_ax_ask %u", w->column);
	for (const char *p = w->ask; *p;) {
		size_t n = strcspn(p, " ");

		if (n == 2 && strncmp(p, "{}", 2) == 0)
			fputs(" \"${first:-}\"", to);
		else
			fprintf(to, " %.*s", (int)n, p);
		p += n + (p[n] == ' ');
	}
}

static void put_words(const struct command *root, const struct words *w, FILE *to)
{
	switch (w->kind) {
	case WORDS_CHOICES:
	case WORDS_COMMAND:
		fprintf(to, "_ax_words '%s'", w->suffix ? w->suffix : "");
		completion_put_choices(root, w, to);
		break;
	case WORDS_FILE:
		fputs("_ax_files -f", to);
		break;
	case WORDS_DIRECTORY:
		fputs("_ax_files -d", to);
		break;
	case WORDS_PROGRAM:
		fputs("_ax_generate -c", to);
		break;
	case WORDS_USER:
		fputs("_ax_generate -u", to);
		break;
	case WORDS_PROCESS:
		fputs("_ax_processes", to);
		break;
	case WORDS_INTERFACE:
		fputs("_ax_interfaces", to);
		break;
	case WORDS_ASKED:
		put_asked(w, to);
		break;
	}
}

/* The last line of a case: what the word before it may change. */
static void put_answer(const struct command *root, const struct words *w, FILE *to)
{
	if (!w) {
		fputs(" ;;\n", to);
		return;
	}
	if (!w->after) {
		putc(' ', to);
		put_words(root, w, to);
		fputs(" ;;\n", to);
		return;
	}
	fputs("\n\t\tcase $before in\n", to);
	for (const struct words_after *a = w->after; a->word; a++) {
		fprintf(to, "\t\t%s) ", a->word);
		put_words(root, a->words, to);
		fputs(" ;;\n", to);
	}
	fputs("\t\t*) ", to);
	put_words(root, w, to);
	fputs(" ;;\n\t\tesac\n\t\t;;\n", to);
}

static void put_value(const struct command *root, const char *name, const struct opt *o, FILE *to)
{
	if (!opt_takes_next(o))
		return;
	fprintf(to, "\t%s/--%s", name, o->name);
	if (o->letter)
		fprintf(to, " | %s/-%c", name, o->letter);
	putc(')', to);
	put_answer(root, o->words, to);
}

static void put_answers(const struct command *root, const struct command *cmd, FILE *to)
{
	const struct opt_syntax *s = &cmd->syntax;
	const struct opt *o;
	char name[80];

	snprintf(name, sizeof(name), "'%s'", completion_name(cmd));
	for (size_t i = 0; (o = opt_own(s, i, NULL)); i++)
		put_value(root, name, o, to);
	for (size_t i = 0; i < OPT_ARGS; i++) {
		if (!s->args[i])
			continue;
		fprintf(to, "\t%s/%zu)", name, i);
		put_answer(root, s->args[i], to);
	}
	if (s->rest) {
		fprintf(to, "\t%s/[0-9]*)", name);
		put_answer(root, s->rest, to);
	}
	for (const struct command *const *sub = cmd->sub; sub && *sub; sub++)
		put_answers(root, *sub, to);
}

void completion_bash(const struct command *root, FILE *to)
{
	fputs(functions, to);
	put_table(root, to);
	fputs("\n# Offers what a word may be: the value of an option, or an argument, by its "
	      "number "
	      "from 0.\n_ax_what() # COMMAND/--OPTION or COMMAND/NUMBER\n{\n\tcase $1 in\n",
	      to);
	put_answers(root, root, to);
	for (size_t i = 0; i < cmd_globals.n; i++)
		put_value(root, "*", &cmd_globals.v[i], to);
	fputs("\t*) return 1 ;;\n\tesac\n}\n\ncomplete -F _ax ax\n", to);
}
