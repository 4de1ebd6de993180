/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What programs on packets and on sockets tell each other of connections to services with backends
 * of both modes (struct ax_picked). BPF only. */
#ifndef AX_PICKED_BPF_H
#define AX_PICKED_BPF_H

#include "choose.bpf.h"
#include "flows.bpf.h"
#include "maps.bpf.h"

#define PICKED_LIFE 4 /* seconds, nearly: until TCP has asked again twice */

/* NULL: none, or of another list of backends. The key is on the caller's stack. */
static __always_inline struct ax_picked *picked_find(const struct ax_flow_key *flow,
						     const struct ax_service *svc)
{
	struct ax_picked *p = bpf_map_lookup_elem(&picked, flow);

	return p && p->generation == svc->generation && flow_now() - p->seen <= PICKED_LIFE ? p
											    : NULL;
}

/* Whether the same SYN has come before. (These are no part of their callers: the stack is small.
 * Not all who include this need them.) */
static __noinline __attribute__((unused)) bool picked_before(const struct ax_flow_key *flow)
{
	struct ax_service *svc = find_service(&flow->peer);
	struct ax_picked *p = svc ? picked_find(flow, svc) : NULL;

	if (p)
		p->seen = flow_now();
	return p;
}

static __noinline __attribute__((unused)) void picked_note(const struct ax_flow_key *flow,
							   const struct ax_endpoint *to)
{
	struct ax_service *svc = find_service(&flow->peer);
	struct ax_picked p = {.to = *to, .seen = flow_now()};

	if (!svc)
		return;
	p.generation = svc->generation;
	bpf_map_update_elem(&picked, flow, &p, BPF_ANY);
}

#endif
