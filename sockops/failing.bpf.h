/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Passive health checks: TCP connections to a service's backend that fail are counted, where the
 * agent asks for it. BPF only. */
#ifndef AX_FAILING_BPF_H
#define AX_FAILING_BPF_H

#include <stdbool.h>

#include "kernel.bpf.h"
#include "maps.bpf.h"

/* (the part after ___ is no part of the name to libbpf) */
struct sock___failing {
	int sk_err;
} __attribute__((preserve_access_index));

extern bool failing_any;   /* map `failing` has entries */
extern __u32 failing_told; /* 1: the agent is told, and has not looked since */

/* The SYN is made: from here on the socket's state tells of its end. */
static __always_inline void failing_syn(struct bpf_sock_ops *ctx, struct ax_asked *a)
{
	struct ax_endpoint to = a->real_peer;

	/* (whoever waits for a server wants that it is not there) */
	if (a->hold_until_ns || !bpf_map_lookup_elem(&failing, &to))
		return;
	if (bpf_sock_ops_cb_flags_set(ctx, BPF_SOCK_OPS_STATE_CB_FLAG) == 0)
		__sync_fetch_and_or(&a->flags, AX_ASKED_WATCHED);
}

static __always_inline void failing_tell(void)
{
	struct ax_event *ev;

	if (failing_told)
		return;
	ev = bpf_ringbuf_reserve(&events, sizeof(*ev), 0);
	if (!ev)
		return; /* the next one tells */
	__builtin_memset(ev, 0, sizeof(*ev));
	ev->type = AX_EVENT_FAILING;
	failing_told = 1;
	bpf_ringbuf_submit(ev, BPF_RB_FORCE_WAKEUP);
}

/* It is over: with an error of the kernel's if it was refused, timed out or reset. */
static __always_inline int failing_end(struct bpf_sock_ops *ctx)
{
	struct ax_endpoint to;
	struct ax_failing *f;
	struct tcp_sock *tp;
	struct bpf_sock *sk;
	struct ax_asked *a;
	int error;

	if (!ctx)
		return 0;
	sk = ctx->sk;
	a = sk ? bpf_sk_storage_get(&asked, sk, NULL, 0) : NULL;
	if (!a || !(a->flags & AX_ASKED_WATCHED))
		return 0;
	__sync_fetch_and_and(&a->flags, ~AX_ASKED_WATCHED);
	tp = bpf_skc_to_tcp_sock(sk);
	error = tp ? ((struct sock___failing *)tp)->sk_err : 0;
	to = a->real_peer;
	f = error ? bpf_map_lookup_elem(&failing, &to) : NULL;
	if (!f)
		return 0;
	f->error = (__u32)error;
	__sync_fetch_and_add(&f->count, 1);
	failing_tell();
	return 0;
}

#endif
