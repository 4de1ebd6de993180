/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `make -p` prints: which file needs which others, as the Makefile says. A parser of what is
 * written by others. */
#ifndef AX_PROBES_BUILD_MAKEDB_H
#define AX_PROBES_BUILD_MAKEDB_H

#include "base/util.h"

struct makedb;
/* Several, one behind the other, are one. -EINVAL with a sentence: there is none in it. */
int makedb_read(const char *text, size_t len, struct makedb **ret, struct error *e);
void makedb_free(struct makedb *db);
/* False: it has no rule. Else makedb_needs() is about it. Names are absolute. */
bool makedb_target(struct makedb *db, const char *path);
/* Whether the target needs that file, itself or through others; not what stands behind a '|', since
 * that makes nothing anew. */
bool makedb_needs(const struct makedb *db, const char *path);

#endif
