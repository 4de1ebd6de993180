/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The backends that a service has at the moment. */
#ifndef AX_SERVICES_MEMBERS_H
#define AX_SERVICES_MEMBERS_H

#include "base/address.h"
#include "base/util.h"

struct agent;
struct app;
struct other_app;
struct service;
struct service_backend;

struct service_member {
	const struct app *app;		     /* NULL: a fixed address, or of another node */
	const struct other_app *other;	     /* of another node; NULL: it is not */
	const struct service_backend *fixed; /* what it comes from; NULL: an app */
	const struct service_backend
		*of; /* so it is for apps, too; NULL: the service is a shared name */
	struct ax_addr addr;
	uint16_t port; /* host byte order, 0: the target's */
	uint32_t weight;
	bool declared;	    /* an app of the config that does not run */
	bool draining;	    /* an app that is to end: no new connections */
	bool drained;	    /* drain.h: no new connections, by order */
	bool over;	    /* and none at all: its deadline is over */
	bool checked, down; /* checks.h; of another node's as that says */
	const char *zone;   /* NULL: near */
	unsigned away;	    /* near.h; 0: near */
	bool far;	    /* that, and at every port somebody nearer serves */
	/* the last check failed, or there is none; lives as long as its check, or `other` */
	const char *why;
};

/* Whether new connections may go there. */
static inline bool member_serves(const struct service_member *m)
{
	return !m->draining && !m->drained && !m->down;
}

/* Whether they do. */
static inline bool member_chosen(const struct service_member *m)
{
	return member_serves(m) && !m->far;
}

/* The app's name, also of another node's; NULL: it is none, or does not run. */
const char *member_app_name(const struct service_member *m);

/* Whether a running app is about to end, and nobody will start it again for who connects. */
bool member_stops(struct agent *a, const struct app *app);

/* The backends of one family (or of both, v4 and v6) as a malloc'ed array. Those that do not serve
 * are among them. */
int service_members(struct agent *a, const struct service *s, struct service_member **ret,
		    size_t *n);

#endif
