// SPDX-License-Identifier: GPL-2.0-or-later
/* Somebody else's XDP program: it drops UDP to port 9999 and lets the rest through. */
#include <linux/bpf.h>

#define SEC(name) __attribute__((section(name), used))

SEC("xdp")
int foreign_filter(struct xdp_md *ctx)
{
	unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (data + 38 > end || data[12] != 8 || data[13] || data[23] != 17)
		return XDP_PASS;
	return (data[36] << 8 | data[37]) == 9999 ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
