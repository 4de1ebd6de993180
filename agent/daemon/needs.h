/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What running apps need of the machine. */
#ifndef AX_DAEMON_NEEDS_H
#define AX_DAEMON_NEEDS_H

#include "base/util.h"

struct agent;

/* Whether connections are to be held back (`wait:`). Returns 0 or a negative errno. */
int needs_hold(struct agent *a);

/* Whose sources are rewritten on their way out of the machine (`egress:`). */
int needs_egress(struct agent *a, struct error *e);

#endif
