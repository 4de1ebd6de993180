/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What running apps need of the machine. */
#ifndef AX_APPS_NEEDS_H
#define AX_APPS_NEEDS_H

#include "base/util.h"

struct agent;
struct app;

/* Returns 0 or a negative errno. */
int needs_open(struct agent *a);
void needs_close(struct agent *a);

/* Whether connections are to be held back (`wait:`). Returns 0 or a negative errno. */
int needs_hold(struct agent *a);

/* Whether packets of apps are still kept from detours. */
void needs_straight(struct agent *a);

/* needs_hold(), told to the kernel whatever the last agent has left there. */
void needs_hold_anew(struct agent *a);

/* Whose sources are rewritten on their way out of the machine (`egress:`), and whether apps of
 * other nodes are forwarded to. */
int needs_egress(struct agent *a, struct error *e);
/* For the loop: LOOP_TABLES. Puts back what others took of that. */
void needs_on_tables(struct agent *a);
/* The same for an app that comes: what it has asked for must be had, what rules let it do need not.
 */
int needs_way(struct agent *a, const struct app *app, struct error *e);
/* Whether it is one of those. */
bool needs_way_out(const struct app *app);

#endif
