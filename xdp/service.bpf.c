/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Services with private backends, for programs outside ax: no connect hook sees those, so their
 * packets are translated, on the device to which the agent routes such a service. So are those of
 * apps that have waited at its address until somebody listened (include/service.h). fabric.bpf.c
 * turns the answers back. (Backends in the host's own namespace need none of this: sk_lookup gives
 * them the connection as it is.)
 */
#include <linux/pkt_cls.h>

#include "choose.bpf.h"
#include "count.bpf.h"
#include "flow_enter.bpf.h"
#include "flows.bpf.h"
#include "maps.bpf.h"
#include "open_conns.bpf.h"
#include "serving.bpf.h"
#include "seen.bpf.h"
#include "verdict.bpf.h"
#include "parse_tc.bpf.h"
#include "rewrite.bpf.h"

static __always_inline int drop(__u32 reason)
{
	count(reason);
	return TC_ACT_SHOT;
}

/* Who asks. */
struct caller {
	__u32 party; /* AX_PARTY_NONE: a program outside ax */
	bool app;    /* (one whose labels could not be kept has no party) */
	bool host_access;
	__u16 pad; /* Linux 6.1 lets no function see what was not written */
};

/* False: a private app's address comes in by its own device only (where ax_from_app() has seen it),
 * a host-mode one's from this host itself: whoever else has it lies. Apps of other nodes choose of
 * a service's backends there. */
static __always_inline bool caller_of(const struct __sk_buff *skb, const struct packet *p,
				      const struct ax_ctl *c, struct caller *who)
{
	const struct ax_vip *src = bpf_map_lookup_elem(&vips, &p->src);

	who->host_access = c->host_access;
	if (src && is_elsewhere(src))
		return false;
	who->app = src && src->kind == AX_VIP_APP;
	if (!who->app)
		return true;
	who->party = src->party;
	return skb->ingress_ifindex == src->ifindex;
}

/* By policy; to be asked of whoever gets the packet, whose party is `party`. A global function: the
 * verifier judges it once, and not for each backend that is tried. */
__weak __noinline int may_have_backend(const struct caller *who, const struct ax_endpoint *client,
				       const struct ax_endpoint *ep, __u32 party)
{
	struct question q;
	__u64 v;

	if (!who || !client || !ep)
		return false;
	q.parties = question_parties(who->party, party);
	q.ports = question_ports(ep->proto, ep->port_be, client->port_be);
	v = verdict_of(&q, &client->addr);
	if (who->app || VERDICT_RULE(v)) {
		if (v & VERDICT_DENY)
			count_verdict(v);
		saw(&client->addr, ep, v, SEEN(AX_SEEN_AT_FABRIC, 0), 0);
		return !(v & VERDICT_REFUSED);
	}
	return who->host_access;
}

/* Of a private app of this machine. */
static __always_inline bool is_private(const struct ax_vip *vip)
{
	return vip && vip->kind == AX_VIP_APP && vip->ifindex;
}

/* A private backend that the caller may have, one that listens if there is any. Returns its host
 * end's ifindex or 0. *ret is all zero before. */
static __noinline __u32 choose(const struct ax_flow_key *flow, const struct caller *who,
			       struct ax_endpoint *ret)
{
	struct ax_service *svc = find_service(&flow->peer);
	struct choice c = {.asked = flow->peer, .client = flow->client.addr};
	struct ax_vip *vip;

	if (!svc)
		return 0;
	if (choose_counts(svc))
		outside_counts = true;
	c.start = bpf_get_prandom_u32();
	for (__u32 i = 0; i < CHOOSE_TRIES; i++) {
		struct ax_endpoint ep = {};
		bool listens;
		int r;

		r = choose_next(&c, svc, &ep);
		if (r == CHOSEN_NONE)
			break;
		if (r == CHOSEN_GONE)
			continue;
		vip = bpf_map_lookup_elem(&vips, &ep.addr);
		if (!is_private(vip) || !may_have_backend(who, &flow->client, &ep, vip->party))
			continue;
		listens = server_of(&ep, vip) != NULL;
		if (listens && !affinity_keep(&c, svc))
			continue;
		if (listens || !ret->port_be)
			*ret = ep;
		if (listens)
			break;
	}
	vip = bpf_map_lookup_elem(&vips, &ret->addr);
	return is_private(vip) ? vip->ifindex : 0;
}

/* What is known of a flow, or decided about a new one. */
struct way {
	struct ax_flow_key flow; /* (client, service) */
	struct ax_endpoint backend;
	__be16 client_port_be;
	__u32 ifindex; /* the backend's host end */
};

/* A flow that stands. */
static __noinline bool known(const struct packet *p, struct way *w)
{
	struct ax_flow *f = flow_find(&w->flow);
	struct ax_vip *vip = f ? bpf_map_lookup_elem(&vips, &f->to.addr) : NULL;

	if (!is_private(vip))
		return false;
	if (p->tcp_flags & TCP_FLAG_SYN_BIT && flow_is_closed(f->state))
		return false; /* another one from the same port */
	w->backend = f->to;
	w->client_port_be = f->client_port_be;
	w->ifindex = vip->ifindex;
	flow_seen(&w->flow, f, p->tcp_flags, false);
	return true;
}

/* What apps answer to a NAT balancer leaves by the same device. */
static __always_inline bool is_for_balancer(const struct ax_addr *dst)
{
	struct ax_vip *vip = bpf_map_lookup_elem(&vips, dst);

	return vip && vip->kind == AX_VIP_BALANCER;
}

static __always_inline bool find_way(struct __sk_buff *skb, const struct packet *p,
				     const struct caller *who, const struct ax_ctl *c,
				     struct way *w)
{
	if (known(p, w))
		return true;
	if (p->proto == IPPROTO_TCP && !(p->tcp_flags & TCP_FLAG_SYN_BIT))
		return false;
	w->ifindex = choose(&w->flow, who, &w->backend);
	if (!w->ifindex)
		return false;
	flow_forget(&w->flow);
	/* (never the client's own port, which it may use for the backend itself) */
	w->client_port_be = flow_enter(skb, &w->flow, &w->backend, AX_FLOW_SERVICE, c);
	return w->client_port_be;
}

/* Out of the backend's host end, whose egress judges whether the sender may. (No part of its
 * caller: the stack is small.) */
static __noinline int deliver(struct __sk_buff *skb, const struct packet *p, const struct way *w)
{
	if (rewrite_endpoint(skb, p, false, &w->backend) ||
	    rewrite_port(skb, p, true, w->client_port_be))
		return drop(AX_COUNT_ERROR);
	skb->tc_index = FOR_SERVICE;
	return bpf_redirect(w->ifindex, 0);
}

SEC("tc")
int ax_to_service(struct __sk_buff *skb)
{
	struct caller who = {};
	struct way w = {};
	struct packet p = {};
	struct ax_ctl *c;
	__u32 zero = 0;

	if (parse_tc(skb, &p) != PARSE_OK)
		return TC_ACT_SHOT;
	if (is_for_balancer(&p.dst))
		return TC_ACT_OK;
	c = bpf_map_lookup_elem(&ctl, &zero);
	if (!p.has_l4 || !c)
		return TC_ACT_SHOT; /* a service has nothing but its ports */
	w.flow.client.addr = p.src;
	w.flow.client.port_be = p.sport_be;
	w.flow.client.proto = p.proto;
	w.flow.peer.addr = p.dst;
	w.flow.peer.port_be = p.dport_be;
	w.flow.peer.proto = p.proto;
	if (!caller_of(skb, &p, c, &who))
		return drop(AX_COUNT_FABRIC_SOURCE);
	if (!find_way(skb, &p, &who, c, &w))
		return drop(AX_COUNT_NO_BACKEND);
	return deliver(skb, &p, &w);
}
