/* SPDX-License-Identifier: GPL-2.0-or-later */
/* New flows of clients outside ax (bpf/flows.bpf.h), for programs on tc: under which port the app
 * is to see its client. */
#ifndef AX_FLOW_ENTER_BPF_H
#define AX_FLOW_ENTER_BPF_H

#include "flows.bpf.h"
#include "host_socket.bpf.h"
#include "maps.bpf.h"
#include "visitors.bpf.h"

/* Whether the client has a connection to the app itself. */
static __always_inline bool visits(const struct ax_flow_key *back)
{
	struct ax_vip *vip = bpf_map_lookup_elem(&vips, &back->peer.addr);

	return vip && is_visitor(vip->id, &back->client, back->peer.port_be);
}

/* Whether the client has something else from that port with that app: a flow, or a connection or
 * datagrams to the app itself. */
static __always_inline bool client_port_is_taken(struct __sk_buff *skb,
						 const struct ax_flow_key *back)
{
	if (flow_find(back))
		return true;
	if (back->client.proto == IPPROTO_UDP)
		return bpf_map_lookup_elem(&datagrams, back) != NULL;
	return visits(back) || bpf_map_lookup_elem(&newcomers, back) ||
	       host_is_connected(skb, &back->client, &back->peer);
}

#define PORT_TRIES 7

#define FLOW_OWN_PORT 0x100 /* the client's own port, where it is free */
#define FLOW_COUNTS   0x200 /* AX_FLOW_COUNTS */

/*
 * Remembers both directions of the flow `key` to that endpoint, of which nothing is known any more
 * (flow_forget()); `how`: an enum ax_flow_kind and what of the above holds. Returns the port from
 * which the app sees the client (network byte order), or 0: none was found, or there is no room.
 * (Not static: the verifier looks at it once. To Linux 6.1 keys are on the stack, so it writes from
 * the side whose key is on this one's.)
 */
__weak __noinline __be16 flow_enter(struct __sk_buff *skb, const struct ax_flow_key *key,
				    const struct ax_endpoint *to, __u32 how, const struct ax_ctl *c)
{
	struct ax_flow f = {.seen = flow_now(), .kind = (__u8)how};
	struct ax_flow_key back;

	if (!key || !to || !c)
		return 0;
	if (how & FLOW_COUNTS)
		f.state = AX_FLOW_COUNTS;
	f.to = key->peer;
	f.client_port_be = key->client.port_be;
	back.client = key->client;
	back.peer = *to;
	back.peer.pad = 0;
	for (int i = 0; i < PORT_TRIES; i++) {
		if (i || !(how & FLOW_OWN_PORT))
			back.client.port_be = flow_port(c);
		if (client_port_is_taken(skb, &back))
			continue;
		return flow_write_both(&back, &f, false) ? back.client.port_be : 0;
	}
	return 0;
}

#endif
