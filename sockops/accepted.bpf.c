/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TCP that apps in host mode have accepted at addresses that are not their own, as struct
 * ax_accepted records: the service's, or the host's, to which a program outside ax has connected,
 * and nobody has asked a hook. Runs in the network namespace of whoever reads it. */
#include "switch.bpf.h"
#include "kernel.bpf.h"
#include "maker.bpf.h"
#include "sock_ends.bpf.h"

SEC("iter/tcp")
int ax_accepted(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct ax_accepted conn = {};
	const struct ax_app *app;
	struct tcp_sock *tp;
	struct ax_asked *a;

	if (!skc)
		return 0;
	tp = bpf_skc_to_tcp_sock(skc); /* not for time-wait and request sockets */
	if (!tp || skc->skc_state == BPF_TCP_LISTEN || skc->skc_state == BPF_TCP_CLOSE)
		return 0;
	a = bpf_sk_storage_get(&asked, tp, NULL, 0);
	if (a && a->peer.port_be)
		return 0; /* it has connected */
	app = app_of_maker((struct bpf_sock *)skc);
	if (!app || !(app->flags & AX_APP_HOST))
		return 0;
	ends_of(skc, &conn.local, &conn.remote);
	conn.app = addr_is_v4(&conn.local.addr) ? app->vip4 : app->vip6;
	if (addr_eq(&conn.local.addr, &conn.app))
		return 0;
	conn.cookie = bpf_get_socket_cookie(tp);
	bpf_seq_write(ctx->meta->seq, &conn, sizeof(conn));
	return 0;
}
