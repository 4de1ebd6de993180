/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two ends of the connection that a sockops program is told of. */
#ifndef AX_OPS_ENDS_BPF_H
#define AX_OPS_ENDS_BPF_H

#include <linux/in.h>

#include "endpoint.bpf.h"
#include "verifier.bpf.h"

static __always_inline void local_of(const struct bpf_sock_ops *ctx, struct ax_endpoint *ep)
{
	if (ctx->family == AF_INET) {
		addr_set_v4(&ep->addr, ctx->local_ip4);
		ctx_branch_end();
	} else {
		ep->addr.w[0] = ctx->local_ip6[0];
		ep->addr.w[1] = ctx->local_ip6[1];
		ep->addr.w[2] = ctx->local_ip6[2];
		ep->addr.w[3] = ctx->local_ip6[3];
	}
	ep->port_be = bpf_htons(ctx->local_port);
	ep->proto = IPPROTO_TCP;
	ep->pad = 0;
}

static __always_inline void remote_of(const struct bpf_sock_ops *ctx, struct ax_endpoint *ep)
{
	if (ctx->family == AF_INET) {
		addr_set_v4(&ep->addr, ctx->remote_ip4);
		ctx_branch_end();
	} else {
		ep->addr.w[0] = ctx->remote_ip6[0];
		ep->addr.w[1] = ctx->remote_ip6[1];
		ep->addr.w[2] = ctx->remote_ip6[2];
		ep->addr.w[3] = ctx->remote_ip6[3];
	}
	/* in network byte order in the upper half of a little-endian word */
	ep->port_be = bpf_htons(bpf_ntohl(ctx->remote_port));
	ep->proto = IPPROTO_TCP;
	ep->pad = 0;
}

#endif
