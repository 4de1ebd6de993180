/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TCP that apps in host mode have accepted at addresses that are not their own, as struct
 * ax_accepted records: the service's, or the host's, to which a program outside ax has connected,
 * and nobody has asked a hook. Runs in the network namespace of whoever reads it. */
#include "switch.bpf.h"
#include "kernel.bpf.h"
#include "maker.bpf.h"
#include "sock_ends.bpf.h"

/* NULL: it has accepted nothing. Whose handshake has not ended is its listener's app's. */
static __always_inline const struct ax_app *app_that_accepted(struct sock_common *skc)
{
	struct tcp_sock *tp;
	struct ax_asked *a;

	if (skc->skc_state == BPF_TCP_NEW_SYN_RECV)
		return app_that_made(BPF_CORE_READ(skc, skc_listener));
	tp = bpf_skc_to_tcp_sock(skc); /* not for time-wait sockets */
	if (!tp || skc->skc_state == BPF_TCP_LISTEN || skc->skc_state == BPF_TCP_CLOSE)
		return NULL;
	a = bpf_sk_storage_get(&asked, tp, NULL, 0);
	if (a && a->peer.port_be)
		return NULL; /* it has connected */
	return app_that_made(tp);
}

SEC("iter/tcp")
int ax_accepted(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct ax_accepted conn = {};
	const struct ax_app *app;

	if (!skc)
		return 0;
	app = app_that_accepted(skc);
	if (!app || !(app->flags & AX_APP_HOST))
		return 0;
	ends_of(skc, &conn.local, &conn.remote);
	conn.app = addr_is_v4(&conn.local.addr) ? app->vip4 : app->vip6;
	if (addr_eq(&conn.local.addr, &conn.app))
		return 0;
	conn.cookie = bpf_get_socket_cookie(skc);
	bpf_seq_write(ctx->meta->seq, &conn, sizeof(conn));
	return 0;
}
