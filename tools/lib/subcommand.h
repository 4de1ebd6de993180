/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands of several words: `ax xdp WORD`, `ax xdp rule WORD`, `ax trace WORD`. */
#ifndef AX_TOOLS_LIB_SUBCOMMAND_H
#define AX_TOOLS_LIB_SUBCOMMAND_H

#include "tools/lib/cmd.h"

struct subcommand {
	const char *name;
	const char *full_name; /* for messages */
	int (*run)(struct cmd *c, int argc, char **argv);
	const char *about;
};
struct command_group {
	struct opt_syntax syntax;
	const struct subcommand *v;
	size_t n;
	const char *example; /* completes "say what to do: " */
};
int cmd_dispatch(struct cmd *c, const struct command_group *g, int argc, char **argv);

/* True: the caller is root. Else a sentence was printed. */
bool cmd_root(const struct cmd *c);

#endif
