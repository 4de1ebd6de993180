/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which connections are open to a backend. A socket's storage says what it counts for, so that it
 * is taken back once, whatever the socket meets with:
 * - TCP of an app counts from its SYN until the backend has ended its side, or all is over (refused
 *   and timed out included): TCP's states tell.
 * - A connected UDP socket of an app counts until it is closed or connected again.
 * - TCP of a program outside ax counts for the backend whose socket it is, from when it is
 *   established until that socket is closed.
 */
#ifndef AX_OPEN_BPF_H
#define AX_OPEN_BPF_H

#include <linux/in.h>

#include "choose.bpf.h"
#include "flows.bpf.h"
#include "open_conns.bpf.h"

static __always_inline void open_begin(struct ax_asked *a)
{
	if (open_add(&a->real_peer))
		__sync_fetch_and_or(&a->flags, AX_ASKED_COUNTED);
}

static __always_inline void open_end(struct ax_asked *a)
{
	__u32 both = AX_ASKED_COUNT | AX_ASKED_COUNTED;

	if ((a->flags & both) && (__sync_fetch_and_and(&a->flags, ~both) & AX_ASKED_COUNTED))
		open_del(&a->real_peer);
}

/* connect() was translated to a->real_peer. */
static __always_inline void open_connect(struct ax_asked *a)
{
	if (a->real_peer.proto == IPPROTO_TCP)
		__sync_fetch_and_or(&a->flags, AX_ASKED_COUNT); /* see open_syn() */
	else
		open_begin(a);
}

/* The SYN is made: from here on the socket's state tells of every end that it can come to. */
static __always_inline void open_syn(struct bpf_sock_ops *ctx, struct ax_asked *a)
{
	__sync_fetch_and_and(&a->flags, ~AX_ASKED_COUNT);
	if (!(a->flags & AX_ASKED_COUNTED) &&
	    bpf_sock_ops_cb_flags_set(ctx, BPF_SOCK_OPS_STATE_CB_FLAG) == 0)
		open_begin(a);
}

/* The backend of an accepted connection that counts. */
static __always_inline bool backend_of(const struct ax_flow_key *flow, struct ax_endpoint *ret)
{
	struct ax_endpoint *to = bpf_map_lookup_elem(&handed, flow);
	struct ax_flow *f;

	if (to) {
		*ret = *to;
		bpf_map_delete_elem(&handed, flow);
		return true;
	}
	f = flow_find(flow); /* its packets are translated */
	*ret = flow->peer;
	return f && f->state & AX_FLOW_COUNTS;
}

/* A connection of a program outside ax is established at its backend's socket. True: it counts. */
static __always_inline bool open_accepted(struct bpf_sock_ops *ctx, const struct ax_flow_key *flow)
{
	struct bpf_sock *sk = ctx->sk;
	struct ax_endpoint backend;
	struct ax_asked *a;

	if (!sk || !backend_of(flow, &backend))
		return false;
	a = bpf_sk_storage_get(&asked, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!a || bpf_sock_ops_cb_flags_set(ctx, BPF_SOCK_OPS_STATE_CB_FLAG))
		return false;
	a->real_peer = backend;
	open_begin(a);
	return true;
}

/* The backend has ended its side, or the connection is over. */
static __always_inline bool open_is_over(const struct ax_asked *a, __u32 state)
{
	if (state == BPF_TCP_CLOSE)
		return true;
	return a->peer.port_be ? state == BPF_TCP_CLOSE_WAIT
			       : state == BPF_TCP_FIN_WAIT1 || state == BPF_TCP_LAST_ACK;
}

static __always_inline void open_state(struct bpf_sock_ops *ctx, __u32 state)
{
	struct bpf_sock *sk = ctx->sk;
	struct ax_asked *a;

	if (!sk)
		return;
	a = bpf_sk_storage_get(&asked, sk, NULL, 0);
	if (a && (a->flags & AX_ASKED_COUNTED) && open_is_over(a, state))
		open_end(a);
}

#endif
