/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a packet is to the flows that this host knows of (enum ax_state): the host's sockets are
 * asked, and for what this host forwards, masquerades, or sends from sockets that are not
 * connected, the kernel's connection tracking where programs can ask it, else the flows that ax
 * keeps itself (tracked.bpf.h). No packet costs more than one look at each, and a SYN none: what is
 * found for it changes nothing.
 *
 * Of what leaves, it is the other end's packet that is asked about, with which this host would be
 * answered: who gets it knows the flow just as well (tuple.bpf.h).
 *
 * A look for a connected socket that is not there goes on to listeners, and runs the sk_lookup
 * programs of the namespace (sockops/sk_lookup.bpf.c), with all that they count and remember. For a
 * SYN that would be a service's next backend, twice for each connection.
 *
 * A connected UDP socket is asked for datagrams of its peer only. One that is not connected says
 * nothing: it may be a server's, which takes what nobody asked for.
 *
 * Where things are said of a quoted packet, it is one that an ICMP error quotes, ends swapped.
 */
#ifndef AX_STATE_BPF_H
#define AX_STATE_BPF_H

#ifndef AX_ON_TC
#include "exposed_ports.bpf.h"
#endif
#include "fragment_id.bpf.h"
#include "quote.bpf.h"
#include "tracked.bpf.h"
#include "tuple.bpf.h"

/* --- the kernel's connection tracking --- */

/* As kernels have them since 5.18; later ones have more behind it, and take it so. */
struct bpf_ct_opts {
	__s32 netns_id;
	__s32 error;
	__u8 l4proto;
	__u8 dir;
	__u8 reserved[2];
};
struct nf_conn {
	unsigned long status;
} __attribute__((preserve_access_index));

#define CT_DIR_ORIGINAL 0
#define CT_DIR_REPLY	1
#define CT_SEEN_REPLY	2 /* IPS_SEEN_REPLY */

#ifdef AX_ON_TC
extern struct nf_conn *bpf_skb_ct_lookup(struct __sk_buff *ctx, struct bpf_sock_tuple *tuple,
					 __u32 tuple_len, struct bpf_ct_opts *opts,
					 __u32 opts_len) __ksym __weak;
#define ct_lookup bpf_skb_ct_lookup
#define CT_ANSWER CT_DIR_ORIGINAL /* of what would answer what leaves */
#else
extern struct nf_conn *bpf_xdp_ct_lookup(struct xdp_md *ctx, struct bpf_sock_tuple *tuple,
					 __u32 tuple_len, struct bpf_ct_opts *opts,
					 __u32 opts_len) __ksym __weak;
#define ct_lookup bpf_xdp_ct_lookup
#define CT_ANSWER CT_DIR_REPLY
#endif
extern void bpf_ct_release(struct nf_conn *ct) __ksym __weak;

/* Whether a flow was answered that the packet belongs to, or is the answer of. (A global function,
 * as those below: the verifier looks at it once.) */
__weak __noinline int conntracked(packet_ctx *ctx, const struct packet *p)
{
	struct bpf_ct_opts opts = {.netns_id = BPF_F_CURRENT_NETNS};
	struct bpf_sock_tuple t = {};
	struct nf_conn *ct;
	int answered;

	if (!layout.conntrack || !p)
		return 0;
	opts.l4proto = p->proto;
	if (tuple_of(p, &t) == sizeof(t.ipv4))
		ct = ct_lookup(ctx, &t, sizeof(t.ipv4), &opts, sizeof(opts));
	else
		ct = ct_lookup(ctx, &t, sizeof(t.ipv6), &opts, sizeof(opts));
	if (!ct)
		return 0;
	answered = opts.dir == CT_ANSWER || ct->status & CT_SEEN_REPLY;
	bpf_ct_release(ct);
	return answered;
}

/* --- sockets --- */

#ifdef AX_ON_TC
/* What leaves is the answer to a SYN, which the listener has kept nothing of. */
static __always_inline bool has_cookie(struct __sk_buff *skb, const struct packet *p,
				       struct bpf_sock *sk)
{
	(void)skb;
	(void)sk;
	return p->tcp_flags & TCP_FLAG_SYN_BIT && p->tcp_flags & TCP_FLAG_ACK_BIT;
}
#else
/* An ACK to a listening socket that has its SYN cookie: the listener has answered a SYN of it, and
 * kept nothing. Where none were sent lately, this costs nothing. */
static __always_inline bool has_cookie(struct xdp_md *ctx, const struct packet *p,
				       struct bpf_sock *sk)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	void *l3 = packet_at(data, p->l3_off), *l4 = packet_at(data, p->l4_off);
	__u32 l3_len = p->v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);

	if (p->tcp_flags & (TCP_FLAG_SYN_BIT | TCP_FLAG_RST_BIT | TCP_FLAG_FIN_BIT) ||
	    l4 + sizeof(struct tcphdr) > end)
		return false;
	if (l3_len == sizeof(struct iphdr))
		return l3 + sizeof(struct iphdr) <= end &&
		       !bpf_tcp_check_syncookie(sk, l3, sizeof(struct iphdr), l4,
						sizeof(struct tcphdr));
	return l3 + sizeof(struct ipv6hdr) <= end &&
	       !bpf_tcp_check_syncookie(sk, l3, sizeof(struct ipv6hdr), l4, sizeof(struct tcphdr));
}
#endif

/* A connection's socket, a request that waits for its last ACK and time wait included. */
__weak __noinline int connected_tcp(packet_ctx *ctx, const struct packet *p, __u32 quoted)
{
	struct bpf_sock_tuple t = {};
	struct bpf_sock *sk;
	int known;

	if (!p)
		return 0;
	if (tuple_of(p, &t) == sizeof(t.ipv4))
		sk = bpf_skc_lookup_tcp(ctx, &t, sizeof(t.ipv4), BPF_F_CURRENT_NETNS, 0);
	else
		sk = bpf_skc_lookup_tcp(ctx, &t, sizeof(t.ipv6), BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return 0;
	known = sk->state != BPF_TCP_LISTEN || (!quoted && has_cookie(ctx, p, sk));
	bpf_sk_release(sk);
	return known;
}

__weak __noinline int connected_udp(packet_ctx *ctx, const struct packet *p)
{
	struct bpf_sock_tuple t = {};
	struct bpf_sock *sk;
	int known;

	if (!p)
		return 0;
	if (tuple_of(p, &t) == sizeof(t.ipv4))
		sk = bpf_sk_lookup_udp(ctx, &t, sizeof(t.ipv4), BPF_F_CURRENT_NETNS, 0);
	else
		sk = bpf_sk_lookup_udp(ctx, &t, sizeof(t.ipv6), BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return 0;
	known = sk->state == BPF_TCP_ESTABLISHED;
	bpf_sk_release(sk);
	return known;
}

/* --- flows --- */

/* What ax keeps itself costs less to ask than a socket, connection tracking more. */
static __always_inline bool is_known(packet_ctx *ctx, const struct packet *p, bool quoted,
				     bool keep)
{
	if (layout.flows && of_flow(ctx, p, quoted || keep))
		return true;
	if (p->proto == IPPROTO_TCP ? connected_tcp(ctx, p, quoted) : connected_udp(ctx, p))
		return true;
	return layout.conntrack && conntracked(ctx, p);
}

/* What belongs to no connection that is known, and may yet be right. */
static __always_inline bool may_be_ours(packet_ctx *ctx, const struct packet *p)
{
#ifdef AX_ON_TC
	/* who sends to a port where nobody listens is told so */
	return !ctx->ingress_ifindex && p->tcp_flags & TCP_FLAG_RST_BIT;
#else
	/* what is led to an app belongs to a socket that is not found from here */
	(void)ctx;
	return layout.policy[AX_REASON_EXPOSED] != AX_POLICY_RULES && to_exposed(p);
#endif
}

static __always_inline __u32 tcp_state(packet_ctx *ctx, const struct packet *p, bool quoted,
				       bool keep)
{
	/* a SYN begins a flow, whatever is there or is still remembered */
	if (is_syn(p) && !quoted)
		return AX_STATE_NEW;
	if (is_known(ctx, p, quoted, keep))
		return AX_STATE_ESTABLISHED;
	return may_be_ours(ctx, p) ? AX_STATE_NEW : AX_STATE_INVALID;
}

/* Of a packet with ports, or of an echo. */
static __always_inline __u32 flow_state(packet_ctx *ctx, const struct packet *p, bool quoted,
					bool keep)
{
	if (!p->has_l4)
		return of_flow(ctx, p, quoted || keep) ? AX_STATE_ESTABLISHED : AX_STATE_NEW;
	if (p->proto == IPPROTO_TCP)
		return tcp_state(ctx, p, quoted, keep);
	return is_known(ctx, p, quoted, keep) ? AX_STATE_ESTABLISHED : AX_STATE_NEW;
}

/* Whether a packet is of something that could be asked for. */
static __always_inline bool can_be_known(const struct packet *p)
{
	return p->has_l4 || (layout.flows && echo_of(p));
}

/* --- fragments --- */

#define FRAGMENTS_TIME (30 * 1000000000ull) /* so long a receiver waits for them (ip_frag_time) */

static __noinline void remember_fragments(packet_ctx *ctx, const struct packet *p)
{
	__u64 until = bpf_ktime_get_ns() + FRAGMENTS_TIME;
	struct ax_nat_fragment key;

	if (nat_fragment_key(ctx, p, &key))
		bpf_map_update_elem(&state_fragments, &key, &until, BPF_ANY);
}

/* A later fragment: as its first one was, if that came before it. */
static __noinline __u32 fragment_state(packet_ctx *ctx, const struct packet *p)
{
	struct ax_nat_fragment key;
	__u64 *until;

	if (!nat_fragment_key(ctx, p, &key))
		return AX_STATE_NEW;
	until = bpf_map_lookup_elem(&state_fragments, &key);
	return until && *until > bpf_ktime_get_ns() ? AX_STATE_ESTABLISHED : AX_STATE_NEW;
}

/* --- packets --- */

/* The flow that a quoted packet is of. What has no ports is nothing that could be asked for. */
__weak __noinline int quoted_state(packet_ctx *ctx, const struct packet *q)
{
	return q && can_be_known(q) ? (int)flow_state(ctx, q, true, true) : AX_STATE_NEW;
}

/* An error about a packet of a flow of that state, which who sent it is told of: about one that
 * nobody knows of but that may be ours (a UDP server's, an exposed port's), it is new as well. */
static __always_inline __u32 state_about(__u32 flow)
{
	return flow == AX_STATE_ESTABLISHED ? AX_STATE_RELATED : flow;
}

/* An error is for who sent what it quotes; else it is about nothing of ours. */
static __always_inline __u32 error_state(packet_ctx *ctx, const struct packet *p)
{
	struct packet *q = quoted_get();

	if (!q || !quote(ctx, p, q) || !quotes_own(p, q))
		return AX_STATE_INVALID;
	if (!can_be_known(q))
		return q->later ? AX_STATE_INVALID : AX_STATE_NEW;
	return state_about(flow_state(ctx, q, true, true));
}

/* enum ax_state. With `keep` no trace of the packet is left. (Who asks for it does so in one place:
 * a function of its own would cost 7 ns.) */
static __always_inline int packet_state(packet_ctx *ctx, const struct packet *p, __u32 keep)
{
	__u32 state;

	if (!p || p->fragment == AX_FRAGMENT_NOT_IP)
		return AX_STATE_NONE;
	if (p->later)
		return fragment_state(ctx, p);
	if (is_icmp_error(p))
		return error_state(ctx, p);
	if (!can_be_known(p)) /* no protocol with sockets that could be asked for */
		return AX_STATE_NEW;
	state = flow_state(ctx, p, false, keep);
	if (state == AX_STATE_ESTABLISHED && p->fragment == AX_FRAGMENT_FIRST && !keep)
		remember_fragments(ctx, p);
	return (int)state;
}

#endif
