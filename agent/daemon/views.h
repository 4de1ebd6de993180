/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lists of `ax get` and `ax status`; control.h describes their fields. */
#ifndef AX_DAEMON_VIEWS_H
#define AX_DAEMON_VIEWS_H

#include <jansson.h>
#include "base/util.h"

struct agent;

struct view_asked {
	const char *what;
	const json_t *names; /* these alone, where there may be too many; NULL: all */
	bool all;	     /* those of other nodes too, where they are known */
};

/* The answer to a `get`; NULL: there is none, and *e says why (code 0: out of memory). */
json_t *view_get(struct agent *a, const struct view_asked *asked, struct error *e);
json_t *view_status(struct agent *a);

#endif
