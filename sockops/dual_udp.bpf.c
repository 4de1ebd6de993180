/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * UDP servers of host-mode apps that the kernel would not find, or not them alone, by their
 * address: dual-stack ones, which sit on the IPv4 address and are brought what comes to the IPv6
 * one, and those with SO_REUSEADDR, which lets anybody bind a second socket there. For TCP, sockops
 * hands sk_lookup the listener; nothing does that for UDP, so the agent runs this iterator over the
 * namespace's UDP sockets when one was bound (and when it starts).
 */
#include "switch.bpf.h"
#include "kernel.bpf.h"

static __always_inline void hand(struct udp_sock *udp, const struct ax_asked *a, int i)
{
	struct ax_endpoint ep = a->served[i];
	struct ax_vip *vip;

	if (!ep.port_be)
		return;
	vip = bpf_map_lookup_elem(&vips, &ep.addr);
	if (!vip || vip->kind != AX_VIP_APP || vip->id != a->app || !(vip->flags & AX_VIP_LOCAL))
		return; /* of an app that has ended, or on loopback */
	if (bpf_map_update_elem(&listeners, &ep, udp, BPF_ANY))
		count(AX_COUNT_SERVERS_REFUSED);
}

/* What the app itself sends to its anchor, for a server of both families (serves_anchor()). */
static __always_inline void hand_anchor(struct udp_sock *udp, const struct ax_asked *a)
{
	struct ax_endpoint at = a->served[0], ep = a->served[1];
	const struct ax_ctl *c = ctl_get();
	struct ax_vip *vip;

	if (!c || !at.port_be || !addr_is_v4(&at.addr) || ep.port_be || !a->served[3].port_be ||
	    !is_anchor(&ep.addr, c))
		return;
	vip = bpf_map_lookup_elem(&vips, &at.addr);
	if (!vip || vip->kind != AX_VIP_APP || vip->id != a->app)
		return; /* it has ended */
	ep.port_be = at.port_be;
	ep.proto = IPPROTO_UDP;
	ep.pad = 0;
	if (bpf_map_update_elem(&listeners, &ep, udp, BPF_ANY))
		count(AX_COUNT_SERVERS_REFUSED);
}

SEC("iter/udp")
int ax_dual_udp(struct bpf_iter__udp *ctx)
{
	struct udp_sock *udp = ctx->udp_sk;
	struct ax_asked *a;

	if (!udp)
		return 0;
	a = bpf_sk_storage_get(&asked, udp, NULL, 0);
	if (!a || (a->flags & AX_ASKED_CLIENT))
		return 0;
	if (a->flags & AX_ASKED_SHARED)
		hand(udp, a, 0);
	if (a->flags & AX_ASKED_ELSEWHERE)
		hand(udp, a, 1);
	hand_anchor(udp, a);
	return 0;
}
