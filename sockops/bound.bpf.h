/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which address and port a socket has that connects, and to which it is bound before the kernel
 * would choose some. */
#ifndef AX_BOUND_BPF_H
#define AX_BOUND_BPF_H

#include "sock_addr.bpf.h"

/* The address that the socket has, or a wildcard. */
static __always_inline void bound_to(struct bpf_sock_addr *ctx, struct ax_addr *ret)
{
	struct bpf_sock *sk = ctx->sk;

	__builtin_memset(ret, 0, sizeof(*ret));
	if (!sk)
		return;
	if (ctx->user_family == AF_INET) { /* of an IPv6 socket, too */
		addr_set_v4(ret, sk->src_ip4);
		ctx_branch_end();
	} else {
		ret->w[0] = sk->src_ip6[0];
		ret->w[1] = sk->src_ip6[1];
		ret->w[2] = sk->src_ip6[2];
		ret->w[3] = sk->src_ip6[3];
	}
}

static __always_inline long bind_to(struct bpf_sock_addr *ctx, const struct ax_addr *addr,
				    __be16 port_be)
{
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_port = port_be};
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = port_be};

	if (ctx->family == AF_INET) {
		sin.sin_addr.s_addr = addr->w[3];
		return bpf_bind(ctx, (struct sockaddr *)&sin, sizeof(sin));
	}
	__builtin_memcpy(&sin6.sin6_addr, addr, sizeof(*addr));
	return bpf_bind(ctx, (struct sockaddr *)&sin6, sizeof(sin6));
}

/*
 * Binds the source of a host-mode app's socket to its virtual IP. With port 0 the kernel picks the
 * port at connect time, as it would have without us (BIND_FORCE_ADDRESS_NO_PORT). A socket that
 * the app bound itself is left alone. 0 or a negative errno.
 */
static __noinline __attribute__((unused)) int bind_source(struct bpf_sock_addr *ctx,
							  const struct ax_addr *vip)
{
	struct bpf_sock *sk = ctx->sk;

	if (!sk || sk->src_port)
		return 0;
	return (int)bind_to(ctx, vip, 0);
}

#define PORT_TRIES 16

struct port_search {
	struct bpf_sock_addr *ctx;
	struct ax_addr addr;
	__u32 first;
	__be16 port_be; /* 0: none yet */
};

static long try_port(__u32 i __attribute__((unused)), struct port_search *s)
{
	__u32 port = s->first + bpf_get_prandom_u32() % (AX_ACROSS_FIRST - s->first);

	if (bind_to(s->ctx, &s->addr, bpf_htons((__u16)port)))
		return 0;
	s->port_be = bpf_htons((__u16)port);
	return 1;
}

/* The kernel would choose a port when no hook sees it. Returns the port, big-endian, or 0. A global
 * function, and its tries by bpf_loop(): the verifier judges it once, and one of them. */
__weak __noinline int bind_port(struct bpf_sock_addr *ctx, const struct ax_addr *addr)
{
	struct port_search s = {.ctx = ctx};
	const struct ax_ctl *c = ctl_get();

	if (!ctx || !addr || !c || c->ephemeral_first >= AX_ACROSS_FIRST)
		return 0;
	s.addr = *addr;
	s.first = c->ephemeral_first;
	bpf_loop(PORT_TRIES, try_port, &s, 0);
	return s.port_be;
}

#endif
