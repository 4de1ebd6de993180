/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The way to a private app: straight into its namespace, which is fast, and past the egress of its
 * device. Where a rule list judges what leaves by that (`direction: egress`), it goes out there
 * like any other packet, with a mark that says that it was judged already.
 */
#ifndef AX_TO_DEVICE_BPF_H
#define AX_TO_DEVICE_BPF_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#include "maps.bpf.h"
#include "rewrite.bpf.h"

/* Of ax's devices, both ends of all of them. */
extern const volatile __u8 device_mac[6];

/* (On this way the kernel looks at the address once more.) Not static: the verifier looks at it
 * once. */
__weak __noinline int by_egress(struct __sk_buff *skb, __u32 ifindex)
{
	__u8 mac[6];

	for (int i = 0; i < 6; i++)
		mac[i] = device_mac[i];
	if (bpf_skb_store_bytes(skb, 0, mac, sizeof(mac), 0))
		return TC_ACT_SHOT;
	skb->tc_index = FOR_LISTED;
	return (int)bpf_redirect(ifindex, 0);
}

static __always_inline int to_device(struct __sk_buff *skb, __u32 ifindex)
{
	return bpf_map_lookup_elem(&listed, &ifindex) ? by_egress(skb, ifindex)
						      : (int)bpf_redirect_peer(ifindex, 0);
}

#endif
