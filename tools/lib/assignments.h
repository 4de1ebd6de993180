/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Environment variables of the command line: -e and --env-file. */
#ifndef AX_TOOLS_LIB_ASSIGNMENTS_H
#define AX_TOOLS_LIB_ASSIGNMENTS_H

#include "base/strv.h"
#include "base/util.h"

/*
 * K=V each into *ret (freed by the caller, also after a failure), those of the files first, since
 * the last one wins. A file has one in each line, as it stands; blank lines and those that begin
 * with '#' are none. A name alone is the caller's own variable of that name, or nothing.
 */
int assignments_collect(const struct strv *files, const struct strv *given, struct strv *ret,
			struct error *e);
/* The text of one file; `path` is for errors. */
int assignments_parse(char *text, const char *path, struct strv *ret, struct error *e);

#endif
