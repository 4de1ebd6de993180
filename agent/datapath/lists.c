/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Services' lists of backends, and the rings by which one is chosen. */
#include "base/maglev.h"
#include "datapath/priv.h"

/* A ring for weights has no more slots than the greater of these, unless each backend needs one. */
#define RING_MAX      1024
#define RING_PER_ONE  4
#define RING_SLOTS_TO 131072

static uint32_t gcd(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t t = a % b;

		a = b;
		b = t;
	}
	return a;
}

static uint32_t ring_max(size_t n)
{
	size_t max = n * RING_PER_ONE;

	return max < RING_MAX ? RING_MAX : max > RING_SLOTS_TO ? RING_SLOTS_TO : (uint32_t)max;
}

/* Slots for each backend: weights in lowest terms, scaled down when they would be too many. Every
 * backend has one slot; the rest goes by weight. */
static uint32_t share_slots(const struct datapath_backend *b, size_t n, uint32_t *share)
{
	uint32_t divisor = 0, total = 0, max = ring_max(n);
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		divisor = gcd(b[i].weight, divisor);
	for (size_t i = 0; i < n; i++)
		sum += b[i].weight / (divisor ? divisor : 1);
	for (size_t i = 0; i < n; i++) {
		uint64_t w = b[i].weight / (divisor ? divisor : 1);

		w = w ? w - 1 : 0;
		if (sum > max)
			w = w * (max - n) / (sum - n);
		share[i] = 1 + (uint32_t)w;
		total += share[i];
	}
	return total;
}

/* --- the order of a ring --- */

/*
 * Smooth weighted order: in every turn each backend gains its share and the richest one is taken
 * and pays the total, so that equal picks are spread out (as nginx orders its upstreams, see
 * https://github.com/nginx/nginx commit 52327e0627f4).
 */
static int order_few(const uint32_t *share, size_t n, uint16_t *ring, uint32_t total)
{
	autofree int64_t *credit = calloc(n, sizeof(*credit));

	if (!credit)
		return -ENOMEM;
	for (uint32_t slot = 0; slot < total; slot++) {
		size_t best = 0;

		for (size_t i = 0; i < n; i++) {
			credit[i] += share[i];
			if (credit[i] > credit[best])
				best = i;
		}
		credit[best] -= total;
		ring[slot] = (uint16_t)best;
	}
	return 0;
}

/* One slot of a backend's: the middle of the part of the ring that is due to it. */
struct turn {
	uint64_t at;
	uint16_t backend;
};

static int by_place(const void *x, const void *y)
{
	const struct turn *a = x, *b = y;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return (a->backend > b->backend) - (a->backend < b->backend);
}

/* The same for many, where the turns times the backends would take too long: each backend's slots
 * stand as far from each other as they can. */
static int order_many(const uint32_t *share, size_t n, uint16_t *ring, uint32_t total)
{
	autofree struct turn *turns = calloc(total, sizeof(*turns));
	size_t used = 0;

	if (!turns)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		for (uint64_t k = 0; k < share[i]; k++)
			turns[used++] = (struct turn){.at = ((2 * k + 1) << 32) / share[i],
						      .backend = (uint16_t)i};
	qsort(turns, total, sizeof(*turns), by_place);
	for (uint32_t slot = 0; slot < total; slot++)
		ring[slot] = turns[slot].backend;
	return 0;
}

#define FEW 64

static int weighted_ring(const struct datapath_backend *b, size_t n, uint16_t **ret, uint32_t *size)
{
	autofree uint32_t *share = calloc(n + 1, sizeof(*share));
	int r;

	if (!share)
		return -ENOMEM;
	*size = share_slots(b, n, share);
	if (*size == n) {
		*size = 0;
		return 0;
	}
	*ret = calloc(*size, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	r = n <= FEW ? order_few(share, n, *ret, *size) : order_many(share, n, *ret, *size);
	return r;
}

/* --- Maglev --- */

/* Sizes of rings, primes all, and up to how many backends each is for. */
static const struct ring_size {
	uint32_t slots;
	size_t backends;
} ring_sizes[] = {{4093, 64}, {16381, 1024}, {65537, AX_SERVICE_BACKENDS_MAX}};

/* All clients go elsewhere when the size changes: a service that comes and goes over a limit keeps
 * its ring until it has half as many backends. */
static uint32_t maglev_size(size_t n, const struct ax_service *old)
{
	uint32_t had = old->strategy == AX_STRATEGY_MAGLEV ? old->ring : 0;

	for (size_t i = 0; i + 1 < ARRAY_SIZE(ring_sizes); i++) {
		const struct ring_size *s = &ring_sizes[i];

		if (n <= s->backends && (had <= s->slots || n <= s->backends / 2))
			return s->slots;
	}
	return ring_sizes[ARRAY_SIZE(ring_sizes) - 1].slots;
}

static int maglev_ring(const struct datapath_backend *b, size_t n, const struct ax_service *old,
		       uint16_t **ret, uint32_t *size)
{
	autofree struct maglev_backend *m = calloc(n, sizeof(*m));

	*size = maglev_size(n, old);
	*ret = calloc(*size, sizeof(**ret));
	if (!m || !*ret)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		m[i] = (struct maglev_backend){.addr = b[i].be.addr,
					       .port = be16toh(b[i].be.port_be),
					       .weight = (uint16_t)b[i].weight,
					       .number = (uint16_t)i};
	return maglev_build(m, n, *ret, *size);
}

/* --- to the kernel --- */

static uint32_t chunks(uint32_t n, uint32_t size)
{
	return (n + size - 1) / size;
}

static int write_backends(struct datapath *dp, struct ax_list_key key,
			  const struct datapath_backend *b, size_t n)
{
	for (size_t i = 0; i < n; key.chunk++) {
		struct ax_backends c = {0};
		int r;

		for (size_t k = 0; k < AX_BACKENDS_CHUNK && i < n; k++, i++) {
			c.b[k] = b[i].be;
			c.b[k].weight = (uint16_t)b[i].weight;
		}
		r = map_set(dp, MAP_BACKENDS, &key, &c);
		if (r)
			return r;
	}
	return 0;
}

static int write_ring(struct datapath *dp, struct ax_list_key key, const uint16_t *ring, uint32_t n)
{
	for (uint32_t i = 0; i < n; i += AX_RING_CHUNK, key.chunk++) {
		uint32_t part = n - i < AX_RING_CHUNK ? n - i : AX_RING_CHUNK;
		struct ax_ring c = {0};
		int r;

		memcpy(c.backend, ring + i, part * sizeof(*ring));
		r = map_set(dp, MAP_RINGS, &key, &c);
		if (r)
			return r;
	}
	return 0;
}

static void drop_list(struct datapath *dp, const struct ax_service *s)
{
	struct ax_list_key key = {.service = s->id, .generation = s->generation};

	for (; key.chunk < chunks(s->backends, AX_BACKENDS_CHUNK); key.chunk++)
		map_del(dp, MAP_BACKENDS, &key);
	for (key.chunk = 0; key.chunk < chunks(s->ring, AX_RING_CHUNK); key.chunk++)
		map_del(dp, MAP_RINGS, &key);
}

static int make_ring(const struct ax_service *s, const struct ax_service *old,
		     const struct datapath_backend *b, size_t n, uint16_t **ret, uint32_t *size)
{
	*size = 0;
	if (!n)
		return 0;
	return s->strategy == AX_STRATEGY_MAGLEV ? maglev_ring(b, n, old, ret, size)
						 : weighted_ring(b, n, ret, size);
}

int datapath_service_set(struct datapath *dp, const struct ax_endpoint *ep,
			 const struct datapath_service *set, const struct datapath_backend *b,
			 size_t n)
{
	struct ax_service old = {0}, s = {.strategy = set->strategy,
					  .wait_ms = set->wait_ms,
					  .flags = set->flags,
					  .affinity_ms = set->affinity_ms};
	struct ax_list_key key = {0};
	autofree uint16_t *ring = NULL;
	bool known;
	int r;

	if (n > AX_SERVICE_BACKENDS_MAX)
		return -E2BIG;
	known = map_get(dp, MAP_SERVICES, ep, &old) == 0;
	s.id = known ? old.id : dp->next_list++;
	s.generation = known ? old.generation + 1 : 0;
	s.next = old.next; /* a new list does not begin with its first one each time */
	s.backends = (uint32_t)n;
	r = make_ring(&s, &old, b, n, &ring, &s.ring);
	if (r)
		return r;
	key.service = s.id;
	key.generation = s.generation;
	r = write_backends(dp, key, b, n);
	r = r ? r : write_ring(dp, key, ring, s.ring);
	r = r ? r : map_set(dp, MAP_SERVICES, ep, &s);
	if (r)
		drop_list(dp, &s);
	else if (known)
		drop_list(dp, &old);
	return r == -E2BIG ? -ENOSPC : r;
}

int datapath_service_del(struct datapath *dp, const struct ax_endpoint *ep)
{
	struct ax_service old;
	int r = map_get(dp, MAP_SERVICES, ep, &old);

	if (r)
		return r == -ENOENT ? 0 : r;
	r = map_del(dp, MAP_SERVICES, ep);
	if (!r)
		drop_list(dp, &old);
	return r;
}

int datapath_backends_each(struct datapath *dp, const struct ax_endpoint *ep,
			   int (*f)(void *arg, const struct ax_backend *b), void *arg)
{
	struct ax_service s;
	struct ax_list_key key = {0};
	struct ax_backends c;
	int r = map_get(dp, MAP_SERVICES, ep, &s);

	if (r)
		return r == -ENOENT ? 0 : r;
	key.service = s.id;
	key.generation = s.generation;
	for (uint32_t i = 0; i < s.backends && !r; i++) {
		if (i % AX_BACKENDS_CHUNK == 0) {
			key.chunk = i / AX_BACKENDS_CHUNK;
			r = map_get(dp, MAP_BACKENDS, &key, &c);
		}
		r = r ? r : f(arg, &c.b[i % AX_BACKENDS_CHUNK]);
	}
	return r;
}

int64_t datapath_service_list(struct datapath *dp, const struct ax_endpoint *ep)
{
	struct ax_service s;
	int r = map_get(dp, MAP_SERVICES, ep, &s);

	return r ? (int64_t)r : (int64_t)s.id;
}

/* --- what an earlier agent left --- */

static int services_walk(struct datapath *dp,
			 int (*f)(void *arg, const void *key, const void *value), void *arg)
{
	return map_walk(dp, MAP_SERVICES, sizeof(struct ax_endpoint), sizeof(struct ax_service), f,
			arg);
}

struct each_service {
	int (*f)(void *arg, const struct ax_endpoint *ep, uint32_t flags);
	void *arg;
	int r;
};

static int each_service(void *arg, const void *key, const void *value)
{
	struct each_service *x = arg;

	if (!x->r)
		x->r = x->f(x->arg, key, ((const struct ax_service *)value)->flags);
	return 0;
}

int datapath_services_each(struct datapath *dp,
			   int (*f)(void *arg, const struct ax_endpoint *ep, uint32_t flags),
			   void *arg)
{
	struct each_service x = {.f = f, .arg = arg};
	int r = services_walk(dp, each_service, &x);

	return r ? r : x.r;
}

static int after_list(void *arg, const void *key, const void *value)
{
	const struct ax_service *v = value;
	struct datapath *dp = arg;

	(void)key;
	if (v->id >= dp->next_list)
		dp->next_list = v->id + 1;
	return 0;
}

int datapath_take_lists(struct datapath *dp)
{
	return services_walk(dp, after_list, dp);
}

/* Of a generation that no service names: an agent died between writing and switching. */
static int stale_chunk(void *arg, const void *key, const void *value)
{
	const struct ax_list_key *k = key;
	const uint32_t *generation = arg; /* [next_list], UINT32_MAX: no such list */

	(void)value;
	return k->service >= generation[0] || generation[1 + k->service] != k->generation;
}

static int note_generation(void *arg, const void *key, const void *value)
{
	const struct ax_service *v = value;
	uint32_t *g = arg;

	(void)key;
	if (v->id < g[0])
		g[1 + v->id] = v->generation;
	return 0;
}

int datapath_sweep_lists(struct datapath *dp)
{
	autofree uint32_t *g = malloc(((size_t)dp->next_list + 1) * sizeof(*g));
	int r;

	if (!g)
		return -ENOMEM;
	memset(g, 0xff, ((size_t)dp->next_list + 1) * sizeof(*g));
	g[0] = dp->next_list;
	r = services_walk(dp, note_generation, g);
	r = r ? r
	      : map_walk(dp, MAP_BACKENDS, sizeof(struct ax_list_key), sizeof(struct ax_backends),
			 stale_chunk, g);
	return r ? r
		 : map_walk(dp, MAP_RINGS, sizeof(struct ax_list_key), sizeof(struct ax_ring),
			    stale_chunk, g);
}
