/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Notices that an app has ended: its cgroup's events, and the supervisor of a detached one. */
#ifndef AX_APPS_WATCH_H
#define AX_APPS_WATCH_H

#include "base/loop.h"
#include "base/util.h"

struct agent;
struct app;
struct watches; /* by inotify descriptor */

/* Opens what the watches need. Returns 0 or a negative errno. */
int watches_open(struct agent *a);
void watches_close(struct agent *a);

/* Watches the app's cgroup.events, and the process that tells a detached app's exit status. */
int app_watch(struct agent *a, struct app *app, struct error *e);
void app_unwatch(struct agent *a, struct app *app);

/* For the loop: LOOP_CGROUP and LOOP_LAUNCHER. check is called for apps that may have ended, and
 * may free the app. */
void watches_on_cgroup(struct agent *a, void (*check)(struct agent *a, struct app *app));
void watches_on_launcher(struct agent *a, struct loop_item *item,
			 void (*check)(struct agent *a, struct app *app));

#endif
