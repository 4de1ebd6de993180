/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The source of a datagram: whose it may be. */
#ifndef AX_SOURCE_BPF_H
#define AX_SOURCE_BPF_H

#include "server.bpf.h"
#include "switch.bpf.h"

static __always_inline struct ax_asked *asked_of(struct bpf_sock_addr *ctx, bool create)
{
	struct bpf_sock *sk = ctx->sk;

	if (!sk)
		return NULL;
	return bpf_sk_storage_get(&asked, sk, NULL, create ? BPF_SK_STORAGE_GET_F_CREATE : 0);
}

/* An address that ax gives out, or has given. */
static __always_inline bool is_reserved(const struct ax_addr *addr)
{
	struct ax_prefix p = {.len = 128, .addr = *addr};

	return bpf_map_lookup_elem(&reserved, &p) || bpf_map_lookup_elem(&vips, addr);
}

/* IP_PKTINFO lets a host-mode app name any source of this machine: not another app's, nor the one
 * from which the agent answers DNS queries. (That one the kernel gives to sockets that have a port
 * of its choice already when they connect: it is theirs then.) */
static __always_inline bool is_anothers(const struct ax_app *app, const struct ax_addr *source)
{
	if (!app || !(app->flags & AX_APP_HOST) || addr_eq(source, &app->vip4) ||
	    addr_eq(source, &app->vip6) || is_own_anchor(app, source))
		return false;
	return is_reserved(source);
}

/* The source is the one that the socket has. */
static __always_inline bool is_bound4(const struct bpf_sock_addr *ctx)
{
	struct bpf_sock *sk = ctx->sk;

	return sk && sk->src_ip4 == ctx->msg_src_ip4;
}

static __always_inline bool is_bound6(const struct bpf_sock_addr *ctx, const struct ax_addr *source)
{
	struct bpf_sock *sk = ctx->sk;

	return sk && sk->src_ip6[0] == source->w[0] && sk->src_ip6[1] == source->w[1] &&
	       sk->src_ip6[2] == source->w[2] && sk->src_ip6[3] == source->w[3];
}

#endif
