/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Apps that have ended and whose network stays for a while. */
#include "apps/linger.h"
#include "allot/pool.h"
#include "apps/anchors.h"
#include "apps/devices.h"
#include "apps/needs.h"
#include "base/address.h"
#include "config/config.h"
#include "ingress/ingress.h"
#include "datapath/datapath.h"
#include "net/netlink.h"
#include "net/sock_diag.h"
#include "registry/app_table.h"
#include "registry/parties.h"
#include "registry/state.h"
#include "registry/vips.h"
#include "services/services.h"

/* The pool has an address back when nobody is left who goes by it. */
static void unclaim(struct agent *a, struct app *app, const struct ax_addr *addr)
{
	struct vip *v = addr_is_zero(addr) ? NULL : vip_find(a, addr);

	if (addr_is_zero(addr) || (v && v->app && v->app != app))
		return;
	if (!v || (!v->service && !v->declared))
		pool_mark(addr_is_v4(addr) ? &a->pool4 : &a->pool6, addr, false);
	if (!v)
		return;
	v->app = NULL;
	vip_sync(a, v, NULL);
}

void app_release(struct agent *a, struct app *app)
{
	struct app **p = &a->lingering;

	while (*p && *p != app)
		p = &(*p)->next;
	if (*p)
		*p = app->next;
	services_route(a, app, NULL);
	ingress_app_gone(a, app);
	anchor_release(a, app);
	unclaim(a, app, &app->vip4);
	unclaim(a, app, &app->vip6);
	close_fd(&app->netns_fd);
	if (app->ifindex)
		device_doom(a, app->ifindex);
	if (app->spec.net == NET_PRIVATE)
		datapath_across_app_end(a->dp, app->id);
	datapath_servers_drop(a->dp, app->id, app->spec.net == NET_HOST);
	if (app->netns_cookie)
		datapath_netns_del(a->dp, app->netns_cookie);
	if (needs_way_out(app))
		needs_egress(a, NULL);
	party_unref(a, &app->party);
	app_free(app);
	a->address_freed = true;
}

void app_release_addr(struct agent *a, const struct ax_addr *addr)
{
	struct vip *v = addr_is_zero(addr) ? NULL : vip_find(a, addr);

	if (v && v->app && v->app->state == APP_ENDED)
		app_release(a, v->app);
}

#define LINGER_S	60
#define LINGER_CHECK_MS 50

/* TCP goes on sending after close() and exit(), for which it needs the address and the way. */
static bool is_sending(const struct app *app)
{
	return socks_sending(app->netns_fd, &app->vip4) > 0 ||
	       socks_sending(app->netns_fd, &app->vip6) > 0;
}

void linger_due(struct agent *a, uint64_t now_ns)
{
	struct app *next;

	for (struct app *app = a->lingering; app; app = next) {
		next = app->next;
		if (app->linger_check_ns > now_ns)
			continue;
		if (now_ns >= app->linger_until_ns || !is_sending(app))
			app_release(a, app);
		else
			app->linger_check_ns = now_ns + LINGER_CHECK_MS * 1000000ull;
	}
}

void app_linger(struct agent *a, struct app *app)
{
	uint64_t now = time_mono_ns();

	app->linger_until_ns = now + LINGER_S * 1000000000ull;
	app->linger_check_ns = now + LINGER_CHECK_MS * 1000000ull;
	app->next = a->lingering;
	a->lingering = app;
	a->timers_stale = true;
}

static bool is_shared(struct agent *a, const struct app *app)
{
	struct vip *v4 = vip_find(a, &app->vip4), *v6 = vip_find(a, &app->vip6);

	return (v4 && v4->service) || (v6 && v6->service);
}

bool app_has_to_linger(struct agent *a, const struct app *app)
{
	if (app->pid <= 0 || (app->spec.net == NET_PRIVATE && app->netns_fd < 0))
		return false;
	/* an address that others serve as well is theirs at once */
	return !is_shared(a, app) && is_sending(app);
}

uint64_t linger_deadline(const struct agent *a)
{
	uint64_t next = 0;

	for (const struct app *app = a->lingering; app; app = app->next)
		if (!next || app->linger_check_ns < next)
			next = app->linger_check_ns;
	return next;
}
