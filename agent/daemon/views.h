/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lists of `ax get` and `ax status`; control.h describes their fields. */
#ifndef AX_DAEMON_VIEWS_H
#define AX_DAEMON_VIEWS_H

#include <jansson.h>
#include "base/util.h"

struct agent;

/* The answer to a `get`, of `names` alone where there may be too many (NULL: all); NULL: there is
 * none, and *e says why (code 0: out of memory). */
json_t *view_get(struct agent *a, const char *what, const json_t *names, struct error *e);
json_t *view_status(struct agent *a);

#endif
