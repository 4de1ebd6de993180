/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "services/near.h"
#include "base/log.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "registry/others.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "registry/vips.h"
#include "services/services.h"

/* Apps can listen and close as often as they like: one part of a look, and for how much longer
 * others have the loop then. */
#define SLICE_NS   2000000ull
#define REST_TIMES 4

/* As far as that is known: of an address that is not ax's nothing is. */
static bool listens(struct agent *a, const struct service_member *m, uint16_t target, uint8_t proto)
{
	const struct ax_endpoint ep = {
		.addr = m->addr, .port_be = htons(m->port ? m->port : target), .proto = proto};
	const struct vip *v;

	if (m->other)
		return other_listens(m->other, addr_is_v4(&m->addr), target, proto);
	v = m->app ? NULL : vip_find(a, &m->addr);
	if (!ep.port_be || (!m->app && !(v && (v->app || v->declared))))
		return true;
	return datapath_is_served(a->dp, &ep);
}

static bool any_away(const struct service_member *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (m[i].away)
			return true;
	return false;
}

unsigned near_reach(struct agent *a, const struct service_member *m, size_t n,
		    const struct ax_endpoint *ep, uint16_t target)
{
	unsigned reach = NEAR_CLUSTER;

	if (!any_away(m, n))
		return reach; /* nobody asks */
	for (size_t i = 0; i < n; i++) {
		/* (who does not run yet is near only to those who wait) */
		if (m[i].away >= reach || m[i].declared || !member_serves(&m[i]) ||
		    addr_is_v4(&m[i].addr) != addr_is_v4(&ep->addr))
			continue;
		if (listens(a, &m[i], target, ep->proto))
			reach = m[i].away;
	}
	return reach;
}

struct port {
	uint16_t target;
	uint8_t proto;
};

/* One of those that the service has; at the end of them all, false. */
static bool port_at(const struct service *s, size_t i, struct port *ret)
{
	if (s->conf && s->conf->n_ports) {
		if (i < s->conf->n_ports)
			*ret = (struct port){s->conf->ports[i].target, s->conf->ports[i].proto};
		return i < s->conf->n_ports;
	}
	if (!s->n_ports) {
		*ret = (struct port){.proto = IPPROTO_TCP};
		return i == 0;
	}
	if (i < s->n_ports)
		*ret = (struct port){s->ports[i].port, s->ports[i].proto};
	return i < s->n_ports;
}

/* How far connections to each of its ports go, in each family, as one number; *most: to the one
 * where they go furthest. */
static uint64_t state_of(struct agent *a, const struct service *s, const struct service_member *m,
			 size_t n, unsigned most[2])
{
	static const struct ax_addr v6;
	uint64_t state = 1;
	struct port p = {0};

	most[0] = most[1] = 0;
	for (size_t i = 0; port_at(s, i, &p); i++) {
		for (int v4 = 0; v4 < 2; v4++) {
			const struct ax_endpoint ep = {.addr = v4 ? addr_from_v4(0) : v6,
						       .proto = p.proto};
			unsigned reach = near_reach(a, m, n, &ep, p.target);

			most[v4] = reach > most[v4] ? reach : most[v4];
			state = state * 31 + 1 + reach; /* (the ports may be others, too) */
		}
	}
	return state;
}

static unsigned away(const struct agent *a, const struct service_member *m)
{
	if (m->other && m->other->cluster)
		return NEAR_CLUSTER;
	if (a->config.zone && m->zone && !streq(m->zone, a->config.zone))
		return NEAR_AWAY;
	return m->other && a->config.cluster.prefer_local ? NEAR_AWAY : 0;
}

void near_mark(struct agent *a, const struct service *s, struct service_member *m, size_t n)
{
	unsigned most[2], least = NEAR_CLUSTER;

	for (size_t i = 0; i < n; i++) {
		m[i].far = false;
		m[i].away = away(a, &m[i]);
		least = m[i].away < least ? m[i].away : least;
	}
	for (size_t i = 0; i < n; i++) /* where nobody is nearer they are near */
		m[i].away -= least;
	if (!any_away(m, n))
		return;
	state_of(a, s, m, n, most);
	for (size_t i = 0; i < n; i++)
		m[i].far = m[i].away > most[addr_is_v4(&m[i].addr)];
}

/* --- changes --- */

void near_watch(struct agent *a, struct service *s, const struct service_member *m, size_t n)
{
	unsigned most[2];

	near_forget(a, s);
	if (!any_away(m, n))
		return;
	s->near_watched = true;
	if (!a->near.services++) /* before it is looked: what comes then is told */
		datapath_servers_watch(a->dp, true);
	s->near_state = state_of(a, s, m, n, most);
}

void near_forget(struct agent *a, struct service *s)
{
	a->near.services -= s->near_watched;
	s->near_watched = false;
}

static void look(struct agent *a, struct service *s)
{
	autofree struct service_member *m = NULL;
	struct error e = {0};
	unsigned most[2];
	size_t n;

	if (service_members(a, s, &m, &n) || state_of(a, s, m, n, most) == s->near_state)
		return;
	if (service_sync(a, s, &e))
		log_error("%s", e.text);
}

void near_due(struct agent *a, uint64_t now_ns)
{
	struct near *near = &a->near;
	bool left = false;
	uint64_t end;

	if (!near->at_ns || near->at_ns > now_ns)
		return;
	near->at_ns = 0;
	datapath_servers_watch(a->dp, true); /* from here on it is told of what comes next */
	for (struct service *s = a->services; s && !left; s = s->next) {
		if (!s->near_watched || s->near_round == near->round)
			continue;
		left = time_mono_ns() - now_ns > SLICE_NS;
		if (left)
			break;
		s->near_round = near->round;
		look(a, s);
	}
	end = time_mono_ns();
	near->rest_ns = end + (end - now_ns) * REST_TIMES;
	if (!left) {
		near->looking = near->again;
		near->round += near->again;
		near->again = false;
	}
	if (near->looking)
		near->at_ns = near->rest_ns;
	a->timers_stale = true;
}

/* (one that is under way comes to its end first: else nobody would get to the last services) */
void near_listeners_changed(struct agent *a)
{
	struct near *near = &a->near;
	uint64_t now = time_mono_ns();

	if (!near->services)
		return;
	near->again = near->looking;
	near->round += !near->looking;
	near->looking = true;
	near->at_ns = now > near->rest_ns ? now : near->rest_ns;
	a->timers_stale = true;
	near_due(a, now);
}
