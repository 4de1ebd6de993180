/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What has to be there before a command can be repeated alone, with all that it started. */
#ifndef AX_PROBES_BUILD_NEEDS_H
#define AX_PROBES_BUILD_NEEDS_H

#include "probes/build/build.h"

enum build_need_from {
	BUILD_NEED_ABOVE,  /* removed, and made by a command that started this one */
	BUILD_NEED_OTHER,  /* removed, and made by one that can be repeated before this one */
	BUILD_NEED_BEFORE, /* removed, and older than the build */
	BUILD_NEED_LEFT,   /* made by the build, and not removed */
};

/* A file that it read or executed and had not made itself. */
struct build_need {
	const char *path;
	enum build_need_from from;
	uint32_t maker; /* above, other: the program that wrote it last before; or BUILD_NONE */
};

struct build_needs {
	struct build_need *v; /* by `from`, then by the maker */
	size_t n;
	const char **dirs; /* where it was or wrote, of those that the build made and removed */
	size_t *dirs_len;  /* (these are the beginnings of names) */
	size_t n_dirs;
};
/* -ENOMEM */
int build_needs_make(const struct build *b, uint32_t cmd, struct build_needs *ret);
void build_needs_free(struct build_needs *needs);

#endif
