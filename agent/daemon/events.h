/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events for `ax events`: the dataplane's from the ring buffer, the agent's own. */
#ifndef AX_DAEMON_EVENTS_H
#define AX_DAEMON_EVENTS_H

#include "base/address.h"

struct agent;
struct app;
struct ax_capture;
struct service;

int events_open(struct agent *a);
int events_update(struct agent *a); /* readers came or went */
void events_on_ring(struct agent *a);
void events_on_timer(struct agent *a);
void events_app(struct agent *a, const char *what, const struct app *app);
void events_trigger(struct agent *a, const char *name, int pid, const char *ifname,
		    const struct ax_capture *c);

/* app NULL: a fixed address. */
void events_health(struct agent *a, const struct service *s, const struct app *app,
		   const struct ax_addr *addr, uint16_t port, bool down, const char *why);

#endif
