/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fabric between private apps and the host: tc programs on the host end of each app's veth
 * pair. A packet between two private apps is handed to the peer's namespace by
 * bpf_redirect_peer(), which keeps its GSO state; XDP on veth would lose it (2.5 times slower in
 * bulk). Everything else goes through the host's stack.
 */
#include <linux/pkt_cls.h>

#include "maps.bpf.h"
#include "parse.bpf.h"
#include "party.bpf.h"
#include "rewrite.bpf.h"

static __always_inline void count(__u32 index)
{
	__u64 *n = bpf_map_lookup_elem(&counters, &index);

	if (n)
		(*n)++; /* per CPU */
}

static __always_inline int drop(__u32 reason)
{
	count(reason);
	return TC_ACT_SHOT;
}

#define HEADERS_MAX 256 /* of a packet, as far as they are looked at */

/* The headers of a packet that was just made lie in its linear part; one that arrived from
 * elsewhere may have to be pulled there. */
static __always_inline int parse_skb(struct __sk_buff *skb, struct packet *p)
{
	int r = parse_packet((void *)(long)skb->data, (void *)(long)skb->data_end, p);

	if (r == PARSE_OK &&
	    (p->has_l4 || p->later || (p->proto != IPPROTO_TCP && p->proto != IPPROTO_UDP)))
		return r;
	if (r == PARSE_NOT_IP)
		return r;
	/* (a length of 0 would mean the linear part, which is there already) */
	bpf_skb_pull_data(skb, skb->len < HEADERS_MAX ? skb->len : HEADERS_MAX);
	return parse_packet((void *)(long)skb->data, (void *)(long)skb->data_end, p);
}

/* A segment of a connection that stands: whoever opened it was judged by its first packet. A
 * later fragment goes with its first one, which must have the whole header: else a connection could
 * be opened in pieces. */
static __always_inline bool is_answer(const struct packet *p)
{
	if (p->proto != IPPROTO_TCP)
		return false;
	return p->later || (p->has_l4 && (p->tcp_flags & (TCP_FLAG_ACK_BIT | TCP_FLAG_RST_BIT)));
}

static __always_inline bool may_pass(const struct packet *p, const struct ax_party *from,
				     const struct ax_party *to, const struct ax_ctl *c)
{
	if (p->proto != IPPROTO_TCP)
		return party_may_datagram(from, to, c) == 0;
	if (party_may(from, to, c) == 0)
		return true;
	return is_answer(p) && party_may(to, from, c) == 0;
}

static __always_inline bool is_multicast(const struct packet *p)
{
	return p->v4 ? (p->dst.b[12] & 0xf0) == 0xe0 : p->dst.b[0] == 0xff;
}

/*
 * An answer to a program outside ax that had asked for a service (service.bpf.c): it gets the
 * service's address back, and enters by the device to which the service is routed, so that a strict
 * reverse path filter agrees. Returns a verdict, or -1: no such flow.
 */
static __always_inline int answer_of_service(struct __sk_buff *skb, const struct packet *p,
					     const struct ax_ctl *c)
{
	struct ax_flow_key flow = {};
	struct ax_endpoint *service;

	if (!c || !c->service_ifindex || !p->has_l4)
		return -1;
	flow.client.addr = p->dst;
	flow.client.port_be = p->dport_be;
	flow.client.proto = p->proto;
	flow.peer.addr = p->src;
	flow.peer.port_be = p->sport_be;
	flow.peer.proto = p->proto;
	service = bpf_map_lookup_elem(&flows, &flow);
	if (!service)
		return -1;
	if (rewrite_endpoint(skb, p, true, service))
		return drop(AX_COUNT_ERROR);
	return bpf_redirect(c->service_ifindex, BPF_F_INGRESS);
}

/* From an app: its host end's ingress. */
SEC("tc")
int ax_from_app(struct __sk_buff *skb)
{
	struct ax_vip *src, *dst;
	struct ax_ctl *c;
	struct packet p;
	__u32 zero = 0;
	int r = parse_skb(skb, &p);

	if (r == PARSE_MALFORMED)
		return drop(AX_COUNT_FABRIC_MALFORMED);
	if (r != PARSE_OK || is_multicast(&p))
		return TC_ACT_SHOT; /* nobody on the other side: there is no ARP here */
	src = bpf_map_lookup_elem(&vips, &p.src);
	if (!src || src->ifindex != skb->ifindex)
		return drop(AX_COUNT_FABRIC_SOURCE);
	c = bpf_map_lookup_elem(&ctl, &zero);
	dst = bpf_map_lookup_elem(&vips, &p.dst);
	if (!dst || dst->kind == AX_VIP_HOST) {
		r = answer_of_service(skb, &p, c);
		if (r >= 0)
			return r;
	}
	if (!dst) {
		if ((src->flags & AX_VIP_EGRESS) || is_answer(&p))
			return TC_ACT_OK;
		return drop(AX_COUNT_NO_EGRESS);
	}
	if (dst->kind == AX_VIP_HOST)
		return TC_ACT_OK;
	if (!may_pass(&p, &src->party, &dst->party, c))
		return drop(AX_COUNT_FABRIC_DENIED);
	if (dst->ifindex)
		return bpf_redirect_peer(dst->ifindex, 0);
	return TC_ACT_OK;
}

/* To an app, from the host's stack: its host end's egress. (Packets of private apps do not come
 * by here.) */
SEC("tc")
int ax_to_app(struct __sk_buff *skb)
{
	struct ax_vip *src, *dst;
	struct ax_ctl *c;
	struct packet p;
	__u32 zero = 0;
	int r = parse_skb(skb, &p);

	if (r == PARSE_MALFORMED)
		return drop(AX_COUNT_FABRIC_MALFORMED);
	c = bpf_map_lookup_elem(&ctl, &zero);
	if (r != PARSE_OK || !c || is_multicast(&p))
		return TC_ACT_SHOT;
	dst = bpf_map_lookup_elem(&vips, &p.dst);
	if (!dst)
		return drop(AX_COUNT_FABRIC_DENIED);
	src = bpf_map_lookup_elem(&vips, &p.src);
	if (src && src->kind != AX_VIP_HOST) {
		if (!may_pass(&p, &src->party, &dst->party, c))
			return drop(AX_COUNT_FABRIC_DENIED);
		return TC_ACT_OK;
	}
	if (c->host_access || (dst->flags & AX_VIP_EGRESS) || is_answer(&p))
		return TC_ACT_OK;
	if (src && p.has_l4 && p.sport_be == c->dns_port_be)
		return TC_ACT_OK; /* the agent's DNS */
	return drop(AX_COUNT_FABRIC_DENIED);
}
