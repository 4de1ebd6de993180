/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Services with private backends, for programs outside ax: no connect hook sees those, so their
 * packets are translated, on the device to which the agent routes such a service. So are those of
 * apps that have waited at its address until somebody listened (include/service.h). fabric.bpf.c
 * turns the answers back. (Backends in the host's own namespace need none of this: sk_lookup gives
 * them the connection as it is. Of services that have both kinds only what begins comes by here,
 * service_mixed.bpf.h.)
 */
#include <linux/pkt_cls.h>

#include "choose.bpf.h"
#include "count.bpf.h"
#include "flow_enter.bpf.h"
#include "flows.bpf.h"
#include "maps.bpf.h"
#include "open_conns.bpf.h"
#include "parse_tc.bpf.h"
#include "picked.bpf.h"
#include "seen.bpf.h"
#include "service_mixed.bpf.h"
#include "serving.bpf.h"
#include "verdict.bpf.h"

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
	bool mixed;   /* the service has backends of both modes (AX_VIP_MIXED) */
	bool to_host; /* and those in host mode may be had, too */
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
	/* (of a mixed service it has been on lo before) */
	return skb->ingress_ifindex == src->ifindex ||
	       (!src->ifindex && skb->ingress_ifindex == LO_IFINDEX);
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

/* The next backend that the strategy names: enum tried. *ret is one that listens, or the first that
 * may be had. (To one in host mode nothing leads that does not listen.) A global function, as
 * may_have_backend(). */
__weak __noinline int service_next(const struct caller *who, const struct ax_endpoint *client,
				   struct ax_service *svc, struct choice *c,
				   struct ax_endpoint *ret)
{
	struct ax_endpoint ep = {}; /* keys are on the stack to Linux 6.1, and all written */
	struct ax_vip *vip;
	bool listens;
	int r;

	if (!who || !client || !svc || !c || !ret)
		return TRY_END;
	r = choose_next(c, svc, &ep);
	if (r != CHOSEN)
		return r == CHOSEN_NONE ? TRY_END : TRY_NEXT;
	vip = bpf_map_lookup_elem(&vips, &ep.addr);
	if (!vip || !way_of(vip, who->to_host) || !may_have_backend(who, client, &ep, vip->party))
		return TRY_NEXT;
	listens = server_of(&ep, vip) != NULL;
	if (listens ? !affinity_keep(c, svc) : vip->flags & AX_VIP_LOCAL)
		return TRY_NEXT;
	if (listens || !ret->port_be)
		*ret = ep;
	return listens ? TRY_TAKEN : TRY_NEXT;
}

/* A backend that the caller may have, one that listens if there is any. Returns the way to it or 0.
 * *ret is all zero before. */
static __noinline __u32 choose(const struct ax_flow_key *flow, const struct caller *who,
			       struct ax_endpoint *ret)
{
	struct ax_service *svc = find_service(&flow->peer);
	struct choice c = {.asked = flow->peer, .client = flow->client.addr};
	struct ax_vip *vip;

	if (!svc)
		return 0;
	c.start = bpf_get_prandom_u32();
	for (__u32 i = 0; i < CHOOSE_TRIES; i++) {
		if (service_next(who, &flow->client, svc, &c, ret) != TRY_NEXT)
			break;
	}
	vip = bpf_map_lookup_elem(&vips, &ret->addr);
	return way_of(vip, who->to_host);
}

/* What apps answer to a NAT balancer leaves by the same device. */
static __always_inline bool is_for_balancer(const struct ax_addr *dst)
{
	struct ax_vip *vip = bpf_map_lookup_elem(&vips, dst);

	return vip && vip->kind == AX_VIP_BALANCER;
}

/* (No part of its caller: the stack is small.) */
static __noinline __be16 enter(struct __sk_buff *skb, const struct way *w, const struct ax_ctl *c)
{
	__u32 how = AX_FLOW_SERVICE;

	if (w->flow.peer.proto == IPPROTO_TCP && service_counts(&w->flow.peer))
		how |= FLOW_COUNTS;
	return flow_enter(skb, &w->flow, &w->backend, how, c);
}

/*
 * Whether a segment without a flow leads to somebody. One that begins no connection belongs to one
 * whose flow is over, or was pushed out: some backend gets it from a port that it does not know,
 * and says so, that its client need not wait for nothing. (Of a mixed service the stack says it.)
 */
static __always_inline bool begins(const struct packet *p, const struct caller *who)
{
	return p->proto != IPPROTO_TCP || p->tcp_flags & TCP_FLAG_SYN_BIT ||
	       !(who->to_host || p->tcp_flags & TCP_FLAG_RST_BIT);
}

/* False: to none, or to one in host mode. */
static __always_inline bool find_way(struct __sk_buff *skb, const struct packet *p,
				     const struct caller *who, const struct ax_ctl *c,
				     struct way *w)
{
	if (way_known(p, w))
		return true;
	if (!begins(p, who))
		return false;
	if (who->to_host && picked_before(&w->flow))
		return false;
	w->ifindex = choose(&w->flow, who, &w->backend);
	if (!w->ifindex)
		return false;
	flow_forget(&w->flow);
	if (w->ifindex == THIS_HOST) {
		picked_note(&w->flow, &w->backend);
		return false;
	}
	/* (never the client's own port, which it may use for the backend itself) */
	w->client_port_be = enter(skb, w, c);
	return w->client_port_be;
}

/* (What has come by lo or by another way in is sent anew.) */
static __always_inline int deliver(struct __sk_buff *skb, const struct packet *p,
				   const struct way *w)
{
	if (bpf_skb_store_bytes(skb, 0, (const void *)device_mac, sizeof(device_mac), 0))
		return drop(AX_COUNT_ERROR);
	return way_deliver(skb, p, w);
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
	way_begin(&p, &w);
	who.mixed = skb->ingress_ifindex && is_mixed(bpf_map_lookup_elem(&vips, &p.dst));
	who.to_host = who.mixed && p.proto == IPPROTO_TCP;
	if (!caller_of(skb, &p, c, &who))
		return drop(AX_COUNT_FABRIC_SOURCE);
	if (find_way(skb, &p, &who, c, &w))
		return deliver(skb, &p, &w);
	if (!who.mixed)
		return drop(AX_COUNT_NO_BACKEND);
	skb->tc_index = FOR_HOST;
	return (int)bpf_redirect(skb->ingress_ifindex, BPF_F_INGRESS);
}
