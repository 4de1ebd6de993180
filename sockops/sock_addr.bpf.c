/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * connect, sendmsg, recvmsg, getpeername, getsockname and bind, for IPv4 and IPv6 sockets. Each
 * hook reads an endpoint from its context, lets switch.bpf.h decide in the one address form, and
 * writes the result back. Verdicts: 1 go on, 0 refuse with the errno of bpf_set_retval() (5.18; it
 * would be EPERM otherwise); bind knows 3 as well, see BIND_AS_OWNER.
 */
#include "switch.bpf.h"
#include "kernel.bpf.h"
#include "open.bpf.h"
#include "source.bpf.h"

#include <bpf/bpf_core_read.h>

#define SOCK_STREAM_BPF	 1
#define SOL_SOCKET_BPF	 1
#define SO_REUSEADDR_BPF 2
#define SOL_TCP_BPF	 6
#define TCP_USER_TIMEOUT 18
#define BIND_AS_OWNER	 3 /* go on, and skip the check for ports below 1024 (5.12) */

/* --- endpoints of a context --- */

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

/* IPV6_V6ONLY is not to be had from bpf_getsockopt(); CO-RE reads the bit. */
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
	return skc && BPF_CORE_READ_BITFIELD(skc, skc_ipv6only);
}

/* --- connect --- */

/*
 * Nobody has the address, so nobody refuses the connect when its wait is over: TCP gives up by
 * itself then. An app that has set a time-out of its own keeps it.
 */
static __always_inline void end_with_wait(struct bpf_sock_addr *ctx, struct ax_asked *a,
					  const struct route_request *rq)
{
	int ms = 0;

	if (a->flags & AX_ASKED_TIMEOUT) { /* the last connect's */
		bpf_setsockopt(ctx, SOL_TCP_BPF, TCP_USER_TIMEOUT, &ms, sizeof(ms));
		__sync_fetch_and_and(&a->flags, ~AX_ASKED_TIMEOUT);
	}
	if (!rq->wait_ms || !is_nobodys(&rq->peer.addr))
		return;
	bpf_getsockopt(ctx, SOL_TCP_BPF, TCP_USER_TIMEOUT, &ms, sizeof(ms));
	if (ms)
		return;
	ms = (int)rq->wait_ms;
	if (bpf_setsockopt(ctx, SOL_TCP_BPF, TCP_USER_TIMEOUT, &ms, sizeof(ms)) == 0)
		__sync_fetch_and_or(&a->flags, AX_ASKED_TIMEOUT);
}

/* Remembers what the app asked for. A socket that is connected again (UDP) forgets the last one. */
static __always_inline int remember_peer(struct bpf_sock_addr *ctx, const struct ax_endpoint *was,
					 const struct route_request *rq, int route)
{
	bool translated = route == ROUTE_TRANSLATED || route == ROUTE_AGENT;
	bool needed = translated || rq->wait_ms || rq->own;
	struct ax_asked *a = asked_of(ctx, needed);

	if (!a) {
		if (!needed)
			return 0;
		count(AX_COUNT_ERROR);
		return -ENOMEM;
	}
	open_end(a);
	end_with_wait(ctx, a, rq);
	__builtin_memset(&a->peer, 0, sizeof(a->peer));
	__builtin_memset(&a->real_peer, 0, sizeof(a->real_peer));
	a->hold_until_ns = 0;
	if (ctx->protocol == IPPROTO_TCP)
		a->dns_app = 0;
	__sync_fetch_and_and(&a->flags, ~AX_ASKED_OWN);
	if (rq->own) {
		a->app = rq->app->id;
		__sync_fetch_and_or(&a->flags, AX_ASKED_OWN);
	}
	if (translated) {
		a->peer = *was;
		a->real_peer = rq->peer;
		if (rq->counts)
			open_connect(a);
	}
	if (rq->wait_ms) {
		a->hold_until_ns = bpf_ktime_get_ns() + (__u64)rq->wait_ms * 1000000;
		count(AX_COUNT_HELD);
	}
	return 0;
}

/*
 * Binds the source of a host-mode app's socket to its virtual IP. With port 0 the kernel picks the
 * port at connect time, as it would have without us (BIND_FORCE_ADDRESS_NO_PORT). A socket that
 * the app bound itself is left alone.
 */
static __always_inline void bind_source(struct bpf_sock_addr *ctx, const struct ax_addr *vip)
{
	struct bpf_sock *sk = ctx->sk;

	if (!sk || sk->src_port)
		return;
	if (ctx->family == AF_INET) {
		struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = vip->w[3]};

		bpf_bind(ctx, (struct sockaddr *)&sin, sizeof(sin));
	} else {
		struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6};

		__builtin_memcpy(&sin6.sin6_addr, vip, sizeof(*vip));
		bpf_bind(ctx, (struct sockaddr *)&sin6, sizeof(sin6));
	}
}

/* A socket of a host-mode app that has its port already: the agent's DNS sees the host's address.
 * Of TCP it is told when the SYN is made (asker_syn()), for then its end is, too. */
static __always_inline void remember_asker(struct bpf_sock_addr *ctx,
					   const struct route_request *rq)
{
	struct ax_dns_port key = {.port_be = rq->local_port_be,
				  .proto = rq->peer.proto,
				  .v4 = addr_is_v4(&rq->peer.addr)};
	__u32 id = rq->app->id;
	struct ax_asked *a;

	if (!key.port_be)
		return;
	a = asked_of(ctx, true);
	if (!a) {
		count(AX_COUNT_ERROR);
		return;
	}
	if (key.proto == IPPROTO_TCP) {
		a->dns_app = id;
		return;
	}
	if (a->dns_port.port_be != key.port_be || a->dns_port.v4 != key.v4 || a->dns_app != id)
		forget_asker(a);
	if (bpf_map_update_elem(&dns_ports, &key, &id, BPF_ANY)) {
		count(AX_COUNT_ERROR);
		return;
	}
	a->dns_port = key;
	a->dns_app = id;
}

/* A dual-stack socket that bind() has put on the app's IPv4 address. */
static __always_inline bool sits_on_v4(struct bpf_sock_addr *ctx)
{
	struct bpf_sock *sk = ctx->sk;

	return ctx->family == AF_INET6 && sk && sk->src_port && !sk->src_ip6[0] &&
	       !sk->src_ip6[1] && sk->src_ip6[2] == bpf_htonl(0xffff) && sk->src_ip6[3];
}

/*
 * The kernel does not let it connect to IPv6: it goes to its peer's IPv4 address, if its peer
 * serves both. True: rq->peer was changed.
 */
static __always_inline bool to_twin(struct bpf_sock_addr *ctx, struct route_request *rq)
{
	struct ax_endpoint twin = rq->peer;
	struct ax_vip *vip;

	if (addr_is_v4(&rq->peer.addr) || !rq->app || !(rq->app->flags & AX_APP_HOST) ||
	    !sits_on_v4(ctx))
		return false;
	if (rq->own) {
		addr_set_v4(&twin.addr, bpf_htonl(INADDR_LOOPBACK));
		if (!listens_by_wildcard(rq->app, &twin))
			return false;
		rq->peer = twin;
		return true;
	}
	vip = bpf_map_lookup_elem(&vips, &rq->peer.addr);
	if (!vip || vip->kind != AX_VIP_APP || addr_is_zero(&vip->twin))
		return false;
	twin.addr = vip->twin;
	if (server_of(&rq->peer, vip) && !listening(&twin))
		return false;
	rq->peer = twin;
	return true;
}

/* Returns 0 or a negative errno; rq->peer is where it goes. */
static __always_inline int connect_peer(struct bpf_sock_addr *ctx, struct route_request *rq)
{
	struct ax_endpoint was = rq->peer;
	int route, r;

	rq->app = current_app();
	if (!rq->app)
		return 0;
	rq->seed = bpf_get_prandom_u32();
	rq->sticky = false;
	rq->local_port_be = local_port(ctx);
	route = route_peer(rq);
	if (route < 0)
		return route;
	if (to_twin(ctx, rq))
		route = ROUTE_TRANSLATED;
	r = remember_peer(ctx, &was, rq, route);
	if (r)
		return r;
	if ((rq->app->flags & AX_APP_HOST) && route != ROUTE_OUTSIDE) {
		const struct ax_addr *vip = app_vip(rq->app, &rq->peer.addr);

		if (vip)
			bind_source(ctx, vip);
		if (route == ROUTE_AGENT)
			remember_asker(ctx, rq);
	}
	return 0;
}

SEC("cgroup/connect4")
int ax_connect4(struct bpf_sock_addr *ctx)
{
	struct route_request rq = {};
	int r;

	peer_get4(ctx, &rq.peer);
	r = connect_peer(ctx, &rq);
	if (r < 0)
		return refuse(r);
	peer_set4(ctx, &rq.peer);
	return 1;
}

SEC("cgroup/connect6")
int ax_connect6(struct bpf_sock_addr *ctx)
{
	struct route_request rq = {};
	int r;

	peer_get6(ctx, &rq.peer);
	rq.may_map = !socket_v6only(ctx);
	r = connect_peer(ctx, &rq);
	if (r < 0)
		return refuse(r);
	peer_set6(ctx, &rq.peer);
	return 1;
}

/* --- unconnected datagrams --- */

/* All datagrams of one socket to one service go to the same backend while the list stands. */
static __always_inline __u32 socket_seed(__u64 cookie)
{
	/* Fibonacci hashing (Knuth, The Art of Computer Programming 3, section 6.4) */
	return (cookie * 0x9e3779b97f4a7c15ull) >> 32;
}

static __always_inline int remember_reply(struct bpf_sock_addr *ctx, __u64 cookie,
					  const struct ax_endpoint *was,
					  const struct ax_endpoint *now)
{
	struct ax_udp_reply_key key = {.cookie = cookie, .from = *now};
	struct ax_endpoint *known = bpf_map_lookup_elem(&udp_replies, &key);
	struct ax_asked *a;

	if (known && endpoint_eq(known, was))
		return 0;
	a = asked_of(ctx, true);
	if (!a || bpf_map_update_elem(&udp_replies, &key, was, BPF_ANY)) {
		count(AX_COUNT_ERROR);
		return -ENOMEM;
	}
	__sync_fetch_and_or(&a->flags, AX_ASKED_UDP);
	return 0;
}

/* The socket now asks directly whom it had asked through a service: the answer is not turned. */
static __always_inline void forget_reply(struct bpf_sock_addr *ctx, __u64 cookie,
					 const struct ax_endpoint *peer)
{
	struct ax_udp_reply_key key = {.cookie = cookie, .from = *peer};
	struct ax_asked *a = asked_of(ctx, false);

	if (a && (a->flags & AX_ASKED_UDP))
		bpf_map_delete_elem(&udp_replies, &key);
}

/* Returns enum route or a negative errno. */
static __always_inline int send_peer(struct bpf_sock_addr *ctx, struct route_request *rq)
{
	struct ax_endpoint was = rq->peer;
	__u64 cookie;
	int route, r;

	rq->app = current_app();
	if (!rq->app)
		return ROUTE_OUTSIDE;
	cookie = bpf_get_socket_cookie(ctx);
	rq->seed = socket_seed(cookie);
	rq->sticky = true;
	rq->local_port_be = local_port(ctx);
	route = route_peer(rq);
	if (route == ROUTE_AGENT && (rq->app->flags & AX_APP_HOST))
		remember_asker(ctx, rq);
	if (route == ROUTE_TRANSLATED || route == ROUTE_AGENT) {
		r = remember_reply(ctx, cookie, &was, &rq->peer);
		if (r)
			return r;
	} else if (route == ROUTE_DIRECT) {
		forget_reply(ctx, cookie, &rq->peer);
	}
	return route;
}

/* The virtual IP that a host-mode app's datagram must carry, NULL when the socket has its own. */
static __always_inline const struct ax_addr *send_source(struct bpf_sock_addr *ctx,
							 const struct route_request *rq, int route)
{
	struct bpf_sock *sk = ctx->sk;

	if (!rq->app || !(rq->app->flags & AX_APP_HOST) || !sk)
		return NULL;
	if (route == ROUTE_OUTSIDE)
		return NULL;
	return app_vip(rq->app, &rq->peer.addr);
}

SEC("cgroup/sendmsg4")
int ax_sendmsg4(struct bpf_sock_addr *ctx)
{
	struct route_request rq = {};
	const struct ax_addr *source;
	struct ax_addr own;
	int route;

	peer_get4(ctx, &rq.peer);
	route = send_peer(ctx, &rq);
	if (route < 0)
		return refuse(route);
	peer_set4(ctx, &rq.peer);
	source = send_source(ctx, &rq, route);
	if (source && !ctx->msg_src_ip4)
		ctx->msg_src_ip4 = source->w[3];
	else if (ctx->msg_src_ip4) {
		addr_set_v4(&own, ctx->msg_src_ip4);
		if (!is_bound4(ctx) && is_anothers(rq.app, &own))
			return refuse(-EADDRNOTAVAIL);
	}
	addr_set_v4(&own, ctx->msg_src_ip4);
	answers_come(ctx, &rq, &own);
	return 1;
}

/* None, or the IPv4 address on which a dual-stack socket sits (wildcard6()). */
static __always_inline bool source6_is_to_be_set(const struct bpf_sock_addr *ctx)
{
	__u32 third = ctx->msg_src_ip6[2];

	if (ctx->msg_src_ip6[0] || ctx->msg_src_ip6[1])
		return false;
	return third == bpf_htonl(0xffff) || (!third && !ctx->msg_src_ip6[3]);
}

SEC("cgroup/sendmsg6")
int ax_sendmsg6(struct bpf_sock_addr *ctx)
{
	struct route_request rq = {};
	const struct ax_addr *source;
	struct ax_addr own;
	int route;

	peer_get6(ctx, &rq.peer);
	route = send_peer(ctx, &rq);
	if (route < 0)
		return refuse(route);
	peer_set6(ctx, &rq.peer);
	source = send_source(ctx, &rq, route);
	if (source && source6_is_to_be_set(ctx)) {
		ctx->msg_src_ip6[0] = source->w[0];
		ctx->msg_src_ip6[1] = source->w[1];
		ctx->msg_src_ip6[2] = source->w[2];
		ctx->msg_src_ip6[3] = source->w[3];
		answers_come(ctx, &rq, source);
		return 1;
	}
	own.w[0] = ctx->msg_src_ip6[0];
	own.w[1] = ctx->msg_src_ip6[1];
	own.w[2] = ctx->msg_src_ip6[2];
	own.w[3] = ctx->msg_src_ip6[3];
	if (!is_bound6(ctx, &own) && is_anothers(rq.app, &own))
		return refuse(-EADDRNOTAVAIL);
	answers_come(ctx, &rq, &own);
	return 1;
}

/* Turns the source of what was received back into what the app had asked. */
static __always_inline bool reply_source(struct bpf_sock_addr *ctx, struct ax_endpoint *from)
{
	struct ax_asked *a = asked_of(ctx, false);
	struct ax_udp_reply_key key = {};
	struct ax_endpoint *was;

	if (!a)
		return false;
	if (endpoint_eq(&a->real_peer, from)) {
		*from = a->peer;
		return true;
	}
	if (!(a->flags & AX_ASKED_UDP))
		return false;
	key.cookie = bpf_get_socket_cookie(ctx);
	key.from = *from;
	was = bpf_map_lookup_elem(&udp_replies, &key);
	if (!was)
		return false;
	*from = *was;
	return true;
}

SEC("cgroup/recvmsg4")
int ax_recvmsg4(struct bpf_sock_addr *ctx)
{
	struct ax_endpoint from;

	peer_get4(ctx, &from);
	if (reply_source(ctx, &from))
		peer_set4(ctx, &from);
	return 1;
}

SEC("cgroup/recvmsg6")
int ax_recvmsg6(struct bpf_sock_addr *ctx)
{
	struct ax_endpoint from;

	peer_get6(ctx, &from);
	if (reply_source(ctx, &from))
		peer_set6(ctx, &from);
	return 1;
}

/* --- names of sockets --- */

static __always_inline bool name_of_peer(struct bpf_sock_addr *ctx, struct ax_endpoint *ep)
{
	struct ax_asked *a = asked_of(ctx, false);

	if (!a || !a->peer.port_be)
		return false;
	*ep = a->peer;
	return true;
}

SEC("cgroup/getpeername4")
int ax_getpeername4(struct bpf_sock_addr *ctx)
{
	struct ax_endpoint ep;

	if (name_of_peer(ctx, &ep))
		peer_set4(ctx, &ep);
	return 1;
}

SEC("cgroup/getpeername6")
int ax_getpeername6(struct bpf_sock_addr *ctx)
{
	struct ax_endpoint ep;

	if (name_of_peer(ctx, &ep))
		peer_set6(ctx, &ep);
	return 1;
}

static __always_inline bool name_of_self(struct bpf_sock_addr *ctx, struct ax_endpoint *ep)
{
	struct ax_asked *a = asked_of(ctx, false);

	struct bpf_sock *sk = ctx->sk;

	if (!a || !sk || !(a->flags & AX_ASKED_LOCAL))
		return false;
	if (sk->dst_port && addr_is_wildcard(&a->local))
		return false; /* it has got an address */
	ep->addr = a->local;
	ep->port_be = (__be16)ctx->user_port;
	return true;
}

SEC("cgroup/getsockname4")
int ax_getsockname4(struct bpf_sock_addr *ctx)
{
	struct ax_endpoint ep;

	if (name_of_self(ctx, &ep))
		peer_set4(ctx, &ep);
	return 1;
}

SEC("cgroup/getsockname6")
int ax_getsockname6(struct bpf_sock_addr *ctx)
{
	struct ax_endpoint ep;

	if (name_of_self(ctx, &ep))
		peer_set6(ctx, &ep);
	return 1;
}

/* --- bind --- */

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
						  AX_ASKED_ONLY6));
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
	if (!shares_wildcard(ctx, app) || (!ep.port_be && ctx->type != SOCK_STREAM_BPF))
		return 1; /* datagrams get their source one by one, and may go outside */
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
	const struct ax_ctl *c = ctl_get();

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
	if (!c || !app->anchor)
		return false;
	*ret = c->anchor6;
	ret->w[3] = bpf_htonl(app->anchor);
	return true;
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
