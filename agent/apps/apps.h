/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of an app that is registered: its network, its start, its end. */
#ifndef AX_APPS_APPS_H
#define AX_APPS_APPS_H

#include "base/util.h"

struct agent;
struct app;

/* Tells the kernel and the services of an app that is linked in: addresses and all. */
int app_publish(struct agent *a, struct app *app, struct error *e);

/* Connects a private app's network namespace. */
int app_attach(struct agent *a, struct app *app, int netns_fd, struct error *e);

int app_started(struct agent *a, struct app *app, int pid, int launcher_pid, struct error *e);

/* Asks its processes to end; they are killed after timeout_ms. */
void app_stop(struct agent *a, struct app *app, uint32_t timeout_ms);

/* Its cgroup may have become empty. The app may be gone after it. */
void app_check(struct agent *a, struct app *app);
void app_exited(struct agent *a, struct app *app, int status);

/* Undoes an app that has no process; its network only when the kernel has sent what it wrote. */
void app_remove(struct agent *a, struct app *app);

/* Kills those that have had their time to end; the next deadline, 0: none. */
void apps_due(struct agent *a, uint64_t now_ns);
uint64_t apps_deadline(const struct agent *a);

#endif
