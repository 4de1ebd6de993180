/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Apps that the agent itself starts: the config's, and detached ones again after they ended. */
#ifndef AX_APPS_SPAWN_H
#define AX_APPS_SPAWN_H

#include "base/util.h"

struct agent;
struct app;

/* Queues a start of the config's app of that key if it has a command. */
int declared_start(struct agent *a, const char *key);

/* Starts what is due. */
void spawn_due(struct agent *a, uint64_t now_ns);

/* The next deadline, 0: none. */
uint64_t spawn_deadline(const struct agent *a);

/* A child has ended; status: as waitpid() has it. */
void spawn_reap(struct agent *a, int pid, int status);

/* The restarts counted for an app that was launched by this process, 0: not ours. */
uint32_t spawn_restarts(struct agent *a, const char *config_key, const char *name);

/* Whether a start of that key is due or under way. */
bool spawn_pending(const struct agent *a, const char *config_key);

/* Drops the starts that are due of an app, by its name. Returns how many. */
size_t spawn_cancel(struct agent *a, const char *name);

/* A launch that is under way has an old config: what comes of it is replaced. */
void spawn_mark_stale(struct agent *a, const char *config_key);

/* An app has ended: it is started again if it is to be, or the config's new version of it is. */
void spawn_app_gone(struct agent *a, const struct app *app);

void spawn_free_all(struct agent *a);

#endif
