/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Anchors: IPv6 addresses on lo, below a /96 of the instance, on which a v6-only wildcard socket of
 * a host-mode app without IPv6 is put (include/ctl.h), so that two such apps do not collide
 * ("listen [::]:80" in nginx's shipped configuration).
 */
#ifndef AX_APPS_ANCHORS_H
#define AX_APPS_ANCHORS_H

#include <stdint.h>

struct agent;
struct app;

/* Gives the app an anchor if it may need one. Never fails: without one, such binds may collide. */
void anchor_take(struct agent *a, struct app *app);
/* The anchor of an app of an earlier agent; 0: it has none. */
void anchor_adopt(struct agent *a, uint32_t anchor);
void anchor_release(struct agent *a, struct app *app);

/* Memory only: the addresses stay. */
void anchors_free(struct agent *a);

#endif
