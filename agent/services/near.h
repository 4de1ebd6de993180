/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Backends that are near, and those that are away: of another zone, or of another node where this
 * one's are preferred; and, always, those that are further away, of another cluster. These get the
 * connections to a port only while nobody nearer serves it: is there, is not down or drained, and
 * listens.
 */
#ifndef AX_SERVICES_NEAR_H
#define AX_SERVICES_NEAR_H

#include "services/members.h"

struct ax_endpoint;

#define NEAR_AWAY    1 /* in service_member.away */
#define NEAR_CLUSTER 2

/* How far away those are who get the connections to the endpoint of a service: the nearest who
 * serve it; all, if nobody does. The endpoint is that port of its backends (0: of a service of
 * every port, where nobody knows who listens). */
unsigned near_reach(struct agent *a, const struct service_member *m, size_t n,
		    const struct ax_endpoint *ep, uint16_t target);

/* Marks who is away, and of those who gets nothing at any port. */
void near_mark(struct agent *a, const struct service *s, struct service_member *m, size_t n);

/* The service's lists are about to be written: from here on it is looked at when somebody listens
 * or does not any more, if any of its backends is away. */
void near_watch(struct agent *a, struct service *s, const struct service_member *m, size_t n);
void near_forget(struct agent *a, struct service *s);

/* hooks.listeners: somebody listens, or does not any more. */
void near_listeners_changed(struct agent *a);
void near_due(struct agent *a, uint64_t now_ns);

#endif
