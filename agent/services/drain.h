/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Backends of services that drain: they get no new connections, and those that are open may end by
 * themselves until the deadline, when they are ended. It is recorded in the instance's directory,
 * so that the next agent goes on with it.
 */
#ifndef AX_SERVICES_DRAIN_H
#define AX_SERVICES_DRAIN_H

#include "services/members.h"

struct agent;
struct drain;
struct service;

/* Those of an earlier agent; before there are any services. */
void drains_load(struct agent *a);
void drains_free(struct agent *a); /* memory only */

/* NULL, or the drain of that backend: an app by its name, or an address. */
const struct drain *drain_of(const struct agent *a, const struct service *s, const char *app,
			     const struct ax_addr *addr, uint16_t port);
/* Whether its deadline is over, and what was open then has been ended. */
bool drain_is_over(const struct drain *d);
/* Milliseconds that are left; 0: it has no deadline, or that is over. */
uint64_t drain_left_ms(const struct drain *d);

/* A backend is an app's name, ADDR or ADDR:PORT. deadline_ms 0: none. -ENOENT and others with a
 * sentence. A second one gives another deadline. */
int service_drain(struct agent *a, struct service *s, const char *backend, uint32_t deadline_ms,
		  struct error *e);
/* It gets connections again. */
int service_undrain(struct agent *a, struct service *s, const char *backend, struct error *e);

/* The service is gone. */
void drains_forget(struct agent *a, const char *service);

/* CLOCK_MONOTONIC of the next deadline, 0: none; and when one has come. */
uint64_t drains_deadline(const struct agent *a);
void drains_due(struct agent *a, uint64_t now_ns);

#endif
