/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether a program of this host has a TCP connection, for programs on tc. */
#ifndef AX_HOST_SOCKET_BPF_H
#define AX_HOST_SOCKET_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "endpoint.bpf.h"

/* One that is established or was just asked for, with these ends. (Not static: the verifier looks
 * at it once.) */
__weak __noinline int host_is_connected(struct __sk_buff *skb, const struct ax_endpoint *local,
					const struct ax_endpoint *remote)
{
	struct bpf_sock_tuple t = {};
	struct bpf_sock *sk;
	__u32 state;

	if (!local || !remote)
		return false;
	if (addr_is_v4(&local->addr)) {
		t.ipv4.saddr = remote->addr.w[3];
		t.ipv4.daddr = local->addr.w[3];
		t.ipv4.sport = remote->port_be;
		t.ipv4.dport = local->port_be;
		sk = bpf_skc_lookup_tcp(skb, &t, sizeof(t.ipv4), BPF_F_CURRENT_NETNS, 0);
	} else {
		__builtin_memcpy(t.ipv6.saddr, &remote->addr, 16);
		__builtin_memcpy(t.ipv6.daddr, &local->addr, 16);
		t.ipv6.sport = remote->port_be;
		t.ipv6.dport = local->port_be;
		sk = bpf_skc_lookup_tcp(skb, &t, sizeof(t.ipv6), BPF_F_CURRENT_NETNS, 0);
	}
	if (!sk)
		return false;
	state = sk->state;
	bpf_sk_release(sk);
	return state != BPF_TCP_LISTEN;
}

#endif
