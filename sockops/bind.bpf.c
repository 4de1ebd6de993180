/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bind, for IPv4 and IPv6 sockets. Its verdicts: those of sock_addr.bpf.h, and BIND_AS_OWNER. */
#include "sock_addr.bpf.h"
#include "open.bpf.h"
#include "source.bpf.h"

#define SO_REUSEADDR_BPF 2
#define BIND_AS_OWNER	 3 /* go on, and skip the check for ports below 1024 (5.12) */

static __always_inline void remember_local(struct bpf_sock_addr *ctx, const struct ax_addr *was)
{
	struct ax_asked *a = asked_of(ctx, true);

	if (!a) {
		count(AX_COUNT_ERROR);
		return; /* only getsockname() will differ */
	}
	a->local = *was;
	__sync_fetch_and_or(&a->flags, AX_ASKED_LOCAL);
}

/* bind() to a wildcard, of one family or both: see struct ax_asked. */
static __always_inline void remember_any(struct bpf_sock_addr *ctx, __u32 families)
{
	struct ax_asked *a = asked_of(ctx, true);

	if (a)
		__sync_fetch_and_or(&a->flags, families);
	else
		count(AX_COUNT_ERROR);
}

/* What an earlier bind() of the socket asked for, which has failed or is over. */
static __always_inline void forget_local(struct bpf_sock_addr *ctx)
{
	struct ax_asked *a = asked_of(ctx, false);

	if (a)
		__sync_fetch_and_and(&a->flags, ~(AX_ASKED_LOCAL | AX_ASKED_ANY4 | AX_ASKED_ANY6 |
						  AX_ASKED_ONLY6 | AX_ASKED_REUSES));
}

/*
 * SO_REUSEADDR lets anybody, whoever they are, bind a second UDP socket to the same address and
 * port, and the kernel would find that one: the agent is going to hand this one to sk_lookup.
 */
static __always_inline void note_shared(struct bpf_sock_addr *ctx, const struct ax_endpoint *ep)
{
	struct ax_asked *a;
	int on = 0;

	if (ctx->protocol != IPPROTO_UDP || !ep->port_be)
		return;
	/* (Linux before 6.1 does not tell) */
	if (bpf_getsockopt(ctx, SOL_SOCKET_BPF, SO_REUSEADDR_BPF, &on, sizeof(on)) == 0 && !on)
		return;
	a = asked_of(ctx, true);
	if (a)
		__sync_fetch_and_or(&a->flags, AX_ASKED_SHARED);
	else
		count(AX_COUNT_ERROR);
}

/* The same of one that stays on the wildcard: where others may have its port, too, sk_lookup could
 * not tell theirs. */
static __always_inline void note_reuse(struct bpf_sock_addr *ctx)
{
	int on = 0;

	if (bpf_getsockopt(ctx, SOL_SOCKET_BPF, SO_REUSEADDR_BPF, &on, sizeof(on)) || on)
		remember_any(ctx, AX_ASKED_REUSES);
}

/* *ep may be changed: an app that serves a shared address by translation listens on its own. */
static __always_inline bool own_address(struct bpf_sock_addr *ctx, const struct ax_app *app,
					struct ax_endpoint *ep)
{
	const struct ax_addr *own;

	if (addr_eq(&ep->addr, &app->vip4) || addr_eq(&ep->addr, &app->vip6))
		return true;
	if (!addr_eq(&ep->addr, &app->shared4) && !addr_eq(&ep->addr, &app->shared6))
		return false;
	own = app_vip(app, &ep->addr);
	if (!own)
		return false;
	remember_local(ctx, &ep->addr);
	ep->addr = *own;
	return true;
}

/*
 * bind() to an address that is not a wildcard. Returns a verdict. app: NULL for a process that
 * was given an app's socket. IP_FREEBIND lets anybody bind what nobody has yet, so that an address
 * is refused before it is given out.
 */
static __always_inline int bind_address(struct bpf_sock_addr *ctx, const struct ax_app *app,
					struct ax_endpoint *ep)
{
	const struct ax_netns_app *ns = netns_of(ctx);

	if (!ns)
		return 1;
	if (app && is_home(ns, app) && own_address(ctx, app, ep)) {
		if (!ns->id)
			note_shared(ctx, ep);
		return BIND_AS_OWNER;
	}
	if (!is_reserved(&ep->addr))
		return 1;
	count(AX_COUNT_BIND_REFUSED);
	return refuse(-EADDRNOTAVAIL);
}

/* Whether it shares its wildcard addresses with others: each app gets its own in their place. */
static __always_inline bool shares_wildcard(struct bpf_sock_addr *ctx, const struct ax_app *app)
{
	const struct ax_netns_app *ns;

	if (!app || !(app->flags & AX_APP_HOST))
		return false;
	ns = netns_of(ctx);
	return ns && is_home(ns, app);
}

SEC("cgroup/bind4")
int ax_bind4(struct bpf_sock_addr *ctx)
{
	struct ax_app *app = current_app();
	struct ax_endpoint ep;
	int verdict;

	peer_get4(ctx, &ep);
	forget_local(ctx);
	if (!addr_is_wildcard(&ep.addr)) {
		verdict = bind_address(ctx, app, &ep);
		if (verdict)
			ctx->user_ip4 = ep.addr.w[3];
		return verdict;
	}
	if (!shares_wildcard(ctx, app))
		return 1;
	if (!ep.port_be && ctx->type != SOCK_STREAM_BPF) {
		note_reuse(ctx);
		return 1; /* datagrams get their source one by one, and may go outside */
	}
	remember_any(ctx, AX_ASKED_ANY4);
	if (addr_is_zero(&app->vip4))
		return 1;
	remember_local(ctx, &ep.addr);
	note_shared(ctx, &ep);
	ctx->user_ip4 = app->vip4.w[3];
	return BIND_AS_OWNER;
}

/*
 * Where a wildcard bind of an IPv6 socket goes in host mode. A dual-stack socket can sit on one
 * address only: the IPv4 one, and sk_lookup brings it what comes to the IPv6 one. A v6-only socket
 * of an app without IPv6 succeeds, as it would on a machine without it, on an address that nobody
 * else has.
 */
static __always_inline bool wildcard6(struct bpf_sock_addr *ctx, const struct ax_app *app,
				      struct ax_addr *ret)
{
	bool mapped = addr_is_v4(ret);
	bool v6only = !mapped && socket_v6only(ctx);

	if (!v6only && !addr_is_zero(&app->vip4)) {
		*ret = app->vip4;
		return true;
	}
	if (mapped)
		return false;
	if (!addr_is_zero(&app->vip6)) {
		*ret = app->vip6;
		return true;
	}
	return own_anchor(app, ret);
}

/*
 * bind() to a wildcard in host mode. With port 0 there is no other app to make room for, and a
 * dual-stack socket, of which is not known yet to which family it will connect, stays on the
 * wildcard. One that can have one family only gets its address, so that its peer sees whose it is;
 * of datagram sockets each datagram does. Returns a verdict.
 */
static __always_inline int bind_wildcard6(struct bpf_sock_addr *ctx, const struct ax_app *app,
					  struct ax_endpoint *ep)
{
	struct ax_addr was = ep->addr;
	bool one = addr_is_v4(&was) || socket_v6only(ctx);

	if (!ep->port_be && ctx->type != SOCK_STREAM_BPF) {
		if (one && !addr_is_v4(&was))
			remember_any(ctx, AX_ASKED_ONLY6); /* post_bind cannot tell */
		note_reuse(ctx);
		return 1;
	}
	remember_any(ctx, addr_is_v4(&was) ? AX_ASKED_ANY4
			  : one		   ? AX_ASKED_ANY6
					   : AX_ASKED_ANY4 | AX_ASKED_ANY6);
	note_shared(ctx, ep);
	if ((!ep->port_be && !one) || !wildcard6(ctx, app, &ep->addr))
		return 1;
	remember_local(ctx, &was);
	return BIND_AS_OWNER;
}

SEC("cgroup/bind6")
int ax_bind6(struct bpf_sock_addr *ctx)
{
	struct ax_app *app = current_app();
	struct ax_endpoint ep;
	int verdict;

	peer_get6(ctx, &ep);
	forget_local(ctx);
	if (!addr_is_wildcard(&ep.addr))
		verdict = bind_address(ctx, app, &ep);
	else
		verdict = shares_wildcard(ctx, app) ? bind_wildcard6(ctx, app, &ep) : 1;
	if (verdict)
		peer_set6(ctx, &ep);
	return verdict;
}
