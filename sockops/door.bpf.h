/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs outside ax that come for an app that is started by connections. No hook sees them
 * connect, and their SYN would be refused, for nobody listens: it goes to a listener whose queue is
 * full, which the kernel takes for one that is busy. So TCP tries again a second later, and finds
 * the app, of which the agent was told. BPF only.
 */
#ifndef AX_DOOR_BPF_H
#define AX_DOOR_BPF_H

#include "endpoint.bpf.h"
#include "maps.bpf.h"
#include "serving.bpf.h"

#define KNOCK_NS 200000000ull /* so often the agent is told of one address */

static __always_inline void tell_knock(const struct ax_addr *of)
{
	__u64 now = bpf_ktime_get_ns(), *last = bpf_map_lookup_elem(&knocks, of);
	struct ax_event *ev;

	if (last && now - *last < KNOCK_NS)
		return;
	ev = bpf_ringbuf_reserve(&events, sizeof(*ev), 0);
	if (!ev)
		return; /* TCP tries again */
	__builtin_memset(ev, 0, sizeof(*ev));
	ev->type = AX_EVENT_KNOCK;
	ev->local.addr = *of;
	bpf_ringbuf_submit(ev, BPF_RB_FORCE_WAKEUP);
	bpf_map_update_elem(&knocks, of, &now, BPF_ANY);
}

/* The caller may have the app with this address, if connections start it. SK_DROP: it is not, or
 * there is no door, so it is refused. A global function: the verifier judges it once. */
__weak __noinline int knock(struct bpf_sk_lookup *ctx, const struct ax_addr *of)
{
	struct ax_addr addr; /* keys are on the stack to Linux 6.1 */
	struct bpf_sock *sk;
	struct ax_vip *vip;
	__u32 family;
	long r;

	if (!ctx || !of)
		return SK_DROP;
	addr = *of;
	vip = bpf_map_lookup_elem(&vips, &addr);
	if (!vip || !is_to_start(vip))
		return SK_DROP;
	family = ctx->family != AF_INET;
	sk = bpf_map_lookup_elem(&door, &family);
	if (!sk)
		return SK_DROP;
	r = bpf_sk_assign(ctx, sk, 0);
	bpf_sk_release(sk);
	if (r)
		return SK_DROP;
	if (vip->flags & AX_VIP_TELL)
		tell_knock(&addr);
	return SK_PASS;
}

#endif
