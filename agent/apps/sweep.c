/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What belongs to nobody is removed from the kernel. */
#include <arpa/inet.h>

#include "apps/sweep.h"
#include "machine/cgroup.h"
#include "machine/instance.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "ingress/ingress.h"
#include "net/host_links.h"
#include "net/netlink.h"
#include "net/wireguard.h"
#include "registry/app_table.h"
#include "registry/instance_ctl.h"
#include "registry/service_device.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "registry/vips.h"

static bool keep_app(void *arg, uint32_t id)
{
	return app_by_id(arg, id) != NULL;
}

static bool keep_cgroup(void *arg, uint64_t cgroup)
{
	for (const struct app *app = ((struct agent *)arg)->apps; app; app = app->next)
		if (app->cgroup_id == cgroup)
			return true;
	return false;
}

static bool keep_vip(void *arg, const struct ax_addr *addr)
{
	return vip_find(arg, addr) != NULL;
}

static bool keep_service(void *arg, const struct ax_endpoint *ep)
{
	struct vip *v = vip_find(arg, &ep->addr);
	const struct config_service *c;

	if (!v || !v->service)
		return false;
	c = v->service->conf;
	if (!c || !c->n_ports)
		return ep->port_be == 0;
	for (size_t i = 0; i < c->n_ports; i++)
		if (htons(c->ports[i].port) == ep->port_be && c->ports[i].proto == ep->proto)
			return true;
	return false;
}

struct stale {
	struct agent *a;
	struct nl_route *routes;
	unsigned *links;
	size_t n_routes, n_links;
};

static int note_route(void *arg, const struct nl_route *r)
{
	struct stale *s = arg;
	struct vip *v = r->dst.len == 128 ? vip_find(s->a, &r->dst.addr) : NULL;
	struct nl_route *more;

	if (r->dst.len != 128 ||
	    (v && v->route.local == r->local && v->route.ifindex == r->ifindex))
		return 0;
	more = realloc(s->routes, (s->n_routes + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->routes = more;
	s->routes[s->n_routes++] = *r;
	return 0;
}

/* "<instance>-<number>", the services' pair or the DNS's: others may have names that begin alike.
 */
static bool is_device_of_ours(const struct agent *a, const char *name)
{
	const char *rest = name + strlen(a->inst->device_prefix);
	size_t digits = strspn(rest, "0123456789");

	return service_device_is(a, name) || streq(name, a->inst->dns_device) ||
	       streq(name, a->inst->dns_peer) || (digits && digits <= 6 && !rest[digits]);
}

static int note_link(void *arg, const char *name, unsigned ifindex)
{
	struct stale *s = arg;
	unsigned *more;

	if (!is_device_of_ours(s->a, name))
		return 0;

	if (s->a->ctl.service_ifindex && service_device_is(s->a, name))
		return 0;
	for (const struct app *app = s->a->apps; app; app = app->next)
		if (app->ifindex == ifindex)
			return 0;
	more = realloc(s->links, (s->n_links + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->links = more;
	s->links[s->n_links++] = ifindex;
	return 0;
}

static int sweep_net(struct agent *a)
{
	struct stale s = {.a = a};
	int r = nl_link_each(a->nl, a->inst->device_prefix, note_link, &s);

	for (size_t i = 0; i < s.n_links; i++)
		nl_link_del(a->nl, s.links[i]);
	r = r ? r : nl_route_each(a->nl, a->inst->route_metric, note_route, &s);
	for (size_t i = 0; i < s.n_routes; i++) {
		nl_route_del(a->nl, &s.routes[i]);
		if (s.routes[i].local)
			nl_addr_del(a->nl, a->lo, &s.routes[i].dst.addr, 128);
	}
	free(s.links);
	free(s.routes);
	return r;
}

int sweep(struct agent *a, struct error *e)
{
	const struct datapath_keep keep = {.app = keep_app,
					   .cgroup = keep_cgroup,
					   .vip = keep_vip,
					   .service = keep_service,
					   .arg = a};
	int r = datapath_sweep(a->dp, &keep);

	r = r ? r : ingress_sweep(a);
	r = r ? r : sweep_net(a);
	return r ? error_set(e, r, "cannot remove what an earlier agent left: %s", strerror(-r))
		 : 0;
}

static int note_any_route(void *arg, const struct nl_route *r)
{
	struct stale *s = arg;
	struct nl_route *more = realloc(s->routes, (s->n_routes + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	s->routes = more;
	s->routes[s->n_routes++] = *r;
	return 0;
}

static int remove_anchor(void *arg, const struct ax_addr *addr)
{
	struct agent *a = arg;

	if (memcmp(addr, &a->ctl.anchor6, 12) == 0)
		nl_addr_del(a->nl, a->lo, addr, 128);
	return 0;
}

static int forget_nodes(void *arg, const struct nl_host_link *link)
{
	const struct agent *a = arg;

	datapath_nodes_detach(a->nl, link->ifindex, a->inst->route_metric);
	return 0;
}

int sweep_all(const struct instance *inst)
{
	CLEANUP(nl_closep) struct nl *nl = NULL;
	struct agent none = {.inst = inst};
	struct stale s = {.a = &none};
	unsigned lo = 1;
	int r = nl_open(&nl);

	if (!r)
		r = nl_link_index(nl, "lo", &lo);
	if (r)
		return r;
	none.nl = nl;
	ingress_detach(&none);
	wg_link_remove(nl, inst->tunnel_device);
	nl_outer_link_each(nl, forget_nodes, &none);
	r = nl_link_each(nl, inst->device_prefix, note_link, &s);
	for (size_t i = 0; i < s.n_links; i++)
		nl_link_del(nl, s.links[i]);
	r = r ? r : nl_route_each(nl, inst->route_metric, note_any_route, &s);
	for (size_t i = 0; i < s.n_routes; i++) {
		nl_route_del(nl, &s.routes[i]);
		if (s.routes[i].local)
			nl_addr_del(nl, lo, &s.routes[i].dst.addr, 128);
	}
	agent_anchor_prefix(inst, &none.ctl.anchor6);
	none.nl = nl;
	none.lo = lo;
	if (!r)
		nl_addr6_each(nl, lo, remove_anchor, &none);
	free(s.links);
	free(s.routes);
	return r;
}
