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
#include "quote_tc.bpf.h"
#include "rewrite.bpf.h"
#include "verifier.bpf.h"

/* False: it is about no flow of an exposed port. */
static __noinline __attribute__((unused)) bool quote_read(struct __sk_buff *skb,
							  const struct packet *p, struct quote *q)
{
	const struct ax_flow *f;

	if (!quote_ends(skb, p, q))
		return false;
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
