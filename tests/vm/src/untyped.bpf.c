// SPDX-License-Identifier: GPL-2.0-or-later
// flags: -g0
/* A program of somebody else without BTF, for test_xdp_foreign.sh. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int untyped(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
