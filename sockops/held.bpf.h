/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connects that wait: what hooks and the agent tell each other. BPF only. */
#ifndef AX_HELD_BPF_H
#define AX_HELD_BPF_H

#include <linux/types.h>

#include "choose.bpf.h"
#include "endpoint.bpf.h"
#include "maps.bpf.h"
#include "serving.bpf.h"
#include "verdict.bpf.h"

#define TWIN_NS 1000000000ull

extern __u32 held_any;	/* 1: a SYN was held since the agent looked last, or is held yet */
extern __u32 held_told; /* 1: the agent is told, and has not looked since */

/* Whether the app with that address may have one of several who serve, as those will judge who get
 * its SYN: a client that may not waits on, and is not told by an early end that somebody is there.
 */
__weak __noinline int may_be_given(const struct ax_addr *client, const struct ax_endpoint *ep,
				   __u32 party)
{
	struct ax_addr addr; /* keys are on the stack to Linux 6.1 */
	const struct ax_vip *vip;
	struct question q;

	if (!client || !ep)
		return false;
	addr = *client;
	vip = bpf_map_lookup_elem(&vips, &addr);
	if (!vip || vip->kind != AX_VIP_APP || !vip->party || !party)
		return false;
	q.parties = question_parties(vip->party, party);
	q.ports = question_ports(ep->proto, ep->port_be, 0);
	return !(verdict_of(&q, &addr) & VERDICT_REFUSED);
}

/*
 * Whether the app listens there by its address of the other family alone, and has for a while: it
 * is not waited for. A client that has both addresses tries the other one only when this one has
 * failed. (Who has just begun may be about to listen by this one, too.)
 */
static __noinline bool serves_twin(const struct ax_endpoint *ep, const struct ax_vip *vip)
{
	struct ax_endpoint other = *ep;
	const struct ax_server *s;

	if (addr_is_zero(&vip->twin))
		return false;
	other.addr = vip->twin;
	s = server_of(&other, vip);
	return s && bpf_ktime_get_boot_ns() - s->since_ns > TWIN_NS;
}

enum served {
	SERVED_NOT,
	SERVED,
	SERVED_TWIN, /* by the other family alone */
	SERVED_AWAY, /* by another node, which knows whether it is */
	SERVED_END,  /* no more backends */
};

/* Whether whoever is refused there has to wait: it is who has just gone, or has no place. */
static __always_inline bool refusal_waits(int served)
{
	return served == SERVED;
}

/* The next backend that the strategy names. A global function: the verifier judges it once, and not
 * for each try. */
__weak __noinline int next_serves(struct choice *choice, struct ax_service *svc,
				  const struct ax_vip *vip, const struct ax_addr *client)
{
	struct ax_endpoint ep = {}; /* keys are on the stack to Linux 6.1, and all written */
	struct ax_vip *be;
	int r;

	if (!choice || !svc || !vip || !client)
		return SERVED_END;
	r = choose_by_strategy(choice, svc, &ep);
	if (r != CHOSEN)
		return r == CHOSEN_NONE ? SERVED_END : SERVED_NOT;
	be = bpf_map_lookup_elem(&vips, &ep.addr);
	if (!be || !leads_to(vip, be) || !may_be_given(client, &ep, be->party))
		return SERVED_NOT;
	if (server_of(&ep, be))
		return SERVED;
	return serves_twin(&ep, be) ? SERVED_TWIN : SERVED_NOT;
}

/* Whether somebody serves `at`: who has the address, or, where it is a service's or several share
 * it, one of them who would get the client's SYN. (What goes to the device of a private app stays
 * with it, unless private ones share its address.) Also if nobody does, and will by this family:
 * the SYN is refused then. An enum served; a global function, as is next_serves(). */
__weak __noinline int is_served(const struct ax_endpoint *at, const struct ax_addr *client)
{
	struct choice choice = {};
	struct ax_endpoint ep; /* keys are on the stack to Linux 6.1 */
	struct ax_service *svc;
	struct ax_vip *vip;
	int r, twin;

	if (!at || !client)
		return SERVED_NOT;
	ep = *at;
	vip = bpf_map_lookup_elem(&vips, &ep.addr);
	if (!vip)
		return SERVED_NOT;
	if (is_elsewhere(vip))
		return SERVED_AWAY;
	if (server_of(&ep, vip))
		return SERVED;
	twin = serves_twin(&ep, vip) ? SERVED_TWIN : SERVED_NOT;
	if (!(vip->flags & AX_VIP_SERVICES) || (vip->ifindex && !(vip->flags & AX_VIP_BY_DEVICE)))
		return twin;
	choice.asked = ep;
	svc = find_service(&choice.asked);
	if (!svc)
		return twin;
	choice.start = bpf_get_prandom_u32();
	choice.sticky = true; /* each in turn: nobody is chosen yet */
	for (__u32 i = 0; i < CHOOSE_TRIES; i++) {
		r = next_serves(&choice, svc, vip, client);
		if (r == SERVED)
			return SERVED;
		if (r == SERVED_END)
			break;
		if (r == SERVED_TWIN)
			twin = r;
	}
	return twin;
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
