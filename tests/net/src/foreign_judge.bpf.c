// SPDX-License-Identifier: GPL-2.0-or-later
/* Somebody else's XDP program: what it does with IPv4's UDP says the port that it goes to. It keeps
 * how many packets it saw, and by which interface the last one came. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u32);
} seen SEC(".maps");

static __always_inline int sent_back(unsigned char *data)
{
	for (int i = 0; i < 6; i++) {
		unsigned char to = data[i];

		data[i] = data[i + 6];
		data[i + 6] = to;
	}
	return XDP_TX;
}

SEC("xdp")
int foreign_judge(struct xdp_md *ctx)
{
	unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 *n = bpf_map_lookup_elem(&seen, &(__u32){0});
	__u32 *by = bpf_map_lookup_elem(&seen, &(__u32){1});

	if (n)
		++*n;
	if (by)
		*by = ctx->ingress_ifindex;
	if (data + 38 > end || data[12] != 8 || data[13] || data[23] != 17)
		return XDP_PASS;
	switch (data[36] << 8 | data[37]) {
	case 1:
		return XDP_DROP;
	case 2:
		return sent_back(data);
	case 3:
		return (int)bpf_redirect(1, 0);
	case 4:
		return XDP_ABORTED;
	case 5:
		return 77;
	case 6:
		return bpf_xdp_adjust_head(ctx, -4) ? XDP_ABORTED : XDP_PASS;
	default:
		return XDP_PASS;
	}
}

char LICENSE[] SEC("license") = "GPL";
