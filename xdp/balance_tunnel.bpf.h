/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Direct server return: the packet goes to its backend as it came, inside another one; the backend
 * has the service's address too, and answers the client itself.
 *
 * IPIP: RFC 2003, RFC 2473. GUE: its variant 1 (draft-ietf-intarea-gue), which is the IP packet
 * right behind the UDP header, and what `ip fou add port 6080 gue` takes apart. Its source port is
 * of the flow, so that networks and network cards spread flows. Its UDP checksum is zero, over IPv6
 * too, as RFC 6935 permits for tunnels.
 */
#ifndef AX_BALANCE_TUNNEL_BPF_H
#define AX_BALANCE_TUNNEL_BPF_H

#include "balance_icmp.bpf.h"

#define GUE_PORT  0xc000 /* the first one; RFC 6335's dynamic ports */
#define GUE_PORTS 0x4000

struct placed {
	const struct ax_real *real;
	__u32 number;
	__be16 port_be; /* GUE's source port */
	bool tracked;
	bool fresh;
	bool by_id; /* is_by_id() */
};

static __always_inline __be16 gue_port(__u32 hash)
{
	return bpf_htons((__u16)(GUE_PORT + (hash & (GUE_PORTS - 1))));
}

/* Remembers where a new flow goes, if that may be done. */
static __always_inline void enter(const struct handover *h, const struct flow_key *key,
				  const struct placed *pl, bool v4, __u64 now)
{
	struct ax_flow_real f = {.real = (__u16)pl->number, .port_be = pl->port_be};

	if (h->explain)
		return;
	if (!may_enter(now) || !flow_enter(key, v4, &f))
		count_reason(AX_REASON_FLOWS_FULL);
}

/* By the packet's connection id. */
static __always_inline bool place_named(const struct handover *h, const __u8 *a,
					const struct flow_key *key, bool v4, __u64 now,
					struct placed *pl)
{
	const struct ax_flow_real *f = flow_find(key, v4);

	pl->number = h->quic;
	pl->real = real_of(a, pl->number);
	pl->fresh = !f || f->real != pl->number;
	pl->port_be = f && !pl->fresh ? f->port_be : gue_port(hash_flow(&h->p, v4, true));
	pl->by_id = is_by_id(key, v4);
	if (!pl->real || !pl->fresh)
		return pl->real;
	enter(h, key, pl, v4, now);
	if (pl->by_id && !h->explain)
		count_reason(AX_REASON_QUIC_ID);
	return true;
}

/* Chooses the backend. False: there is none. */
static __always_inline bool place(const struct handover *h, const __u8 *a,
				  const struct ax_balancer *b, bool v4, __u64 now,
				  struct placed *pl)
{
	const struct packet *flow = h->icmp_error ? &h->quoted : &h->p;
	struct flow_key key;
	__u32 hash;
	int n;

	pl->tracked = is_tracked(flow);
	if (pl->tracked) {
		const struct ax_flow_real *f;

		flow_pick(h, flow, v4, &key);
		if (layout.quic && h->quic >= 0)
			return place_named(h, a, &key, v4, now, pl);
		f = flow_find(&key, v4);
		if (f) {
			pl->real = flow_real(a, f, h->balancer);
			pl->number = f->real;
			pl->port_be = f->port_be;
			pl->fresh = false;
			if (pl->real)
				return true;
		}
	}
	hash = hash_flow(flow, v4, pl->tracked);
	n = ring_choice(a, b, v4, hash_place(b, flow, v4, hash));
	if (n < 0)
		return false;
	pl->real = real_of(a, n);
	pl->number = n;
	pl->port_be = gue_port(hash);
	pl->fresh = pl->tracked && !h->icmp_error;
	if (pl->real && pl->fresh)
		enter(h, &key, pl, v4, now);
	return pl->real;
}

/* --- all of it --- */

/* Through the tunnel, once it is known where it leads. */
static __always_inline int tunnel_send(struct xdp_md *ctx, const struct handover *h,
				       const struct placed *pl, const struct ends *to,
				       const struct link *link, bool v4)
{
	bool tagged = h->p.l3_off != sizeof(struct ethhdr);
	struct outer o = {.size = outer_size(to, v4), .len = ip_length(&h->p)};
	struct bytes b = bytes_of(ctx);

	if (!ttl_left(&b, &h->p, v4))
		return fail(ctx, h, AX_REASON_TTL, XDP_DROP);
	if (link->mtu && o.size + o.len > link->mtu)
		return too_big(ctx, h, link->mtu - o.size, v4);
	if (!h->explain)
		count_real(pl->number, h->len, pl->fresh);
	if (encapsulate(ctx, &h->p, to, &o, v4, tagged) < 0)
		return fail(ctx, h, AX_REASON_REWRITE_FAILED, XDP_DROP);
	return send(ctx, link);
}

static __always_inline int tunnel(struct xdp_md *ctx, const struct handover *h, const __u8 *a,
				  const struct ax_balancer *balancer, bool v4)
{
	__u64 now = bpf_jiffies64();
	struct placed pl = {};
	struct ends to;
	struct hop *hop;
	__u32 trouble;

	if (!place(h, a, balancer, v4, now, &pl))
		return fail(ctx, h, AX_REASON_NO_BACKEND, XDP_DROP);
	if (h->explain)
		explain_backend(ctx, pl.number);
	hop = hop_find(ctx, pl.number, &pl.real->addr, &pl.real->source, now);
	if (!hop)
		return XDP_ABORTED;
	if (hop->result == BPF_FIB_LKUP_RET_NOT_FWDED) { /* the backend is this machine */
		if (!h->explain)
			count_real(pl.number, h->len, pl.fresh);
		return XDP_PASS;
	}
	trouble = hop_trouble(hop, &h->p);
	if (!trouble && no_addr(&pl.real->source))
		trouble = AX_REASON_NO_ROUTE;
	if (trouble)
		return fail(ctx, h, trouble, XDP_DROP);
	to.src = pl.real->source;
	to.dst = pl.real->addr;
	to.sport_be = pl.port_be;
	to.dport_be = balancer->mode == AX_BALANCE_GUE ? balancer->gue_port_be : 0;
	if (pl.tracked)
		fast_keep(h, pl.number, balancer->mode, &to, &hop->link, v4, pl.by_id, now);
	return tunnel_send(ctx, h, &pl, &to, &hop->link, v4);
}

#endif
