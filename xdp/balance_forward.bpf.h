/* SPDX-License-Identifier: GPL-2.0-or-later */
/* NAT's way to the backends. What has no ports and is no fragment (ICMP echo, say) is not
 * translated but left to this machine. */
#ifndef AX_BALANCE_FORWARD_BPF_H
#define AX_BALANCE_FORWARD_BPF_H

#include "balance_nat.bpf.h"
#include "balance_ports.bpf.h"

struct forward {
	struct handover *h;
	const __u8 *a;
	const struct ax_balancer *balancer;
	const struct ax_real *real;
	struct flow_key key;
	__u64 jiffies;
	__u32 now; /* as a time stamp */
	__u32 number;
	__be16 port_be; /* 0: none yet */
	bool fresh;
	bool unproven; /* NAT_UNPROVEN: the next packet is looked at, too */
};

static __always_inline const struct packet *flow_of(const struct handover *h)
{
	return h->icmp_error ? &h->quoted : &h->p;
}

/* h->nat and h->nat_key: what stands for the flow in map `nat`. */
static __always_inline void nat_entry(struct xdp_md *ctx, const struct forward *f)
{
	const struct packet *flow = flow_of(f->h);
	struct bytes b = bytes_of(ctx);
	struct ax_nat *n = &f->h->nat;

	f->h->nat_key = (struct ax_nat_key){
		.real = f->real->addr,
		.source = f->real->source,
		.real_port_be = f->real->port_be ? f->real->port_be : flow->dport_be,
		.source_port_be = f->port_be,
		.proto = flow->proto,
	};
	*n = (struct ax_nat){
		.client = flow->src,
		.service = flow->dst,
		.client_port_be = flow->sport_be,
		.service_port_be = flow->dport_be,
		.seen = f->now,
		.ifindex = layout.ifindex,
	};
	if (!f->h->icmp_error)
		put_proof(n->proof, tcp_number(ctx, flow, offsetof(struct tcphdr, ack_seq)));
	if (b.data + sizeof(struct ethhdr) <= b.end) {
		__builtin_memcpy(n->mac, b.data + ETH_ALEN, ETH_ALEN);
		__builtin_memcpy(n->mac + ETH_ALEN, b.data, ETH_ALEN);
	}
}

/* The next packet of the flow makes sure of the port, and says whether the flow is open by now. */
static __always_inline __u32 unchecked(const struct forward *f)
{
	return f->now - layout.hz;
}

/* By the flow table. False: it does not know the flow, or no more. */
static __always_inline bool go_on(struct xdp_md *ctx, struct forward *f, bool v4)
{
	struct ax_flow_real *known = flow_find(&f->key, v4);
	int held;

	if (!known)
		return false;
	/* fragments: where the later ones will go, whatever was before */
	if (f->real && known->real != f->number)
		return false;
	f->real = flow_real(f->a, known, f->h->balancer);
	if (!f->real)
		return false;
	f->number = known->real;
	f->port_be = known->port_be;
	if (f->h->explain || f->h->icmp_error)
		return true;
	if (f->now - known->checked < layout.hz / AX_NAT_CHECKS && !is_event(&f->h->p))
		return true;
	nat_entry(ctx, f);
	held = nat_confirm();
	known->checked = held >= NAT_HALF_OPEN ? unchecked(f) : f->now;
	f->unproven = held == NAT_UNPROVEN;
	if (held)
		return true;
	f->port_be = 0;
	return false;
}

/* By Maglev. */
static __always_inline bool choose(struct forward *f, bool v4)
{
	const struct packet *flow = flow_of(f->h);
	__u32 hash;
	int n;

	hash = hash_place(f->balancer, flow, v4, hash_flow(flow, v4, is_tracked(flow)));
	n = ring_choice(f->a, f->balancer, v4, hash);
	if (n < 0)
		return false;
	f->number = n;
	f->real = real_of(f->a, n);
	return f->real;
}

/* Gives a new flow a port and remembers it. 0 or a reason to drop it. */
static __always_inline __u32 nat_new(struct xdp_md *ctx, struct forward *f, bool v4)
{
	struct ax_flow_real known = {.real = (__u16)f->number, .checked = unchecked(f)};
	/* with ports, also of fragments, whose backend has nothing to do with them */
	__u32 hash = hash_flow(flow_of(f->h), v4, true);

	if (f->h->explain) {
		f->port_be = nat_port(hash);
		return 0;
	}
	if (!may_enter(f->jiffies))
		return AX_REASON_FLOWS_FULL;
	nat_entry(ctx, f);
	if (nat_take(hash) < 0)
		return AX_REASON_NO_PORT;
	f->port_be = known.port_be = f->h->nat_key.source_port_be;
	return flow_enter(&f->key, v4, &known) ? 0 : AX_REASON_FLOWS_FULL;
}

/* The backend that the packet's connection id names. */
static __always_inline __u32 find_named(struct xdp_md *ctx, struct forward *f, bool v4)
{
	f->number = f->h->quic;
	f->real = real_of(f->a, f->number);
	if (!f->real)
		return AX_REASON_NO_BACKEND;
	f->fresh = !go_on(ctx, f, v4);
	f->real = real_of(f->a, f->number);
	return f->real ? 0 : AX_REASON_NO_BACKEND;
}

/* The backend. 0, or a reason to drop the packet. */
static __always_inline __u32 find_real(struct xdp_md *ctx, struct forward *f, bool v4)
{
	const struct packet *flow = flow_of(f->h);

	if (flow->later)
		return choose(f, v4) ? 0 : AX_REASON_NO_BACKEND;
	if (flow->fragment != AX_FRAGMENT_NONE && !choose(f, v4))
		return AX_REASON_NO_BACKEND;
	flow_pick(f->h, flow, v4, &f->key);
	if (layout.quic && f->h->quic >= 0)
		return find_named(ctx, f, v4);
	if (go_on(ctx, f, v4))
		return 0;
	f->fresh = true;
	return choose(f, v4) ? 0 : AX_REASON_NO_BACKEND;
}

/* The backend is this machine, and has what the client asked for. */
static __always_inline bool is_here(const struct forward *f, const struct hop *hop)
{
	const struct packet *p = flow_of(f->h);

	return hop->result == BPF_FIB_LKUP_RET_NOT_FWDED && same_addr(&f->real->addr, &p->dst) &&
	       (!f->real->port_be || p->later || f->real->port_be == p->dport_be);
}

/* To the backend, once all is known. */
static __always_inline int forward_send(struct xdp_md *ctx, const struct handover *h,
					const struct ends *to, const struct link *link, bool v4)
{
	if (!translate_any(ctx, h, to, v4))
		return fail(ctx, h, AX_REASON_REWRITE_FAILED, XDP_DROP);
	return send(ctx, link);
}

/* What keeps a packet from leaving by this link. */
static __always_inline __u32 link_trouble(struct xdp_md *ctx, const struct handover *h,
					  const struct link *link, bool v4)
{
	struct bytes b = bytes_of(ctx);

	if (!ttl_left(&b, &h->p, v4))
		return AX_REASON_TTL;
	return link->mtu && ip_length(&h->p) > link->mtu ? AX_REASON_TOO_BIG : 0;
}

static __always_inline int refuse(struct xdp_md *ctx, const struct handover *h, __u32 trouble,
				  const struct link *link, bool v4)
{
	if (trouble == AX_REASON_TOO_BIG)
		return too_big(ctx, h, link->mtu, v4);
	return fail(ctx, h, trouble, XDP_DROP);
}

static __always_inline int forward(struct xdp_md *ctx, struct handover *h, const __u8 *a,
				   const struct ax_balancer *balancer, bool v4)
{
	const struct packet *flow = flow_of(h);
	struct forward f;
	struct ends to;
	struct hop *hop;
	__u32 trouble;

	if (!flow->has_l4 && !flow->later)
		return XDP_PASS;
	f.h = h;
	f.a = a;
	f.balancer = balancer;
	f.real = NULL;
	f.port_be = 0;
	f.fresh = f.unproven = false;
	f.jiffies = bpf_jiffies64();
	f.now = (__u32)f.jiffies;
	trouble = find_real(ctx, &f, v4);
	if (trouble || !f.real)
		return fail(ctx, h, trouble, XDP_DROP);
	if (h->icmp_error && f.fresh)
		return XDP_PASS; /* about a flow of nobody: the kernel may know what it is */
	if (h->explain)
		explain_backend(ctx, f.number);
	hop = hop_to(ctx, f.number, f.real, f.jiffies);
	if (!hop)
		return XDP_ABORTED;
	if (is_here(&f, hop))
		return XDP_PASS;
	trouble = hop_trouble(hop, &h->p);
	if (!trouble && no_addr(&f.real->source))
		trouble = AX_REASON_NO_ROUTE;
	if (!trouble)
		trouble = link_trouble(ctx, h, &hop->link, v4);
	if (!trouble && f.fresh)
		trouble = nat_new(ctx, &f, v4);
	if (trouble)
		return refuse(ctx, h, trouble, &hop->link, v4);
	to.src = f.real->source;
	to.dst = f.real->addr;
	to.sport_be = f.port_be;
	to.dport_be = f.real->port_be ? f.real->port_be : flow->dport_be;
	if (!h->explain)
		count_real(f.number, h->len, f.fresh);
	if (f.fresh && is_by_id(&f.key, v4) && !h->explain)
		count_reason(AX_REASON_QUIC_ID);
	if (!f.unproven)
		fast_keep(h, f.number, AX_BALANCE_NAT, &to, &hop->link, v4, is_by_id(&f.key, v4),
			  f.jiffies);
	return forward_send(ctx, h, &to, &hop->link, v4);
}

#endif
