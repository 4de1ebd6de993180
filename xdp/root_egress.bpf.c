// SPDX-License-Identifier: GPL-2.0-or-later
/* What root.bpf.c is to packets that come in, to those that leave: at the interface's egress hook
 * of tc, behind all of ax's own programs. */
#define AX_ON_TC
#include "root.bpf.h"

SEC("tc")
int ax_root_egress(struct __sk_buff *skb)
{
	return to_list(skb);
}

char LICENSE[] SEC("license") = "GPL";
