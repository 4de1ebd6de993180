/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two ends of a TCP socket's connection, from the kernel's own structure. */
#ifndef AX_SOCK_ENDS_BPF_H
#define AX_SOCK_ENDS_BPF_H

#include <linux/in.h>
#include <linux/in6.h>

#include "endpoint.bpf.h"
#include "kernel.bpf.h"

static __always_inline void ends_of(const struct sock_common *skc, struct ax_endpoint *local,
				    struct ax_endpoint *remote)
{
	if (skc->skc_family == AF_INET) {
		addr_set_v4(&local->addr, skc->skc_rcv_saddr);
		addr_set_v4(&remote->addr, skc->skc_daddr);
	} else {
		for (int i = 0; i < 4; i++) {
			local->addr.w[i] = skc->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
			remote->addr.w[i] = skc->skc_v6_daddr.in6_u.u6_addr32[i];
		}
	}
	local->port_be = bpf_htons(skc->skc_num);
	local->proto = IPPROTO_TCP;
	remote->port_be = skc->skc_dport;
	remote->proto = IPPROTO_TCP;
}

#endif
