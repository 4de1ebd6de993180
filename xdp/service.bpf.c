/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Services with private backends, for programs outside ax: no connect hook sees those, so their
 * packets are translated, on the device to which the agent routes such a service. fabric.bpf.c
 * turns the answers back. (Backends in the host's own namespace need none of this: sk_lookup gives
 * them the connection as it is.)
 */
#include <linux/pkt_cls.h>

#include "choose.bpf.h"
#include "count.bpf.h"
#include "maps.bpf.h"
#include "open_conns.bpf.h"
#include "serving.bpf.h"
#include "verdict.bpf.h"
#include "rewrite.bpf.h"

static __always_inline int drop(__u32 reason)
{
	count(reason);
	return TC_ACT_SHOT;
}

/* Who asks: `app` is NULL for a program outside ax. */
struct caller {
	const struct ax_vip *app;
	const struct ax_ctl *ctl;
};

/* False: a private app's address comes in by its own device only, a host-mode one's from this host
 * itself: whoever else has it lies. */
static __always_inline bool caller_of(const struct __sk_buff *skb, const struct packet *p,
				      struct caller *who)
{
	const struct ax_vip *src = bpf_map_lookup_elem(&vips, &p->src);
	__u32 zero = 0;

	who->ctl = bpf_map_lookup_elem(&ctl, &zero);
	who->app = NULL;
	if (!who->ctl)
		return false;
	if (!src || src->kind != AX_VIP_APP)
		return true;
	who->app = src;
	return !src->ifindex && !skb->ingress_ifindex;
}

/* By policy; to be asked of whoever gets the packet. */
static __always_inline bool may_have(const struct caller *who, const struct ax_vip *to, __u8 proto)
{
	if (!who->app)
		return who->ctl->host_access;
	return (proto == IPPROTO_TCP
			? party_may(who->app->party, to->party, who->ctl)
			: party_may_datagram(who->app->party, to->party, who->ctl)) == 0;
}

/* A private backend that the caller may have, one that listens if there is any. Returns its host
 * end's ifindex or 0. */
static __always_inline __u32 choose(const struct ax_endpoint *service, const struct caller *who,
				    struct ax_endpoint *ret)
{
	struct ax_service *svc = find_service(service);
	struct choice c = {.asked = *service};
	__u32 fallback = 0;

	if (!svc)
		return 0;
	if (choose_counts(svc))
		outside_counts = true;
	c.seed = bpf_get_prandom_u32();
	for (__u32 i = 0; i < CHOOSE_TRIES && choose_more(&c, svc); i++) {
		struct ax_endpoint ep = {};
		struct ax_vip *vip;

		if (!choose_next(&c, svc, &ep))
			continue;
		vip = bpf_map_lookup_elem(&vips, &ep.addr);
		if (!vip || !vip->ifindex || !may_have(who, vip, service->proto))
			continue;
		if (server_of(&ep, vip)) {
			*ret = ep;
			return vip->ifindex;
		}
		if (!fallback) {
			*ret = ep;
			fallback = vip->ifindex;
		}
	}
	return fallback;
}

/* The backend of a flow that stands: its host end's ifindex or 0. */
static __always_inline __u32 known(const struct ax_flow_key *flow, struct ax_endpoint *ret)
{
	struct ax_endpoint *ep = bpf_map_lookup_elem(&flows, flow);
	struct ax_vip *vip = ep ? bpf_map_lookup_elem(&vips, &ep->addr) : NULL;

	if (!vip)
		return 0;
	*ret = *ep;
	return vip->ifindex;
}

/* What apps answer to a NAT balancer leaves by the same device. */
static __always_inline bool is_for_balancer(const struct ax_addr *dst)
{
	struct ax_vip *vip = bpf_map_lookup_elem(&vips, dst);

	return vip && vip->kind == AX_VIP_BALANCER;
}

static __always_inline int remember(const struct ax_flow_key *flow,
				    const struct ax_endpoint *backend)
{
	struct ax_flow_key back = {.client = flow->client, .peer = *backend};

	if (bpf_map_update_elem(&flows, flow, backend, BPF_ANY))
		return -1;
	return bpf_map_update_elem(&flows, &back, &flow->peer, BPF_ANY) ? -1 : 0;
}

SEC("tc")
int ax_to_service(struct __sk_buff *skb)
{
	struct ax_endpoint backend = {};
	struct ax_flow_key flow = {};
	struct caller who;
	struct packet p;
	__u32 ifindex;

	if (parse_packet((void *)(long)skb->data, (void *)(long)skb->data_end, &p) != PARSE_OK)
		return TC_ACT_SHOT;
	if (is_for_balancer(&p.dst))
		return TC_ACT_OK;
	if (!p.has_l4)
		return TC_ACT_SHOT; /* a service has nothing but its ports */
	flow.client.addr = p.src;
	flow.client.port_be = p.sport_be;
	flow.client.proto = p.proto;
	flow.peer.addr = p.dst;
	flow.peer.port_be = p.dport_be;
	flow.peer.proto = p.proto;
	if (!caller_of(skb, &p, &who))
		return drop(AX_COUNT_FABRIC_SOURCE);
	ifindex = known(&flow, &backend);
	if (!ifindex) {
		if (p.proto == IPPROTO_TCP && !(p.tcp_flags & TCP_FLAG_SYN_BIT))
			return drop(AX_COUNT_NO_BACKEND);
		ifindex = choose(&flow.peer, &who, &backend);
		if (!ifindex || remember(&flow, &backend))
			return drop(AX_COUNT_NO_BACKEND);
	}
	if (rewrite_endpoint(skb, &p, false, &backend))
		return drop(AX_COUNT_ERROR);
	/* out of the backend's host end, whose egress judges whether the sender may */
	return bpf_redirect(ifindex, 0);
}
