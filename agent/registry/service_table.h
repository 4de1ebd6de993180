/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A service, the list of them, and which apps serve one. */
#ifndef AX_REGISTRY_SERVICE_TABLE_H
#define AX_REGISTRY_SERVICE_TABLE_H

#include "config/config.h"

struct agent;
struct app;
struct health_group;
struct ramps;
struct other_port;
struct removed;

struct service {
	struct service *next, **at; /* at: what points to it */
	uint32_t id;
	char *name;
	struct config_service *conf; /* declared: the config's; else NULL */
	struct ax_addr vip4, vip6;
	uint32_t members;	  /* of one that apps form: this node's */
	struct other_port *ports; /* with lists of their own, see services/across.h; in order */
	size_t n_ports;
	struct health_group *health; /* NULL: nothing of it was ever checked */
	struct ramps *ramps;	     /* NULL: nobody comes slowly */
	struct removed *removed;     /* see services/removed.h */
	uint32_t ended;		     /* connections, by that, since the agent was started */
	/* see services/near.c */
	uint64_t near_state;
	uint32_t near_round;
	bool near_watched;
	/* which way its address leads, see service_way() */
	bool way_known;
	bool by_host; /* it is this host's, for the sake of backends in host mode */
	bool mixed;   /* and has private ones, too: ingress.c has told the programs */
};

struct service *service_by_name(struct agent *a, const char *name);

/* Whether the app is a backend by that entry; NULL: of a service that apps form. */
bool service_chooses(const struct service *s, const struct service_backend *b,
		     const struct app *app);

/* Whether the app is a backend of the service. */
bool service_affected(const struct service *s, const struct app *app);

/* Whether the app is a backend of any service. */
bool service_affects(struct agent *a, const struct app *app);

/* Whether any of its backends is a running private app. */
bool service_has_private(const struct agent *a, const struct service *s);

/* Who its backends are has changed: which way its address leads from now on. */
void service_way(struct agent *a, struct service *s);

#endif
