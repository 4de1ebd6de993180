/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events for `ax events`: the dataplane's from the ring buffer, the agent's own. */
#ifndef AX_REGISTRY_EVENTS_H
#define AX_REGISTRY_EVENTS_H

#include <jansson.h>

#include "base/address.h"
#include "base/util.h"

struct agent;
struct app;
struct ax_capture;
struct service;

struct event_sink { /* where events go; kind: enum watch of control/server.h */
	bool (*watching)(void *arg, unsigned kind);
	void (*event)(void *arg, unsigned kind, json_t *event); /* takes no reference */
	void *arg;
};

/* The time of day, in seconds, of a time of CLOCK_BOOTTIME. */
double events_wall_time(uint64_t boot_ns);

/* Returns 0 or a negative errno. */
int events_open(struct agent *a, const struct event_sink *sink);

/* Reads the dataplane's from now on: it has what it is to have. */
int events_read(struct agent *a);
void events_close(struct agent *a);

/* Watchers came or went. */
int events_update(struct agent *a);

/* For the loop: LOOP_EVENT_RING and LOOP_EVENT_TIMER. The first also fetches what there is. */
void events_on_ring(struct agent *a);
void events_on_timer(struct agent *a);

/* What that app did, while its name is known. */
void events_ending(struct agent *a, const struct app *app);

/* Those who watch verdicts are told what they were not yet. */
void events_verdicts(struct agent *a);

/* One event of the agent's own each. */
void events_app(struct agent *a, const char *what, const struct app *app);
void events_trigger(struct agent *a, const char *name, int pid, const char *ifname,
		    const struct ax_capture *c);

/* A name of the DNS that rules do not let the app ask for; not more often than each 10 s. */
void events_name_refused(struct agent *a, const struct app *app, const char *name);

/* ended: connections that the deadline has ended, -1: nothing is said of that. */
void events_drain(struct agent *a, const char *service, const char *backend, const char *state,
		  int ended);

/* app NULL: a fixed address. */
void events_health(struct agent *a, const struct service *s, const struct app *app,
		   const struct ax_addr *addr, uint16_t port, bool down, const char *why);

#endif
