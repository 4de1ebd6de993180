/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Completions for shells: scripts printed from the tables of commands and options. */
#ifndef AX_TOOLS_COMPLETION_COMPLETION_H
#define AX_TOOLS_COMPLETION_COMPLETION_H

#include "tools/lib/command.h"

/* Each prints a whole script for the commands below root. */
void completion_bash(const struct command *root, FILE *to);
void completion_zsh(const struct command *root, FILE *to);
void completion_fish(const struct command *root, FILE *to);

/* --- what the three have in common --- */

/* Calls f for the command and all below it, those above first. */
void completion_each(const struct command *cmd, FILE *to,
		     void (*f)(const struct command *cmd, FILE *to));
/* The name with those above it; "" for ax itself. */
const char *completion_name(const struct command *cmd);
/* The command that is executed as it stands behind this one: ax run. */
bool completion_runs_program(const struct command *cmd);
/* So many arguments stand before it: one with ax exec. */
size_t completion_leading(const struct command *cmd);

/* Puts the words of WORDS_CHOICES and WORDS_COMMAND, a blank before each. */
void completion_put_choices(const struct command *root, const struct words *w, FILE *to);

#endif
