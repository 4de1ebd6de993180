// SPDX-License-Identifier: GPL-2.0-or-later
#include "rules.bpf.h"
SEC("xdp.frags")
int ax_balance(struct xdp_md *ctx)
{
	(void)ctx;
	(void)count_reason;
	(void)arena_get;
	return layout.rules ? XDP_DROP : XDP_PASS;
}
