/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the hooks on addresses share: endpoints of a context, and verdicts. 1: go on; 0: refuse with
 * the errno of bpf_set_retval() (5.18; it would be EPERM otherwise). BPF only.
 */
#ifndef AX_SOCK_ADDR_BPF_H
#define AX_SOCK_ADDR_BPF_H

#include "switch.bpf.h"
#include "kernel.bpf.h"

#define SOCK_STREAM_BPF 1
#define SOL_SOCKET_BPF	1

static __always_inline void peer_get4(const struct bpf_sock_addr *ctx, struct ax_endpoint *ep)
{
	addr_set_v4(&ep->addr, ctx->user_ip4);
	ep->port_be = (__be16)ctx->user_port;
	ep->proto = ctx->protocol;
	ep->pad = 0;
}

static __always_inline void peer_set4(struct bpf_sock_addr *ctx, const struct ax_endpoint *ep)
{
	ctx->user_ip4 = ep->addr.w[3];
	ctx->user_port = ep->port_be;
}

static __always_inline void peer_get6(const struct bpf_sock_addr *ctx, struct ax_endpoint *ep)
{
	ep->addr.w[0] = ctx->user_ip6[0];
	ep->addr.w[1] = ctx->user_ip6[1];
	ep->addr.w[2] = ctx->user_ip6[2];
	ep->addr.w[3] = ctx->user_ip6[3];
	ep->port_be = (__be16)ctx->user_port;
	ep->proto = ctx->protocol;
	ep->pad = 0;
}

static __always_inline void peer_set6(struct bpf_sock_addr *ctx, const struct ax_endpoint *ep)
{
	ctx->user_ip6[0] = ep->addr.w[0];
	ctx->user_ip6[1] = ep->addr.w[1];
	ctx->user_ip6[2] = ep->addr.w[2];
	ctx->user_ip6[3] = ep->addr.w[3];
	ctx->user_port = ep->port_be;
}

static __always_inline __be16 local_port(const struct bpf_sock_addr *ctx)
{
	struct bpf_sock *sk = ctx->sk;

	return sk ? bpf_htons(sk->src_port) : 0;
}

static __always_inline int refuse(int err)
{
	bpf_set_retval(err);
	return 0;
}

static __always_inline bool socket_v6only(struct bpf_sock_addr *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	const struct sock_common *skc = NULL;

	if (!sk)
		return false;
	if (ctx->protocol == IPPROTO_TCP)
		skc = (const struct sock_common *)bpf_skc_to_tcp6_sock(sk);
	else if (ctx->protocol == IPPROTO_UDP)
		skc = (const struct sock_common *)bpf_skc_to_udp6_sock(sk);
	return skc && is_v6only(skc);
}

#endif
