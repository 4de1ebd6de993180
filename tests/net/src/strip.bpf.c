// SPDX-License-Identifier: GPL-2.0-or-later
/* A machine on the way that does not know an option of a SYN (RFC 6994) and puts padding in its
 * place: for tc, at the egress. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/types.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define OPTION (20 + 20) /* behind what Linux has in each SYN */
#define LEN    18

SEC("tc")
int strip(struct __sk_buff *skb)
{
	__be32 old[5] = {}, padding[5] = {0x01010101, 0x01010101, 0x01010101, 0x01010101};
	/* behind an IP header without options */
	__u32 tcp = ETH_HLEN + (skb->protocol == bpf_htons(ETH_P_IPV6) ? 40 : 20);
	__u8 flags;

	if (bpf_skb_load_bytes(skb, tcp + 13, &flags, 1) || flags != 2 ||
	    bpf_skb_load_bytes(skb, tcp + OPTION, old, LEN) || (old[0] & 0xff) != 253)
		return TC_ACT_OK;
	padding[4] = 0x0101; /* (little-endian, as the machines of these tests) */
	if (bpf_skb_store_bytes(skb, tcp + OPTION, padding, LEN, 0))
		return TC_ACT_SHOT;
	bpf_l4_csum_replace(skb, tcp + 16, 0,
			    bpf_csum_diff(old, sizeof(old), padding, sizeof(padding), 0), 0);
	return TC_ACT_OK;
}

char _license[] SEC("license") = "GPL";
