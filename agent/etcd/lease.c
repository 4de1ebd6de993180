// SPDX-License-Identifier: GPL-2.0-or-later
#include "etcd/priv.h"

#define TTL_MIN_S 2
#define TTL_MAX_S 86400

struct etcd_lease {
	struct etcd *e;
	struct etcd_lease *next, **link;
	unsigned ttl_s;	 /* as asked for */
	uint64_t ttl_ns; /* as granted */
	int64_t id;
	bool told, late;       /* told: HELD */
	uint64_t confirmed_ns; /* it lives for ttl_ns from then on */
	uint64_t next_ns;
	unsigned failures;
	struct etcd_request *request;
	etcd_lease_fn event;
	void *arg;
	bool *freed; /* while its owner is called */
};

/* False: it is gone. */
static bool tell(struct etcd_lease *l, enum etcd_lease_event event, int64_t id, const char *why)
{
	struct etcd *e = l->e;
	bool freed = false;

	l->freed = &freed;
	l->event(l->arg, event, id, why);
	if (freed)
		return false;
	l->freed = NULL;
	return !e->closed;
}

static void lost(struct etcd_lease *l, const char *why)
{
	int64_t id = l->id;

	l->id = 0;
	l->told = l->late = false;
	l->next_ns = 0;
	etcd_want_tick(l->e, 0);
	tell(l, ETCD_LEASE_LOST, id, why);
}

static void held(struct etcd_lease *l, const struct etcd_request *r, const struct answer *a)
{
	bool news = !l->told || l->late;

	l->id = a->lease;
	l->ttl_ns = (uint64_t)a->ttl_s * NS_PER_S;
	l->confirmed_ns = r->started_ns;
	l->next_ns = r->started_ns + l->ttl_ns / 3;
	l->failures = 0;
	l->told = true;
	l->late = false;
	etcd_want_tick(l->e, l->next_ns);
	if (news)
		tell(l, ETCD_LEASE_HELD, l->id, NULL);
}

static void try_later(struct etcd_lease *l, const char *why)
{
	l->failures++;
	l->next_ns = time_mono_ns() + pause_ns(l->failures);
	etcd_want_tick(l->e, l->next_ns);
	etcd_note(l->e, why);
}

static bool lease_over(struct etcd_request *r, int err, const char *text, size_t len,
		       const char *error)
{
	struct etcd_lease *l = r->arg;
	struct answer a = {0};
	bool keeps = l->id;

	l->request = NULL;
	if (!err)
		err = request_parsed(r, answer_lease(text, len, &a), &a, &error);
	if (!err && a.code) { /* said in a stream that was well so far */
		endpoint_failed(l->e, r->epoch, a.message);
		try_later(l, a.message);
	} else if (err == -ENOENT || (!err && keeps && !a.ttl_s)) {
		lost(l, "etcd has ended the lease, since it was not kept alive in time");
	} else if (err) {
		try_later(l, error);
	} else if (a.lease <= 0 || a.ttl_s <= 0 || a.ttl_s > INT32_MAX ||
		   (keeps && a.lease != l->id)) {
		try_later(l, "etcd's answer about a lease cannot be understood");
	} else {
		held(l, r, &a);
	}
	answer_free(&a);
	return false;
}

static void ask(struct etcd_lease *l)
{
	struct etcd_request r = {
		.path = l->id ? "/v3/lease/keepalive" : "/v3/lease/grant",
		.urgent = true,
		.over = lease_over,
		.arg = l,
		.attempt_ms = l->ttl_s * 1000 / 3,
	};

	if (r.attempt_ms > l->e->o.attempt_ms)
		r.attempt_ms = l->e->o.attempt_ms;
	r.body = l->id ? body_lease(l->id, &r.len) : body_grant(l->ttl_s, &r.len);
	if (request_start(l->e, &r, &l->request) < 0)
		try_later(l, "out of memory");
}

static uint64_t late_at(const struct etcd_lease *l)
{
	return l->told && !l->late ? l->confirmed_ns + l->ttl_ns : NEVER;
}

uint64_t etcd_leases_tick(struct etcd *e, uint64_t now)
{
	struct etcd_lease *l;
	uint64_t at;

	do { /* anew after each callback */
		at = NEVER;
		for (l = e->leases; l; l = l->next) {
			if (!l->request && l->next_ns <= now)
				ask(l);
			if (late_at(l) <= now)
				break;
			at = late_at(l) < at ? late_at(l) : at;
			at = !l->request && l->next_ns < at ? l->next_ns : at;
		}
		if (l) {
			l->late = true;
			tell(l, ETCD_LEASE_LATE, l->id, e->at.error);
		}
	} while (l && !e->closed);
	return at;
}

int etcd_lease_open(struct etcd *e, unsigned ttl_s, int64_t id, etcd_lease_fn event, void *arg,
		    struct etcd_lease **ret)
{
	struct etcd_lease *l;

	if (ttl_s < TTL_MIN_S || ttl_s > TTL_MAX_S || id < 0)
		return -EINVAL;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->e = e;
	l->ttl_s = ttl_s;
	l->id = id;
	l->event = event;
	l->arg = arg;
	l->next = e->leases;
	l->link = &e->leases;
	if (l->next)
		l->next->link = &l->next;
	e->leases = l;
	etcd_want_tick(e, 0);
	*ret = l;
	return 0;
}

int64_t etcd_lease_id(const struct etcd_lease *l)
{
	return l->told ? l->id : 0;
}

void etcd_lease_free(struct etcd_lease *l)
{
	if (!l)
		return;
	if (l->freed)
		*l->freed = true;
	etcd_cancel(l->request);
	*l->link = l->next;
	if (l->next)
		l->next->link = l->link;
	free(l);
}

int etcd_lease_revoke(struct etcd_lease *l, etcd_done_fn done, void *arg)
{
	struct etcd_request r = {
		.path = "/v3/lease/revoke",
		.urgent = true,
		.over = request_done,
		.done = done,
		.arg = arg,
	};
	struct etcd *e = l->e;
	int64_t id = l->id;

	etcd_lease_free(l);
	if (!id)
		return -ENOENT;
	r.body = body_lease(id, &r.len);
	return request_start(e, &r, NULL);
}

void etcd_leases_close(struct etcd *e)
{
	while (e->leases)
		etcd_lease_free(e->leases);
}
