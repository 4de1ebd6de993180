/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The completion for fish: functions.fish, functions that tell what there is below a command and
 * which options have values, and a `complete` for each option and argument.
 */
#include "tools/completion/completion.h"

static const char functions[] =
#include "tools/completion/functions.fish.inc"
	;

static void put_quoted(const char *text, FILE *to)
{
	putc('\'', to);
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			putc('\\', to);
		putc(*text, to);
	}
	putc('\'', to);
}

/* --- what is below a command --- */

static void put_below(const struct command *cmd, FILE *to)
{
	if (!cmd->sub)
		return;
	fprintf(to, "        case '%s'\n            printf '%%s\\n'", completion_name(cmd));
	for (const struct command *const *sub = cmd->sub; *sub; sub++)
		fprintf(to, " %s", command_word(*sub));
	putc('\n', to);
}

static void put_valued(const struct command *cmd, FILE *to)
{
	const struct opt *o;

	fprintf(to, "        case '%s'\n            printf '%%s\\n'", completion_name(cmd));
	for (size_t i = 0; (o = opt_own(&cmd->syntax, i, NULL)); i++) {
		if (!opt_takes_next(o))
			continue;
		fprintf(to, " --%s", o->name);
		if (o->letter)
			fprintf(to, " -%c", o->letter);
	}
	for (size_t i = 0; i < cmd_globals.n; i++)
		if (opt_takes_next(&cmd_globals.v[i]))
			fprintf(to, " --%s", cmd_globals.v[i].name);
	putc('\n', to);
}

static void put_programs(const struct command *cmd, FILE *to)
{
	if (completion_runs_program(cmd))
		fprintf(to, " '%s'", completion_name(cmd));
}

static void put_leading(const struct command *cmd, FILE *to)
{
	if (completion_runs_program(cmd))
		fprintf(to, "        case '%s'\n            echo %zu\n", completion_name(cmd),
			completion_leading(cmd));
}

static void put_functions(const struct command *root, FILE *to)
{
	fputs("\nfunction __ax_below # COMMAND\n    switch \"$argv\"\n", to);
	completion_each(root, to, put_below);
	fputs("    end\nend\n\nfunction __ax_valued # COMMAND\n    switch \"$argv\"\n", to);
	completion_each(root, to, put_valued);
	fputs("    end\nend\n\nfunction __ax_is_program # COMMAND\n    contains -- \"$argv\"", to);
	completion_each(root, to, put_programs);
	fputs("\nend\n\nfunction __ax_leading # COMMAND\n    switch \"$argv\"\n", to);
	completion_each(root, to, put_leading);
	fputs("    end\nend\n\n", to);
}

/* --- what words stand for --- */

static void put_choices(const struct command *root, const struct words *w, FILE *to)
{
	const char *word;

	fputs(" -a '", to);
	if (w->suffix)
		for (size_t i = 0; (word = words_choice(w, i)); i++)
			fprintf(to, "%s%s%s", i ? " " : "", word, w->suffix);
	else
		completion_put_choices(root, w, to);
	putc('\'', to);
}

/* The arguments of `complete` that say what a word may be. */
static void put_words(const struct command *root, const struct words *w, FILE *to)
{
	switch (w->kind) {
	case WORDS_CHOICES:
	case WORDS_COMMAND:
		put_choices(root, w, to);
		break;
	case WORDS_FILE:
		fputs(" -F", to);
		break;
	case WORDS_DIRECTORY:
		fputs(" -a '(__fish_complete_directories)'", to);
		break;
	case WORDS_PROGRAM:
		fputs(" -a '(__ax_program)'", to);
		break;
	case WORDS_USER:
		fputs(" -a '(__fish_complete_users)'", to);
		break;
	case WORDS_PROCESS:
		fputs(" -a '(__ax_processes)'", to);
		break;
	case WORDS_INTERFACE:
		fputs(" -a '(__ax_interfaces)'", to);
		break;
	case WORDS_ASKED:
		fprintf(to, " -a '(__ax_ask %u %s)'", w->column, w->ask);
		break;
	}
}

static void put_option(const struct command *root, const char *when, const struct opt *o, FILE *to)
{
	fprintf(to, "complete -c ax%s -l %s", when, o->name);
	if (o->letter)
		fprintf(to, " -s %c", o->letter);
	if (opt_takes_next(o)) /* -x: no files */
		fputs(o->words && o->words->kind == WORDS_FILE ? " -r" : " -x", to);
	if (o->words && o->words->kind == WORDS_PROGRAM)
		fputs(" -a '(__fish_complete_command)'", to);
	else if (o->words)
		put_words(root, o->words, to);
	fputs(" -d ", to);
	put_quoted(o->help, to);
	putc('\n', to);
}

/* The words at one place: `number` of them stand before it, or more. */
static void put_place(const struct command *root, const struct command *cmd, const struct words *w,
		      const char *number, FILE *to)
{
	char others[256] = "";

	for (const struct words_after *a = w->after; a && a->word; a++) {
		size_t n = strlen(others);

		snprintf(others + n, sizeof(others) - n, " %s", a->word);
		fprintf(to, "complete -c ax -n '__ax_is \"%s\" %s; and __ax_before %s'",
			completion_name(cmd), number, a->word);
		put_words(root, a->words, to);
		putc('\n', to);
	}
	fprintf(to, "complete -c ax -n '__ax_is \"%s\" %s", completion_name(cmd), number);
	if (others[0])
		fprintf(to, "; and not __ax_before%s", others);
	putc('\'', to);
	put_words(root, w, to);
	putc('\n', to);
}

static void put_places(const struct command *root, const struct command *cmd, FILE *to)
{
	const struct opt_syntax *s = &cmd->syntax;
	size_t n = 0, program = completion_leading(cmd);
	char number[32];

	for (; n < OPT_ARGS && s->args[n]; n++)
		;
	for (size_t i = 0; i < OPT_ARGS; i++) {
		snprintf(number, sizeof(number), "%zu", i);
		if (s->args[i])
			put_place(root, cmd, s->args[i], number, to);
	}
	snprintf(number, sizeof(number), "%zu more", n);
	if (s->rest)
		put_place(root, cmd, s->rest, number, to);
	else if (completion_runs_program(cmd))
		put_place(root, cmd, s->args[program], number, to);
}

static void put_command(const struct command *root, const struct command *cmd, FILE *to)
{
	const struct opt *o;
	char when[96];

	snprintf(when, sizeof(when), " -n '__ax_is \"%s\"'", completion_name(cmd));
	for (const struct command *const *sub = cmd->sub; sub && *sub; sub++) {
		fprintf(to, "complete -c ax%s -a %s -d ", when, command_word(*sub));
		put_quoted((*sub)->about, to);
		putc('\n', to);
	}
	if (completion_runs_program(cmd)) /* its own options end where the program begins */
		snprintf(when, sizeof(when), " -n '__ax_is \"%s\" 0'", completion_name(cmd));
	for (size_t i = 0; (o = opt_own(&cmd->syntax, i, NULL)); i++)
		put_option(root, when, o, to);
	put_places(root, cmd, to);
	for (const struct command *const *sub = cmd->sub; sub && *sub; sub++)
		put_command(root, *sub, to);
}

void completion_fish(const struct command *root, FILE *to)
{
	fputs(functions, to);
	put_functions(root, to);
	fputs("complete -c ax -f\n", to);
	for (size_t i = 0; i < cmd_globals.n; i++)
		put_option(root, " -n __ax_own", &cmd_globals.v[i], to);
	put_command(root, root, to);
}
