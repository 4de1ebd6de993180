/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clients of services that keep their backend (map `affinity`). */
#include <bpf/bpf.h>

#include "datapath/priv.h"

static int services_each(struct datapath *dp,
			 int (*f)(void *arg, const void *key, const void *value), void *arg)
{
	return map_walk(dp, MAP_SERVICES, sizeof(struct ax_endpoint), sizeof(struct ax_service), f,
			arg);
}

static int affinity_each(struct datapath *dp,
			 int (*f)(void *arg, const void *key, const void *value), void *arg)
{
	return map_walk(dp, MAP_AFFINITY, sizeof(struct ax_affinity_key),
			sizeof(struct ax_affinity), f, arg);
}

struct sweep {
	struct datapath *dp;
	bool (*app)(void *arg, uint32_t id);
	void *arg;
	uint64_t now_ns;
	bool full;	   /* of apps' entries */
	uint32_t *kept_ms; /* by list; 0: it has no affinity, or is gone */
	uint32_t lists;
	uint32_t left[3]; /* by kind */
};

static int note_list(void *arg, const void *key, const void *value)
{
	const struct ax_service *v = value;
	struct sweep *s = arg;

	(void)key;
	if (v->id < s->lists && v->flags & AX_SERVICE_AFFINITY)
		s->kept_ms[v->id] = v->affinity_ms;
	return 0;
}

/* (Programs count up meanwhile: by an atomic operation of theirs on the same number. What comes
 * between the two calls here is one that is not counted, of thousands.) */
static void uncount(struct datapath *dp, uint64_t owner)
{
	uint32_t n;

	if (map_get(dp, MAP_AFFINITY_COUNTS, &owner, &n) || !n)
		return;
	n--;
	if (!n) /* it may be gone for good */
		map_del(dp, MAP_AFFINITY_COUNTS, &owner);
	else
		map_set(dp, MAP_AFFINITY_COUNTS, &owner, &n);
}

static bool is_over(const struct sweep *s, const struct ax_affinity_key *k,
		    const struct ax_affinity *v)
{
	uint64_t ns = k->list < s->lists ? s->kept_ms[k->list] * 1000000ull : 0;

	if (v->seen_ns >= s->now_ns) /* lists and apps come meanwhile */
		return false;
	if (!ns || (s->now_ns > v->seen_ns && s->now_ns - v->seen_ns > ns))
		return true;
	return s->full && v->app && !s->app(s->arg, v->app);
}

static int sweep_one(void *arg, const void *key, const void *value)
{
	const struct ax_affinity_key *k = key;
	const struct ax_affinity *v = value;
	struct sweep *s = arg;
	uint64_t kind = v->app ? AX_AFFINITY_APP : AX_AFFINITY_SRC;

	if (!is_over(s, k, v)) {
		s->left[kind]++;
		return 0;
	}
	uncount(s->dp, v->app ? AX_AFFINITY_OWNER(kind, (uint64_t)v->app)
			      : AX_AFFINITY_OWNER_LIST(k->list));
	return 1;
}

int datapath_affinity_sweep(struct datapath *dp, bool (*app)(void *arg, uint32_t id), void *arg)
{
	struct sweep s = {
		.dp = dp, .app = app, .arg = arg, .now_ns = time_mono_ns(), .lists = dp->next_list};
	autofree uint32_t *kept_ms = calloc((size_t)s.lists + 1, sizeof(*kept_ms));
	uint64_t apps = AX_AFFINITY_OWNER(AX_AFFINITY_APP, 0ull);
	uint32_t n = 0;
	int r;

	if (!kept_ms)
		return -ENOMEM;
	s.kept_ms = kept_ms;
	if (map_get(dp, MAP_AFFINITY_COUNTS, &apps, &n) == 0)
		s.full = n > AX_AFFINITY_HALF / 4;
	r = services_each(dp, note_list, &s);
	r = r ? r : affinity_each(dp, sweep_one, &s);
	for (uint64_t kind = AX_AFFINITY_APP; !r && kind <= AX_AFFINITY_SRC; kind++) {
		uint64_t all = AX_AFFINITY_OWNER(kind, 0ull);

		r = map_set(dp, MAP_AFFINITY_COUNTS, &all, &s.left[kind]);
	}
	return r ? r : (int)(s.left[AX_AFFINITY_APP] + s.left[AX_AFFINITY_SRC]);
}

struct tally {
	uint32_t *n;
	uint32_t lists;
};

static int tally_one(void *arg, const void *key, const void *value)
{
	const struct ax_affinity_key *k = key;
	struct tally *t = arg;

	(void)value;
	if (k->list < t->lists)
		t->n[k->list]++;
	return 0;
}

int datapath_affinity_tally(struct datapath *dp, uint32_t **ret, size_t *n)
{
	struct tally t = {.lists = dp->next_list};
	int r;

	t.n = calloc((size_t)t.lists + 1, sizeof(*t.n));
	if (!t.n)
		return -ENOMEM;
	r = affinity_each(dp, tally_one, &t);
	if (r) {
		free(t.n);
		return r;
	}
	*ret = t.n;
	*n = t.lists;
	return 0;
}
