/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a graph of a build draws as one: files of a directory, commands of one shape. Each level
 * does so with more of them than the one before. */
#ifndef AX_TOOLS_TRACE_BUILD_COLLAPSE_H
#define AX_TOOLS_TRACE_BUILD_COLLAPSE_H

#include "tools/trace/build/build.h"

struct collapse {
	struct build_view *v;
	size_t level;
	void *texts;	     /* each once: of tsearch() */
	const char **output; /* of each command a file that it left, or NULL */
};

/* -ENOMEM. processes: commands are programs, not steps. */
int collapse_begin(struct collapse *c, struct build_view *v, bool processes);
/* The next level; false: there is none. */
bool collapse_more(struct collapse *c);
/* The name under which a file is drawn, NULL: it is not; and that under which a command is, NULL:
 * alone. They live as long as the collapse. arg: a struct collapse. */
const char *collapse_file(void *arg, const struct build_node *n);
const char *collapse_command(void *arg, uint32_t cmd);
/* What the system or a cache is drawn as: a directory for all below it. */
bool collapse_is_system(const struct collapse *c, const struct build_node *n);
/* What a command has in common with those that are drawn as one with it. */
void collapse_label(const struct collapse *c, uint32_t cmd, char *ret, size_t size);
void collapse_end(struct collapse *c);

#endif
