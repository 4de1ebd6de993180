/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Passive health checks: connections that fail, which the programs in the kernel count. */
#ifndef AX_SERVICES_PASSIVE_H
#define AX_SERVICES_PASSIVE_H

#include "services/members.h"

struct agent;
struct service;

/* Has the kernel count for the backends of the service, if its check asks for it. */
void passive_sync(struct agent *a, const struct service *s, const struct service_member *m,
		  size_t n);

/* hooks.failing: some have failed. They are looked at soon, and not for each one. */
void passive_failing(struct agent *a);
/* a->failing_at_ns has come. */
void passive_due(struct agent *a, uint64_t now_ns);

#endif
