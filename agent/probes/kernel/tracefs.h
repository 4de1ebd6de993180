/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's files about tracepoints. */
#ifndef AX_PROBES_KERNEL_TRACEFS_H
#define AX_PROBES_KERNEL_TRACEFS_H

#include "probes/kernel/fields.h"

/* The directory of tracefs, wherever it is mounted, or a mount of its own that no other process
 * sees. A descriptor. */
int tracefs_open(struct error *e);
/* Tracepoints of a category and name (globs), sorted; f returns non-zero to end. -ENOENT: none. */
int tracefs_tracepoints(int tracefs, const char *category_glob, const char *name_glob,
			int (*f)(void *arg, const char *category, const char *name), void *arg,
			struct error *e);
int tracefs_format(int tracefs, const char *category, const char *name, struct format *ret,
		   struct error *e);

#endif
