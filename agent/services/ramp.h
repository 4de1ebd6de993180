/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slow start: a backend that comes to a service that is there already, or comes back, gets its
 * share of new connections step by step. Those that the agent finds when it starts, and those that
 * a service begins with, have theirs at once.
 */
#ifndef AX_SERVICES_RAMP_H
#define AX_SERVICES_RAMP_H

#include "services/members.h"

struct agent;
struct service;

/* Who serves, and since when: before its backends are written. */
void ramps_sync(struct agent *a, struct service *s, const struct service_member *m, size_t n);

/* The weight that a member has now, among those of the service. */
uint32_t ramps_share(const struct service *s, const struct service_member *m);
/* Per cent of its own that it has now. */
unsigned ramps_percent(const struct service *s, const struct service_member *m);

void ramps_forget(struct service *s);

/* a->ramps_at_ns has come: services with backends that grow are written anew. */
void ramps_due(struct agent *a, uint64_t now_ns);

#endif
