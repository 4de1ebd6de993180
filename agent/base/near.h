/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names that are nearly the one that was asked for. */
#ifndef AX_BASE_NEAR_H
#define AX_BASE_NEAR_H

#include "base/util.h"

/* The best of the names that were looked at. Start with near_start(). */
struct near {
	const char *want;
	unsigned best; /* a distance must be less */
	char name[128];
};
void near_start(struct near *n, const char *want);
/* True: it is better than all before, and kept. */
bool near_look(struct near *n, const char *name);

#endif
