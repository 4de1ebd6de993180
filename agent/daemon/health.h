/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Health checks of services: `check:` in the config. The agent connects to every backend of such a
 * service once in `every`, from the host's network namespace; http asks for a path besides. A
 * backend counts as up until `fall` checks in a row failed, and as down until `rise` succeeded.
 *
 * A backend that is down gets no new connections; those that it has are left alone. When all are
 * down the service has no backend, and connects to it fail at once with EHOSTUNREACH: an answer
 * that a client can act upon, where a dead backend would let it wait.
 *
 * An app of the config that does not run is not checked: connects pass it over anyhow, unless they
 * are to wait for it (`wait:`).
 *
 * With `host_access: false` the host itself does not reach apps. Then a private app is asked from
 * within its own network namespace, and a host-mode app from its own address, which policy has to
 * allow; where it does not, the backend is not checked, counts as up, and that is said.
 */
#ifndef AX_DAEMON_HEALTH_H
#define AX_DAEMON_HEALTH_H

#include "config/config.h"
#include "base/util.h"

/* --- free of side effects --- */

struct health_state {
	unsigned fails, successes; /* in a row, one of them is 0 */
	bool down;
};
/* Takes one result in. Says whether up became down, or the other way round. */
bool health_count(struct health_state *s, bool good, const struct service_check *c);

/* The request, malloc'ed. */
char *health_http_request(const struct service_check *c, const char *host);
/* The status of an answer's first bytes: 100..599, 0: more of them are needed, -EBADMSG. */
int health_http_status(const char *data, size_t len);
bool health_status_good(int status, const struct service_check *c);

/* --- the agent's  --- */

struct agent;
struct service;
struct service_member;
struct loop_item;

/* Its members or its check may have changed: starts and ends what is to be checked. */
void health_sync(struct agent *a, struct service *s, const struct service_member *m, size_t n);
/* Fills in checked, down and why of the members. */
void health_mark(const struct service *s, struct service_member *m, size_t n);
/* Ends all checks of the service, and forgets what they found. */
void health_forget(struct agent *a, struct service *s);
/* The same for an agent that ends: the next one is to know what it found. */
void health_free(struct agent *a, struct service *s);
void health_on_socket(struct agent *a, struct loop_item *item);
void health_on_timer(struct agent *a);
/* What an earlier agent knew to be down is so from the start, until its checks say otherwise.
 * health_loaded(): all services are there now. */
void health_load(struct agent *a);
void health_loaded(struct agent *a);

#endif
