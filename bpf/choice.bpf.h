/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A search for a backend, and the lists of them. BPF only. */
#ifndef AX_CHOICE_BPF_H
#define AX_CHOICE_BPF_H

#include "maps.bpf.h"

enum choice_kept {
	KEPT_LOOKED = 1 << 0, /* for the client's backend */
	KEPT_CHOSEN = 1 << 1, /* that one */
	KEPT_NAMED = 1 << 2,  /* the client is an app's name */
	KEPT_NO_ROOM = 1 << 3,
	KEPT_LOST = 1 << 4, /* another one has chosen for the same client meanwhile */
	KEPT_OFF = 1 << 5,  /* whatever the service says */
};

/* One connection's search for a backend. */
struct choice {
	struct ax_endpoint asked;
	struct ax_addr client;
	__u32 start; /* of the walk over the ring or the backends; at first a number by chance:
			equal ones choose alike */
	__u16 tries; /* backends that were looked at */
	__u8 sticky; /* by `start` where the strategy is no hash (datagrams of one socket) */
	__u8 kept;   /* enum choice_kept */
	__u32 index; /* of the backend that was chosen last */

	/* of choose_least_connections() */
	__u32 open;   /* connections of the best so far, which is the index-th from `start` on */
	__u32 weight; /* and weight */
	__u32 equals; /* weights of all that are as good; 0: none yet */

	/* of affinity.bpf.h */
	__u32 app; /* who asks; 0: a program outside ax */

	__u64 tried; /* bit i: the i-th backend from `start` on did not do */
	__u64 was;   /* the client's backend when it was looked up, 0: it had none */
};
_Static_assert(sizeof(struct choice) == 80, "a hole would be stack that nobody has written");

static __always_inline void backend_endpoint(const struct ax_backend *be,
					     const struct ax_endpoint *asked,
					     struct ax_endpoint *ret)
{
	ret->addr = be->addr;
	ret->port_be = be->port_be ? be->port_be : asked->port_be;
	ret->proto = asked->proto;
	ret->pad = 0;
}

static __always_inline struct ax_backend *backend_at(const struct ax_service *svc, __u32 i)
{
	struct ax_list_key key = {
		.service = svc->id, .generation = svc->generation, .chunk = i / AX_BACKENDS_CHUNK};
	struct ax_backends *c = bpf_map_lookup_elem(&backends, &key);

	return c ? &c->b[i % AX_BACKENDS_CHUNK] : NULL;
}

/* No backend has it. */
#define NO_BACKEND (~0u)

static __always_inline __u32 ring_at(const struct ax_service *svc, __u32 slot)
{
	struct ax_list_key key = {
		.service = svc->id, .generation = svc->generation, .chunk = slot / AX_RING_CHUNK};
	struct ax_ring *r = bpf_map_lookup_elem(&rings, &key);

	return r ? r->backend[slot % AX_RING_CHUNK] : NO_BACKEND;
}

/* A client's address as one number: all its bits are in each of the number's. */
static __always_inline __u32 client_hash(const struct ax_addr *a)
{
	__u64 h = ((__u64)a->w[0] << 32 | a->w[1]) ^ 0x9e3779b97f4a7c15ull;

	h *= 0xd6e8feb86659fd93ull;
	h ^= h >> 32;
	h ^= (__u64)a->w[2] << 32 | a->w[3];
	h *= 0xd6e8feb86659fd93ull;
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ull;
	return (__u32)(h >> 32);
}

#endif
