/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sock_create: protocols that no other hook judges. post_bind and sock_release: UDP servers, which
 * no listen() announces, and who has bound a TCP socket in the host's network namespace. */
#include "switch.bpf.h"
#include "asker.bpf.h"
#include "open.bpf.h"
#include "server.bpf.h"

#define SOCK_STREAM_BPF 1
#define SOCK_DGRAM_BPF	2
#define SOCK_RAW_BPF	3

extern __u32 udp_told; /* since the agent looked last; it sets that back */

/* Wakes the agent: it hands the socket to sk_lookup (dual_udp.bpf.c). Once for however many there
 * are when it comes to look, or whoever binds and closes without end would keep it busy. */
static __always_inline void tell_udp(void)
{
	struct ax_event *ev;

	if (__sync_val_compare_and_swap(&udp_told, 0, 1))
		return;
	ev = bpf_ringbuf_reserve(&events, sizeof(*ev), 0);
	if (!ev) {
		udp_told = 0;
		count(AX_COUNT_EVENTS_LOST);
		return;
	}
	__builtin_memset(ev, 0, sizeof(*ev));
	ev->type = AX_EVENT_DUAL_UDP;
	bpf_ringbuf_submit(ev, BPF_RB_FORCE_WAKEUP);
}

static __always_inline struct ax_asked *storage(struct bpf_sock *ctx)
{
	struct ax_asked *a = bpf_sk_storage_get(&asked, ctx, NULL, BPF_SK_STORAGE_GET_F_CREATE);

	if (!a)
		count(AX_COUNT_ERROR);
	return a;
}

/* The app that has bound it in the host's network namespace, 0: none. */
static __always_inline __u32 host_app(const struct ax_netns_app *ns)
{
	struct ax_app *app = ns && !ns->id ? current_app() : NULL;

	return app && (app->flags & AX_APP_HOST) ? app->id : 0;
}

/*
 * Ports from ephemeral_first on are given to clients. Who asks for one there is known for a server
 * only if it is to be found in another way than by its address: because others may have the port as
 * well, or because both families are to come to a socket that sits on an address of one.
 */
static __always_inline bool is_server(__u32 port, const struct ax_asked *a)
{
	const struct ax_ctl *c = ctl_get();

	if (!c || !port)
		return false;
	return port < c->ephemeral_first ||
	       (a && (a->flags & (AX_ASKED_SHARED | AX_ASKED_ANY4 | AX_ASKED_ANY6)));
}

/* AX_ASKED_ANY4, AX_ASKED_ANY6 or both. */
static __always_inline __u32 wildcards_of(const struct bpf_sock *ctx, const struct ax_asked *a,
					  const struct ax_addr *addr)
{
	if (ctx->family != AF_INET6 || addr_is_v4(addr))
		return AX_ASKED_ANY4;
	return a->flags & AX_ASKED_ONLY6 ? AX_ASKED_ANY6 : AX_ASKED_ANY4 | AX_ASKED_ANY6;
}

/* Which socket it is: what programs at bind() are given is the kernel's struct sock itself. */
static __always_inline void wild_is(const struct bpf_sock *ctx, const struct ax_asked *a, int i)
{
	struct ax_endpoint at = a->served[i];
	struct ax_wild *w = at.port_be ? bpf_map_lookup_elem(&wild_ports, &at) : NULL;

	if (w && w->app == a->app)
		w->sock = (__u64)ctx;
}

/* No server, and yet to be found by the app's own address, which is where it sits, or on a wildcard
 * in truth. */
static __always_inline void client_bound(struct bpf_sock *ctx, const struct ax_netns_app *ns,
					 const struct ax_addr *addr)
{
	struct ax_endpoint ep = {.proto = IPPROTO_UDP, .port_be = bpf_htons(ctx->src_port)};
	struct ax_app *app = host_app(ns) ? current_app() : NULL;
	bool wildcard = addr_is_wildcard(addr);
	struct ax_asked *a;

	if (!app || !ep.port_be)
		return;
	a = storage(ctx);
	if (!a)
		return;
	ep.addr = app->vip4;
	if (!addr_is_zero(&ep.addr) &&
	    (wildcard ? !(a->flags & AX_ASKED_ONLY6) : addr_eq(addr, &ep.addr)))
		client_at(a, &ep, app->id);
	ep.addr = app->vip6;
	if (!addr_is_zero(&ep.addr) &&
	    (wildcard ? ctx->family == AF_INET6 && !addr_is_v4(addr) : addr_eq(addr, &ep.addr)))
		client_at(a, &ep, app->id);
	if (!wildcard)
		return;
	client_on_wildcard(a, app, ep.port_be, wildcards_of(ctx, a, addr));
	wild_is(ctx, a, 2);
	wild_is(ctx, a, 3);
}

/* A server of both families, of an app without IPv6: it sits on the IPv4 address, and is brought
 * what the app itself sends to its anchor. That is kept where the IPv6 one would be. */
static __always_inline bool serves_anchor(struct ax_asked *a, const struct ax_addr *addr)
{
	struct ax_app *app;

	if (!a->served[3].port_be || a->served[1].port_be || !addr_is_v4(addr))
		return false;
	app = current_app();
	return app && own_anchor(app, &a->served[1].addr);
}

/* The socket remembers what it stands for: sock_release may not read a socket's addresses. */
static __always_inline void udp_bound(struct bpf_sock *ctx, const struct ax_addr *addr)
{
	struct ax_endpoint ep = {.proto = IPPROTO_UDP, .port_be = bpf_htons(ctx->src_port)};
	struct ax_netns_app *ns = netns_of(ctx);
	struct serving s;
	struct ax_asked *a;

	a = bpf_sk_storage_get(&asked, ctx, NULL, 0);
	if (a)
		serve_end(a); /* a socket can be bound again after connect() to AF_UNSPEC */
	if (!ns)
		return;
	if (!is_server(ctx->src_port, a)) {
		client_bound(ctx, ns, addr);
		return;
	}
	if (!serving_of(ns, a, host_app(ns), ctx->family, addr, &s))
		return;
	a = a ? a : storage(ctx);
	if (!a)
		return;
	serve(a, &ep, &s);
	if (!ns->id &&
	    ((a->flags & AX_ASKED_SHARED) || a->served[1].port_be || serves_anchor(a, addr)))
		tell_udp();
}

/* For listen(): sockops programs may not ask whose the process is. */
static __always_inline void tcp_bound(struct bpf_sock *ctx, const struct ax_addr *addr)
{
	struct ax_netns_app *ns = netns_of(ctx);
	struct ax_app *app;
	struct ax_asked *a;

	if (!ns || ns->id)
		return; /* a private app's namespace tells */
	a = storage(ctx);
	if (!a)
		return;
	serve_end(a);
	__sync_fetch_and_or(&a->flags, AX_ASKED_BOUND);
	a->app = host_app(ns);
	app = a->app && addr_is_wildcard(addr) ? current_app() : NULL;
	if (!app)
		return;
	a->served[0].addr = app->vip4;
	__builtin_memset(&a->served[1].addr, 0, sizeof(a->served[1].addr));
	if (ctx->family == AF_INET6)
		a->served[1].addr = app->vip6;
}

static __always_inline int bound(struct bpf_sock *ctx, struct ax_addr *addr)
{
	if (ctx->protocol == IPPROTO_UDP)
		udp_bound(ctx, addr);
	else if (ctx->protocol == IPPROTO_TCP)
		tcp_bound(ctx, addr);
	return 1;
}

/*
 * In the host's network namespace what connects and sends is judged by hooks that other protocols
 * (UDP-Lite, DCCP, SCTP) do not have, neither at the sender nor at the receiver: there they are
 * protocols that this machine does not know. (Between network namespaces all packets are judged,
 * and raw sockets need a capability.)
 */
static __always_inline bool is_judged(const struct bpf_sock *ctx)
{
	switch (ctx->type) {
	case SOCK_STREAM_BPF:
		return ctx->protocol == IPPROTO_TCP || ctx->protocol == IPPROTO_MPTCP;
	case SOCK_DGRAM_BPF:
		return ctx->protocol == IPPROTO_UDP || ctx->protocol == IPPROTO_ICMP ||
		       ctx->protocol == IPPROTO_ICMPV6;
	default:
		return ctx->type == SOCK_RAW_BPF;
	}
}

/*
 * Sockets for pings (net.ipv4.ping_group_range): connect() is judged, but no hook sees sendto().
 * To an app that may not go outside wherever it wants they are not given.
 */
static __always_inline bool sends_unseen(const struct bpf_sock *ctx)
{
	return ctx->type == SOCK_DGRAM_BPF &&
	       (ctx->protocol == IPPROTO_ICMP || ctx->protocol == IPPROTO_ICMPV6);
}

static __always_inline bool is_confined(void *ctx)
{
	struct ax_netns_app *ns = netns_of(ctx);
	struct ax_app *app = ns && !ns->id ? current_app() : NULL;

	return app && (app->flags & AX_APP_HOST) && (app->flags & AX_APP_CONFINED);
}

SEC("cgroup/sock_create")
int ax_sock_create(struct bpf_sock *ctx)
{
	struct ax_netns_app *ns;

	if (sends_unseen(ctx) && is_confined(ctx)) {
		bpf_set_retval(-EACCES);
		return 0;
	}
	if (is_judged(ctx))
		return 1;
	ns = netns_of(ctx);
	if (!ns || ns->id)
		return 1;
	bpf_set_retval(-EPROTONOSUPPORT);
	return 0;
}

SEC("cgroup/post_bind4")
int ax_post_bind4(struct bpf_sock *ctx)
{
	struct ax_addr addr;

	addr_set_v4(&addr, ctx->src_ip4);
	return bound(ctx, &addr);
}

static __always_inline void source6(const struct bpf_sock *ctx, struct ax_addr *addr)
{
	addr->w[0] = ctx->src_ip6[0];
	addr->w[1] = ctx->src_ip6[1];
	addr->w[2] = ctx->src_ip6[2];
	addr->w[3] = ctx->src_ip6[3];
}

SEC("cgroup/post_bind6")
int ax_post_bind6(struct bpf_sock *ctx)
{
	struct ax_addr addr;

	source6(ctx, &addr);
	return bound(ctx, &addr);
}

/* Whether others still have the port that it shared: the map has one of them, maybe this one. */
static __always_inline bool has_heirs(const struct ax_asked *a)
{
	struct ax_endpoint ep;
	struct ax_server *s;

	if (a->flags & AX_ASKED_CLIENT)
		return false;
	ep = a->flags & AX_ASKED_ELSEWHERE ? a->served[1] : a->served[0];
	if (!ep.port_be || !(a->flags & (AX_ASKED_ELSEWHERE | AX_ASKED_SHARED)))
		return false;
	s = bpf_map_lookup_elem(&servers, &ep);
	return s && s->app == a->app && AX_SERVER_SOCKETS(s->sockets) > 1;
}

/* TCP whose SYN was never made; what else it stands for sockops is told the end of. */
static __noinline void release_tcp(struct bpf_sock *ctx)
{
	struct ax_asked *a = bpf_sk_storage_get(&asked, ctx, NULL, 0);

	if (a)
		place_return(a);
}

SEC("cgroup/sock_release")
int ax_sock_release(struct bpf_sock *ctx)
{
	struct ax_asked *a;
	bool heirs;

	/* (leave at once: every connection's end comes by) */
	if (ctx->protocol == IPPROTO_TCP && tcp_askers)
		release_tcp(ctx);
	if (ctx->protocol != IPPROTO_UDP)
		return 1;
	a = bpf_sk_storage_get(&asked, ctx, NULL, 0);
	if (!a)
		return 1;
	forget_asker(a);
	open_end(a);
	heirs = has_heirs(a);
	serve_end(a);
	if (heirs)
		tell_udp();
	return 1;
}
