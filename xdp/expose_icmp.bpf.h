/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ICMP errors about packets that an app has sent to a client of its exposed port: what is too long
 * for the way (path MTU discovery), or does not arrive. They quote the packet as the host has sent
 * it; the app gets it as it has sent it itself. BPF only.
 */
#ifndef AX_EXPOSE_ICMP_BPF_H
#define AX_EXPOSE_ICMP_BPF_H

#include <stddef.h>
#include <linux/bpf.h>

#include "endpoint.bpf.h"
#include "flows.bpf.h"
#include "parse.bpf.h"
#include "rewrite.bpf.h"
#include "verifier.bpf.h"

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

/* False: it is about no flow of an exposed port. */
static __noinline __attribute__((unused)) bool quote_read(struct __sk_buff *skb,
							  const struct packet *p, struct quote *q)
{
	const struct ax_flow *f;
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
	f = flow_find(&q->flow);
	if (!f || f->kind != AX_FLOW_EXPOSED)
		return false;
	q->to = f->to;
	q->client_port_be = f->client_port_be;
	return true;
}

/* An IPv4 address, and its header's checksum: together they change no sum of what is around. */
static __always_inline int quote_set4(struct __sk_buff *skb, __u32 header, __u32 field, __be32 old,
				      __be32 new)
{
	return bpf_l3_csum_replace(skb, header + offsetof(struct iphdr, check), old, new, 4) ||
	       bpf_skb_store_bytes(skb, header + field, &new, sizeof(new), 0);
}

static __always_inline int quote_set6(struct __sk_buff *skb, const struct packet *p,
				      const struct quote *q)
{
	struct ax_addr old = p->dst, new = q->to.addr;
	__s64 diff = diff6(&old, &new);

	/* the address is in what is quoted, and in what the checksum says of the packet itself */
	return diff < 0 || bpf_l4_csum_replace(skb, q->check_off, 0, diff, 0) ||
	       check_address6(skb, q->check_off, 0, &old, &new) ||
	       bpf_skb_store_bytes(skb, q->l3_off + offsetof(struct ipv6hdr, saddr), &new,
				   sizeof(new), 0) ||
	       bpf_skb_store_bytes(skb, sizeof(struct ethhdr) + offsetof(struct ipv6hdr, daddr),
				   &new, sizeof(new), 0);
}

/* 0, or -1: pointers into the packet are invalid after it. */
static __noinline __attribute__((unused)) int
quote_write(struct __sk_buff *skb, const struct packet *p, const struct quote *q)
{
	__be16 ports[2] = {q->to.port_be, q->client_port_be};

	if (bpf_l4_csum_replace(skb, q->check_off, q->flow.peer.port_be, ports[0], 2) ||
	    bpf_l4_csum_replace(skb, q->check_off, q->flow.client.port_be, ports[1], 2) ||
	    bpf_skb_store_bytes(skb, q->l4_off, ports, sizeof(ports), 0))
		return -1;
	if (!p->v4)
		return quote_set6(skb, p, q) ? -1 : 0;
	return quote_set4(skb, q->l3_off, offsetof(struct iphdr, saddr), p->dst.w[3],
			  q->to.addr.w[3]) ||
			       quote_set4(skb, sizeof(struct ethhdr), offsetof(struct iphdr, daddr),
					  p->dst.w[3], q->to.addr.w[3])
		       ? -1
		       : 0;
}

#endif
