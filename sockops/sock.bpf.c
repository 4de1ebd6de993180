/* SPDX-License-Identifier: GPL-2.0-or-later */
/* post_bind and sock_release: UDP servers, which no listen() announces, and the owner of TCP
 * sockets that stay on a wildcard address. */
#include "switch.bpf.h"
#include "open.bpf.h"
#include "server.bpf.h"

#define SOCK_STREAM_BPF 1

static __always_inline void udp_serve(struct ax_asked *a, int i, struct ax_endpoint *ep,
				      const struct ax_addr *addr, __u32 app)
{
	ep->addr = *addr;
	a->served[i] = *ep;
	server_add(ep, app);
}

/* Wakes the agent: it brings the socket what comes to its IPv6 address (dual_udp.bpf.c). */
static __always_inline void tell_dual(void)
{
	struct ax_event *ev = bpf_ringbuf_reserve(&events, sizeof(*ev), 0);

	if (!ev) {
		count(AX_COUNT_EVENTS_LOST);
		return;
	}
	__builtin_memset(ev, 0, sizeof(*ev));
	ev->type = AX_EVENT_DUAL_UDP;
	bpf_ringbuf_submit(ev, BPF_RB_FORCE_WAKEUP);
}

/* The socket remembers what it stands for: sock_release may not read a socket's addresses. */
static __always_inline void udp_server(struct bpf_sock *ctx, const struct ax_addr *addr)
{
	struct ax_endpoint ep = {.proto = IPPROTO_UDP, .port_be = bpf_htons(ctx->src_port)};
	struct ax_app *app = current_app();
	const struct ax_ctl *c = ctl_get();
	struct ax_asked *a;

	if (!app || !c || !ctx->src_port || ctx->src_port >= c->ephemeral_first)
		return;
	a = bpf_sk_storage_get(&asked, ctx, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!a) {
		count(AX_COUNT_ERROR);
		return;
	}
	if (!addr_is_wildcard(addr)) {
		udp_serve(a, 0, &ep, addr, app->id);
		if ((app->flags & AX_APP_HOST) && ctx->family == AF_INET6 && addr_is_v4(addr) &&
		    !addr_is_zero(&app->vip6)) {
			udp_serve(a, 1, &ep, &app->vip6, app->id);
			tell_dual();
		}
		return;
	}
	/* A private app's wildcard: both its addresses. (In host mode bind() has replaced it.) */
	if (!addr_is_zero(&app->vip4))
		udp_serve(a, 0, &ep, &app->vip4, app->id);
	if (!addr_is_zero(&app->vip6) && ctx->family == AF_INET6)
		udp_serve(a, 1, &ep, &app->vip6, app->id);
}

static __always_inline void tcp_owner(struct bpf_sock *ctx, const struct ax_addr *addr)
{
	struct ax_asked *a;
	struct ax_app *app;

	if (!addr_is_wildcard(addr))
		return;
	app = current_app();
	if (!app || !(app->flags & AX_APP_HOST))
		return;
	a = bpf_sk_storage_get(&asked, ctx, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (a)
		a->app = app->id;
}

static __always_inline int bound(struct bpf_sock *ctx, struct ax_addr *addr)
{
	if (ctx->protocol == IPPROTO_UDP)
		udp_server(ctx, addr);
	else if (ctx->protocol == IPPROTO_TCP)
		tcp_owner(ctx, addr);
	return 1;
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

SEC("cgroup/sock_release")
int ax_sock_release(struct bpf_sock *ctx)
{
	struct ax_asked *a;

	/* TCP is told of by sockops: leave at once, every connection's end comes by */
	if (ctx->protocol != IPPROTO_UDP)
		return 1;
	a = bpf_sk_storage_get(&asked, ctx, NULL, 0);
	if (!a)
		return 1;
	open_end(a);
	if (a->served[0].port_be)
		server_del(&a->served[0]);
	if (a->served[1].port_be)
		server_del(&a->served[1]);
	return 1;
}
