/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "services/across.h"
#include "base/log.h"
#include "config/config.h"
#include "registry/app_table.h"
#include "registry/names.h"
#include "registry/others.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "services/services.h"

/* One part, and for how much longer others have the loop then. */
#define SLICE_NS   2000000ull
#define REST_TIMES 4

/* Of one service: a list in the kernel for each, which other nodes' words alone make. */
#define PORTS_MAX 64

/* Of names that apps of other clusters have. */
#define FOREIGN_SERVICES_MAX 256

size_t across_members(struct agent *a, const struct service *s)
{
	const struct name *n = name_find(a, s->name);

	return n && n->service == s ? n->n_others : 0;
}

bool across_serves(const struct service_member *m, uint16_t port, uint8_t proto, bool local)
{
	if (!m->other)
		return true;
	return port ? other_listens(m->other, addr_is_v4(&m->addr), port, proto) : !local;
}

/* --- ports --- */

static int port_cmp(const void *x, const void *y)
{
	const struct other_port *a = x, *b = y;

	if (a->port != b->port)
		return a->port < b->port ? -1 : 1;
	return (int)a->proto - (int)b->proto;
}

static const struct other_port *find(const struct other_port *p, size_t n,
				     const struct other_port *one)
{
	return n ? bsearch(one, p, n, sizeof(*p), port_cmp) : NULL;
}

/* In order, each once. */
static struct other_port *ports_of(const struct service_member *m, size_t n, size_t *ret)
{
	struct other_port *all;
	size_t room = 0, k = 0, used = 0;

	for (size_t i = 0; i < n; i++)
		room += m[i].other ? m[i].other->n_ports : 0;
	all = calloc(room + 1, sizeof(*all));
	for (size_t i = 0; all && i < n; i++)
		for (size_t p = 0; m[i].other && p < m[i].other->n_ports; p++)
			all[k++] = m[i].other->ports[p];
	if (!all)
		return NULL;
	qsort(all, k, sizeof(*all), port_cmp);
	for (size_t i = 0; i < k && used < PORTS_MAX; i++)
		if (!used || port_cmp(&all[used - 1], &all[i]))
			all[used++] = all[i];
	*ret = used;
	return all;
}

int across_ports(struct service *s, const struct service_member *m, size_t n,
		 struct other_port **gone, size_t *n_gone)
{
	struct other_port *old = s->ports, *now;
	size_t n_old = s->n_ports, n_now = 0;

	*gone = NULL;
	*n_gone = 0;
	if (s->conf && s->conf->n_ports)
		n = 0; /* it has its own */
	now = ports_of(m, n, &n_now);
	if (!now)
		return -ENOMEM;
	s->ports = now;
	s->n_ports = n_now;
	for (size_t i = 0; i < n_old; i++)
		if (!find(now, n_now, &old[i]))
			old[(*n_gone)++] = old[i];
	*gone = old;
	return 0;
}

int across_port_stays(struct service *s, const struct other_port *p)
{
	struct other_port *more = reallocarray(s->ports, s->n_ports + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	s->ports = more;
	more[s->n_ports++] = *p;
	return 0;
}

/* --- names that are stale --- */

static bool names_as_backend(const struct service *s, const char *name)
{
	for (size_t i = 0; s->conf && i < s->conf->n_backends; i++)
		if (s->conf->backends[i].app && streq(s->conf->backends[i].app, name))
			return true;
	return false;
}

static void failed(const char *name, const struct error *e)
{
	log_error("apps of other nodes are no backends of %s: %s", name, e->text);
}

/* Each takes an address of this cluster's pool: another cluster has so many. What is none leads to
 * one of its apps. */
static bool may_be_one(const struct agent *a, const struct name *n)
{
	unsigned services = 0;

	if (!n->others->cluster)
		return true;
	for (const struct service *s = a->services; s; s = s->next)
		services += !s->conf && strchr(s->name, '.');
	return services < FOREIGN_SERVICES_MAX;
}

/* The service that those of the name are together, if there is to be one. True: it wanted an
 * address. */
static bool settle(struct agent *a, const struct name *n)
{
	struct service *s = n->service ? n->service : n->app ? n->app->service : NULL;
	bool made = !s && !n->app && n->n_others > 1 && may_be_one(a, n);
	struct error e = {0};
	int r = 0;

	if (s && !s->conf)
		r = service_settle(a, s, &e);
	else if (!s && n->app && n->others)
		r = service_of_app(a, n->app, &s, &e);
	else if (made)
		r = service_of_others(a, n->text, &e);
	if (r && !(made && a->others_refused)) /* (of many without an address one is told) */
		failed(n->text, &e);
	a->others_refused |= made && r; /* see across_again() */
	return made;
}

static bool sync_name(struct agent *a, struct name *n)
{
	struct error e = {0};
	bool made = settle(a, n);

	for (struct service *s = a->services; s; s = s->next)
		if (names_as_backend(s, n->text) && service_sync(a, s, &e))
			failed(s->name, &e);
	others_settled(a, n);
	return made;
}

void across_again(struct agent *a)
{
	if (!a->others_refused)
		return;
	a->others_refused = false;
	others_all_stale(a);
}

bool across_due(struct agent *a, uint64_t now_ns)
{
	uint64_t began = time_mono_ns(), end = began;
	bool was = a->names_changed, made = false;
	struct name *n;

	if (!a->others_at_ns || a->others_at_ns > now_ns)
		return false;
	a->others_at_ns = 0;
	while (end - began < SLICE_NS && (n = others_next_stale(a))) {
		made |= sync_name(a, n);
		end = time_mono_ns();
	}
	a->names_changed = was; /* nothing that is this node's is new */
	a->others_rest_ns = end + (end - began) * REST_TIMES;
	if (a->stale_names) {
		a->others_at_ns = a->others_rest_ns;
		a->timers_stale = true;
	}
	return made;
}
