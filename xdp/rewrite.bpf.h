/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changing an endpoint of a packet on tc, checksums included (also those that a device is still to
 * complete, as all local packets' are). */
#ifndef AX_REWRITE_BPF_H
#define AX_REWRITE_BPF_H

#include <linux/bpf.h>
#include <stddef.h>

#include "parse.bpf.h"

static __always_inline __s64 diff6(const struct ax_addr *old, const struct ax_addr *new)
{
	return bpf_csum_diff((__be32 *)old, sizeof(*old), (__be32 *)new, sizeof(*new), 0);
}

/*
 * The checksum at offset `check`, which covers an IPv6 address that changes. The two changes take
 * each other's place in the sum that a device may have computed of the whole packet
 * (CHECKSUM_COMPLETE), while the helper takes the difference off it, as is right for IPv4 alone, if
 * it is not told otherwise (BPF_F_IPV6, Linux 6.16). It is put back: else each such packet is
 * summed up again, and the device is said to be broken. (Computed anew, not to be kept on the
 * stack, which has no room.)
 */
static __always_inline int check_address6(struct __sk_buff *skb, __u32 check, __u64 flags,
					  const struct ax_addr *old, const struct ax_addr *new)
{
	__s64 diff = diff6(old, new);

	if (diff < 0 || bpf_l4_csum_replace(skb, check, 0, diff, flags | BPF_F_PSEUDO_HDR))
		return -1;
	bpf_csum_update(skb, diff6(old, new)); /* fails where there is no such sum */
	return 0;
}

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

	if (p->v4) {
		if (bpf_l4_csum_replace(skb, check, old->w[3], new->w[3],
					flags | BPF_F_PSEUDO_HDR | 4))
			return -1;
	} else if (check_address6(skb, check, flags, old, new)) {
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
#define FOR_LISTED  0xa860 /* the same, from to_device.bpf.h */
#define FOR_HOST    0xa861 /* what ax_to_service() sends back: the stack has it */

/* The address alone, of what has no L4 header or has its checksum right already: a later fragment.
 * As rewrite_endpoint(). */
static __always_inline int rewrite_address(struct __sk_buff *skb, const struct packet *p,
					   bool source, const struct ax_addr *new)
{
	const struct ax_addr *old = source ? &p->src : &p->dst;
	const __u32 l3 = sizeof(struct ethhdr);

	if (!p->v4)
		return bpf_skb_store_bytes(skb,
					   l3 + (source ? offsetof(struct ipv6hdr, saddr)
							: offsetof(struct ipv6hdr, daddr)),
					   new, sizeof(*new), 0)
			       ? -1
			       : 0;
	if (bpf_l3_csum_replace(skb, l3 + offsetof(struct iphdr, check), old->w[3], new->w[3], 4))
		return -1;
	return bpf_skb_store_bytes(skb,
				   l3 + (source ? offsetof(struct iphdr, saddr)
						: offsetof(struct iphdr, daddr)),
				   &new->w[3], 4, 0)
		       ? -1
		       : 0;
}

/* Sets the source or the destination. The packet must have has_l4. Returns 0 or -1; pointers into
 * the packet are invalid after it. */
static __always_inline int rewrite_endpoint(struct __sk_buff *skb, const struct packet *p,
					    bool source, const struct ax_endpoint *to)
{
	if (rewrite_l4(skb, p, source, to->port_be, source ? &p->src : &p->dst, &to->addr))
		return -1;
	return rewrite_address(skb, p, source, &to->addr);
}

#endif
