/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changing an endpoint of a packet on tc, checksums included (also those that a device is still to
 * complete, as all local packets' are). */
#ifndef AX_REWRITE_BPF_H
#define AX_REWRITE_BPF_H

#include <linux/bpf.h>
#include <stddef.h>

#include "parse.bpf.h"

static __always_inline int rewrite_l4(struct __sk_buff *skb, const struct packet *p, bool source,
				      __be16 port_be, const struct ax_addr *old,
				      const struct ax_addr *new)
{
	bool udp = p->proto == IPPROTO_UDP;
	__u32 check =
		p->l4_off + (udp ? offsetof(struct udphdr, check) : offsetof(struct tcphdr, check));
	/* a UDP checksum of 0 says that there is none, and stays so */
	__u64 flags = udp ? BPF_F_MARK_MANGLED_0 : 0;
	__be16 old_port = source ? p->sport_be : p->dport_be;
	__s64 diff;

	if (p->v4) {
		if (bpf_l4_csum_replace(skb, check, old->w[3], new->w[3],
					flags | BPF_F_PSEUDO_HDR | 4))
			return -1;
	} else {
		diff = bpf_csum_diff((__be32 *)old, sizeof(*old), (__be32 *)new, sizeof(*new), 0);
		if (diff < 0 || bpf_l4_csum_replace(skb, check, 0, diff, flags | BPF_F_PSEUDO_HDR))
			return -1;
	}
	if (bpf_l4_csum_replace(skb, check, old_port, port_be, flags | 2))
		return -1;
	/* source and destination port come first and second in both protocols */
	return bpf_skb_store_bytes(skb, p->l4_off + (source ? 0 : 2), &port_be, sizeof(port_be), 0)
		       ? -1
		       : 0;
}

/* The port alone, source or destination. As rewrite_endpoint(). */
static __always_inline int rewrite_port(struct __sk_buff *skb, const struct packet *p, bool source,
					__be16 port_be)
{
	bool udp = p->proto == IPPROTO_UDP;
	__u32 check =
		p->l4_off + (udp ? offsetof(struct udphdr, check) : offsetof(struct tcphdr, check));

	if (bpf_l4_csum_replace(skb, check, source ? p->sport_be : p->dport_be, port_be,
				(udp ? BPF_F_MARK_MANGLED_0 : 0) | 2))
		return -1;
	return bpf_skb_store_bytes(skb, p->l4_off + (source ? 0 : 2), &port_be, sizeof(port_be), 0)
		       ? -1
		       : 0;
}

/* Marks a packet on its way from ax_to_service() to ax_to_app(), in __sk_buff.tc_index, which
 * nobody but tc programs writes. */
#define FOR_SERVICE 0xa85e
#define FOR_EXPOSED 0xa85f /* the same, from ax_from_outside() */

/* Sets the source or the destination. The packet must have has_l4. Returns 0 or -1; pointers into
 * the packet are invalid after it. */
static __always_inline int rewrite_endpoint(struct __sk_buff *skb, const struct packet *p,
					    bool source, const struct ax_endpoint *to)
{
	struct ax_addr old = source ? p->src : p->dst, new = to->addr;
	const __u32 l3 = sizeof(struct ethhdr);

	if (rewrite_l4(skb, p, source, to->port_be, &old, &new))
		return -1;
	if (!p->v4)
		return bpf_skb_store_bytes(skb,
					   l3 + (source ? offsetof(struct ipv6hdr, saddr)
							: offsetof(struct ipv6hdr, daddr)),
					   &new, sizeof(new), 0)
			       ? -1
			       : 0;
	if (bpf_l3_csum_replace(skb, l3 + offsetof(struct iphdr, check), old.w[3], new.w[3], 4))
		return -1;
	return bpf_skb_store_bytes(skb,
				   l3 + (source ? offsetof(struct iphdr, saddr)
						: offsetof(struct iphdr, daddr)),
				   &new.w[3], 4, 0)
		       ? -1
		       : 0;
}

#endif
