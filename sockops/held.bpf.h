/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connects that wait: what hooks and the agent tell each other. BPF only. */
#ifndef AX_HELD_BPF_H
#define AX_HELD_BPF_H

#include <linux/types.h>

#include "choose.bpf.h"
#include "maps.bpf.h"
#include "serving.bpf.h"

extern __u32 held_any;	/* 1: a SYN was held since the agent looked last, or is held yet */
extern __u32 held_told; /* 1: the agent is told, and has not looked since */

/* Whether somebody serves `at`: who has the address, or, where several share it, one of them to
 * whom sk_lookup would bring the SYN. (What goes to the device of a private app stays with it.) A
 * global function: the verifier judges its loop once, and not for each way to it. */
__weak __noinline int is_served(const struct ax_endpoint *at)
{
	struct choice choice = {};
	struct ax_endpoint ep; /* keys are on the stack to Linux 6.1 */
	struct ax_service *svc;
	struct ax_vip *vip;
	int r;

	if (!at)
		return false;
	ep = *at;
	vip = bpf_map_lookup_elem(&vips, &ep.addr);
	if (!vip)
		return false;
	if (is_serving(&ep, vip))
		return true;
	if (!(vip->flags & AX_VIP_SERVICES) || vip->ifindex)
		return false;
	choice.asked = ep;
	svc = find_service(&choice.asked);
	if (!svc)
		return false;
	choice.start = bpf_get_prandom_u32();
	for (__u32 i = 0; i < CHOOSE_TRIES; i++) {
		r = choose_by_strategy(&choice, svc, &ep);
		if (r == CHOSEN_NONE)
			break;
		if (r == CHOSEN_GONE)
			continue;
		vip = bpf_map_lookup_elem(&vips, &ep.addr);
		if (vip && !vip->ifindex && server_of(&ep, vip))
			return true;
	}
	return false;
}

/* The agent is to look. It is told once, until it does. */
static __always_inline void tell_held(void)
{
	struct ax_event *ev;

	if (held_told)
		return;
	ev = bpf_ringbuf_reserve(&events, sizeof(*ev), 0);
	if (!ev)
		return; /* TCP tries again */
	__builtin_memset(ev, 0, sizeof(*ev));
	ev->type = AX_EVENT_AWAITED;
	held_told = 1;
	bpf_ringbuf_submit(ev, BPF_RB_FORCE_WAKEUP);
}

#endif
