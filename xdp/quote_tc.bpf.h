/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What ICMP errors quote of a packet that an app has sent, for programs on tc. BPF only. */
#ifndef AX_QUOTE_TC_BPF_H
#define AX_QUOTE_TC_BPF_H

#include <stddef.h>
#include <linux/bpf.h>

#include "endpoint.bpf.h"
#include "flows.bpf.h"
#include "parse.bpf.h"

/* Quoted headers without options and extensions: others no host sends to a client. */
struct quote {
	struct ax_flow_key flow; /* (client, asked) */
	struct ax_endpoint to;	 /* the app's */
	__be16 client_port_be;	 /* as the app sees it */
	__u16 l3_off, l4_off;	 /* of what is quoted */
	__u16 check_off;	 /* of the ICMP checksum */
};

static __always_inline bool is_icmp_error(const struct packet *p)
{
	__u8 type = p->icmp >> 8;

	if (!p->has_icmp || p->fragment)
		return false;
	return p->v4 ? type == 3 || type == 11 || type == 12 : type >= 1 && type <= 4;
}

static __always_inline bool quote_read4(struct __sk_buff *skb, struct quote *q)
{
	struct iphdr ip;

	if (bpf_skb_load_bytes(skb, q->l3_off, &ip, sizeof(ip)) || ip.version != 4 || ip.ihl != 5)
		return false;
	addr_set_v4(&q->flow.peer.addr, ip.saddr);
	addr_set_v4(&q->flow.client.addr, ip.daddr);
	q->flow.peer.proto = q->flow.client.proto = ip.protocol;
	q->l4_off = q->l3_off + sizeof(ip);
	return !(ip.frag_off & bpf_htons(0x1fff));
}

static __always_inline bool quote_read6(struct __sk_buff *skb, struct quote *q)
{
	struct ipv6hdr ip;

	if (bpf_skb_load_bytes(skb, q->l3_off, &ip, sizeof(ip)) || ip.version != 6)
		return false;
	__builtin_memcpy(&q->flow.peer.addr, &ip.saddr, sizeof(ip.saddr));
	__builtin_memcpy(&q->flow.client.addr, &ip.daddr, sizeof(ip.daddr));
	q->flow.peer.proto = q->flow.client.proto = ip.nexthdr;
	q->l4_off = q->l3_off + sizeof(ip);
	return true;
}

/* Whom it is about, of TCP or UDP: who is quoted as the sender is who is told. False: not so. */
static __always_inline bool quote_ends(struct __sk_buff *skb, const struct packet *p,
				       struct quote *q)
{
	__be16 ports[2];
	__u8 proto;

	q->l3_off = p->l4_off + 8;
	q->check_off = p->l4_off + 2;
	if (!(p->v4 ? quote_read4(skb, q) : quote_read6(skb, q)))
		return false;
	proto = q->flow.peer.proto;
	if ((proto != IPPROTO_TCP && proto != IPPROTO_UDP) || !addr_eq(&q->flow.peer.addr, &p->dst))
		return false;
	if (bpf_skb_load_bytes(skb, q->l4_off, ports, sizeof(ports)))
		return false;
	q->flow.peer.port_be = ports[0];
	q->flow.client.port_be = ports[1];
	return true;
}

#endif
