/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "services/passive.h"
#include "base/log.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "health/health.h"
#include "registry/service_table.h"
#include "registry/state.h"

#define LOOK_NS 50000000ull /* an app that makes connections fail without end costs no more */

static bool first_tcp(const struct config_service *c, uint16_t *ret)
{
	for (size_t i = 0; i < c->n_ports; i++) {
		if (c->ports[i].proto != IPPROTO_TCP)
			continue;
		*ret = c->ports[i].target;
		return true;
	}
	return false;
}

void passive_sync(struct agent *a, const struct service *s, const struct service_member *m,
		  size_t n)
{
	uint16_t port = 0;
	int r = 0;

	if (!s->conf || !s->conf->check.passive)
		return;
	first_tcp(s->conf, &port);
	for (size_t i = 0; i < n && !r; i++) {
		const struct ax_endpoint ep = {.addr = m[i].addr,
					       .port_be = htons(m[i].port ? m[i].port : port),
					       .proto = IPPROTO_TCP};

		if (ep.port_be && !m[i].draining && !m[i].declared)
			r = datapath_failing_add(a->dp, &ep);
	}
	if (r)
		log_warn("failed connections to some backends of service %s are not counted: %s",
			 s->name, strerror(-r));
}

void passive_failing(struct agent *a)
{
	if (a->failing_at_ns)
		return;
	a->failing_at_ns = time_mono_ns() + LOOK_NS;
	a->timers_stale = true;
}

static bool take(void *arg, const struct ax_endpoint *backend, const struct ax_failing *counted)
{
	struct agent *a = arg;
	uint16_t port = ntohs(backend->port_be);

	if (counted->count)
		health_failed(a->health, &backend->addr, port, counted->count, (int)counted->error);
	return health_is_watched(a->health, &backend->addr, port);
}

void passive_due(struct agent *a, uint64_t now_ns)
{
	if (!a->failing_at_ns || now_ns < a->failing_at_ns)
		return;
	a->failing_at_ns = 0;
	datapath_failing_each(a->dp, take, a);
}
