/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every address of ours, who owns it, and what the kernel was told. Owners write themselves into
 * the struct and call vip_sync(): the kernel's entry and route follow from the owners alone.
 */
#ifndef AX_REGISTRY_VIPS_H
#define AX_REGISTRY_VIPS_H

#include "app.h"
#include "net/netlink.h"

struct agent;
struct app;
struct declared;
struct remote;
struct service;

struct vip {
	struct ax_addr addr;
	bool host;		   /* the instance's own */
	bool balancer;		   /* NAT balancers send from it to apps */
	struct app *app;	   /* the running app whose own it is */
	struct service *service;   /* the service that is reached by it */
	struct declared *declared; /* the app of the config that is not running */
	struct remote *remote;	   /* the app of another node (remotes.h) */
	struct ax_vip told;	   /* the kernel's entry; kind 0: none */
	bool bindable;		   /* an address on lo */
	struct nl_route route;	   /* the kernel's route; dst.len 0: none */
};

/* Whether somebody of this node has it. NULL is allowed. */
static inline bool vip_is_here(const struct vip *v)
{
	return v && (v->host || v->balancer || v->app || v->service || v->declared);
}

struct vip *vip_find(struct agent *a, const struct ax_addr *addr);

/* Finds or makes. NULL: out of memory. */
struct vip *vip_get(struct agent *a, const struct ax_addr *addr);

/* Tells the kernel what became of the address, and forgets it when nobody owns it any more. */
int vip_sync(struct agent *a, struct vip *v, struct error *e);

/* Tells the kernel of the address if there is one and we know it; for owners that come and go. */
int vip_resync(struct agent *a, const struct ax_addr *addr, struct error *e);

/* The name that an address goes by, or NULL. Lives as long as its owner. */
const char *name_of_addr(struct agent *a, const struct ax_addr *addr);

/* Memory only: the kernel keeps what it was told. */
void vip_free_all(struct agent *a);

#endif
