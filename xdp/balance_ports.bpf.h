/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * NAT's source ports: a backend sees one of our addresses and a port that no other flow to it has,
 * and answers there (balance.h).
 */
#ifndef AX_BALANCE_PORTS_BPF_H
#define AX_BALANCE_PORTS_BPF_H

#include "balance.bpf.h"
#include "nat.bpf.h"
#include "nat_proof.bpf.h"

/* A flow's first port to try. */
static __always_inline __be16 nat_port(__u32 hash)
{
	return bpf_htons((__u16)(AX_NAT_PORT + ((__u64)hash * AX_NAT_PORTS >> 32)));
}

static __always_inline bool same_flow(const struct ax_nat *a, const struct ax_nat *b)
{
	return same_addr(&a->client, &b->client) && same_addr(&a->service, &b->service) &&
	       a->client_port_be == b->client_port_be && a->service_port_be == b->service_port_be;
}

static __always_inline bool is_closed(__u8 state)
{
	return state & AX_NAT_RESET || (state & AX_NAT_FINS) == AX_NAT_FINS;
}

/* How long a flow may be idle, in seconds. */
static __always_inline __u32 may_be_idle(__u8 state, __u8 proto)
{
	if (is_closed(state))
		return AX_NAT_CLOSED;
	if (!(state & AX_NAT_OPEN))
		return AX_NAT_OPENING;
	if (proto != IPPROTO_TCP)
		return AX_NAT_IDLE_UDP;
	return state & AX_NAT_FINS ? AX_NAT_CLOSING : AX_NAT_IDLE_TCP;
}

/* How long a port's flow has been over; 0: it may go on. */
static __always_inline __u32 over_for(const struct ax_nat *n, __u8 proto, __u32 now)
{
	__u32 idle = now - n->seen;

	return idle >= may_be_idle(n->state, proto) * layout.hz ? idle : 0;
}

/* Whose flow has the port. *opening: it is in the map of those that are half-open. */
static __always_inline struct ax_nat *port_of(const struct ax_nat_key *key, bool *opening)
{
	struct ax_nat *n = bpf_map_lookup_elem(&nat, key);

	*opening = !n;
	return n ? n : bpf_map_lookup_elem(&nat_opening, key);
}

/* Takes the port of a flow that is over or half-open, unless another CPU does so. */
static __always_inline bool take_over(const struct ax_nat_key *key, const struct ax_nat *value)
{
	bool opening;
	struct ax_nat *n = port_of(key, &opening);
	__u32 seen;

	if (!n)
		return !bpf_map_update_elem(&nat_opening, key, value, BPF_NOEXIST);
	seen = n->seen;
	if ((n->state & AX_NAT_OPEN && !over_for(n, key->proto, value->seen)) ||
	    __sync_val_compare_and_swap(&n->seen, seen, value->seen) != seen)
		return false;
	if (opening)
		return !bpf_map_update_elem(&nat_opening, key, value, BPF_ANY);
	bpf_map_delete_elem(&nat, key);
	return !bpf_map_update_elem(&nat_opening, key, value, BPF_NOEXIST);
}

/* A search for a port. */
struct search {
	struct handover *h;
	__u32 hash;
	__u32 longest; /* that a port's flow has been over, */
	__be16 best_be;
	__be16 opening_be; /* or has been half-open, one more than that; 0: there is none */
	__u32 opening;
	__u32 openings; /* so many were seen */
	bool found;
};

/* Of a flow that may have a port already all are tried; one that begins is not to cost more than
 * that in a flood. */
static __always_inline bool begins(const struct handover *h)
{
	return h->nat_key.proto == IPPROTO_TCP &&
	       (h->p.tcp_flags & (TCP_FLAG_SYN_BIT | TCP_FLAG_ACK_BIT)) == TCP_FLAG_SYN_BIT;
}

/* One try. Returns 1 to end the search. (It looks first: an update takes an element from those that
 * are free, and gives it back when there is one already, which costs ten times as much.) */
static long try_port(__u32 i, struct search *s)
{
	struct ax_nat_key *key = &s->h->nat_key;
	struct ax_nat *n;
	bool opening;
	__u32 idle;

	(void)i;
	key->source_port_be = nat_port(s->hash);
	s->hash = s->hash * 1664525 + 1013904223;
	n = port_of(key, &opening);
	if (!n) {
		s->found = !bpf_map_update_elem(&nat_opening, key, &s->h->nat, BPF_NOEXIST);
		if (s->found)
			return 1;
		n = port_of(key, &opening); /* another CPU was faster */
		if (!n)
			return 0;
	}
	s->found = same_flow(n, &s->h->nat);
	if (s->found)
		return 1;
	idle = over_for(n, key->proto, s->h->nat.seen);
	if (idle > s->longest) {
		s->longest = idle;
		s->best_be = key->source_port_be;
	}
	if (n->state & AX_NAT_OPEN)
		return 0;
	idle = s->h->nat.seen - n->seen + 1;
	if (idle > s->opening) {
		s->opening = idle;
		s->opening_be = key->source_port_be;
	}
	return ++s->openings >= AX_NAT_ENOUGH && begins(s->h);
}

/*
 * Finds a port for the new flow h->nat and enters it, see h->nat_key. The ports that are tried are
 * the flow's own, so that one that was forgotten by the flow table finds its port again. 0 or -1.
 *
 * Global functions: the verifier looks at them once. They look the handover up themselves, because
 * the memory behind their arguments may not be a map's key (Linux 6.1).
 */
__noinline int nat_take(__u32 hash)
{
	struct handover *h = bpf_map_lookup_elem(&handovers, &(__u32){0});
	struct search s = {.h = h, .hash = hash};

	if (!h)
		return -1;
	bpf_loop(AX_NAT_TRIES, try_port, &s, 0);
	if (s.found)
		return 0;
	h->nat_key.source_port_be = s.longest ? s.best_be : s.opening_be;
	return (s.longest || s.opening) && take_over(&h->nat_key, &h->nat) ? 0 : -1;
}

static __always_inline void nat_touch(struct ax_nat *n, const struct ax_nat *value, __u8 tcp_flags)
{
	__u8 state = n->state;

	n->seen = value->seen;
	n->ifindex = value->ifindex;
	__builtin_memcpy(n->mac, value->mac, sizeof(n->mac));
	if (tcp_flags & TCP_FLAG_SYN_BIT) {
		/* of a flow that is open it may be somebody else's */
		if (is_closed(state))
			state = 0;
	} else if (tcp_flags & TCP_FLAG_RST_BIT) {
		state |= AX_NAT_RESET;
	} else if (tcp_flags & TCP_FLAG_FIN_BIT) {
		state |= AX_NAT_FIN_CLIENT;
	} else if (state & AX_NAT_OPEN) {
		state &= (__u8)~AX_NAT_RESET; /* who goes on was not reset (bpf/flows.bpf.h) */
	} else if (state & AX_NAT_SYN_REAL && same_proof(n->proof, value->proof)) {
		state |= AX_NAT_OPEN;
	}
	if (n->state != state)
		n->state = state;
}

/* Whether the flow h->nat still has the port of h->nat_key: another one may have taken it, or the
 * table forgotten it, which is undone. NAT_HALF_OPEN: it does, for now; NAT_UNPROVEN: and its
 * client has not shown yet that it got the answer to its SYN. */
#define NAT_HALF_OPEN 2
#define NAT_UNPROVEN  3
__noinline int nat_confirm(void)
{
	struct handover *h = bpf_map_lookup_elem(&handovers, &(__u32){0});
	struct ax_nat *n;
	bool opening;

	if (!h)
		return 0;
	n = port_of(&h->nat_key, &opening);
	if (!n)
		return !bpf_map_update_elem(&nat_opening, &h->nat_key, &h->nat, BPF_NOEXIST);
	if (!same_flow(n, &h->nat))
		return 0;
	nat_touch(n, &h->nat, h->p.tcp_flags);
	if (opening && nat_has_opened(&h->nat_key, n))
		nat_opened(&h->nat_key, n);
	return n->state & AX_NAT_OPEN	    ? 1
	       : n->state & AX_NAT_SYN_REAL ? NAT_UNPROVEN
					    : NAT_HALF_OPEN;
}

#endif
