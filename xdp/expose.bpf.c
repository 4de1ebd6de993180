/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ports of the host that are exposed (include/expose.h), for private apps: a program at the ingress
 * of the host's interfaces, lo among them, that gives packets to the app instead of to the host.
 * fabric.bpf.c turns the answers back (expose_answer.bpf.h). TCP of host-mode apps passes:
 * sk_lookup has it. Their UDP gets the app's address here, and the host's again at the egress of
 * the same interfaces.
 *
 * The client keeps its address and, where no other flow of its has it, its port. What is found to
 * have no flow, because others pushed it out, has one again with the client's next segment: where
 * it leads is known without.
 *
 * A connection for an app that connections start, and that does not listen yet, is left to
 * sk_lookup, too: it tells the agent, and has TCP try again (sockops/door.bpf.h).
 */
#include <linux/pkt_cls.h>

#include "choose.bpf.h"
#include "count.bpf.h"
#include "expose_icmp.bpf.h"
#include "exposed.bpf.h"
#include "flow_enter.bpf.h"
#include "flows.bpf.h"
#include "fragments.bpf.h"
#include "maps.bpf.h"
#include "picked.bpf.h"
#include "parse_tc.bpf.h"
#include "rewrite.bpf.h"
#include "serving.bpf.h"
#include "seen.bpf.h"
#include "service_mixed.bpf.h"
#include "to_device.bpf.h"
#include "verdict.bpf.h"
#include "verifier.bpf.h"

#define PACKET_HOST 0		  /* addressed to this machine */
#define NOT_OURS    TC_ACT_UNSPEC /* whoever else has a program here is asked next */

/* Of ax's devices, both ends of each. */
const volatile __u8 device_mac[6] = {};

struct visit {
	struct ax_flow_key flow; /* (client, asked); a client on lo as the app sees it */
	struct ax_endpoint to;
	__be16 client_port_be; /* as the app sees it */
	bool on_lo;	       /* from 127.0.0.1 or ::1, to which the app could not answer */
	bool pad;
	__u32 ifindex; /* the app's host end, or THIS_HOST */
};

/* Where packets for an app go, 0: nowhere. TCP of host-mode apps is none of this. */
static __always_inline __u32 way_to(const struct ax_vip *vip, __u8 proto)
{
	if (!vip || vip->kind != AX_VIP_APP)
		return 0;
	return vip->ifindex || proto != IPPROTO_UDP ? vip->ifindex : THIS_HOST;
}

/* Another program of this machine asks by a loopback address: from the usual one, which the answer
 * goes to. */
static __always_inline bool from_loopback(const struct __sk_buff *skb, const struct packet *p)
{
	return skb->ifindex == LO_IFINDEX && addr_is_loopback(&p->dst) &&
	       p->src.w[3] == bpf_htonl(p->v4 ? 0x7f000001 : 1);
}

/* Who asks. False: nobody whom this is for. Apps have names to go by: with the address of one
 * nobody comes in here. */
static __always_inline bool client_of(const struct __sk_buff *skb, const struct packet *p,
				      const struct ax_ctl *c, struct visit *v)
{
	const struct ax_vip *src;

	v->flow.client.addr = p->src;
	v->flow.client.port_be = p->sport_be;
	v->flow.client.proto = p->proto;
	v->flow.peer.addr = p->dst;
	v->flow.peer.port_be = p->dport_be;
	v->flow.peer.proto = p->proto;
	if (addr_is_loopback(&p->src) || addr_is_loopback(&p->dst)) {
		if (!addr_is_loopback(&p->src) || !from_loopback(skb, p))
			return false;
		v->on_lo = true;
		if (p->v4) {
			v->flow.client.addr = c->host4;
			ctx_branch_end();
		} else {
			v->flow.client.addr = c->host6;
		}
		return !addr_is_zero(&v->flow.client.addr);
	}
	src = bpf_map_lookup_elem(&vips, &p->src);
	return (!src || src->kind == AX_VIP_HOST) && bpf_map_lookup_elem(&local_addrs, &p->dst);
}

/* --- flows --- */

/* A flow that stands, and leads where it should. */
static __always_inline bool known(const struct packet *p, struct visit *v)
{
	struct ax_flow *f = flow_find(&v->flow);

	if (!f || !endpoint_eq(&f->to, &v->to))
		return false;
	if (p->proto == IPPROTO_TCP && p->tcp_flags & TCP_FLAG_SYN_BIT && flow_is_closed(f->state))
		return false; /* another one from the same port */
	v->client_port_be = f->client_port_be;
	flow_seen(&v->flow, f, p->tcp_flags, false);
	return true;
}

/* `service`: that which is exposed; NULL: it is an app. (No part of its caller: the stack is
 * small.)
 */
static __noinline bool enter(struct __sk_buff *skb, struct visit *v, const struct ax_ctl *c,
			     const struct ax_endpoint *service)
{
	__u32 how = AX_FLOW_EXPOSED | (v->on_lo ? 0 : FLOW_OWN_PORT);

	if (service && service->proto == IPPROTO_TCP && service_counts(service))
		how |= FLOW_COUNTS;
	flow_forget(&v->flow);
	v->client_port_be = flow_enter(skb, &v->flow, &v->to, how, c);
	return v->client_port_be;
}

static __always_inline bool is_first(const struct packet *p)
{
	return (p->tcp_flags & (TCP_FLAG_SYN_BIT | TCP_FLAG_ACK_BIT)) == TCP_FLAG_SYN_BIT;
}

/* Of a host-mode app, which has a server of its own there or was not led here by connect(), where
 * it is judged: sk_lookup has it. */
static __noinline bool is_apps(const struct __sk_buff *skb, const struct packet *p)
{
	struct ax_flow_key key = {};

	if (skb->ifindex != LO_IFINDEX || p->proto != IPPROTO_TCP || !is_first(p))
		return false;
	key.client.addr = p->src;
	key.client.port_be = p->sport_be;
	key.client.proto = IPPROTO_TCP;
	key.peer.addr = p->dst;
	key.peer.port_be = p->dport_be;
	key.peer.proto = IPPROTO_TCP;
	return bpf_map_lookup_elem(&own_conns, &key) != NULL;
}

/* Rules about addresses outside ax come before the permission that exposing is. (Not static: the
 * verifier looks at it once.) */
__weak __noinline int is_kept_out(const struct packet *p, const struct ax_endpoint *to, __u32 party)
{
	struct question q;
	__u64 v;

	if (!p || !to)
		return true;
	if (p->proto == IPPROTO_TCP && !is_first(p))
		return false;
	q.parties = question_parties(AX_PARTY_NONE, party);
	q.ports = question_ports(to->proto, to->port_be, p->sport_be);
	v = verdict_of(&q, &p->src);
	if (v) {
		count_verdict(v);
		saw(&p->src, to, v, SEEN(AX_SEEN_AT_FABRIC, 0), 0);
	}
	return v & VERDICT_DENY ? 1 : 0;
}

/* What does not begin a connection belongs to one whose entry is gone, or to none: then the app
 * says so. But by a port that connections get which the host masquerades it may be one of those:
 * there an entry has to be left, though its time is over. */
static __always_inline bool may_enter(const struct packet *p, const struct visit *v,
				      const struct ax_ctl *c)
{
	const struct ax_flow *left;

	if (p->proto != IPPROTO_TCP || is_first(p))
		return true;
	if (p->tcp_flags & TCP_FLAG_SYN_BIT) /* what answers a connection of somebody else's */
		return false;
	if (v->on_lo || p->tcp_flags & TCP_FLAG_RST_BIT)
		return false;
	if (bpf_ntohs(p->dport_be) < c->ephemeral_first)
		return true;
	left = bpf_map_lookup_elem(&flows, &v->flow);
	return left && endpoint_eq(&left->to, &v->to);
}

/* --- packets --- */

/* (What this host sends itself by lo is not in fragments.) */
static __always_inline void remember_fragment(struct __sk_buff *skb, const struct packet *p,
					      const struct visit *v)
{
	if (!v->on_lo)
		fragment_remember(skb, p, &v->to.addr, v->ifindex);
}

static __noinline int deliver_fragment(struct __sk_buff *skb, const struct packet *p)
{
	const struct ax_exposed_fragment *f = fragment_find(skb, p, false);
	__u32 way;

	if (!f)
		return NOT_OURS;
	way = f->ifindex;
	if (fragment_rewrite(skb, p, false, f)) {
		count(AX_COUNT_ERROR);
		return TC_ACT_SHOT;
	}
	return way == THIS_HOST ? NOT_OURS : to_device(skb, way);
}

static __noinline int deliver(struct __sk_buff *skb, const struct packet *p, const struct visit *v)
{
	struct ax_endpoint client = v->flow.client;

	client.port_be = v->client_port_be;
	if (p->fragment)
		remember_fragment(skb, p, v);
	if (v->on_lo && rewrite_endpoint(skb, p, true, &client))
		goto failed;
	if (!v->on_lo && client.port_be != p->sport_be &&
	    rewrite_port(skb, p, true, client.port_be))
		goto failed;
	if (rewrite_endpoint(skb, p, false, &v->to))
		goto failed;
	if (v->ifindex == THIS_HOST)
		return NOT_OURS;
	if (skb->ifindex != LO_IFINDEX)
		return to_device(skb, v->ifindex);
	/* What is on lo has been routed already, and is sent anew. */
	if (bpf_skb_store_bytes(skb, 0, (const void *)device_mac, sizeof(device_mac), 0))
		goto failed;
	skb->tc_index = FOR_EXPOSED;
	return bpf_redirect(v->ifindex, 0);
failed:
	count(AX_COUNT_ERROR);
	return TC_ACT_SHOT;
}

/* --- services --- */

/* A search for a backend: one that listens, else the first to which a way leads. */
struct exposed_offer {
	struct choice choice;
	struct ax_endpoint ep;
	__u32 way; /* to that one; 0: there is none yet */
};

/* The next backend that the strategy names: enum tried. (Not static: the verifier looks at it once,
 * and not for each try.) */
__weak __noinline int exposed_next(struct ax_service *svc, struct exposed_offer *o)
{
	struct ax_endpoint ep = {}; /* keys are on the stack to Linux 6.1, and all written */
	struct ax_vip *vip;
	__u32 way;
	bool listens;
	int r;

	if (!svc || !o)
		return TRY_END;
	r = choose_next(&o->choice, svc, &ep);
	if (r != CHOSEN)
		return r == CHOSEN_NONE ? TRY_END : TRY_NEXT;
	vip = bpf_map_lookup_elem(&vips, &ep.addr);
	way = way_of(vip, true);
	if (!vip || !way || (ep.proto == IPPROTO_TCP && is_to_start(vip)))
		return TRY_NEXT;
	listens = server_of(&ep, vip) != NULL;
	if (listens && !affinity_keep(&o->choice, svc))
		return TRY_NEXT;
	/* (TCP to one in host mode that does not listen is refused without this) */
	if (!listens && (o->way || (way == THIS_HOST && ep.proto == IPPROTO_TCP)))
		return TRY_NEXT;
	o->ep = ep;
	o->way = way;
	return listens ? TRY_TAKEN : TRY_NEXT;
}

/* A backend, one that listens if there is any: exposing is the permission. Returns the way to it or
 * 0. (Not static: the verifier looks at it once, and keys are on the stack to Linux 6.1.) */
__weak __noinline __u32 choose_exposed(const struct ax_endpoint *service,
				       const struct ax_addr *client, struct ax_endpoint *ret)
{
	struct exposed_offer o = {};
	struct ax_service *svc;

	if (!service || !client || !ret)
		return 0;
	o.choice.asked = *service;
	o.choice.client = *client;
	svc = find_service(&o.choice.asked);
	if (!svc)
		return 0;
	o.choice.start = bpf_get_prandom_u32();
	for (__u32 i = 0; i < CHOOSE_TRIES; i++) {
		if (exposed_next(svc, &o) != TRY_NEXT)
			break;
	}
	if (o.way)
		*ret = o.ep;
	return o.way;
}

/* A flow that stands leads to the backend that it began with, as long as there is one. */
static __always_inline bool stands(const struct packet *p, struct visit *v)
{
	struct ax_flow *f = flow_find(&v->flow);
	struct ax_vip *vip = f ? bpf_map_lookup_elem(&vips, &f->to.addr) : NULL;

	if (!f || !vip)
		return false;
	v->ifindex = way_to(vip, p->proto);
	v->to = f->to;
	return v->ifindex && known(p, v);
}

/* A connection to a backend in host mode, which is sk_lookup's. `to`: it has just been chosen;
 * NULL: whether it was before. */
static __noinline bool is_picked(const struct packet *p, const struct ax_endpoint *service,
				 const struct ax_endpoint *to)
{
	struct ax_flow_key flow = {.peer = *service};

	flow.client.addr = p->src;
	flow.client.port_be = p->sport_be;
	flow.client.proto = p->proto;
	if (!to)
		return picked_before(&flow);
	picked_note(&flow, to);
	return true;
}

static __always_inline int to_service(struct __sk_buff *skb, const struct packet *p,
				      const struct ax_ctl *c, struct visit *v,
				      const struct ax_exposed *x)
{
	struct ax_endpoint service = x->to;
	struct ax_vip *vip;

	if (stands(p, v))
		return deliver(skb, p, v);
	/* (not even a look at backends that sk_lookup chooses of: strategies count them) */
	if (!(x->flags & AX_EXPOSED_PRIVATE) && p->proto == IPPROTO_TCP)
		return NOT_OURS;
	if (p->proto == IPPROTO_TCP && (!is_first(p) || is_picked(p, &service, NULL)))
		return NOT_OURS;
	v->ifindex = choose_exposed(&service, &v->flow.client.addr, &v->to);
	if (v->ifindex == THIS_HOST && p->proto == IPPROTO_TCP) {
		flow_forget(&v->flow);
		is_picked(p, &service, &v->to);
		return NOT_OURS;
	}
	vip = v->ifindex ? bpf_map_lookup_elem(&vips, &v->to.addr) : NULL;
	if (vip && is_kept_out(p, &v->to, vip->party))
		return TC_ACT_SHOT;
	if (!vip || !enter(skb, v, c, &service))
		return NOT_OURS;
	return deliver(skb, p, v);
}

static __always_inline int to_app(struct __sk_buff *skb, const struct packet *p,
				  const struct ax_ctl *c, struct visit *v,
				  const struct ax_exposed *x)
{
	struct ax_vip *vip;

	v->to = x->to;
	vip = bpf_map_lookup_elem(&vips, &v->to.addr);
	v->ifindex = way_to(vip, p->proto);
	if (!vip || !v->ifindex)
		return NOT_OURS;
	if (p->proto == IPPROTO_TCP && is_first(p) && is_to_start(vip))
		return NOT_OURS;
	if (is_kept_out(p, &v->to, vip->party))
		return TC_ACT_SHOT;
	if (!known(p, v) && (!may_enter(p, v, c) || !enter(skb, v, c, NULL)))
		return NOT_OURS;
	return deliver(skb, p, v);
}

/* An error about what an app has sent: to the app. */
static __noinline int to_sender(struct __sk_buff *skb, const struct packet *p)
{
	struct quote q = {};
	const struct ax_vip *vip;
	__u32 way;

	if (skb->ifindex == LO_IFINDEX || !quote_read(skb, p, &q))
		return NOT_OURS;
	vip = bpf_map_lookup_elem(&vips, &q.to.addr);
	way = way_to(vip, q.flow.peer.proto);
	if (!way)
		return NOT_OURS;
	if (quote_write(skb, p, &q)) {
		count(AX_COUNT_ERROR);
		return TC_ACT_SHOT;
	}
	return way == THIS_HOST ? NOT_OURS : to_device(skb, way);
}

/* Whether what is sent to a mixed service has come in where its source may; else the stack is to
 * judge it. */
static __always_inline bool may_come(const struct __sk_buff *skb, const struct packet *p)
{
	const struct ax_vip *src = bpf_map_lookup_elem(&vips, &p->src);
	bool on_lo = skb->ifindex == LO_IFINDEX;

	if (addr_is_loopback(&p->src))
		return false;
	if (!src)
		return on_lo || !is_nobodys(&p->src);
	/* (private ones come by their own devices) */
	return !is_elsewhere(src) && (src->kind != AX_VIP_APP || (on_lo && !src->ifindex));
}

static __always_inline int to_exposed(struct __sk_buff *skb, const struct packet *p,
				      const struct ax_ctl *c)
{
	const struct ax_exposed *x;
	struct visit v = {};

	if (!port_is_exposed(p->dport_be, p->proto) || !client_of(skb, p, c, &v))
		return NOT_OURS;
	if (is_apps(skb, p)) {
		flow_forget(&v.flow);
		return NOT_OURS;
	}
	x = exposed_at(&v.flow.peer, skb->ifindex);
	if (!x || x->flags & AX_EXPOSED_SOON)
		return NOT_OURS;
	return x->flags & AX_EXPOSED_SERVICE ? to_service(skb, p, c, &v, x)
					     : to_app(skb, p, c, &v, x);
}

SEC("tc")
int ax_from_outside(struct __sk_buff *skb)
{
	struct packet p = {};
	struct ax_ctl *c;
	__u32 zero = 0;

	c = bpf_map_lookup_elem(&ctl, &zero);
	/* (tagged: it is the VLAN's device that it is for) */
	if (!c || !(c->exposed & AX_EXPOSED_PACKETS) || skb->pkt_type != PACKET_HOST ||
	    skb->vlan_present)
		return NOT_OURS;
	if (parse_skb(skb, &p) != PARSE_OK)
		return NOT_OURS;
	if (c->exposed & AX_EXPOSED_MIXED && is_mixed(bpf_map_lookup_elem(&vips, &p.dst)))
		return may_come(skb, &p) ? to_mixed(skb, &p, c, skb->tc_index) : NOT_OURS;
	if (is_icmp_error(&p))
		return to_sender(skb, &p);
	if (p.later)
		return skb->ifindex == LO_IFINDEX ? NOT_OURS : deliver_fragment(skb, &p);
	if (p.fragment)
		fragment_forget(skb, &p);
	if (!p.has_l4)
		return NOT_OURS;
	return to_exposed(skb, &p, c);
}

/* --- answers of host-mode apps --- */

static __noinline int answer_fragment(struct __sk_buff *skb, const struct packet *p)
{
	const struct ax_exposed_fragment *f = fragment_find(skb, p, true);

	if (!f || !fragment_rewrite(skb, p, true, f))
		return NOT_OURS;
	count(AX_COUNT_ERROR);
	return TC_ACT_SHOT;
}

/* What leaves by an interface of the host, lo among them. */
SEC("tc")
int ax_to_outside(struct __sk_buff *skb)
{
	struct ax_flow_key flow = {};
	struct ax_endpoint asked, client;
	const struct ax_vip *src;
	struct packet p = {};
	struct ax_ctl *c;
	struct ax_flow *f;
	__u32 zero = 0;

	c = bpf_map_lookup_elem(&ctl, &zero);
	if (!c || !(c->exposed & AX_EXPOSED_HOST_UDP))
		return NOT_OURS;
	if (parse_skb(skb, &p) != PARSE_OK || p.proto != IPPROTO_UDP || !(p.has_l4 || p.later))
		return NOT_OURS;
	src = bpf_map_lookup_elem(&vips, &p.src);
	if (way_to(src, IPPROTO_UDP) != THIS_HOST)
		return NOT_OURS;
	if (p.later)
		return answer_fragment(skb, &p);
	flow.client.addr = p.dst;
	flow.client.port_be = p.dport_be;
	flow.client.proto = IPPROTO_UDP;
	flow.peer.addr = p.src;
	flow.peer.port_be = p.sport_be;
	flow.peer.proto = IPPROTO_UDP;
	f = flow_find(&flow);
	if (!f || f->kind != AX_FLOW_EXPOSED)
		return NOT_OURS;
	asked = f->to;
	client.addr = p.dst;
	client.port_be = f->client_port_be;
	if (addr_is_loopback(&asked.addr))
		addr_set_loopback(&client.addr, p.v4);
	flow_seen(&flow, f, 0, true);
	if (p.fragment)
		fragment_remember(skb, &p, &asked.addr, FRAGMENT_ANSWER);
	if (!rewrite_endpoint(skb, &p, true, &asked) && !rewrite_endpoint(skb, &p, false, &client))
		return NOT_OURS;
	count(AX_COUNT_ERROR);
	return TC_ACT_SHOT;
}
