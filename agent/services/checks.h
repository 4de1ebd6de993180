/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which backends of a service are checked (`check:`), at which port and from where: from the host's
 * network namespace. A backend that is down gets no new connections; those that it has are left
 * alone. When all are down the service has no backend, and connects to it fail at once with
 * EHOSTUNREACH: an answer that a client can act upon, where a dead backend would let it wait.
 *
 * An app of the config that does not run is not checked: connects pass it over anyhow, unless they
 * are to wait for it (`wait:`).
 *
 * With `host_access: false` the host itself does not reach apps. Then a private app is asked from
 * within its own network namespace, and a host-mode app from its own address, which policy has to
 * allow; where it does not, the backend is not checked, counts as up, and that is said. Commands
 * cannot have a host-mode app's address, and do not check it then.
 */
#ifndef AX_SERVICES_CHECKS_H
#define AX_SERVICES_CHECKS_H

#include "health/health.h"
#include "services/members.h"

struct agent;
struct service;

/* Its members or its check may have changed: starts and ends what is to be checked. */
void checks_sync(struct agent *a, struct service *s, const struct service_member *m, size_t n);

/* Fills in checked, down and why of the members. */
void checks_mark(const struct service *s, struct service_member *m, size_t n);

/* Ends all checks of the service, and forgets what they found. */
void checks_forget(struct service *s);

/* Where a command that checks the target runs: *fd is a network namespace, -1: the host's. 0, or
 * as struct health_ops.open has it. */
int checks_netns(struct agent *a, const struct health_target *t, int *fd);

/* struct health_ops.open; arg: the agent. */
int checks_socket(void *arg, const struct health_target *t);

#endif
