/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose processes a trace is about: those of some cgroups, which are all equally far below the
 * root. */
#ifndef AX_SCOPE_H
#define AX_SCOPE_H

#include <linux/types.h>

#define AX_SCOPE_CGROUPS 16

struct ax_scope {
	__u32 n; /* 0: all processes */
	__u32 level;
	__u64 cgroups[AX_SCOPE_CGROUPS];
};
_Static_assert(sizeof(struct ax_scope) == 136, "struct ax_scope is read-only data");

#endif
