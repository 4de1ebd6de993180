/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Apps of the config that are started by connections (start: on-connect), and end after some time
 * without any (idle). */
#ifndef AX_APPS_ON_CONNECT_H
#define AX_APPS_ON_CONNECT_H

#include <stdbool.h>

#include "base/address.h"
#include "base/util.h"

struct agent;
struct app;
struct declared;

/* Somebody waits for who has this address: it is started, now or when it has ended. */
void on_connect_wanted(struct agent *a, const struct ax_addr *addr);

/* The same of a program outside ax, which has been turned away at the door. */
void on_connect_knocked(struct agent *a, const struct ax_addr *addr);

/* A start of the config's app of that key came to nothing: who waits for it is refused, and it is
 * not tried again for a while. */
void on_connect_failed(struct agent *a, const char *key);

/* The last start of the config's app of that key came to nothing: why was said then. */
bool on_connect_is_failing(struct agent *a, const char *key);

/* An app runs. */
void on_connect_started(struct agent *a, struct app *app);

/* An app has ended. */
void on_connect_gone(struct agent *a, const struct app *app);

/* The config's apps are others, or say something else. *failed has the first port that cannot be
 * exposed for one that does not run, if it has no error yet. */
void on_connect_update(struct agent *a, struct error *failed);

/* Ports, or addresses, may be free that were not: apps that do not run and could not have them try
 * again. */
void on_connect_retry(struct agent *a);

/* The config's app is none any more: declared_remove(), and its ports are free. */
void on_connect_removed(struct agent *a, struct declared *d);

/* Looks which are in use, and tries again; the next deadline, 0: none. */
void on_connect_due(struct agent *a, uint64_t now_ns);
uint64_t on_connect_deadline(const struct agent *a);

#endif
