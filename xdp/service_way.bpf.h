/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets to a service's own address, and the private backend that their flow has. For programs on
 * tc. */
#ifndef AX_SERVICE_WAY_BPF_H
#define AX_SERVICE_WAY_BPF_H

#include <linux/pkt_cls.h>

#include "count.bpf.h"
#include "flows.bpf.h"
#include "maps.bpf.h"
#include "parse_tc.bpf.h"
#include "rewrite.bpf.h"
#include "verifier.bpf.h"

#define LO_IFINDEX 1	 /* in every network namespace */
#define THIS_HOST  (~0u) /* instead of an app's host end: the host's own stack has it */

/* The host end of a private app of this machine; THIS_HOST: one in host mode, if that is asked for;
 * else 0. */
static __always_inline __u32 way_of(const struct ax_vip *vip, __u32 to_host)
{
	__u32 way;

	if (!vip || vip->kind != AX_VIP_APP)
		return 0;
	way = to_host && vip->flags & AX_VIP_LOCAL ? THIS_HOST : vip->ifindex;
	opaque(way); /* one for the verifier to follow */
	return way;
}

/* What is known of a flow, or decided about a new one. */
struct way {
	struct ax_flow_key flow; /* (client, service) */
	struct ax_endpoint backend;
	__be16 client_port_be;
	__u32 ifindex; /* the backend's host end */
};

static __always_inline void way_begin(const struct packet *p, struct way *w)
{
	w->flow.client.addr = p->src;
	w->flow.client.port_be = p->sport_be;
	w->flow.client.proto = p->proto;
	w->flow.peer.addr = p->dst;
	w->flow.peer.port_be = p->dport_be;
	w->flow.peer.proto = p->proto;
}

/* A flow that stands. */
static __noinline __attribute__((unused)) bool way_known(const struct packet *p, struct way *w)
{
	struct ax_flow *f = flow_find(&w->flow);
	struct ax_vip *vip = f ? bpf_map_lookup_elem(&vips, &f->to.addr) : NULL;
	__u32 way = way_of(vip, false);

	if (!f || !way)
		return false;
	if (p->tcp_flags & TCP_FLAG_SYN_BIT && flow_is_closed(f->state))
		return false; /* another one from the same port */
	w->backend = f->to;
	w->client_port_be = f->client_port_be;
	w->ifindex = way;
	flow_seen(&w->flow, f, p->tcp_flags, false);
	return true;
}

/* Out of the backend's host end, whose egress judges whether the sender may. (No part of its
 * caller: the stack is small.) */
static __noinline __attribute__((unused)) int
way_deliver(struct __sk_buff *skb, const struct packet *p, const struct way *w)
{
	if (rewrite_endpoint(skb, p, false, &w->backend) ||
	    rewrite_port(skb, p, true, w->client_port_be)) {
		count(AX_COUNT_ERROR);
		return TC_ACT_SHOT;
	}
	skb->tc_index = FOR_SERVICE;
	return bpf_redirect(w->ifindex, 0);
}

#endif
