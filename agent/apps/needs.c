/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What running apps need of the machine. */
#include <sys/timerfd.h>

#include "apps/needs.h"
#include "base/address.h"
#include "base/log.h"
#include "base/loop.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "datapath/xdp_datapath.h"
#include "net/egress.h"
#include "net/netlink.h"
#include "net/nft_watch.h"
#include "registry/app_table.h"
#include "registry/service_device.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "registry/vips.h"

struct needs {
	bool holding, had_egress;
	bool routing;		 /* the pools, to the services' device */
	struct loop_item tables; /* nft_watch_open(); -1: nothing there is ours */
	struct loop_item again;	 /* a timerfd: when to put it back once more; -1: never yet */
	struct egress_tables made;
};

int needs_open(struct agent *a)
{
	char path[128];

	a->needs = calloc(1, sizeof(*a->needs));
	if (!a->needs)
		return -ENOMEM;
	a->needs->tables = (struct loop_item){.kind = LOOP_TABLES, .fd = -1};
	a->needs->again = (struct loop_item){.kind = LOOP_TABLES, .fd = -1};
	/* (an agent before this one) */
	snprintf(path, sizeof(path), "%s/forwarding", a->inst->run_dir);
	a->needs->had_egress = access(path, F_OK) == 0;
	return 0;
}

static void unwatch_tables(struct agent *a)
{
	loop_del(a->epoll, &a->needs->tables);
	close_fd(&a->needs->tables.fd);
}

void needs_close(struct agent *a)
{
	if (!a->needs)
		return;
	unwatch_tables(a);
	loop_del(a->epoll, &a->needs->again);
	close_fd(&a->needs->again.fd);
	free(a->needs);
}

static void route_pool(struct agent *a, const struct pool *p, const struct ax_addr *host, bool on)
{
	unsigned ifindex = a->ctl.service_ifindex;
	const struct nl_route r = {.dst = p->prefix,
				   .ifindex = ifindex,
				   .metric = a->inst->route_metric,
				   .prefsrc = *host};

	if (!p->size)
		return;
	if (on && nl_route_add(a->nl, &r) == 0)
		service_device_routed(a, 0, ifindex);
	if (!on && nl_route_del(a->nl, &r) == 0)
		service_device_routed(a, ifindex, 0);
}

/*
 * A host-mode app's connection to an address that nobody has yet needs a way, on which it is held:
 * a device that leads nowhere. (In a private app's namespace the default route is one.) Without the
 * device it fails at once, as it would without a wait.
 */
static void route_pools(struct agent *a)
{
	bool want = false;

	for (struct app *app = a->apps; app && !want; app = app->next)
		want = app->spec.wait_ms && app->spec.net == NET_HOST;
	if (want == a->needs->routing || (want && service_device_open(a)))
		return;
	a->needs->routing = want;
	route_pool(a, &a->pool4, &a->host4, want);
	route_pool(a, &a->pool6, &a->host6, want);
}

void needs_hold_anew(struct agent *a)
{
	datapath_hold(a->dp, a->needs->holding);
}

void needs_straight(struct agent *a)
{
	bool want = false;

	for (const struct app *app = a->apps; app && !want; app = app->next)
		want = app_is_confined(app);
	if (!want) /* (app_tell() has it attached) */
		datapath_straight(a->dp, false);
}

static bool anybody_waits(const struct config *c)
{
	for (size_t i = 0; c && i < c->n_services; i++)
		if (c->services[i].wait_ms)
			return true;
	return false;
}

/* Those that wait at an address which apps share are led to each of them. */
static void lead_waiting(struct agent *a, bool wait)
{
	if (wait == a->apps_wait)
		return;
	a->apps_wait = wait;
	for (const struct service *s = a->services; s; s = s->next) {
		if (s->conf)
			continue;
		vip_resync(a, &s->vip4, NULL); /* where it fails they wait for one */
		vip_resync(a, &s->vip6, NULL);
	}
}

int needs_hold(struct agent *a)
{
	bool want = false;
	int r;

	route_pools(a);
	for (struct app *app = a->apps; app && !want; app = app->next)
		want = app->spec.wait_ms != 0;
	lead_waiting(a, want);
	want |= anybody_waits(&a->config) || anybody_waits(a->shared_config);
	for (size_t i = 0; i < a->config.n_apps && !want; i++)
		want = a->config.apps[i].on_connect;
	if (want == a->needs->holding)
		return 0;
	r = datapath_hold(a->dp, want);
	if (!r)
		a->needs->holding = want;
	return r;
}

bool needs_way_out(const struct app *app)
{
	return app->leaves || app->spec.egress.mode == EGRESS_ALL || app->spec.egress.to.n;
}

static size_t add_egress(const struct app *list, struct egress_addr *ret, size_t n)
{
	for (const struct app *app = list; app; app = app->next) {
		/* host-mode apps too: a socket that was bound before it connects has the virtual IP
		 */
		if (!needs_way_out(app) || (app->spec.net == NET_PRIVATE && !app->ifindex))
			continue;
		if (!addr_is_zero(&app->vip4))
			ret[n++] = (struct egress_addr){app->vip4, app->source.v4};
		if (!addr_is_zero(&app->vip6))
			ret[n++] = (struct egress_addr){app->vip6, app->source.v6};
	}
	return n;
}

static int watch_tables(struct agent *a)
{
	struct loop_item *item = &a->needs->tables;
	autoclose int fd = item->fd < 0 ? nft_watch_open() : -1;
	int r;

	if (item->fd >= 0)
		return 0;
	if (fd < 0)
		return fd;
	item->fd = fd;
	r = loop_add(a->epoll, item, EPOLLIN);
	if (r)
		item->fd = -1;
	else
		take_fd(&fd);
	return r;
}

int needs_egress(struct agent *a, struct error *e)
{
	autofree struct egress_addr *list = NULL;
	size_t n = a->n_apps;
	int watched, r;

	for (const struct app *app = a->lingering; app; app = app->next)
		n++;
	list = calloc(2 * n + 1, sizeof(*list));
	if (!list)
		return error_set(e, -ENOMEM, "out of memory");
	n = add_egress(a->apps, list, 0);
	n = add_egress(a->lingering, list, n);
	if (!n && !a->n_nodes && !a->needs->had_egress)
		return 0;
	a->needs->had_egress = n || a->n_nodes;
	if (!a->needs->had_egress)
		unwatch_tables(a);
	/* before the tables are there, so that nothing is missed; a kernel that has none says so */
	watched = a->needs->had_egress ? watch_tables(a) : 0;
	r = egress_set(a->inst, list, n, a->nodes, a->n_nodes, &a->needs->made, e);
	/* what the kernel forwards for apps alone, lists are not to forward for everybody */
	if (!r && a->needs->made.guard)
		datapath_xdp_ways_shut(a->inst);
	return r || !watched
		       ? r
		       : error_set(e, watched, "cannot watch nf_tables: %s", strerror(-watched));
}

#define AGAIN_S 1

static void try_again(struct agent *a)
{
	const struct itimerspec when = {.it_value.tv_sec = AGAIN_S};
	struct loop_item *item = &a->needs->again;

	if (item->fd < 0) {
		item->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		if (item->fd >= 0 && loop_add(a->epoll, item, EPOLLIN))
			close_fd(&item->fd);
	}
	if (item->fd >= 0)
		timerfd_settime(item->fd, 0, &when, NULL);
}

void needs_on_tables(struct agent *a)
{
	struct needs *n = a->needs;
	bool flushed = n->tables.fd >= 0 && egress_was_flushed(a->inst, n->tables.fd, &n->made);
	struct error e = {0};
	uint64_t times;
	bool again = n->again.fd >= 0 && read(n->again.fd, &times, sizeof(times)) > 0;

	if (!flushed && !again)
		return;
	if (needs_egress(a, &e)) {
		if (!again)
			log_error("nf_tables was flushed by somebody, and the apps' egress with "
				  "it, which is tried each second to put back: %s",
				  e.text);
		try_again(a);
	} else {
		log_warn("nf_tables was flushed by somebody: what the apps' egress needs there is "
			 "back");
	}
}

int needs_way(struct agent *a, const struct app *app, struct error *e)
{
	struct error why = {0};
	int r = needs_way_out(app) ? needs_egress(a, &why) : 0;

	if (!r)
		return 0;
	if (app->spec.egress.mode == EGRESS_ALL || app->spec.egress.to.n)
		return error_set(e, r, "%s", why.text);
	log_warn("%s: %s", app->spec.name, why.text);
	return 0;
}
