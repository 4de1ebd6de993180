/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Holds back the SYN of a connect() whose server does not listen yet, and what refuses one that was
 * on its way when the server ended. Attached only while an app or a service waits at all: they look
 * at every packet. */
#include <linux/ipv6.h>

#include "switch.bpf.h"
#include "held.bpf.h"

#define TCP_FLAGS_AT 13
#define TCP_RST	     0x04

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

/* NULL: it is not a connect that waits. */
static __always_inline struct ax_asked *waiting(struct bpf_sock *sk)
{
	struct ax_asked *a;

	if (sk->protocol != IPPROTO_TCP)
		return NULL;
	a = bpf_sk_storage_get(&asked, sk, NULL, 0);
	return a && a->hold_until_ns ? a : NULL;
}

static __always_inline void peer_of(const struct bpf_sock *sk, struct ax_endpoint *ret)
{
	if (sk->family == AF_INET) {
		addr_set_v4(&ret->addr, sk->dst_ip4);
		ctx_branch_end();
	} else {
		ret->addr.w[0] = sk->dst_ip6[0];
		ret->addr.w[1] = sk->dst_ip6[1];
		ret->addr.w[2] = sk->dst_ip6[2];
		ret->addr.w[3] = sk->dst_ip6[3];
	}
	ret->port_be = sk->dst_port;
}

SEC("cgroup_skb/egress")
int ax_hold_syn(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct ax_endpoint ep = {.proto = IPPROTO_TCP};
	struct ax_addr from;
	struct ax_asked *a;
	struct ax_vip *vip;
	int served;

	if (!sk || sk->state != BPF_TCP_SYN_SENT)
		return 1;
	sk = bpf_sk_fullsock(sk);
	a = sk ? waiting(sk) : NULL;
	if (!a)
		return 1;
	if (a->real_peer.port_be)
		ep = a->real_peer;
	else
		peer_of(sk, &ep);
	source_of(sk, &from);
	keep(skb, sk);
	/* first that, and then the look: whoever listens meanwhile tells the agent */
	__sync_lock_test_and_set(&held_any, 1);
	served = is_served(&ep, &from);
	if (served == SERVED_NOT &&
	    (bpf_ktime_get_ns() < a->hold_until_ns || is_nobodys(&ep.addr))) {
		vip = bpf_map_lookup_elem(&vips, &ep.addr);
		if (vip && (vip->flags & AX_VIP_TELL))
			tell_held();
		return 0; /* as if lost: TCP tries again */
	}
	if (!refusal_waits(served))
		a->hold_until_ns = 0;
	return 1;
}

/* Of the TCP packet: is it a reset? (An IPv6 one has no other headers.) */
static __always_inline bool is_reset(struct __sk_buff *skb)
{
	__u32 off = sizeof(struct ipv6hdr);
	__u8 first, flags;

	if (bpf_skb_load_bytes(skb, 0, &first, sizeof(first)))
		return false;
	if (first >> 4 == 4)
		off = (first & 0xf) * 4;
	return !bpf_skb_load_bytes(skb, off + TCP_FLAGS_AT, &flags, sizeof(flags)) &&
	       flags & TCP_RST;
}

/* Whether others serve what was asked for, and not the one to whom that has led: who connects anew
 * gets those. */
static __always_inline bool others_serve(const struct bpf_sock *sk, struct ax_asked *a)
{
	struct ax_endpoint ep = a->real_peer;
	struct ax_addr from;

	if (!ep.port_be)
		return false;
	source_of(sk, &from);
	if (is_served(&ep, &from) != SERVED_NOT)
		return false;
	ep = a->peer;
	return is_served(&ep, &from) != SERVED_NOT;
}

/* Whether it waits for an app that its connection was to start, and that could not be started
 * (AX_HELD_NEVER). */
static __always_inline bool waits_in_vain(struct bpf_sock *sk)
{
	const struct ax_held *h = bpf_sk_storage_get(&held, sk, NULL, 0);
	const struct ax_vip *vip;
	struct ax_addr to;

	if (!h || !h->implied)
		return false;
	to = h->to.addr;
	vip = bpf_map_lookup_elem(&vips, &to);
	return !vip || !(vip->flags & AX_VIP_WAITS);
}

/* Somebody served when the SYN went out, and has ended before it came there: nobody's time to wait
 * is over for that. TCP tries again, and the SYN is held if nobody has come meanwhile. */
SEC("cgroup_skb/ingress")
int ax_hold_refusal(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct ax_asked *a;

	if (!sk || sk->state != BPF_TCP_SYN_SENT)
		return 1;
	sk = bpf_sk_fullsock(sk);
	a = sk ? waiting(sk) : NULL;
	return !a || bpf_ktime_get_ns() >= a->hold_until_ns || !is_reset(skb) ||
	       others_serve(sk, a) || waits_in_vain(sk);
}
