/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Services that come, change and go: declared ones, and those that apps form by sharing a name or
 * an address. */
#ifndef AX_SERVICES_SERVICES_H
#define AX_SERVICES_SERVICES_H

#include "config/config.h"
#include "health/health.h"

struct agent;
struct app;
struct service;

/* The addresses that it asks for must not be held by an app that has ended, see app_release_addr().
 * -EEXIST: apps have formed one of that name; -EADDRINUSE, with a sentence. */
int service_declare(struct agent *a, struct config_service *conf, struct error *e);

/* A declared service gets another configuration; what is the same is not touched. */
int service_change(struct agent *a, struct service *s, struct config_service *conf,
		   struct error *e);
void service_remove(struct agent *a, struct service *s);

/* Whether it may have the addresses that it asks for: nobody else has them. NULL: there is no such
 * service yet. -EADDRINUSE with a sentence. */
int service_check_addresses(struct agent *a, const struct service *s,
			    const struct config_service *conf, struct error *e);

/* Makes the service that `owner` and further apps form (or finds it). */
int service_of_app(struct agent *a, struct app *owner, struct service **ret, struct error *e);

/* Makes the service that apps of other nodes form, at an address of this node's pool. */
int service_of_others(struct agent *a, const char *name, struct error *e);
/* Who forms a service has changed: it gets its backends, or ends if it is none any more. */
int service_settle(struct agent *a, struct service *s, struct error *e);

/* For adoption: the service and its members, with nothing told to the kernel yet. */
int service_adopt(struct agent *a, const char *name, const struct ax_addr *ip4,
		  const struct ax_addr *ip6, struct service **ret);
void service_join(struct agent *a, struct service *s, struct app *app);
void service_leave(struct agent *a, struct app *app);

/* Writes the backends of one. */
int service_sync(struct agent *a, struct service *s, struct error *e);

/* Writes the backends of all services that an app may serve, or of all (NULL). */
int services_sync(struct agent *a, const struct app *app, struct error *e);

/* Routes the services that the app serves anew: it has its device now, or has it no more. */
int services_route(struct agent *a, const struct app *app, struct error *e);

/* For health_open(); arg: the agent, owner: the service. */
extern const char services_no_way[];
void services_backend_changed(void *arg, void *owner, const struct health_target *t, bool down,
			      const char *why);
void services_backend_no_way(void *arg, void *owner, const struct health_target *t, bool was_down);

/* Memory only. */
void services_free_all(struct agent *a);

#endif
