/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a command is, and how one is found: `ax WORD`, `ax xdp WORD`, `ax xdp rule WORD`. */
#ifndef AX_TOOLS_LIB_COMMAND_H
#define AX_TOOLS_LIB_COMMAND_H

#include "tools/lib/cmd.h"

/* A word that people know from elsewhere, and what they write here. */
struct command_elsewhere {
	const char *word; /* NULL: the end of the list */
	const char *here; /* completes "write " */
};

/* A command that does something, or one that has others below it; or both: then the others are
 * meant if the first word names one. */
struct command {
	const char *name;  /* with those above it, "xdp rule add"; NULL: ax itself */
	const char *about; /* in the list of commands */
	struct opt_syntax syntax;
	int (*run)(struct cmd *c, int argc, char **argv); /* NULL: it has others below it */
	const struct command *const *sub;		  /* NULL-terminated */
	const struct command_elsewhere *elsewhere;	  /* words that are no commands, or NULL */
	const char *example;				  /* completes "say what to do: " */
	const char *more;				  /* behind the list in the help, or NULL */
};

/* The last word of its name; "" for ax itself. */
const char *command_word(const struct command *cmd);

/* Runs it, or the one below it that argv names. Returns the exit status. */
int command_run(struct cmd *c, const struct command *cmd, int argc, char **argv);
/* The command of that name below cmd. NULL: there is none, as a sentence says; *status is to be
 * returned. */
const struct command *command_find(struct cmd *c, const struct command *cmd, const char *word,
				   int *status);
/* Its help, with those below it. */
void command_help(struct cmd *c, const struct command *cmd, FILE *to);

/* True: the caller is root. Else a sentence was printed. */
bool cmd_root(const struct cmd *c);

#endif
