/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Datagrams for many, multicast and broadcasts: every socket that is on the wildcard gets them, and
 * nobody asks sk_lookup where they arrive. So whether they may come to another app's that is there
 * (struct ax_wild) is asked where they leave. BPF only.
 */
#ifndef AX_FOR_MANY_BPF_H
#define AX_FOR_MANY_BPF_H

#include "sock_addr.bpf.h"
#include "wild.bpf.h"

#define SOCK_BROADCAST_BIT 6 /* enum sock_flags */

static __always_inline bool may_broadcast(struct bpf_sock_addr *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	const struct sock_common *skc = NULL;
	unsigned long flags = 0;

	/* (its members are not to be had by the pointer itself, but by what it is as a number) */
	bpf_probe_read_kernel(&skc, sizeof(skc), &sk);
	bpf_core_read(&flags, sizeof(flags), &skc->skc_flags);
	return flags >> SOCK_BROADCAST_BIT & 1;
}

static __always_inline bool is_multicast(const struct ax_addr *addr)
{
	return addr_is_v4(addr) ? (addr->b[12] & 0xf0) == 0xe0 : addr->b[0] == 0xff;
}

/* What is a broadcast address only the kernel's routes know: the end of a network of four and more,
 * and the socket wants leave to send there. */
static __always_inline bool ends_a_network(const struct ax_addr *addr)
{
	return addr_is_v4(addr) && (addr->b[15] & 3) == 3;
}

/* The verdict on who else would get it. 0, or a negative errno. */
__weak __noinline int judge_listener(struct route_request *rq, const struct ax_app *app,
				     const struct ax_addr *of)
{
	struct ax_addr addr; /* keys are on the stack to Linux 6.1 */
	struct question q;
	struct ax_vip *vip;
	int r;

	if (!rq || !app || !of)
		return 0;
	addr = *of;
	vip = bpf_map_lookup_elem(&vips, &addr);
	if (!vip || vip->kind != AX_VIP_APP)
		return 0; /* it has ended */
	q = question_of(rq, app, &rq->peer, vip->party);
	rq->verdict = party_verdict(q.parties, q.ports, &rq->peer.addr);
	r = verdict_errno(rq->verdict);
	if (!r)
		return 0;
	count_verdict(rq->verdict);
	saw_route(rq, app, r);
	return refused(r);
}

/* 0, or a negative errno. */
static __noinline __attribute__((unused)) int
judge_for_many(struct bpf_sock_addr *ctx, struct route_request *rq, const struct ax_app *app)
{
	const struct ax_wild *w;
	struct ax_addr of;

	/* (most are for one: the address alone says so, and nothing has to be looked up) */
	if (rq->peer.proto != IPPROTO_UDP || !(app->flags & AX_APP_HOST) ||
	    !(is_multicast(&rq->peer.addr) || ends_a_network(&rq->peer.addr)))
		return 0;
	w = wild_at_port(&rq->peer.addr, rq->peer.port_be);
	if (!w || w->app == app->id || !(is_multicast(&rq->peer.addr) || may_broadcast(ctx)))
		return 0;
	of = w->vip;
	return judge_listener(rq, app, &of);
}

#endif
