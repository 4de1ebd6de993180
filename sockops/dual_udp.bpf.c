/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Dual-stack UDP sockets of host-mode apps that have addresses of both families: bind() has put
 * such a socket on the IPv4 address, and sk_lookup brings it what comes to the IPv6 one. For TCP,
 * sockops hands sk_lookup the listener; nothing does that for UDP, so the agent runs this iterator
 * over the namespace's UDP sockets when one was bound (and when it starts).
 */
#include "switch.bpf.h"
#include "kernel.bpf.h"

#include <bpf/bpf_core_read.h>

SEC("iter/udp")
int ax_dual_udp(struct bpf_iter__udp *ctx)
{
	struct udp_sock *udp = ctx->udp_sk;
	struct sock_common *skc = (struct sock_common *)udp;
	struct ax_endpoint ep = {.proto = IPPROTO_UDP};
	struct ax_vip *vip;

	if (!udp || skc->skc_family != AF_INET6 || skc->skc_dport ||
	    BPF_CORE_READ_BITFIELD(skc, skc_ipv6only))
		return 0;
	for (int i = 0; i < 4; i++)
		ep.addr.w[i] = skc->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
	if (!addr_is_v4(&ep.addr))
		return 0;
	vip = bpf_map_lookup_elem(&vips, &ep.addr);
	if (!vip || !(vip->flags & AX_VIP_LOCAL) || addr_is_zero(&vip->twin))
		return 0;
	ep.addr = vip->twin;
	ep.port_be = bpf_htons(skc->skc_num);
	bpf_map_update_elem(&listeners, &ep, udp, BPF_ANY);
	return 0;
}
