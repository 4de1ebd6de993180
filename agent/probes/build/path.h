/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of files. What is returned is malloc'ed; NULL: out of memory. */
#ifndef AX_PROBES_BUILD_PATH_H
#define AX_PROBES_BUILD_PATH_H

#include "base/util.h"

/* Without "//", "." and "..": a name that begins at `dir` (absolute, or NULL: "/"). */
char *path_join(const char *dir, const char *name, size_t len);
/* Of names from the innermost to the root, each with its NUL. deep: outermost ones are left out. */
char *path_of_names(const char *names, size_t len, bool deep);
/* Behind the last '/'. */
const char *path_base(const char *path);
/* True if it is `dir` or below it. */
bool path_below(const char *path, const char *dir);
/* Below the directories that belong to the system, and those of devices and processes. */
bool path_is_system(const char *path);

#endif
