/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every address of ours and who owns it. What the kernel is told of an address (its table entry
 * and its route) follows from its owners in one place, so that nothing else has to remember what
 * was there before.
 */
#include <net/if.h>
#include <search.h>

#include "registry/parties.h"
#include "registry/vips.h"
#include "base/address.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "net/netlink.h"
#include "registry/app_table.h"
#include "registry/declared.h"
#include "registry/remotes.h"
#include "registry/service_device.h"
#include "registry/service_table.h"
#include "registry/state.h"

static int vip_cmp(const void *a, const void *b)
{
	return memcmp(&((const struct vip *)a)->addr, &((const struct vip *)b)->addr,
		      sizeof(struct ax_addr));
}

struct vip *vip_find(struct agent *a, const struct ax_addr *addr)
{
	struct vip key = {.addr = *addr};
	struct vip **found = tfind(&key, &a->vips, vip_cmp);

	return found ? *found : NULL;
}

struct vip *vip_get(struct agent *a, const struct ax_addr *addr)
{
	struct vip *v = vip_find(a, addr);

	if (v)
		return v;
	v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	v->addr = *addr;
	if (!tsearch(v, &a->vips, vip_cmp)) {
		free(v);
		return NULL;
	}
	return v;
}

/* Who connects to an app that is started by that waits for it; and is told of when it does not
 * run, or is about to end. After a start that failed there is nothing to wait for. */
static uint32_t start_flags(const struct vip *v)
{
	const struct declared *d = v->declared;

	if (!d || !d->conf->on_connect || d->retry_at_ns)
		return 0;
	if (v->app && v->app->state < APP_STOPPING && !v->app->use.closed)
		return AX_VIP_WAITS;
	return AX_VIP_WAITS | AX_VIP_TELL;
}

/* Whether what is sent there goes to the services' device. */
static bool by_service_device(struct agent *a, const struct vip *v)
{
	return v->service && !v->app && !v->service->by_host &&
	       service_has_private(a, v->service) && !service_device_open(a);
}

/* Whether what private apps wait for at a private app's address, which it shares, is for the others
 * as well: then the services' device leads there. */
static bool shares_by_device(struct agent *a, const struct vip *v)
{
	return v->app && v->service && v->app->ifindex && a->apps_wait &&
	       service_has_private(a, v->service) && !service_device_open(a);
}

/* (It is there as long as anybody is led to it, by a route or without.) */
static void hold_device(struct agent *a, const struct ax_vip *was, const struct ax_vip *now)
{
	bool held = was->kind == AX_VIP_APP && was->flags & AX_VIP_BY_DEVICE;
	bool holds = now->kind == AX_VIP_APP && now->flags & AX_VIP_BY_DEVICE;
	unsigned ifindex = a->ctl.service_ifindex;

	if (held != holds)
		service_device_routed(a, held ? ifindex : 0, holds ? ifindex : 0);
}

/* The kernel's entry for an address; kind 0: none. */
static struct ax_vip wanted_entry(struct agent *a, const struct vip *v)
{
	bool v4 = addr_is_v4(&v->addr);
	struct ax_vip e = {0};

	if (v->remote) { /* unless it is somebody's here */
		e.kind = v->remote->across ? AX_VIP_ACROSS : AX_VIP_REMOTE;
		e.id = v->remote->id;
		e.ifindex = v->remote->ifindex;
		e.party = party_told(v->remote->party);
	}
	if (v->service || v->declared || v->app)
		e = (struct ax_vip){0};
	if (v->service) {
		e.kind = AX_VIP_SERVICE;
		e.id = v->service->id;
		e.flags = AX_VIP_SERVICES | (by_service_device(a, v) ? AX_VIP_BY_DEVICE : 0) |
			  (v->service->mixed && !v->app ? AX_VIP_MIXED : 0);
		e.twin = v4 ? v->service->vip6 : v->service->vip4;
	}
	if (v->declared && !v->service) {
		e.kind = AX_VIP_DECLARED;
		e.flags = start_flags(v);
		e.party = party_told(v->declared->party);
		e.twin = v4 ? v->declared->ip6 : v->declared->ip4;
	}
	if (v->app) {
		e.kind = AX_VIP_APP;
		e.flags |= start_flags(v);
		e.id = v->app->id;
		e.ifindex = v->app->ifindex;
		e.party = party_told(v->app->party);
		e.twin = v4 ? v->app->vip6 : v->app->vip4;
		if (v->app->spec.net == NET_HOST)
			e.flags |= AX_VIP_LOCAL;
		if (app_egress_is_open(v->app))
			e.flags |= AX_VIP_EGRESS;
		if (v->app->leaves)
			e.flags |= AX_VIP_LEAVES;
		if (shares_by_device(a, v))
			e.flags |= AX_VIP_BY_DEVICE;
	}
	if (v->host)
		e.kind = AX_VIP_HOST;
	if (v->balancer)
		e.kind = AX_VIP_BALANCER;
	return e;
}

/* A private app is reached through its device, a service with private backends through the
 * services', and so is where balancers send from; everything else is an address of this machine.
 * dst.len 0: no route. */
static struct nl_route wanted_route(struct agent *a, const struct vip *v)
{
	bool private_app = v->app && v->app->spec.net == NET_PRIVATE;
	struct nl_route r = {0};

	if (!v->host && !v->app && !v->service && !v->declared && !v->balancer)
		return r;
	if (private_app && !v->app->ifindex && !v->declared)
		return r; /* it comes when the network is attached */
	r.metric = a->inst->route_metric;
	r.dst.addr = v->addr;
	r.dst.len = 128;
	if (private_app && v->app->ifindex)
		r.ifindex = v->app->ifindex;
	else if (v->balancer ? !service_device_open(a) : by_service_device(a, v))
		r.ifindex = a->ctl.service_ifindex;
	r.local = !r.ifindex;
	if (r.local)
		r.ifindex = a->lo;
	/* Programs outside ax show up under the host's address, not under the one they ask for. */
	if (!v->host)
		r.prefsrc = addr_is_v4(&v->addr) ? a->host4 : a->host6;
	return r;
}

static bool route_same(const struct nl_route *x, const struct nl_route *y)
{
	return x->dst.len == y->dst.len && x->local == y->local && x->ifindex == y->ifindex &&
	       addr_eq(&x->prefsrc, &y->prefsrc);
}

/*
 * IPv6: somebody in this namespace may want to bind it, the agent's DNS or a host-mode app. IPv4
 * needs no address for that; only the host's own is one, because getaddrinfo() asks for IPv4
 * addresses only on machines that have one besides 127.0.0.1 (AI_ADDRCONFIG).
 */
static bool wants_bindable(const struct vip *v)
{
	if (addr_is_v4(&v->addr))
		return v->host;
	return v->host || (v->app && v->app->spec.net == NET_HOST);
}

static int bindable_sync(struct agent *a, struct vip *v)
{
	bool want = wants_bindable(v);
	int r;

	if (want == v->bindable)
		return 0;
	if (!want)
		r = nl_addr_del(a->nl, a->lo, &v->addr, 128);
	else if (addr_is_v4(&v->addr))
		r = nl_addr_add(a->nl, a->lo, &v->addr, 32);
	else
		r = nl_addr_add_bindable(a->nl, a->lo, &v->addr);
	if (r && (want || r != -EADDRNOTAVAIL))
		return r;
	v->bindable = want;
	return 0;
}

static int route_sync(struct agent *a, struct vip *v)
{
	struct nl_route want = wanted_route(a, v);
	unsigned was;
	int r;

	if (route_same(&want, &v->route))
		return 0;
	/* add first: there is never a moment without one */
	if (want.dst.len) {
		r = nl_route_add(a->nl, &want);
		if (r)
			return r;
	}
	if (v->route.dst.len &&
	    (v->route.local != want.local || v->route.ifindex != want.ifindex || !want.dst.len)) {
		r = nl_route_del(a->nl, &v->route);
		/* a device takes its routes along when it goes */
		if (r && r != -ESRCH && r != -ENODEV)
			return r;
	}
	a->name_added = true;
	was = v->route.dst.len ? v->route.ifindex : 0;
	v->route = want;
	service_device_routed(a, was, want.dst.len ? want.ifindex : 0);
	return 0;
}

int vip_sync(struct agent *a, struct vip *v, struct error *e)
{
	struct ax_vip want = wanted_entry(a, v);
	char text[ADDR_STRLEN];
	int r = 0;

	if (want.kind && memcmp(&want, &v->told, sizeof(want)) != 0)
		r = datapath_vip_set(a->dp, &v->addr, &want);
	if (!r)
		r = bindable_sync(a, v);
	if (!r)
		r = route_sync(a, v);
	if (!r && !want.kind && v->told.kind)
		r = datapath_vip_del(a->dp, &v->addr);
	if (r)
		return error_set(e, r, "the kernel refuses the address %s: %s",
				 addr_format(&v->addr, text), strerror(-r));
	hold_device(a, &v->told, &want);
	v->told = want;
	if (!want.kind) {
		tdelete(v, &a->vips, vip_cmp);
		free(v);
	}
	return 0;
}

int vip_resync(struct agent *a, const struct ax_addr *addr, struct error *e)
{
	struct vip *v = addr_is_zero(addr) ? NULL : vip_find(a, addr);

	return v ? vip_sync(a, v, e) : 0;
}

void vip_free_all(struct agent *a)
{
	tdestroy(a->vips, free);
	a->vips = NULL;
}

const char *name_of_addr(struct agent *a, const struct ax_addr *addr)
{
	struct vip *v = vip_find(a, addr);

	if (!v)
		return NULL;
	return v->app	     ? v->app->spec.name
	       : v->service  ? v->service->name
	       : v->declared ? v->declared->conf->spec.name
	       : v->remote   ? v->remote->name
			     : "host";
}
