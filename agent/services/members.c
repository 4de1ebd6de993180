/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The backends that a service has at the moment. */
#include "services/members.h"
#include "base/address.h"
#include "config/config.h"
#include "registry/app_table.h"
#include "registry/declared.h"
#include "registry/names.h"
#include "registry/others.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "registry/vips.h"
#include "services/checks.h"
#include "services/drain.h"
#include "services/near.h"

static int add_member(struct service_member **list, size_t *n, size_t *size,
		      const struct service_member *m)
{
	if (*n == *size) {
		size_t more = *size ? *size * 2 : 8;
		struct service_member *p = realloc(*list, more * sizeof(*p));

		if (!p)
			return -ENOMEM;
		*list = p;
		*size = more;
	}
	(*list)[(*n)++] = *m;
	return 0;
}

/* An app of the config that is not running: a connect that waits may wait for it. */
static int add_declared(struct agent *a, const struct service *s, const struct service_backend *b,
			struct service_member **list, size_t *n, size_t *size)
{
	const struct declared *d = declared_find(a, b->app);
	const struct ax_addr none = {0};
	struct service_member m = {.weight = b->weight,
				   .of = b,
				   .declared = true,
				   .zone = b->zone,
				   .drained = drain_of(a, s, b->app, &none, 0) != NULL};
	int r = 0;

	if (!d)
		return 0;
	m.addr = d->ip4;
	if (!addr_is_zero(&m.addr))
		r = add_member(list, n, size, &m);
	m.addr = d->ip6;
	return r || addr_is_zero(&m.addr) ? r : add_member(list, n, size, &m);
}

/* Whoever connects while it ends waits, and has it started again. */
static bool comes_again(struct agent *a, const struct app *app)
{
	const struct config_app *c = app->config_key ? declared_key(a, app->config_key) : NULL;

	return c && c->on_connect;
}

bool member_stops(struct agent *a, const struct app *app)
{
	return app->state == APP_STOPPING && !comes_again(a, app);
}

const char *member_app_name(const struct service_member *m)
{
	return m->app ? m->app->spec.name : m->other ? m->other->app : NULL;
}

/* What its node has found: nobody else asks it. */
static void mark_other(const struct service *s, struct service_member *m)
{
	const struct other_state *state = other_state_of(m->other, s->name, addr_is_v4(&m->addr));

	m->draining = m->other->stopping;
	m->checked = state && state->checked;
	m->down = m->checked && state->down;
	m->drained = state && state->drained;
	m->why = state && state->why[0] ? state->why : NULL;
	if (!m->checked && s->conf && s->conf->check.type != CHECK_NONE)
		m->why = "not checked: its node has no service of this name with a check";
}

/* Apps of other nodes, by their name. An address that this node has, too, is this node's. */
static int add_others(struct agent *a, const struct service *s, const char *name,
		      const struct service_backend *b, struct service_member **list, size_t *n,
		      size_t *size)
{
	const struct name *of = name_find(a, name);
	int r = 0;

	for (const struct other_app *x = of ? of->others : NULL; x && !r; x = x->next) {
		const struct ax_addr *const both[] = {&x->ip4, &x->ip6};
		struct service_member m = {.other = x,
					   .of = b,
					   .weight = b ? b->weight : 1,
					   .zone = b ? b->zone : NULL};

		for (size_t i = 0; i < ARRAY_SIZE(both) && !r; i++) {
			if (addr_is_zero(both[i]) || vip_is_here(vip_find(a, both[i])))
				continue;
			m.addr = *both[i];
			mark_other(s, &m);
			r = add_member(list, n, size, &m);
		}
	}
	return r;
}

static int add_apps(struct agent *a, const struct service *s, const struct service_backend *b,
		    struct service_member **list, size_t *n, size_t *size)
{
	for (const struct app *app = a->apps; app; app = app->next) {
		struct service_member m = {.app = app,
					   .of = b,
					   .weight = b ? b->weight : 1,
					   .zone = b ? b->zone : NULL,
					   .draining = member_stops(a, app)};
		int r = 0;

		if (!service_chooses(s, b, app))
			continue;
		m.addr = app->vip4;
		if (!addr_is_zero(&m.addr))
			r = add_member(list, n, size, &m);
		m.addr = app->vip6;
		if (!r && !addr_is_zero(&m.addr))
			r = add_member(list, n, size, &m);
		if (r)
			return r;
	}
	if (b && b->app && !app_by_name(a, b->app)) {
		int r = add_declared(a, s, b, list, n, size);

		if (r)
			return r;
	}
	if (!b)
		return service_by_name(a, s->name) == s
			       ? add_others(a, s, s->name, b, list, n, size)
			       : 0;
	return b->app ? add_others(a, s, b->app, b, list, n, size) : 0;
}

static int add_addresses(const struct service_backend *b, struct service_member **list, size_t *n,
			 size_t *size)
{
	struct service_member m = {
		.fixed = b, .of = b, .port = b->port, .weight = b->weight, .zone = b->zone};
	int r = 0;

	for (uint32_t i = 0; i <= b->more && !r; i++) {
		m.addr = service_backend_address(b, i);
		r = add_member(list, n, size, &m);
	}
	return r;
}

int service_members(struct agent *a, const struct service *s, struct service_member **ret,
		    size_t *ret_n)
{
	autofree struct service_member *list = NULL;
	size_t n = 0, size = 0;
	int r = 0;

	if (!s->conf)
		r = add_apps(a, s, NULL, &list, &n, &size);
	for (size_t i = 0; !r && s->conf && i < s->conf->n_backends; i++) {
		const struct service_backend *b = &s->conf->backends[i];

		r = addr_is_zero(&b->address) ? add_apps(a, s, b, &list, &n, &size)
					      : add_addresses(b, &list, &n, &size);
	}
	if (r)
		return r;
	for (size_t i = 0; a->drains && i < n; i++) {
		const struct drain *d =
			drain_of(a, s, member_app_name(&list[i]), &list[i].addr, list[i].port);

		list[i].drained |= d != NULL;
		list[i].over = d && drain_is_over(d);
	}
	checks_mark(s, list, n);
	near_mark(a, s, list, n);
	*ret = take_ptr(&list);
	*ret_n = n;
	return 0;
}
