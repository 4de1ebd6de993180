/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ends of a connection that is translated between nodes, as its apps know them. */
#ifndef AX_ACROSS_ENDS_BPF_H
#define AX_ACROSS_ENDS_BPF_H

#include "endpoint.bpf.h"
#include "maps.bpf.h"

/* In place of how the kernel has them; *asked: what a client had asked for, if that is something
 * else. `x` may be NULL. */
static __always_inline void across_ends(const struct ax_asked *a, const struct ax_across *x,
					struct ax_endpoint *local, struct ax_endpoint *remote,
					struct ax_endpoint *asked)
{
	if (!x || !(a->flags & AX_ASKED_ACROSS))
		return;
	local->addr = x->self.addr;
	if (x->self.port_be)
		local->port_be = x->self.port_be;
	if (a->real_peer.port_be) /* it has connected */
		*remote = a->real_peer;
	else if (a->peer.port_be)
		*remote = a->peer;
	if (endpoint_eq(asked, remote))
		__builtin_memset(asked, 0, sizeof(*asked));
}

#endif
