/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flows of programs outside ax through services with private backends (struct ax_flow), for
 * programs on sockets and on packets. An entry for each direction; both are written together, each
 * time that something happens, or a second has passed, so that both know the state. BPF only.
 */
#ifndef AX_FLOWS_BPF_H
#define AX_FLOWS_BPF_H

#include <stdbool.h>
#include <linux/in.h>
#include <bpf/bpf_endian.h>

#include "maps.bpf.h"

static __always_inline __u32 flow_now(void)
{
	return (__u32)(bpf_ktime_get_ns() >> 30);
}

static __always_inline bool flow_is_closed(__u8 state)
{
	return state & AX_FLOW_RESET || (state & AX_FLOW_FINS) == AX_FLOW_FINS;
}

static __always_inline bool flow_is_over(const struct ax_flow *f, __u8 proto, __u32 now)
{
	__u32 life = proto == IPPROTO_UDP	? AX_FLOW_LIFE_UDP
		     : flow_is_closed(f->state) ? AX_FLOW_LIFE_CLOSED
		     : f->state & AX_FLOW_OPEN	? AX_FLOW_LIFE_OPEN
						: AX_FLOW_LIFE_NEW;

	return now - f->seen > life;
}

/* NULL: there is none, or none that goes on. */
static __always_inline struct ax_flow *flow_find(const struct ax_flow_key *key)
{
	__u8 proto = key->client.proto;
	__u32 now = flow_now();
	struct ax_flow *f;

	if (proto == IPPROTO_UDP) {
		f = bpf_map_lookup_elem(&udp_flows, key);
		return f && !flow_is_over(f, proto, now) ? f : NULL;
	}
	f = bpf_map_lookup_elem(&flows, key);
	if (f && !flow_is_over(f, proto, now))
		return f;
	f = bpf_map_lookup_elem(&new_flows, key);
	return f && !flow_is_over(f, proto, now) ? f : NULL;
}

static __always_inline void flow_delete(const struct ax_flow_key *key)
{
	if (key->client.proto == IPPROTO_UDP) {
		bpf_map_delete_elem(&udp_flows, key);
		return;
	}
	bpf_map_delete_elem(&flows, key);
	bpf_map_delete_elem(&new_flows, key);
}

/* The entry of the other direction. */
static __always_inline void flow_other(const struct ax_flow_key *key, const struct ax_flow *f,
				       struct ax_flow_key *ret)
{
	ret->client = key->client;
	ret->client.port_be = f->client_port_be;
	ret->peer = f->to;
}

/* Both directions. (One that is over by its time may stay: what is written next takes its place.)
 */
static __noinline __attribute__((unused)) void flow_forget(const struct ax_flow_key *key)
{
	struct ax_flow_key other;
	struct ax_flow *f;

	f = flow_find(key);
	if (!f)
		return;
	flow_other(key, f, &other);
	flow_delete(&other);
	flow_delete(key);
}

static __always_inline bool flow_is_open(__u8 state)
{
	return state & AX_FLOW_OPEN && !flow_is_closed(state);
}

/* TCP's are in `flows` while they are open, else in `new_flows`. `moved`: it was in the other one,
 * which costs a look. */
static __always_inline bool flow_write(const struct ax_flow_key *key, const struct ax_flow *f,
				       bool moved)
{
	if (key->client.proto == IPPROTO_UDP)
		return !bpf_map_update_elem(&udp_flows, key, f, BPF_ANY);
	if (flow_is_open(f->state)) {
		if (bpf_map_update_elem(&flows, key, f, BPF_ANY))
			return false;
		if (moved)
			bpf_map_delete_elem(&new_flows, key);
		return true;
	}
	if (bpf_map_update_elem(&new_flows, key, f, BPF_ANY))
		return false;
	if (moved)
		bpf_map_delete_elem(&flows, key);
	return true;
}

/* (No part of its callers: the stack is small. Not all who include this need it.) */
static __noinline __attribute__((unused)) bool flow_write_both(const struct ax_flow_key *key,
							       const struct ax_flow *f, bool moved)
{
	struct ax_flow back = {.to = key->peer,
			       .client_port_be = key->client.port_be,
			       .state = f->state,
			       .kind = f->kind,
			       .seen = f->seen};
	struct ax_flow_key other;

	flow_other(key, f, &other);
	return flow_write(key, f, moved) && flow_write(&other, &back, moved);
}

/* --- what happens to a flow --- */

#define FLOW_FIN 0x01
#define FLOW_SYN 0x02
#define FLOW_RST 0x04

static __always_inline __u8 flow_next_state(__u8 state, __u8 flags, bool from_app)
{
	if (flags & FLOW_RST)
		return state | AX_FLOW_RESET;
	/* who goes on was not reset: the ends know an RST by its sequence number, we do not */
	state &= (__u8)~AX_FLOW_RESET;
	if (flags & FLOW_SYN)
		return from_app ? state | AX_FLOW_ANSWERED : state;
	if (flags & FLOW_FIN)
		return state | (from_app ? AX_FLOW_FIN_APP : AX_FLOW_FIN_CLIENT);
	/* one whose entry was pushed out, and is there again: the app knows of it */
	if (from_app)
		return state | AX_FLOW_ANSWERED;
	/* one that only pretends to have got the answer is reset by the app */
	return state & AX_FLOW_ANSWERED ? state | AX_FLOW_OPEN : state;
}

/* A packet of a flow that flow_find() found. */
static __noinline __attribute__((unused)) void
flow_seen(const struct ax_flow_key *key, struct ax_flow *f, __u8 flags, bool from_app)
{
	const struct ax_flow was = *f;
	struct ax_flow next = was;

	next.state = flow_next_state(was.state, flags, from_app);
	next.seen = flow_now();
	if (next.state != was.state || next.seen != was.seen)
		flow_write_both(key, &next, flow_is_open(next.state) != flow_is_open(was.state));
}

#define FLOW_PORT_FIRST 1024

/* How many ports from there on are for flows: those below clients' own, unless the machine has
 * hardly any there. */
static __always_inline __u32 flow_ports(const struct ax_ctl *c)
{
	return c->ephemeral_first > 2 * FLOW_PORT_FIRST && c->ephemeral_first <= 65536
		       ? c->ephemeral_first - FLOW_PORT_FIRST
		       : 65536 - FLOW_PORT_FIRST;
}

static __always_inline bool is_flow_port(const struct ax_ctl *c, __be16 port_be)
{
	return (__u32)bpf_ntohs(port_be) - FLOW_PORT_FIRST < flow_ports(c);
}

/* Some port for a flow. (Not static: the verifier looks at it once, and not for each try.) */
__weak __noinline __be16 flow_port(const struct ax_ctl *c)
{
	__u32 n = c ? flow_ports(c) : 1;

	return bpf_htons((__u16)(FLOW_PORT_FIRST + bpf_get_prandom_u32() % n));
}

#endif
