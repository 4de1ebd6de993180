// SPDX-License-Identifier: GPL-2.0-or-later
/* Somebody else's program of tc: it drops UDP to port 9999, puts UDP to port 7007 into VLAN 7, and
 * leaves the rest to who stands behind. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#define SEC(name) __attribute__((section(name), used))

static long (*const skb_vlan_push)(struct __sk_buff *skb, __be16 proto,
				   __u16 tci) = (void *)BPF_FUNC_skb_vlan_push;

SEC("tc")
int foreign_tc(struct __sk_buff *skb)
{
	unsigned char *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;

	if (data + 38 > end || data[12] != 8 || data[13] || data[23] != 17)
		return TC_ACT_UNSPEC;
	if ((data[36] << 8 | data[37]) == 7007)
		skb_vlan_push(skb, 0x0081, 7); /* ETH_P_8021Q, in the order of the network */
	else if ((data[36] << 8 | data[37]) == 9999)
		return TC_ACT_SHOT;
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "GPL";
