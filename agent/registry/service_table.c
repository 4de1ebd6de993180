/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which services there are, and which apps serve one. */
#include "registry/service_table.h"
#include "base/labels.h"
#include "config/config.h"
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
