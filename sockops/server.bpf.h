/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The map of servers: several sockets may share an endpoint (SO_REUSEPORT), so they are counted. */
#ifndef AX_SERVER_BPF_H
#define AX_SERVER_BPF_H

#include <stdbool.h>

#include "maps.bpf.h"

/* Returns true when the endpoint is new. */
static __always_inline bool server_add(const struct ax_endpoint *ep, __u32 app)
{
	struct ax_server *known = bpf_map_lookup_elem(&servers, ep);
	struct ax_server fresh = {.app = app, .sockets = 1, .since_ns = bpf_ktime_get_boot_ns()};

	if (!known && bpf_map_update_elem(&servers, ep, &fresh, BPF_NOEXIST) == 0)
		return true;
	/* there already, or since a moment ago: another CPU's */
	known = bpf_map_lookup_elem(&servers, ep);
	if (known) {
		known->app = app;
		__sync_fetch_and_add(&known->sockets, 1);
	}
	return false;
}

static __always_inline void server_del(const struct ax_endpoint *ep)
{
	struct ax_server *known = bpf_map_lookup_elem(&servers, ep);

	if (known && __sync_fetch_and_sub(&known->sockets, 1) <= 1)
		bpf_map_delete_elem(&servers, ep);
}

#endif
