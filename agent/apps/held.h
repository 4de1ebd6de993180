/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connects that wait for a server: once it listens, their SYNs are sent again at once. */
#ifndef AX_APPS_HELD_H
#define AX_APPS_HELD_H

#include "base/util.h"

struct agent;

/* hooks.awaited: somebody listens, or may have begun to. */
void held_awaited(struct agent *a);

/* The same, but not before the caller has done what it is at. */
void held_soon(struct agent *a);

/* Sends what is due; the next deadline, 0: none. */
void held_due(struct agent *a, uint64_t now_ns);
uint64_t held_deadline(const struct agent *a);

#endif
