/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Services with backends of both modes (AX_VIP_MIXED). Their address is this host's, so that what
 * is open to a backend in host mode goes on, whoever else comes; of what comes in for it is taken
 * off here what is open to private ones. Who gets what begins ax_to_service() chooses, at the
 * egress of the services' device; it sends back, marked, what is the stack's.
 */
#ifndef AX_SERVICE_MIXED_BPF_H
#define AX_SERVICE_MIXED_BPF_H

#include "service_way.bpf.h"
#include "to_device.bpf.h"

static __always_inline bool is_mixed(const struct ax_vip *vip)
{
	return vip && vip->kind == AX_VIP_SERVICE && vip->flags & AX_VIP_MIXED;
}

/* TC_ACT_UNSPEC: the host's stack has it. `mark`: __sk_buff.tc_index as it came. */
static __always_inline int to_mixed(struct __sk_buff *skb, const struct packet *p,
				    const struct ax_ctl *c, __u32 mark)
{
	struct way w = {};

	if (!p->has_l4 || mark == FOR_HOST || !c->service_ifindex)
		return TC_ACT_UNSPEC;
	way_begin(p, &w);
	if (way_known(p, &w)) {
		/* what has been routed already is sent anew */
		if (bpf_skb_store_bytes(skb, 0, (const void *)device_mac, sizeof(device_mac), 0))
			return TC_ACT_SHOT;
		return way_deliver(skb, p, &w);
	}
	if (p->proto == IPPROTO_TCP && !(p->tcp_flags & TCP_FLAG_SYN_BIT))
		return TC_ACT_UNSPEC;
	return (int)bpf_redirect(c->service_ifindex, 0);
}

#endif
