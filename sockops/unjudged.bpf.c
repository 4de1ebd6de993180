/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sockets of apps in host mode that are connected, or connecting, to a port of this machine since
 * before it was exposed, as struct ax_unjudged records: what a connected UDP socket sends no hook
 * sees, nor a SYN that is sent again, so that nobody has asked whether the app may have what is
 * there now. (One that connects since then is led to the app that has the port, see
 * lead_exposed().) Run in the network namespace of whoever reads them.
 */
#include "switch.bpf.h"
#include "exposed.bpf.h"
#include "kernel.bpf.h"
#include "maker.bpf.h"
#include "sock_ends.bpf.h"

/* Also by a local route alone: then it is its own peer, or has bound itself to another address. */
static __always_inline bool is_here(const struct ax_unjudged *u)
{
	struct ax_addr remote = u->remote.addr; /* keys are on the stack to Linux 6.1 */

	return addr_is_loopback(&remote) || addr_eq(&u->local.addr, &remote) ||
	       bpf_map_lookup_elem(&local_addrs, &remote);
}

/* sk: the kernel's struct sock, of which `u` has the ends. */
static __always_inline bool is_unjudged(const void *sk, const struct ax_unjudged *u)
{
	const struct ax_app *app;

	if (!u->remote.port_be || !is_here(u) || !exposed_at(&u->remote, LO_IFINDEX))
		return false;
	app = app_that_made(sk);
	return app && (app->flags & AX_APP_HOST);
}

SEC("iter/udp")
int ax_unjudged_udp(struct bpf_iter__udp *ctx)
{
	struct udp_sock *udp = ctx->udp_sk;
	struct ax_unjudged u = {};

	if (!udp)
		return 0;
	ends_of((const struct sock_common *)udp, &u.local, &u.remote);
	u.local.proto = u.remote.proto = IPPROTO_UDP;
	if (!is_unjudged(udp, &u))
		return 0;
	u.cookie = bpf_get_socket_cookie(udp);
	u.ifindex = (__u32)((const struct sock_common *)udp)->skc_bound_dev_if;
	bpf_seq_write(ctx->meta->seq, &u, sizeof(u));
	return 0;
}

SEC("iter/tcp")
int ax_unjudged_tcp(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct ax_unjudged u = {};
	struct tcp_sock *tp;
	struct ax_asked *a;

	if (!skc || skc->skc_state != BPF_TCP_SYN_SENT)
		return 0;
	tp = bpf_skc_to_tcp_sock(skc);
	if (!tp)
		return 0;
	a = bpf_sk_storage_get(&asked, tp, NULL, 0);
	if (a && a->flags & AX_ASKED_OWN) /* its SYN says so: mark_exposed() */
		return 0;
	ends_of(skc, &u.local, &u.remote);
	if (!is_unjudged(tp, &u))
		return 0;
	u.cookie = bpf_get_socket_cookie(tp);
	u.ifindex = (__u32)skc->skc_bound_dev_if;
	bpf_seq_write(ctx->meta->seq, &u, sizeof(u));
	return 0;
}
