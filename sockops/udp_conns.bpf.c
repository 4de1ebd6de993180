/* SPDX-License-Identifier: GPL-2.0-or-later */
/* UDP sockets that are connected through a service, as struct ax_conn records. Runs in the network
 * namespace of whoever reads it. */
#include "switch.bpf.h"
#include "kernel.bpf.h"
#include "sock_ends.bpf.h"

SEC("iter/udp")
int ax_udp_conns(struct bpf_iter__udp *ctx)
{
	struct udp_sock *udp = ctx->udp_sk;
	struct ax_conn conn = {};
	struct ax_asked *a;

	if (!udp)
		return 0;
	a = bpf_sk_storage_get(&asked, udp, NULL, 0);
	if (!a || !a->peer.port_be)
		return 0;
	ends_of((const struct sock_common *)udp, &conn.local, &conn.remote);
	conn.local.proto = conn.remote.proto = IPPROTO_UDP;
	if (!conn.remote.port_be || conn.remote.port_be != a->real_peer.port_be ||
	    !addr_eq(&conn.remote.addr, &a->real_peer.addr))
		return 0; /* it has been connected elsewhere since, or not at all */
	conn.asked = a->peer;
	conn.wire_local = conn.local;
	conn.wire_remote = conn.remote;
	conn.cookie = bpf_get_socket_cookie(udp);
	bpf_seq_write(ctx->meta->seq, &conn, sizeof(conn));
	return 0;
}
