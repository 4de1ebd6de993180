/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "services/ramp.h"
#include "base/address.h"
#include "base/log.h"
#include "config/config.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "services/services.h"

#define STEPS	  10
#define NS_PER_MS 1000000ull

struct ramp {
	struct ax_addr addr;
	uint16_t port;
	uint64_t since_ns; /* CLOCK_MONOTONIC, 0: always */
};

struct ramps {
	uint64_t length_ns, now_ns; /* now_ns: what shares are reckoned by */
	uint64_t next_ns;	    /* the next step of any, 0: none */
	size_t n;
	struct ramp v[]; /* those that serve, in order */
};

static int by_endpoint(const void *x, const void *y)
{
	const struct ramp *a = x, *b = y;
	int r = memcmp(&a->addr, &b->addr, sizeof(a->addr));

	return r ? r : (a->port > b->port) - (a->port < b->port);
}

static const struct ramp *find(const struct ramps *r, const struct service_member *m)
{
	const struct ramp key = {.addr = m->addr, .port = m->port};

	return r ? bsearch(&key, r->v, r->n, sizeof(r->v[0]), by_endpoint) : NULL;
}

/* 1 to STEPS. */
static unsigned step_of(const struct ramps *r, const struct ramp *one)
{
	uint64_t age = r->now_ns - one->since_ns;

	if (!one->since_ns || age >= r->length_ns)
		return STEPS;
	return 1 + (unsigned)(age * STEPS / r->length_ns);
}

static void find_next(struct ramps *r)
{
	r->next_ns = 0;
	for (size_t i = 0; i < r->n; i++) {
		unsigned step = step_of(r, &r->v[i]);
		uint64_t at = r->v[i].since_ns + r->length_ns * step / STEPS + 1;

		if (step < STEPS && (!r->next_ns || at < r->next_ns))
			r->next_ns = at;
	}
}

void ramps_sync(struct agent *a, struct service *s, const struct service_member *m, size_t n)
{
	uint32_t ms = s->conf ? s->conf->slow_start_ms : 0;
	struct ramps *old = s->ramps, *new;

	new = ms ? calloc(1, sizeof(*new) + n * sizeof(new->v[0])) : NULL;
	if (!new) { /* without memory all have their full share */
		ramps_forget(s);
		return;
	}
	new->length_ns = ms *NS_PER_MS;
	new->now_ns = time_mono_ns();
	for (size_t i = 0; i < n; i++) {
		const struct ramp *was = find(old, &m[i]);

		if (!member_serves(&m[i]) || m[i].declared)
			continue;
		new->v[new->n++] = (struct ramp){.addr = m[i].addr,
						 .port = m[i].port,
						 .since_ns = was	     ? was->since_ns
							     : old && old->n ? new->now_ns
									     : 0};
	}
	qsort(new->v, new->n, sizeof(new->v[0]), by_endpoint);
	find_next(new);
	s->ramps = new;
	free(old);
	if (new->next_ns && (!a->ramps_at_ns || new->next_ns < a->ramps_at_ns)) {
		a->ramps_at_ns = new->next_ns;
		a->timers_stale = true;
	}
}

static unsigned step_now(const struct service *s, const struct service_member *m)
{
	const struct ramp *r = find(s->ramps, m);

	return r ? step_of(s->ramps, r) : STEPS;
}

uint32_t ramps_share(const struct service *s, const struct service_member *m)
{
	/* as long as nobody grows, weights are what the config says */
	return s->ramps && s->ramps->next_ns ? m->weight * step_now(s, m) : m->weight;
}

unsigned ramps_percent(const struct service *s, const struct service_member *m)
{
	return 100 * step_now(s, m) / STEPS;
}

void ramps_forget(struct service *s)
{
	free(s->ramps);
	s->ramps = NULL;
}

void ramps_due(struct agent *a, uint64_t now_ns)
{
	if (!a->ramps_at_ns || now_ns < a->ramps_at_ns)
		return;
	a->ramps_at_ns = 0;
	for (struct service *s = a->services; s; s = s->next) {
		struct error e = {0};

		if (!s->ramps || !s->ramps->next_ns)
			continue;
		if (s->ramps->next_ns <= now_ns) {
			if (service_sync(a, s, &e)) /* which finds the next step */
				log_error("%s", e.text);
		} else if (!a->ramps_at_ns || s->ramps->next_ns < a->ramps_at_ns) {
			a->ramps_at_ns = s->ramps->next_ns;
		}
	}
}
