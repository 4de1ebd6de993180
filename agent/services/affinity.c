/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "services/affinity.h"
#include "base/log.h"
#include "base/work.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "registry/app_table.h"
#include "registry/service_table.h"
#include "registry/state.h"

/* What is over is no longer obeyed at once: this is about memory, and room for others. */
#define LOOK_NS 60000000000ull

static void look_later(struct agent *a)
{
	if (a->affinity_at_ns)
		return;
	a->affinity_at_ns = time_mono_ns() + LOOK_NS;
	a->timers_stale = true;
}

void affinity_sync(struct agent *a, const struct service *s)
{
	if (s->conf && s->conf->affinity != AFFINITY_NONE)
		look_later(a);
}

/* A sweep takes 100 ms where there are 100,000 clients: a thread's work. */
struct sweep {
	struct agent *a;
	uint32_t *apps; /* that run, in order */
	size_t n;
	int left;
};

static int compare(const void *x, const void *y)
{
	const uint32_t *a = x, *b = y;

	return (*a > *b) - (*a < *b);
}

static bool app_runs(void *arg, uint32_t id)
{
	const struct sweep *s = arg;

	return bsearch(&id, s->apps, s->n, sizeof(*s->apps), compare) != NULL;
}

/* (What apps have that came since is newer than the sweep, which leaves it alone.) */
static void sweep_there(void *arg)
{
	struct sweep *s = arg;

	s->left = datapath_affinity_sweep(s->a->dp, app_runs, s);
}

static void sweep(void *arg)
{
	struct agent *a = arg;
	struct sweep s = {.a = a, .apps = calloc(a->n_apps + 1, sizeof(*s.apps))};
	bool any = false;

	for (const struct app *app = a->apps; s.apps && app; app = app->next)
		s.apps[s.n++] = app->id; /* (the list is in that order) */
	s.left = -ENOMEM;
	if (s.apps)
		work_offload(a->work, sweep_there, &s);
	free(s.apps);
	if (s.left < 0)
		log_warn("clients of services are not forgotten in time: %s", strerror(-s.left));
	for (const struct service *x = a->services; x && !any; x = x->next)
		any = x->conf && x->conf->affinity != AFFINITY_NONE;
	if (any || s.left)
		look_later(a);
}

void affinity_due(struct agent *a, uint64_t now_ns)
{
	if (!a->affinity_at_ns || now_ns < a->affinity_at_ns)
		return;
	a->affinity_at_ns = 0;
	if (!a->work)
		sweep(a);
	else if (work_start(a->work, 0, sweep, a))
		look_later(a);
}

void affinity_tally_free(struct affinity_tally *t)
{
	free(t->n);
}

static uint32_t clients_at(struct agent *a, const struct ax_addr *addr,
			   const struct service_port *p, const struct affinity_tally *t)
{
	const struct ax_endpoint ep = {.addr = *addr, .port_be = htons(p->port), .proto = p->proto};
	int64_t list = addr_is_zero(addr) ? -ENOENT : datapath_service_list(a->dp, &ep);

	return list >= 0 && (size_t)list < t->lists ? t->n[list] : 0;
}

uint32_t affinity_clients(struct agent *a, const struct service *s, struct affinity_tally *t)
{
	static const struct service_port every[] = {{.proto = IPPROTO_TCP}, {.proto = IPPROTO_UDP}};
	size_t n = s->conf && s->conf->n_ports ? s->conf->n_ports : ARRAY_SIZE(every);
	const struct service_port *ports = s->conf && s->conf->n_ports ? s->conf->ports : every;
	uint32_t clients = 0;

	if (!t->n && datapath_affinity_tally(a->dp, &t->n, &t->lists))
		return 0;
	for (size_t i = 0; i < n; i++)
		clients += clients_at(a, &s->vip4, &ports[i], t) +
			   clients_at(a, &s->vip6, &ports[i], t);
	return clients;
}
