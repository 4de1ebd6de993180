/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of a build's commands compiled C, C++ or Objective-C, and what. */
#ifndef AX_PROBES_BUILD_COMPILE_H
#define AX_PROBES_BUILD_COMPILE_H

#include "probes/build/build.h"

struct build_compile {
	uint32_t cmd;
	size_t first;	    /* its argument that is the compiler: others stand before it (ccache) */
	const char *source; /* as in its arguments */
	const char *output; /* the same, NULL: not named */
};

/* Whether it is a compiler's driver, of whatever language, or a wrapper that runs one: what it
 * starts to preprocess, assemble and link hands on files that nobody else knows. */
bool build_drives(const struct build *b, uint32_t cmd);
/* One for each source file of each command, in order of time; those that a compiler started itself
 * for the same file are left out. malloc'ed. -ENOMEM. */
int build_compiles(const struct build *b, struct build_compile **ret, size_t *n);

#endif
