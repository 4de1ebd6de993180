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

/*
 * The kernel takes a wildcard for loopback, or if it is IPv4's for `own`, the address that the
 * packets come from. So it is judged as that: other things may be exposed there.
 */
static __always_inline void name_wildcard(struct ax_endpoint *peer, const struct ax_addr *own)
{
	bool v4 = addr_is_v4(&peer->addr);

	if (!addr_is_wildcard(&peer->addr))
		return;
	if (v4 && addr_is_v4(own) && !addr_is_wildcard(own)) {
		peer->addr = *own;
		ctx_branch_end();
	} else {
		addr_set_loopback(&peer->addr, v4 || addr_is_v4(own));
	}
}

/* One that the socket has, or the program has named, and that is not the app's. */
static __always_inline bool is_other(const struct ax_app *app, const struct ax_addr *source)
{
	return !addr_is_wildcard(source) && !addr_eq(source, &app->vip4) &&
	       !addr_eq(source, &app->vip6);
}

/* From there it comes to what the app has on a wildcard in truth, if it is for that: for sk_lookup.
 * A global function: the verifier judges it once. */
__weak __noinline int expect_itself(const struct route_request *rq, const struct ax_app *app,
				    const struct ax_addr *source)
{
	struct ax_endpoint from = {.proto = IPPROTO_UDP};

	if (!rq || !app || !source || !rq->other_source || !rq->local_port_be ||
	    rq->peer.proto != IPPROTO_UDP || !has_wild(app, &rq->peer.addr, rq->peer.port_be))
		return 0;
	from.addr = *source;
	from.port_be = rq->local_port_be;
	return await_from(app->id, &from, rq->peer.port_be);
}

#endif
