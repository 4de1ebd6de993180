/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clients that keep their backend (map `affinity` of service.h). BPF only. */
#ifndef AX_AFFINITY_BPF_H
#define AX_AFFINITY_BPF_H

#include <linux/errno.h>
#include <stdbool.h>

#include "choice.bpf.h"
#include "count.bpf.h"

/* Its address and port as the list has them, as one number. (One constant, and no more: the loop
 * below would keep others on the stack, which is small.) */
static __always_inline __u64 backend_hash(const struct ax_backend *be)
{
	__u64 h = ((__u64)be->addr.w[0] << 32 | be->addr.w[1]) ^ be->port_be;

	h *= 0xd6e8feb86659fd93ull;
	h ^= h >> 32;
	h ^= (__u64)be->addr.w[2] << 32 | be->addr.w[3];
	h *= 0xd6e8feb86659fd93ull;
	h ^= h >> 32;
	return h * 0xd6e8feb86659fd93ull;
}

/* As struct ax_affinity has it; never 0. */
static __always_inline __u64 backend_number(const struct ax_backend *be)
{
	return (backend_hash(be) | 1ull << 63) & AX_AFFINITY_BACKEND;
}

/* Whether that number is its, however often it has changed. */
static __always_inline bool is_backend(const struct ax_backend *be, __u64 number)
{
	return (backend_hash(be) ^ number) << 1 >> 9 == 0;
}

static __always_inline void affinity_key(const struct choice *c, const struct ax_service *svc,
					 struct ax_affinity_key *ret)
{
	ret->list = svc->id;
	ret->named = c->kept & KEPT_NAMED ? 1 : 0;
	ret->client = c->client;
}

/* An app asks for a service: by what it is known there. */
static __always_inline void affinity_of_app(struct choice *c, const struct ax_service *svc,
					    const struct ax_app *app)
{
	c->app = app->id;
	if (!(svc->flags & (AX_SERVICE_BY_APP | AX_SERVICE_HASH_APP)))
		return;
	c->kept |= KEPT_NAMED;
	c->client.w[0] = app->name[0];
	c->client.w[1] = app->name[1];
	c->client.w[2] = 0;
	c->client.w[3] = 0;
}

/* --- how many entries there are --- */

static __always_inline __u64 affinity_kind(const struct choice *c)
{
	return c->app ? AX_AFFINITY_APP : AX_AFFINITY_SRC;
}

static __always_inline __u64 affinity_owner(const struct choice *c, const struct ax_service *svc)
{
	return c->app ? AX_AFFINITY_OWNER(AX_AFFINITY_APP, (__u64)c->app)
		      : AX_AFFINITY_OWNER_LIST(svc->id);
}

static __always_inline __u32 affinity_count(__u64 owner)
{
	__u32 *n = bpf_map_lookup_elem(&affinity_counts, &owner);

	return n ? *(volatile __u32 *)n : 0;
}

static __always_inline void affinity_counted(__u64 owner)
{
	__u32 *n = bpf_map_lookup_elem(&affinity_counts, &owner), zero = 0;

	if (!n) {
		bpf_map_update_elem(&affinity_counts, &owner, &zero, BPF_NOEXIST);
		n = bpf_map_lookup_elem(&affinity_counts, &owner);
	}
	if (n)
		__sync_fetch_and_add(n, 1);
}

/* (Some more than that may come at the same moment: as many as there are processors.) */
static __always_inline bool affinity_has_room(const struct choice *c, const struct ax_service *svc)
{
	__u32 all = affinity_count(AX_AFFINITY_OWNER(affinity_kind(c), 0ull));
	__u32 own = affinity_count(affinity_owner(c, svc));
	__u32 most = c->app ? AX_AFFINITY_APP_MAX : AX_AFFINITY_SRC_MAX;

	if (all >= AX_AFFINITY_HALF / 2)
		most = c->app ? AX_AFFINITY_APP_SURE : AX_AFFINITY_SRC_SURE;
	return all < AX_AFFINITY_HALF && own < most;
}

/* --- looking --- */

struct affinity_search {
	struct choice *c; /* its index is set */
	const struct ax_service *svc;
};

static long affinity_look(__u32 k, struct affinity_search *s)
{
	struct ax_list_key key = {
		.service = s->svc->id, .generation = s->svc->generation, .chunk = k};
	struct ax_backends *chunk = bpf_map_lookup_elem(&backends, &key);
	__u64 number = s->c->was;
	__u32 i;

	if (!chunk)
		return 0;
	for (i = 0; i < AX_BACKENDS_CHUNK; i++)
		if (is_backend(&chunk->b[i], number))
			break;
	if (i >= AX_BACKENDS_CHUNK)
		return 0;
	s->c->index = k * AX_BACKENDS_CHUNK + i;
	return 1;
}

/* Where the client's backend is, now that the list is another. */
static __always_inline __u32 affinity_search(struct choice *c, const struct ax_service *svc)
{
	struct affinity_search s = {.c = c, .svc = svc};

	c->index = NO_BACKEND;
	bpf_loop((svc->backends + AX_BACKENDS_CHUNK - 1) / AX_BACKENDS_CHUNK, affinity_look, &s, 0);
	return c->index < svc->backends ? c->index : NO_BACKEND;
}

/* Without room for an entry what the client is decides. (No part of its caller: the stack is
 * small.) */
static __noinline void affinity_has_none(struct choice *c, const struct ax_service *svc)
{
	if (affinity_has_room(c, svc))
		return;
	c->kept |= KEPT_NO_ROOM;
	c->start = client_hash(&c->client);
	c->sticky = true;
}

/* (No part of its caller, as above.) */
static __noinline struct ax_affinity *affinity_entry(const struct choice *c,
						     const struct ax_service *svc)
{
	struct ax_affinity_key key;

	affinity_key(c, svc, &key);
	return bpf_map_lookup_elem(&affinity, &key);
}

static __always_inline bool affinity_looks(const struct choice *c, const struct ax_service *svc)
{
	return svc->flags & AX_SERVICE_AFFINITY && !(c->kept & (KEPT_LOOKED | KEPT_OFF));
}

/*
 * The client's backend, if it has one that is in the list: its index is c->index then. Whether it
 * listens is the caller's to ask: if it does not, another one is chosen, and affinity_keep() takes
 * its place. (The counter of changes makes the same backend another number: whoever looked before
 * it was chosen anew finds that it was.)
 */
__weak __noinline int affinity_find(struct choice *c, struct ax_service *svc,
				    struct ax_endpoint *ret)
{
	struct ax_affinity *e;
	struct ax_backend *be;
	__u64 now;
	__u32 i;

	if (!c || !svc || !ret)
		return false;
	c->kept |= KEPT_LOOKED;
	c->was = 0;
	e = affinity_entry(c, svc);
	if (!e) {
		affinity_has_none(c, svc);
		return false;
	}
	c->was = e->backend;
	now = bpf_ktime_get_ns();
	if (now > e->seen_ns && now - e->seen_ns > (__u64)svc->affinity_ms * 1000000)
		return false;
	i = e->index;
	be = i < svc->backends ? backend_at(svc, i) : NULL;
	if (!be || !is_backend(be, c->was)) {
		i = affinity_search(c, svc);
		if (i == NO_BACKEND)
			return false;
		be = backend_at(svc, i);
		if (!be)
			return false;
		e->index = i;
	}
	/* (not for each datagram: other processors read it, too) */
	if (now - e->seen_ns > (__u64)svc->affinity_ms << 16)
		e->seen_ns = now;
	c->index = i;
	c->kept |= KEPT_CHOSEN;
	backend_endpoint(be, &c->asked, ret);
	return true;
}

/* --- keeping --- */

/* False: the client has got one meanwhile. */
static __always_inline bool affinity_add(const struct choice *c, const struct ax_service *svc,
					 const struct ax_affinity_key *key, __u64 number)
{
	struct ax_affinity e = {
		.backend = number, .seen_ns = bpf_ktime_get_ns(), .index = c->index, .app = c->app};
	long r = bpf_map_update_elem(&affinity, key, &e, BPF_NOEXIST);

	if (r)
		return r != -EEXIST;
	affinity_counted(affinity_owner(c, svc));
	affinity_counted(AX_AFFINITY_OWNER(affinity_kind(c), 0ull));
	return true;
}

/*
 * The client has the backend that was chosen last from now on. False: somebody else, at the same
 * moment, has chosen another one for the same client: choose_next() is to be asked again, and finds
 * that one. (Once: a backend that listens is better than no end.)
 */
__weak __noinline int affinity_keep(struct choice *c, struct ax_service *svc)
{
	struct ax_affinity_key key;
	struct ax_affinity *e;
	struct ax_backend *be;
	__u64 number, was;

	if (!c || !svc || !(svc->flags & AX_SERVICE_AFFINITY) ||
	    c->kept & (KEPT_CHOSEN | KEPT_NO_ROOM | KEPT_LOST | KEPT_OFF))
		return true;
	be = backend_at(svc, c->index);
	if (!be)
		return true;
	number = backend_number(be);
	affinity_key(c, svc, &key);
	e = bpf_map_lookup_elem(&affinity, &key);
	if (!e) {
		if (affinity_add(c, svc, &key, number))
			return true;
	} else {
		was = c->was;
		number |= (was + 1) & ~AX_AFFINITY_BACKEND;
		if (was && __sync_val_compare_and_swap(&e->backend, was, number) == was) {
			e->index = c->index;
			e->seen_ns = bpf_ktime_get_ns();
			return true;
		}
	}
	c->kept |= KEPT_LOST;
	c->kept &= (__u8)~KEPT_LOOKED;
	return false;
}

#endif
