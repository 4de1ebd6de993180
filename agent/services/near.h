/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Backends that are near, and those that are away: of another zone, or of another node where this
 * one's are preferred. These get the connections to a port only while nobody near serves it: is
 * there, is not down or drained, and listens.
 */
#ifndef AX_SERVICES_NEAR_H
#define AX_SERVICES_NEAR_H

#include "services/members.h"

struct ax_endpoint;

/* Whether somebody near serves the endpoint of a service that has some who are away; the endpoint
 * is that port of its backends (0: of a service of every port, where nobody knows who listens). */
bool near_serves(struct agent *a, const struct service_member *m, size_t n,
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
