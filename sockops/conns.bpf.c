/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's own table of TCP sockets as struct ax_conn records: nothing is kept per connection
 * for the sake of being seen. Runs in the network namespace of whoever reads it. */
#include "switch.bpf.h"
#include "across_ends.bpf.h"
#include "kernel.bpf.h"
#include "sock_ends.bpf.h"
#include "payload.bpf.h"

SEC("iter/tcp")
int ax_conns(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct ax_conn conn = {};
	struct tcp_sock *tp;
	struct ax_asked *a;

	if (!skc)
		return 0;
	tp = bpf_skc_to_tcp_sock(skc); /* not for time-wait and request sockets */
	if (!tp)
		return 0;
	conn.state = skc->skc_state;
	if (conn.state == BPF_TCP_LISTEN || conn.state == BPF_TCP_CLOSE)
		return 0;
	ends_of(skc, &conn.local, &conn.remote);
	conn.wire_local = conn.local;
	conn.wire_remote = conn.remote;
	a = bpf_sk_storage_get(&asked, tp, NULL, 0);
	if (a) {
		conn.asked = a->peer;
		across_ends(a, bpf_sk_storage_get(&across, tp, NULL, 0), &conn.local, &conn.remote,
			    &conn.asked);
	}
	if (!bpf_map_lookup_elem(&vips, &conn.local.addr) &&
	    !bpf_map_lookup_elem(&vips, &conn.remote.addr))
		return 0;
	conn.cookie = bpf_get_socket_cookie(tp);
	conn.uid = ctx->uid;
	conn.srtt_us = tp->srtt_us >> 3;
	conn.sent = payload_sent(tp, conn.state);
	conn.received = payload_received(tp);
	bpf_seq_write(ctx->meta->seq, &conn, sizeof(conn));
	return 0;
}
