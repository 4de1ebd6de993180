/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The service at an endpoint, and which backend a connection to it goes to, for programs on sockets
 * and on packets. A strategy is one function below and one case of choose_index(). BPF only.
 */
#ifndef AX_CHOOSE_BPF_H
#define AX_CHOOSE_BPF_H

#include <stdbool.h>

#include "affinity.bpf.h"
#include "choice.bpf.h"
#include "maps.bpf.h"
#include "open_conns.bpf.h"

/* That of the port, else the one that has every port. (No part of its callers: their stack is
 * small.) */
static __noinline __attribute__((unused)) struct ax_service *
find_service(const struct ax_endpoint *ep)
{
	struct ax_service *svc = bpf_map_lookup_elem(&services, ep);
	struct ax_endpoint any = *ep;

	if (svc)
		return svc;
	any.port_be = 0;
	return bpf_map_lookup_elem(&services, &any);
}

/* Looked at before giving up on a backend that will do: the strategy's choice, and the distinct
 * ones after it. */
#define CHOOSE_TRIES (1 + 16)

/* --- choosers: the backend to look at, c->tries of them did not do --- */

/* First the one in a slot of the ring, then each backend in turn. */
static __always_inline __u32 walk(const struct choice *c, const struct ax_service *svc)
{
	if (!svc->ring)
		return (c->start + c->tries) % svc->backends;
	if (!c->tries)
		return ring_at(svc, c->start % svc->ring);
	return (c->start + c->tries - 1) % svc->backends;
}

static __always_inline __u32 choose_random(struct choice *c, struct ax_service *svc)
{
	return walk(c, svc);
}

static __always_inline __u32 choose_round_robin(struct choice *c, struct ax_service *svc)
{
	if (!c->tries)
		c->start = __sync_fetch_and_add(&svc->next, 1);
	return walk(c, svc);
}

static __always_inline __u32 choose_maglev(struct choice *c, struct ax_service *svc)
{
	if (!c->tries)
		c->start = client_hash(&c->client);
	return walk(c, svc);
}

/*
 * Of more backends than LEAST_ALL some are looked at, which follow each other from a random place
 * on: every backend is in as many of these scans as any other, and the least of many that chance
 * picks is nearly as good as the least of all (the power of two choices: Mitzenmacher, 2001), at a
 * cost that does not grow.
 */
#define LEAST_ALL  64 /* bits of choice.tried */
#define LEAST_SOME 8

/*
 * What changes from one look to the next is in *c, which is memory of unknown contents to the
 * verifier. Before Linux 6.7 it judges a callback by what the stack holds at the first call, and
 * takes out the branches that this rules out.
 */
struct look {
	struct choice *c;
	struct ax_service *svc;
};

/* Whether the first that has no connection at all is as good as any: many are looked at from a
 * random place on, and without a ring all weigh the same. */
static __always_inline bool is_by_chance(const struct ax_service *svc)
{
	return svc->backends > LEAST_ALL && !svc->ring;
}

/* Fewer connections for its weight than the best so far, or drawn by lot, by weight, of equals. */
static long least_look(__u32 i, struct look *l)
{
	struct choice *c = l->c;
	struct ax_endpoint ep;
	struct ax_backend *be;
	__u32 open, weight;
	__u64 here, best;

	if (c->tried >> (i & 63) & 1)
		return 0;
	be = backend_at(l->svc, (c->start + i) % l->svc->backends);
	if (!be)
		return 0;
	backend_endpoint(be, &c->asked, &ep);
	open = open_of(&ep);
	weight = be->weight ? be->weight : 1; /* 0: an older agent wrote the list */
	here = (__u64)open * c->weight;
	best = (__u64)c->open * weight;
	if (c->equals && here > best)
		return 0;
	c->equals = weight + (here == best ? c->equals : 0);
	if (bpf_get_prandom_u32() % c->equals >= weight)
		return 0;
	c->index = i;
	c->open = open;
	c->weight = weight;
	return !open && is_by_chance(l->svc);
}

static __always_inline __u32 choose_least_connections(struct choice *c, struct ax_service *svc)
{
	__u32 n = svc->backends <= LEAST_ALL ? svc->backends : LEAST_SOME + c->tries;
	struct look l = {.c = c, .svc = svc};

	c->open = c->weight = c->equals = 0;
	bpf_loop(n, least_look, &l, 0);
	if (!c->equals)
		return NO_BACKEND;
	c->tried |= 1ull << (c->index & 63);
	return (c->start + c->index) % svc->backends;
}

static __always_inline __u32 choose_index(struct choice *c, struct ax_service *svc)
{
	switch (svc->strategy) {
	case AX_STRATEGY_ROUND_ROBIN:
		return c->sticky ? choose_random(c, svc) : choose_round_robin(c, svc);
	case AX_STRATEGY_LEAST_CONNECTIONS:
		return c->sticky ? choose_random(c, svc) : choose_least_connections(c, svc);
	case AX_STRATEGY_MAGLEV:
		return choose_maglev(c, svc);
	default:
		return choose_random(c, svc);
	}
}

/* Strategies that ask how many connections are open (open_conns.bpf.h). */
static __always_inline bool choose_counts(const struct ax_service *svc)
{
	switch (svc->strategy) {
	case AX_STRATEGY_LEAST_CONNECTIONS:
		return true;
	default:
		return false;
	}
}

/* Whether connections to the service count: then those that are accepted are looked up from now on.
 * (No part of its callers: their stack is small. Not all who include this need it.) */
static __noinline __attribute__((unused)) bool service_counts(const struct ax_endpoint *service)
{
	const struct ax_service *svc = find_service(service);

	if (!svc || !choose_counts(svc))
		return false;
	outside_counts = true;
	return true;
}

static __always_inline bool choose_more(const struct choice *c, const struct ax_service *svc)
{
	return svc->backends && c->tries < CHOOSE_TRIES &&
	       c->tries < svc->backends + (svc->ring ? 1 : 0);
}

/* --- for callers --- */

enum chosen {
	CHOSEN_NONE, /* all were tried */
	CHOSEN_GONE, /* that one is: the agent has just written another list */
	CHOSEN,
};

/* What became of a caller's look at one of them. */
enum tried {
	TRY_END,   /* there was none left */
	TRY_NEXT,  /* that one will not do */
	TRY_TAKEN, /* that one it is */
};

/* By the strategy. Not static: the verifier then looks at it once, and not again for each try of
 * each caller. */
__weak __noinline int choose_by_strategy(struct choice *c, struct ax_service *svc,
					 struct ax_endpoint *ret)
{
	struct ax_backend *be;
	__u32 i;

	if (!c || !svc || !ret || !choose_more(c, svc))
		return CHOSEN_NONE;
	i = choose_index(c, svc);
	c->tries++;
	c->index = i;
	be = i == NO_BACKEND ? NULL : backend_at(svc, i);
	if (!be)
		return CHOSEN_GONE;
	backend_endpoint(be, &c->asked, ret);
	return CHOSEN;
}

/* The next backend to try, as the endpoint that stands for the one that was asked: enum chosen. */
static __always_inline int choose_next(struct choice *c, struct ax_service *svc,
				       struct ax_endpoint *ret)
{
	if (affinity_looks(c, svc) && affinity_find(c, svc, ret))
		return CHOSEN;
	c->kept &= (__u8)~KEPT_CHOSEN;
	return choose_by_strategy(c, svc, ret);
}

#endif
