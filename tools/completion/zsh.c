/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The completion for zsh: functions.zsh, and a function for each command that calls _arguments with
 * its options and arguments.
 */
#include "tools/completion/completion.h"

static const char functions[] =
#include "tools/completion/functions.zsh.inc"
	;

/* "_ax", "_ax_xdp_rule" */
static void put_function(const struct command *cmd, FILE *to)
{
	fputs(cmd->name ? "_ax_do_" : "_ax", to);
	for (const char *p = completion_name(cmd); *p; p++)
		putc(*p == ' ' ? '_' : *p, to);
}

/* Text within the single quotes of an argument of _arguments. */
static void put_text(const char *text, FILE *to)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", to);
		else if (strchr("[]:\\", *text))
			fprintf(to, "\\%c", *text);
		else
			putc(*text, to);
	}
}

static void put_words(const struct command *root, const struct words *w, FILE *to)
{
	switch (w->kind) {
	case WORDS_CHOICES:
	case WORDS_COMMAND:
		fprintf(to, w->suffix ? " _ax_words \"%s\"" : "(", w->suffix);
		completion_put_choices(root, w, to);
		fputs(w->suffix ? "" : ")", to);
		break;
	case WORDS_FILE:
		fputs("_files", to);
		break;
	case WORDS_DIRECTORY:
		fputs("_files -/", to);
		break;
	case WORDS_PROGRAM:
		fputs("_command_names -e", to);
		break;
	case WORDS_USER:
		fputs("_users", to);
		break;
	case WORDS_PROCESS:
		fputs(" _ax_processes", to);
		break;
	case WORDS_INTERFACE:
		fputs(" _ax_interfaces", to);
		break;
	case WORDS_ASKED:
		fprintf(to, " _ax_ask %u %s", w->column, w->ask);
		break;
	}
}

/* ":TEXT:ACTION" */
static void put_action(const struct command *root, const char *text, const struct words *w,
		       FILE *to)
{
	putc(':', to);
	put_text(text, to);
	putc(':', to);
	if (w)
		put_words(root, w, to);
	else
		putc(' ', to);
}

static void put_option(const struct command *root, const struct opt *o, FILE *to)
{
	bool valued = opt_takes_next(o), again = o->type == OPT_STRINGS;

	fputs("\t\t", to);
	if (o->letter && !again)
		fprintf(to, "'(-%c --%s)'", o->letter, o->name);
	else if (again)
		fputs("'*'", to);
	if (o->letter)
		fprintf(to, "{-%c%s,--%s%s}'[", o->letter, valued ? "+" : "", o->name,
			valued ? "=" : "");
	else
		fprintf(to, "'--%s%s[", o->name, valued ? "=" : "");
	put_text(o->help, to);
	putc(']', to);
	if (valued)
		put_action(root, o->value ? o->value : "value", o->words, to);
	fputs("' \\\n", to);
}

/* What may stand behind a word that changes it: a function of its own. */
static void put_after(const struct command *root, const struct command *cmd, FILE *to)
{
	const struct words *w = cmd->syntax.rest;

	fputs("\n", to);
	put_function(cmd, to);
	fputs("_rest() {\n\tcase $words[CURRENT-1] in\n", to);
	for (const struct words_after *a = w->after; a->word; a++) {
		fprintf(to, "\t%s) ", a->word);
		if (a->words->kind == WORDS_CHOICES) {
			fputs("compadd --", to);
			completion_put_choices(root, a->words, to);
		} else {
			put_words(root, a->words, to);
		}
		fputs(" ;;\n", to);
	}
	fputs("\t*) compadd --", to);
	completion_put_choices(root, w, to);
	fputs(" ;;\n\tesac\n}\n", to);
}

/* Its own words are completed as behind a prompt: without those that stand before it. */
static void put_program(const struct command *root, const struct command *cmd, FILE *to)
{
	size_t n = completion_leading(cmd);

	for (size_t i = 0; i < n; i++) {
		fprintf(to, "\t\t'(-)%zu", i + 1);
		put_action(root, "argument", cmd->syntax.args[i], to);
		fputs("' \\\n", to);
	}
	fprintf(to, "\t\t'(-)%zu:command:_command_names -e' \\\n\t\t'*::argument:", n + 1);
	if (n)
		fprintf(to, "{ shift %zu words; ((CURRENT -= %zu)); _normal }'\n", n, n);
	else
		fputs("_normal'\n", to);
}

static void put_args(const struct command *root, const struct command *cmd, FILE *to)
{
	const struct opt_syntax *s = &cmd->syntax;

	if (completion_runs_program(cmd)) {
		put_program(root, cmd, to);
		return;
	}
	for (size_t i = 0; i < OPT_ARGS; i++) {
		if (!s->args[i] && (i + 1 == OPT_ARGS || !s->args[i + 1]))
			break;
		fprintf(to, "\t\t'%zu", i + 1);
		put_action(root, "argument", s->args[i], to);
		fputs("' \\\n", to);
	}
	if (s->rest && s->rest->after) {
		fputs("\t\t'*:argument: ", to);
		put_function(cmd, to);
		fputs("_rest'\n", to);
	} else if (s->rest) {
		fputs("\t\t'*", to);
		put_action(root, "argument", s->rest, to);
		fputs("'\n", to);
	} else {
		fputs("\t\t&& return 0\n", to);
	}
}

static void put_leaf(const struct command *root, const struct command *cmd, FILE *to)
{
	const struct opt *o;

	if (cmd->syntax.rest && cmd->syntax.rest->after)
		put_after(root, cmd, to);
	putc('\n', to);
	put_function(cmd, to);
	fputs("() {\n\tlocal -a line\n\tlocal -A opt_args\n\n\t_arguments -s -S : "
	      "$_ax_globals \\\n",
	      to);
	for (size_t i = 0; (o = opt_own(&cmd->syntax, i, NULL)); i++)
		put_option(root, o, to);
	put_args(root, cmd, to);
	fputs("}\n", to);
}

static void put_below(const struct command *cmd, FILE *to)
{
	fputs("\t\tbelow=(\n", to);
	for (const struct command *const *sub = cmd->sub; *sub; sub++) {
		fprintf(to, "\t\t\t'%s:", command_word(*sub));
		put_text((*sub)->about, to);
		fputs("'\n", to);
	}
	fputs("\t\t)\n\t\t_describe command below\n\t\t;;\n\tbelow)\n\t\tcase $words[1] in\n", to);
	for (const struct command *const *sub = cmd->sub; *sub; sub++) {
		fprintf(to, "\t\t%s) ", command_word(*sub));
		put_function(*sub, to);
		fputs(" ;;\n", to);
	}
	if (completion_runs_program(cmd)) /* which is none of its own commands */
		fputs("\t\t*) _normal ;;\n", to);
	fputs("\t\tesac\n\t\t;;\n\tesac\n}\n", to);
}

static void put_group(const struct command *root, const struct command *cmd, FILE *to)
{
	const struct opt *o;

	putc('\n', to);
	put_function(cmd, to);
	fputs("() {\n\tlocal curcontext=$curcontext state\n\tlocal -a line below\n\tlocal -A "
	      "opt_args\n",
	      to);
	if (!cmd->name)
		fputs("\tlocal -a _ax_agent\n\tlocal i\n\n"
		      "\tfor ((i = 2; i < CURRENT; i++)); do\n"
		      "\t\tcase $words[i] in\n"
		      "\t\t--instance=*|--socket=*) _ax_agent+=($words[i]) ;;\n"
		      "\t\t--instance|--socket) _ax_agent+=(\"$words[i]=$words[++i]\") ;;\n"
		      "\t\tesac\n\tdone\n",
		      to);
	fputs("\n\t_arguments -C -S : $_ax_globals \\\n", to);
	for (size_t i = 0; (o = opt_own(&cmd->syntax, i, NULL)); i++)
		put_option(root, o, to);
	fputs("\t\t'1: :->command' '*:: :->below' && return 0\n"
	      "\tcase $state in\n\tcommand)\n",
	      to);
	put_below(cmd, to);
}

static void put_command(const struct command *root, const struct command *cmd, FILE *to)
{
	if (cmd->sub)
		put_group(root, cmd, to);
	else
		put_leaf(root, cmd, to);
	for (const struct command *const *sub = cmd->sub; sub && *sub; sub++)
		put_command(root, *sub, to);
}

void completion_zsh(const struct command *root, FILE *to)
{
	fputs(functions, to);
	fputs("\n_ax_globals=(\n", to);
	for (size_t i = 0; i < cmd_globals.n; i++) {
		const struct opt *o = &cmd_globals.v[i];

		fputs("\t", to);
		if (o->letter)
			fprintf(to, "'(-%c --%s)-%c[", o->letter, o->name, o->letter);
		else
			fprintf(to, "'--%s%s[", o->name, !opt_takes_next(o) ? "" : "=");
		put_text(o->help, to);
		putc(']', to);
		if (opt_takes_next(o))
			put_action(root, o->value, o->words, to);
		fputs("'\n", to);
		if (o->letter) {
			fprintf(to, "\t'(-%c --%s)--%s[", o->letter, o->name, o->name);
			put_text(o->help, to);
			fputs("]'\n", to);
		}
	}
	fputs(")\n", to);
	put_command(root, root, to);
	fputs("\n_ax \"$@\"\n", to);
}
