/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which packets are for exposed ports (include/expose.h), for lists that let these through. What
 * tells them from others is the agent's: see agent/datapath/xdp_exposed.c. */
#ifndef AX_EXPOSED_PORTS_BPF_H
#define AX_EXPOSED_PORTS_BPF_H

#include <linux/in.h>

#include "nat.bpf.h"
#include "rules.bpf.h"

/* Of IPv4: ::ffff:0.0.0.0. */
static __always_inline void set_any(struct ax_addr *a)
{
	a->w[3] = 0;
	if (a->w[0] || a->w[1] || a->w[2] != bpf_htonl(0xffff))
		a->w[0] = a->w[1] = a->w[2] = 0;
}

/* What is for another machine this one may have to forward, but has not exposed. (A global
 * function: it is verified once.) */
__weak __noinline int to_exposed(const struct packet *p)
{
	struct ax_exposed_key key = {};
	__u32 word;
	__u64 *bits;

	if (!p || !p->has_l4 || (p->proto != IPPROTO_TCP && p->proto != IPPROTO_UDP))
		return 0;
	word = AX_EXPOSED_WORD(bpf_ntohs(p->dport_be), p->proto == IPPROTO_UDP);
	bits = bpf_map_lookup_elem(&exposed_ports, &word);
	if (!bits || !(*bits & AX_EXPOSED_BIT(bpf_ntohs(p->dport_be))))
		return 0;
	key.at.addr = p->dst;
	if (!bpf_map_lookup_elem(&exposed, &key))
		return 0;
	key.at.port_be = p->dport_be;
	key.at.proto = p->proto;
	if (bpf_map_lookup_elem(&exposed, &key))
		return 1;
	set_any(&key.at.addr);
	if (bpf_map_lookup_elem(&exposed, &key))
		return 1;
	key.ifindex = layout.ifindex;
	/* (tagged: it comes in by the VLAN's interface) */
	return p->vlan == AX_VLAN_NONE && bpf_map_lookup_elem(&exposed, &key);
}

/* Later fragments by their first one. With `keep` no trace of the packet is left. */
static __noinline __attribute__((unused)) int is_exposed(struct xdp_md *ctx, const struct packet *p,
							 bool keep)
{
	struct ax_nat_fragment key;
	__u32 one = 1;

	if (p->later)
		return nat_fragment_key(ctx, p, &key) &&
		       bpf_map_lookup_elem(&exposed_fragments, &key);
	if (!to_exposed(p))
		return 0;
	if (p->fragment == AX_FRAGMENT_FIRST && !keep && nat_fragment_key(ctx, p, &key))
		bpf_map_update_elem(&exposed_fragments, &key, &one, BPF_ANY);
	return 1;
}

#endif
