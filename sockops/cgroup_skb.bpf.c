/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Holds back the SYN of a connect() whose server does not listen yet. Attached only while an app
 * or a service waits at all: it looks at every packet. */
#include "switch.bpf.h"
#include "held.bpf.h"

/* For the agent, see held.bpf.c. The last one: it has the time by which TCP knows its answer. */
static __always_inline void keep(struct __sk_buff *skb, struct bpf_sock *sk)
{
	struct ax_held *h = bpf_sk_storage_get(&held, sk, NULL, 0);
	__u32 len = skb->len;

	if (!h)
		return;
	h->len = 0;
	/* (in two steps: the verifier of Linux 6.1 knows a length by its bounds at the call) */
	if (len < 40 || len > AX_HELD_MAX)
		return;
	if (bpf_skb_load_bytes(skb, 0, h->packet, len) == 0)
		h->len = len;
}

static __always_inline void source_of(const struct bpf_sock *sk, struct ax_addr *ret)
{
	if (sk->family == AF_INET) {
		addr_set_v4(ret, sk->src_ip4);
		ctx_branch_end();
	} else {
		ret->w[0] = sk->src_ip6[0];
		ret->w[1] = sk->src_ip6[1];
		ret->w[2] = sk->src_ip6[2];
		ret->w[3] = sk->src_ip6[3];
	}
}

SEC("cgroup_skb/egress")
int ax_hold_syn(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct ax_endpoint ep = {.proto = IPPROTO_TCP};
	struct ax_addr from;
	struct ax_asked *a;
	struct ax_vip *vip;

	if (!sk || sk->state != BPF_TCP_SYN_SENT)
		return 1;
	sk = bpf_sk_fullsock(sk);
	if (!sk || sk->protocol != IPPROTO_TCP)
		return 1;
	a = bpf_sk_storage_get(&asked, sk, NULL, 0);
	if (!a || !a->hold_until_ns)
		return 1;
	if (a->real_peer.port_be) {
		ep = a->real_peer;
	} else {
		if (sk->family == AF_INET) {
			addr_set_v4(&ep.addr, sk->dst_ip4);
			ctx_branch_end();
		} else {
			ep.addr.w[0] = sk->dst_ip6[0];
			ep.addr.w[1] = sk->dst_ip6[1];
			ep.addr.w[2] = sk->dst_ip6[2];
			ep.addr.w[3] = sk->dst_ip6[3];
		}
		ep.port_be = sk->dst_port;
	}
	source_of(sk, &from);
	keep(skb, sk);
	/* first that, and then the look: whoever listens meanwhile tells the agent */
	__sync_lock_test_and_set(&held_any, 1);
	if (!is_served(&ep, &from) &&
	    (bpf_ktime_get_ns() < a->hold_until_ns || is_nobodys(&ep.addr))) {
		vip = bpf_map_lookup_elem(&vips, &ep.addr);
		if (vip && (vip->flags & AX_VIP_TELL))
			tell_held();
		return 0; /* as if lost: TCP tries again */
	}
	a->hold_until_ns = 0;
	return 1;
}
