/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which services there are, and which apps serve one. */
#include "registry/service_table.h"
#include "base/labels.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "registry/app_table.h"
#include "registry/names.h"
#include "registry/state.h"

struct service *service_by_name(struct agent *a, const char *name)
{
	struct name *n = name_find(a, name);

	return n ? n->service : NULL;
}

bool service_chooses(const struct service *s, const struct service_backend *b,
		     const struct app *app)
{
	if (!b)
		return app->service == s;
	if (b->app)
		return streq(b->app, app->spec.name);
	return b->labels.n && labels_subset(&b->labels, &app->spec.labels);
}

bool service_affected(const struct service *s, const struct app *app)
{
	if (!s->conf)
		return app->service == s;
	for (size_t i = 0; i < s->conf->n_backends; i++)
		if (service_chooses(s, &s->conf->backends[i], app))
			return true;
	return false;
}

bool service_affects(struct agent *a, const struct app *app)
{
	for (const struct service *s = a->services; s; s = s->next)
		if (service_affected(s, app))
			return true;
	return false;
}

static bool any_private(const struct service *s, const struct app *list)
{
	for (const struct app *app = list; app; app = app->next) {
		if (app->spec.net != NET_PRIVATE || !app->ifindex || app->state == APP_STOPPING)
			continue;
		if (service_affected(s, app))
			return true;
	}
	return false;
}

/* One that lingers counts: what it still sends goes out by the same way. */
bool service_has_private(const struct agent *a, const struct service *s)
{
	return any_private(s, a->apps) || any_private(s, a->lingering);
}

static bool any_host(const struct service *s, const struct app *list)
{
	for (const struct app *app = list; app; app = app->next)
		if (app->spec.net == NET_HOST && service_affected(s, app))
			return true;
	return false;
}

static bool was_mixed(struct agent *a, const struct ax_addr *addr)
{
	struct ax_vip was;

	return !addr_is_zero(addr) && !datapath_vip_get(a->dp, addr, &was) &&
	       was.kind == AX_VIP_SERVICE && was.flags & AX_VIP_MIXED;
}

/*
 * Connections to a backend in host mode have the service's address at their end, which must be this
 * host's as long as any goes on: also when private ones come, and when those in host mode are taken
 * out of the service. So it stays this host's until there is nobody left at all; private ones are
 * found there as well, by a longer way (xdp/service_mixed.bpf.h).
 */
void service_way(struct agent *a, struct service *s)
{
	bool host = any_host(s, a->apps) || any_host(s, a->lingering);

	if (!s->way_known)
		s->by_host = was_mixed(a, &s->vip4) || was_mixed(a, &s->vip6);
	s->way_known = true;
	if (host || !service_has_private(a, s))
		s->by_host = host;
}
