/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many connections are open to a backend, for services whose strategy asks. BPF only. */
#ifndef AX_OPEN_CONNS_BPF_H
#define AX_OPEN_CONNS_BPF_H

#include <stdbool.h>

#include "count.bpf.h"
#include "maps.bpf.h"

/* A connection of a program outside ax was handed to a backend of a service that counts: from now
 * on accepted connections are looked up in `handed` and `flows`. */
extern bool outside_counts;

static __always_inline __u32 open_of(const struct ax_endpoint *backend)
{
	__u32 *n = bpf_map_lookup_elem(&open_conns, backend);

	return n ? *(volatile __u32 *)n : 0;
}

/* False: the map is full, and the connection is not to be taken back later. */
static __always_inline bool open_add(const struct ax_endpoint *backend)
{
	__u32 *n = bpf_map_lookup_elem(&open_conns, backend), zero = 0;

	if (!n) {
		/* if another CPU is faster, its entry serves as well */
		bpf_map_update_elem(&open_conns, backend, &zero, BPF_NOEXIST);
		n = bpf_map_lookup_elem(&open_conns, backend);
	}
	if (!n) {
		count(AX_COUNT_ERROR);
		return false;
	}
	__sync_fetch_and_add(n, 1);
	return true;
}

static __always_inline void open_del(const struct ax_endpoint *backend)
{
	__u32 *n = bpf_map_lookup_elem(&open_conns, backend);

	/* (0: the agent has dropped the entry of an address that was nobody's) */
	if (n && *(volatile __u32 *)n)
		__sync_fetch_and_sub(n, 1);
}

#endif
