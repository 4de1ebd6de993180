// SPDX-License-Identifier: GPL-2.0-or-later
/* Programs of somebody else, for test_xdp_foreign.sh. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} others_next SEC(".maps");

static __always_inline struct ethhdr *ipv4(struct xdp_md *ctx)
{
	struct ethhdr *eth = (struct ethhdr *)(long)ctx->data;

	if ((void *)(eth + 1) > (void *)(long)ctx->data_end || eth->h_proto != bpf_htons(ETH_P_IP))
		return NULL;
	return eth;
}

SEC("xdp")
int others_drop(struct xdp_md *ctx)
{
	return ipv4(ctx) ? XDP_DROP : XDP_PASS;
}

/* No kernel cares for the source's address. */
SEC("xdp")
int others_change(struct xdp_md *ctx)
{
	struct ethhdr *eth = ipv4(ctx);

	if (eth)
		__builtin_memcpy(eth->h_source, "CHANGE", ETH_ALEN);
	return XDP_PASS;
}

SEC("xdp")
int others_send(struct xdp_md *ctx)
{
	struct ethhdr *eth = ipv4(ctx);

	if (!eth)
		return XDP_PASS;
	__builtin_memcpy(eth->h_source, "SENDER", ETH_ALEN);
	return XDP_TX;
}

SEC("xdp")
int others_jump(struct xdp_md *ctx)
{
	bpf_tail_call(ctx, &others_next, 0);
	return XDP_PASS;
}

SEC("xdp.frags")
int others_jumbo(struct xdp_md *ctx)
{
	return ipv4(ctx) ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
