/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <net/if.h>
#include <sys/timerfd.h>

#include "sections/managed.h"
#include "machine/cgroup.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/strv.h"
#include "iface/iface.h"
#include "registry/state.h"

struct xdp_managed *managed_find(const struct agent *a, const char *name)
{
	struct xdp_managed *m = a->xdp->managed;

	while (m && !streq(m->name, name))
		m = m->next;
	return m;
}

struct xdp_managed *managed_get(struct agent *a, const char *name)
{
	struct xdp_managed *m = managed_find(a, name);

	if (m)
		return m;
	m = calloc(1, sizeof(*m));
	if (m)
		m->name = strdup(name);
	if (!m || !m->name) {
		free(m);
		return NULL;
	}
	m->ring.kind = LOOP_TRIGGERS;
	m->ring.fd = -1;
	m->next = a->xdp->managed;
	a->xdp->managed = m;
	return m;
}

void managed_free(struct agent *a, struct xdp_managed *m)
{
	managed_ring_close(a, m);
	strv_free(&m->services);
	strv_free(&m->targets);
	free(m->name);
	free(m);
}

void managed_save(struct agent *a)
{
	autofree char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int r;

	if (!f)
		return;
	for (const struct xdp_managed *m = a->xdp->managed; m; m = m->next)
		fprintf(f, "%s\n", m->name);
	if (fclose(f))
		return;
	r = cgroup_record_set(a->cgroup, "xdp", text);
	if (r)
		log_warn("cannot note which interfaces have a list: %s", strerror(-r));
}

uint64_t managed_target_state(const struct xdp_managed *m)
{
	uint64_t h = 0;

	for (size_t i = 0; i < m->targets.n; i++)
		h = h * 1000003 + if_nametoindex(m->targets.v[i]);
	return h;
}

uint32_t managed_group(const struct xdp_managed *m)
{
	uint32_t group = 0;

	if (m->groups && xdp_link_group(place_ifindex(m->name), &group))
		return m->group;
	return group;
}

void managed_ring_close(struct agent *a, struct xdp_managed *m)
{
	if (m->ring.fd >= 0)
		loop_del(a->epoll, &m->ring);
	m->ring.fd = -1;
	if (m->x)
		xdp_close(m->x);
	m->x = NULL;
}

int managed_ring_open(struct agent *a, struct xdp_managed *m, struct error *e)
{
	int r;

	managed_ring_close(a, m);
	if (!m->triggers)
		return 0;
	r = xdp_open(a->inst, m->name, &m->x, e);
	if (r)
		return r;
	r = xdp_triggers_fd(m->x);
	if (r >= 0) {
		m->ring.fd = r;
		r = loop_add(a->epoll, &m->ring, EPOLLIN);
	}
	if (!r)
		return 0;
	managed_ring_close(a, m);
	return error_set(e, r, "the triggers of %s cannot be read: %s", m->name, strerror(-r));
}

void managed_arm(struct agent *a)
{
	struct itimerspec ts = {0};
	uint64_t next = 0;

	for (const struct xdp_managed *m = a->xdp->managed; m; m = m->next)
		if (m->due_ns && (!next || m->due_ns < next))
			next = m->due_ns;
	if (a->xdp->timer.fd < 0)
		return;
	ts.it_value.tv_sec = (time_t)(next / 1000000000);
	ts.it_value.tv_nsec = (long)(next % 1000000000);
	timerfd_settime(a->xdp->timer.fd, TFD_TIMER_ABSTIME, &ts, NULL);
}

static void managed_due(struct agent *a, struct xdp_managed *m, uint64_t at_ns, bool whole)
{
	m->whole |= whole;
	if (m->due_ns && m->due_ns <= at_ns)
		return;
	m->due_ns = at_ns;
	managed_arm(a);
}

void managed_due_in(struct agent *a, struct xdp_managed *m, unsigned ms, bool whole)
{
	managed_due(a, m, time_mono_ns() + ms * 1000000ull, whole);
}

#define REBUILD_MS 100 /* at most one new list in that time for an interface */

void managed_due_soon(struct agent *a, struct xdp_managed *m)
{
	uint64_t at = m->built_ns + REBUILD_MS * 1000000ull, now = time_mono_ns();

	managed_due(a, m, at > now ? at : now, false);
}

bool managed_leads_to(const struct xdp_managed *m, const char *link)
{
	for (size_t i = 0; i < m->targets.n; i++)
		if (streq(m->targets.v[i], link))
			return true;
	return false;
}
