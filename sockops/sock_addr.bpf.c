/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * connect, sendmsg, recvmsg, getpeername and getsockname, for IPv4 and IPv6 sockets. Each hook
 * reads an endpoint from its context, lets switch.bpf.h decide in the one address form, and writes
 * the result back.
 */
#include "sock_addr.bpf.h"
#include "across.bpf.h"
#include "asker.bpf.h"
#include "bound.bpf.h"
#include "for_many.bpf.h"
#include "open.bpf.h"
#include "replies.bpf.h"
#include "source.bpf.h"

#define SOL_TCP_BPF	 6
#define TCP_USER_TIMEOUT 18

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

/* Its SYN is kept for when somebody listens; without room for it, TCP's own tries have to do. */
static __always_inline void hold(struct bpf_sock_addr *ctx, struct ax_asked *a,
				 const struct route_request *rq, __u32 app)
{
	struct bpf_sock *sk = ctx->sk;
	struct ax_held *h;

	a->hold_until_ns = bpf_ktime_get_ns() + (__u64)rq->wait_ms * 1000000;
	if (!rq->served)
		count(AX_COUNT_HELD);
	h = sk ? bpf_sk_storage_get(&held, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE) : NULL;
	if (!h)
		return;
	h->len = 0;
	h->to = rq->peer;
	h->app = app;
	h->implied = rq->implied;
}

/* Remembers what the app asked for. A socket that is connected again (UDP) forgets the last one. */
static __noinline int remember_peer(struct bpf_sock_addr *ctx, const struct ax_endpoint *was,
				    const struct route_request *rq, __u32 app, int route)
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
	if (ctx->protocol == IPPROTO_UDP)
		leave_wildcard(a);
	end_with_wait(ctx, a, rq);
	__builtin_memset(&a->peer, 0, sizeof(a->peer));
	__builtin_memset(&a->real_peer, 0, sizeof(a->real_peer));
	a->hold_until_ns = 0;
	if (ctx->protocol == IPPROTO_TCP) {
		place_return(a);
		a->dns_app = 0;
	}
	__sync_fetch_and_and(&a->flags, ~(AX_ASKED_OWN | AX_ASKED_ACROSS | AX_ASKED_SERVICE));
	if (rq->at_service)
		__sync_fetch_and_or(&a->flags, AX_ASKED_SERVICE);
	if (rq->own) {
		a->app = app;
		__sync_fetch_and_or(&a->flags, AX_ASKED_OWN);
	}
	if (translated) {
		a->peer = *was;
		a->real_peer = rq->peer;
		if (rq->counts)
			open_connect(a);
	}
	if (rq->wait_ms)
		hold(ctx, a, rq, app);
	return 0;
}

/*
 * A socket of a host-mode app that has its port already, or whose app has no address of this
 * family, asks from another address than the app's: the agent's DNS is told whose that is, *source
 * if the socket has it, else the one that the kernel takes to get to an address of this machine:
 * that itself. Of TCP it is told when the SYN is made (asker_syn()), for then its end is, too. 0,
 * or a negative errno: the agent would not know it.
 */
static __noinline int remember_asker(struct bpf_sock_addr *ctx, const struct route_request *rq,
				     const struct ax_app *app, const struct ax_addr *source)
{
	struct ax_endpoint from = {.port_be = rq->local_port_be, .proto = rq->peer.proto};
	struct ax_asked *a;

	from.addr = addr_is_wildcard(source) ? rq->peer.addr : *source;
	if (addr_eq(&from.addr, &app->vip4) || addr_eq(&from.addr, &app->vip6))
		return 0; /* it is known by that */
	a = asked_of(ctx, true);
	if (!a) {
		count(AX_COUNT_ERROR);
		return -ENOMEM;
	}
	if (from.proto != IPPROTO_TCP)
		return asker_at(a, &from, app->id);
	if (place_take(a, app->id))
		return 0;
	count(AX_COUNT_SERVERS_REFUSED);
	return -ENOBUFS;
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
 * serves both. True: rq->peer was changed. A global function: the verifier judges it once.
 */
__weak __noinline int to_twin(struct bpf_sock_addr *ctx, struct route_request *rq,
			      const struct ax_app *app)
{
	struct ax_endpoint twin; /* keys are on the stack to Linux 6.1 */
	struct ax_vip *vip;
	bool served;

	if (!ctx || !rq || !app)
		return false;
	twin = rq->peer;
	if (addr_is_v4(&rq->peer.addr) || !(app->flags & AX_APP_HOST) || !sits_on_v4(ctx))
		return false;
	if (is_own_anchor(app, &rq->peer.addr)) {
		rq->peer.addr = app->vip4;
		return true;
	}
	if (rq->own) {
		addr_set_v4(&twin.addr, bpf_htonl(INADDR_LOOPBACK));
		if (!listens_by_wildcard(app, &twin))
			return false;
		rq->peer = twin;
		return true;
	}
	vip = bpf_map_lookup_elem(&vips, &twin.addr);
	if (!vip || vip->kind != AX_VIP_APP || addr_is_zero(&vip->twin))
		return false;
	served = server_of(&twin, vip) != NULL;
	twin.addr = vip->twin;
	if (served && !listening(&twin))
		return false;
	rq->peer = twin;
	return true;
}

/* --- an app's own datagrams, by its anchor (own_anchor()) --- */

/* Tells sk_lookup of it: from there to there anybody might send. */
static __noinline int own_datagram(const struct route_request *rq, const struct ax_app *app)
{
	struct ax_flow_key key = {.client = rq->peer, .peer = rq->peer};
	__u32 id = app->id;

	key.client.port_be = rq->local_port_be;
	return (int)bpf_map_update_elem(&own_conns, &key, &id, BPF_ANY);
}

/* A global function: the verifier judges it once. */
__weak __noinline int connect_own(struct bpf_sock_addr *ctx, struct route_request *rq,
				  const struct ax_app *app)
{
	if (!ctx || !rq || !app)
		return -EINVAL;
	if (!rq->local_port_be)
		rq->local_port_be = (__be16)bind_port(ctx, &rq->peer.addr);
	return rq->local_port_be ? own_datagram(rq, app) : -EADDRINUSE;
}

/*
 * If it has a socket on a wildcard in truth at that port, and that is an address of this machine,
 * it asks itself: sk_lookup has to know from which port. (On a wildcard the route chooses the
 * source, as it would.) A global function: the verifier judges it once.
 */
__weak __noinline int connect_wild(struct bpf_sock_addr *ctx, struct route_request *rq,
				   const struct ax_app *app)
{
	struct ax_addr any;

	if (!ctx || !rq || !app || rq->local_port_be || rq->peer.proto != IPPROTO_UDP ||
	    !has_wild(app, &rq->peer.addr, rq->peer.port_be))
		return 0;
	addr_set_wildcard(&any, &rq->peer.addr);
	rq->local_port_be = (__be16)bind_port(ctx, &any);
	if (rq->local_port_be)
		await_itself(rq, app, &rq->peer);
	return 0;
}

/* To the agent's DNS. What asks by datagrams from no address of the app's gets its port now: the
 * kernel would choose one when nobody is told of it. 0 or a negative errno. */
static __noinline int connect_agent(struct bpf_sock_addr *ctx, struct route_request *rq,
				    const struct ax_app *app)
{
	struct ax_addr source;

	bound_to(ctx, &source);
	if (addr_is_wildcard(&source))
		source = rq->peer.addr;
	if (rq->local_port_be || rq->peer.proto == IPPROTO_TCP || addr_eq(&source, &app->vip4) ||
	    addr_eq(&source, &app->vip6))
		return remember_asker(ctx, rq, app, &source);
	if (ctx->family == AF_INET6 && addr_is_v4(&source) && !rq->may_map)
		return 0; /* the kernel refuses it */
	rq->local_port_be = (__be16)bind_port(ctx, &source);
	return rq->local_port_be ? remember_asker(ctx, rq, app, &source) : -EADDRINUSE;
}

/* Whether its packets come from the app's own address, by which those know it who judge what it is
 * sent from there: what it has bound to another one is taken for a program outside ax. */
static __noinline bool comes_from_app(struct bpf_sock_addr *ctx, const struct ax_app *app,
				      const struct ax_addr *to)
{
	struct bpf_sock *sk = ctx->sk;
	const struct ax_addr *vip;
	struct ax_addr source;

	if (!(app->flags & AX_APP_HOST))
		return true;
	vip = app_vip(app, to);
	if (!sk || !vip)
		return false;
	if (!sk->src_port)
		return true; /* bind_source() sees to it */
	bound_to(ctx, &source);
	return addr_eq(&source, vip);
}

/* By what the outside is to see an app in host mode; NULL: as the route has it. */
static __noinline const struct ax_addr *way_out(const struct ax_app *app, const struct ax_addr *to)
{
	const struct ax_source *s;
	const struct ax_addr *source;
	__u32 id;

	if (!app || !to || !(app->flags & AX_APP_SOURCE) || addr_is_loopback(to))
		return NULL;
	id = app->id;
	s = bpf_map_lookup_elem(&sources, &id);
	if (!s)
		return NULL;
	source = addr_is_v4(to) ? &s->v4 : &s->v6;
	return addr_is_zero(source) ? NULL : source;
}

/*
 * To an app of another node whose packets are not routed: from this node's address to that one's,
 * at the port that it keeps for this server. What the client is called there says its SYN
 * (across_ops.bpf.h). Those of a private app are led there at its device (across_client.bpf.h). 0
 * or a negative errno.
 */
static __noinline int go_across(struct bpf_sock_addr *ctx, struct route_request *rq,
				const struct ax_app *app)
{
	const struct ax_across_ctl *c = across_get();
	struct ax_asked *a = asked_of(ctx, false);
	struct ax_endpoint *to, key = rq->peer; /* keys are on the stack to Linux 6.1 */
	bool host = app->flags & AX_APP_HOST, v4 = addr_is_v4(&key.addr);
	const struct ax_addr *node;
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tp;
	struct ax_across *x;

	if (!c || !c->now.id)
		return -ENETUNREACH;
	node = across_node(c, v4);
	if (addr_is_zero(node))
		return -ENETUNREACH;
	if (!sk || (host && sk->src_port)) /* its packets would not come back */
		return -EADDRNOTAVAIL;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || has_full_syn(tp)) { /* (NULL: MPTCP's) whose it is would not be said */
		count(AX_COUNT_ACROSS_REFUSED);
		return -EOPNOTSUPP;
	}
	to = bpf_map_lookup_elem(&across_to, &key);
	if (!to)
		return -ECONNREFUSED;
	x = host ? bpf_sk_storage_get(&across, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE) : NULL;
	if (!a || (host && !x)) {
		count(AX_COUNT_ERROR);
		return -ENOMEM;
	}
	__sync_fetch_and_or(&a->flags, AX_ASKED_ACROSS);
	if (!x)
		return 0;
	x->self.addr = v4 ? app->vip4 : app->vip6;
	x->self.port_be = 0;
	x->number = app->id;
	rq->peer = *to;
	bind_source(ctx, node);
	return 0;
}

/* Returns 0 or a negative errno; rq->peer is where it goes. */
static __always_inline int connect_peer(struct bpf_sock_addr *ctx, struct route_request *rq)
{
	const struct ax_app *app = current_app();
	const struct ax_addr *vip;
	struct ax_endpoint was;
	int route, r;

	if (!app)
		return 0;
	bound_to(ctx, &was.addr);
	rq->local_port_be = local_port(ctx);
	if (app->flags & AX_APP_HOST) {
		name_wildcard(&rq->peer, &was.addr);
		rq->other_source = is_other(app, &was.addr);
		r = judge_for_many(ctx, rq, app);
		if (r)
			return r;
	}
	was = rq->peer;
	rq->seed = bpf_get_prandom_u32();
	rq->from_app = comes_from_app(ctx, app, &rq->peer.addr);
	route = route_peer(rq, app);
	if (route < 0)
		return route;
	if (rq->across || to_twin(ctx, rq, app))
		route = ROUTE_TRANSLATED;
	r = remember_peer(ctx, &was, rq, app->id, route);
	if (r)
		return r;
	if (rq->across)
		return go_across(ctx, rq, app);
	if (!(app->flags & AX_APP_HOST))
		return 0;
	vip = route == ROUTE_OUTSIDE ? way_out(app, &rq->peer.addr) : app_vip(app, &rq->peer.addr);
	if (!vip && is_own_anchor(app, &rq->peer.addr))
		return connect_own(ctx, rq, app);
	if (!vip && route == ROUTE_OUTSIDE)
		connect_wild(ctx, rq, app);
	r = vip ? bind_source(ctx, vip) : 0;
	if (r && rq->at_service) /* nobody would know whom to judge (SO_BINDTODEVICE) */
		return REFUSED_NO_BACKEND;
	if (route == ROUTE_AGENT)
		return connect_agent(ctx, rq, app);
	bound_to(ctx, &was.addr);
	expect_itself(rq, app, &was.addr);
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

static __always_inline struct ax_replies *replies_of(struct bpf_sock_addr *ctx, bool create)
{
	struct bpf_sock *sk = ctx->sk;

	if (!sk)
		return NULL;
	return bpf_sk_storage_get(&replies, sk, NULL, create ? BPF_SK_STORAGE_GET_F_CREATE : 0);
}

static __noinline int remember_reply(struct bpf_sock_addr *ctx, const struct ax_endpoint *was,
				     const struct ax_endpoint *now)
{
	struct ax_asked *a = asked_of(ctx, true);
	struct ax_replies *r = a ? replies_of(ctx, true) : NULL;

	if (!r) {
		count(AX_COUNT_ERROR);
		return -ENOMEM;
	}
	reply_set(r, now, was);
	if (!(a->flags & AX_ASKED_UDP))
		__sync_fetch_and_or(&a->flags, AX_ASKED_UDP);
	return 0;
}

/* The socket now asks directly whom it had asked through a service: the answer is not turned. */
static __noinline void forget_reply(struct bpf_sock_addr *ctx, const struct ax_endpoint *peer)
{
	struct ax_asked *a = asked_of(ctx, false);
	struct ax_replies *r;
	int i;

	if (!a || !(a->flags & AX_ASKED_UDP))
		return;
	r = replies_of(ctx, false);
	if (!r)
		return;
	i = reply_find(r, peer);
	if (i >= 0 && i < AX_REPLIES_MAX)
		r->r[i].from.port_be = 0;
}

/* Returns enum route or a negative errno. */
static __always_inline int send_peer(struct bpf_sock_addr *ctx, struct route_request *rq,
				     const struct ax_app *app)
{
	struct ax_endpoint was = rq->peer;
	int route, r;

	if (!app)
		return ROUTE_OUTSIDE;
	rq->local_port_be = local_port(ctx);
	r = judge_for_many(ctx, rq, app);
	if (r)
		return r;
	rq->seed = socket_seed(bpf_get_socket_cookie(ctx));
	rq->sticky = true;
	route = route_peer(rq, app);
	if (route == ROUTE_TRANSLATED || route == ROUTE_AGENT) {
		r = remember_reply(ctx, &was, &rq->peer);
		if (r)
			return r;
	} else if (route == ROUTE_DIRECT) {
		forget_reply(ctx, &rq->peer);
	}
	return route;
}

/* The virtual IP that a host-mode app's datagram must carry, NULL when the socket has its own. */
static __always_inline const struct ax_addr *send_source(struct bpf_sock_addr *ctx,
							 const struct route_request *rq,
							 const struct ax_app *app, int route)
{
	struct bpf_sock *sk = ctx->sk;

	if (!app || !(app->flags & AX_APP_HOST) || !sk)
		return NULL;
	if (route == ROUTE_OUTSIDE)
		return way_out(app, &rq->peer.addr);
	return app_vip(app, &rq->peer.addr);
}

/* Answers come to the app's address, at a port that the kernel may have given the socket just now:
 * no hook has told of it. */
static __noinline void answers_come(struct bpf_sock_addr *ctx, __be16 port_be,
				    const struct ax_app *app, const struct ax_addr *source)
{
	struct ax_endpoint ep = {.addr = *source, .port_be = port_be, .proto = IPPROTO_UDP};
	const struct ax_ctl *c = ctl_get();
	const struct ax_netns_app *ns;
	struct ax_asked *a;

	if (!c || !app || !(app->flags & AX_APP_HOST) ||
	    bpf_ntohs(ep.port_be) < c->ephemeral_first || addr_is_zero(source) ||
	    !(addr_eq(source, &app->vip4) || addr_eq(source, &app->vip6)))
		return;
	a = asked_of(ctx, false);
	if (a && is_client_at(a, &ep, app->id))
		return;
	ns = netns_of(ctx);
	if (!ns || !is_home(ns, app))
		return;
	a = a ? a : asked_of(ctx, true);
	if (a)
		client_at(a, &ep, app->id);
	else
		count(AX_COUNT_ERROR);
}

/* The datagram's source is known. 0 or a negative errno. */
static __always_inline int sent_from(struct bpf_sock_addr *ctx, const struct route_request *rq,
				     const struct ax_app *app, int route,
				     const struct ax_addr *source)
{
	answers_come(ctx, rq->local_port_be, app, source);
	if (app)
		expect_itself(rq, app, source);
	if (route == ROUTE_AGENT && (app->flags & AX_APP_HOST))
		return remember_asker(ctx, rq, app, source);
	return 0;
}

SEC("cgroup/sendmsg4")
int ax_sendmsg4(struct bpf_sock_addr *ctx)
{
	const struct ax_app *app = current_app();
	struct route_request rq = {};
	const struct ax_addr *source;
	struct ax_addr own;
	int route, r;

	peer_get4(ctx, &rq.peer);
	addr_set_v4(&own, ctx->msg_src_ip4);
	if (app && app->flags & AX_APP_HOST) {
		name_wildcard(&rq.peer, &own);
		rq.other_source = is_other(app, &own);
	}
	route = send_peer(ctx, &rq, app);
	if (route < 0)
		return refuse(route);
	peer_set4(ctx, &rq.peer);
	source = send_source(ctx, &rq, app, route);
	if (source && !ctx->msg_src_ip4)
		ctx->msg_src_ip4 = source->w[3];
	else if (ctx->msg_src_ip4) {
		addr_set_v4(&own, ctx->msg_src_ip4);
		if (!is_bound4(ctx) && is_anothers(app, &own))
			return refuse(-EADDRNOTAVAIL);
	}
	addr_set_v4(&own, ctx->msg_src_ip4);
	r = sent_from(ctx, &rq, app, route, &own);
	return r ? refuse(r) : 1;
}

/* None, or the IPv4 address on which a dual-stack socket sits (wildcard6()). */
static __always_inline bool source6_is_to_be_set(const struct bpf_sock_addr *ctx)
{
	__u32 third = ctx->msg_src_ip6[2];

	if (ctx->msg_src_ip6[0] || ctx->msg_src_ip6[1])
		return false;
	return third == bpf_htonl(0xffff) || (!third && !ctx->msg_src_ip6[3]);
}

static __always_inline void source_given6(const struct bpf_sock_addr *ctx, struct ax_addr *ret)
{
	ret->w[0] = ctx->msg_src_ip6[0];
	ret->w[1] = ctx->msg_src_ip6[1];
	ret->w[2] = ctx->msg_src_ip6[2];
	ret->w[3] = ctx->msg_src_ip6[3];
}

/* (Not inline: sendmsg6 has no stack left for another address.) */
static __noinline bool name_wildcard6(struct bpf_sock_addr *ctx, const struct ax_app *app,
				      struct ax_endpoint *peer)
{
	struct ax_addr source;

	source_given6(ctx, &source);
	name_wildcard(peer, &source);
	return is_other(app, &source);
}

SEC("cgroup/sendmsg6")
int ax_sendmsg6(struct bpf_sock_addr *ctx)
{
	const struct ax_app *app = current_app();
	struct route_request rq = {};
	const struct ax_addr *source;
	struct ax_addr own;
	int route, r;

	peer_get6(ctx, &rq.peer);
	if (app && app->flags & AX_APP_HOST)
		rq.other_source = name_wildcard6(ctx, app, &rq.peer);
	route = send_peer(ctx, &rq, app);
	if (route < 0)
		return refuse(route);
	peer_set6(ctx, &rq.peer);
	source = send_source(ctx, &rq, app, route);
	/* what a dual-stack socket answers to the outside (an IPv4 address is no source of it) */
	if (route == ROUTE_OUTSIDE && app && app->flags & AX_APP_HOST && ctx->msg_src_ip6[2] &&
	    !addr_is_zero(&app->vip6))
		source = &app->vip6;
	if (!source && app && is_own_anchor(app, &rq.peer.addr)) {
		source = &rq.peer.addr;
		own_datagram(&rq, app);
	}
	if (source && source6_is_to_be_set(ctx)) {
		own = *source;
		ctx->msg_src_ip6[0] = own.w[0];
		ctx->msg_src_ip6[1] = own.w[1];
		ctx->msg_src_ip6[2] = own.w[2];
		ctx->msg_src_ip6[3] = own.w[3];
	} else {
		source_given6(ctx, &own);
		if (!is_bound6(ctx, &own) && is_anothers(app, &own))
			return refuse(-EADDRNOTAVAIL);
	}
	r = sent_from(ctx, &rq, app, route, &own);
	return r ? refuse(r) : 1;
}

/* Turns the source of what was received back into what the app had asked. */
static __always_inline bool reply_source(struct bpf_sock_addr *ctx, struct ax_endpoint *from)
{
	struct ax_asked *a = asked_of(ctx, false);
	struct ax_replies *r;
	int i;

	if (!a)
		return false;
	if (endpoint_eq(&a->real_peer, from)) {
		*from = a->peer;
		return true;
	}
	if (!(a->flags & AX_ASKED_UDP))
		return false;
	r = replies_of(ctx, false);
	if (!r)
		return false;
	i = reply_find(r, from);
	if (i < 0 || i >= AX_REPLIES_MAX)
		return false;
	*from = r->r[i].asked;
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
	struct ax_across *x;

	if (!a || !sk || !(a->flags & (AX_ASKED_LOCAL | AX_ASKED_ACROSS)))
		return false;
	if (a->flags & AX_ASKED_ACROSS) {
		x = bpf_sk_storage_get(&across, sk, NULL, 0);
		if (!x)
			return false;
		ep->addr = x->self.addr;
		ep->port_be = x->self.port_be ? x->self.port_be : (__be16)ctx->user_port;
		return true;
	}
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
