// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * SYN cookies: a stage behind the filter, for TCP of rules with `action challenge`. A SYN to a
 * listening socket of this host is answered here (XDP_TX), with the cookie that the kernel makes
 * for that socket, and nothing is kept of it. Who answers with the cookie has the address that it
 * says it has: that ACK goes on to the kernel, which makes the connection from it. What claims to
 * belong to a connection that is not there is dropped; what belongs to one goes on.
 *
 * The cookie is asked of the kernel with the socket (bpf_tcp_gen_syncookie()), not from the packet
 * alone (bpf_tcp_raw_gen_syncookie_ipv4()): so the kernel remembers that the socket's SYNs were
 * answered so, without which it refuses every cookie, and decides whether there is to be one
 * (net.ipv4.tcp_syncookies of the socket's network namespace; a queue that is full). What it makes
 * of the ACK it works out anew from the socket and the time stamp that comes back, so the answer
 * has to say just that: see make_offer().
 *
 * Whatever is not plain is left to the kernel, unchanged: what it would not take for its own, and
 * what is for no listening socket here.
 */
#include <stddef.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "across.h"
#include "csum_fold.bpf.h"
#include "exposed_ports.bpf.h"
#include "tuple.bpf.h"
#include "ways.bpf.h"

/* What is read of the kernel's structs; the loader adapts the offsets. (A struct tcp_sock begins
 * with a struct sock, and that with a struct sock_common.) */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct netns_ipv4 {
	int sysctl_tcp_rmem[3];
	__u8 sysctl_ip_default_ttl;
	__u8 sysctl_tcp_sack;
	__u8 sysctl_tcp_syncookies;
	__u8 sysctl_tcp_timestamps;
	__u8 sysctl_tcp_window_scaling;
};
struct net {
	struct netns_ipv4 ipv4;
};
struct sock_common {
	struct {
		struct net *net;
	} skc_net;
};
struct sock {
	struct sock_common __sk_common;
	int sk_rcvbuf;
	__u8 sk_userlocks : 4;
};
struct tcp_options_received {
	__u16 user_mss;
};
struct tcp_sock {
	struct tcp_options_received rx_opt;
	__u32 window_clamp;
};
#pragma clang attribute pop

#define RCVBUF_LOCKED 2	 /* in sk_userlocks: by SO_RCVBUF */
#define NOT_RANDOM    2	 /* tcp_timestamps: without an offset that nobody can know */
#define ALWAYS	      2	 /* tcp_syncookies */
#define WSCALE_MAX    14 /* RFC 7323 */
#define ANSWERED_MIN  60 /* of a frame */

/* The lowest bits of a time stamp that comes back with a cookie (net/ipv4/syncookies.c). */
#define STAMP_NO_WSCALE 15
#define STAMP_SACK	(1 << 4)
#define STAMP_BITS	6

enum tcp_option {
	OPTION_END,
	OPTION_NOP,
	OPTION_MSS,
	OPTION_WSCALE,
	OPTION_SACK_PERMITTED,
	OPTION_TIMESTAMP = 8,
};

/* A TCP header with the options that an answer may have: all of them have 40 bytes. */
struct segment {
	struct tcphdr tcp;
	__be32 option[5]; /* MSS; what tells the time stamp from SACK's; the stamps; the scale */
};
_Static_assert(sizeof(struct segment) == 40, "the longest answer");

/* One packet's turn on its CPU: the stack has no room for it. */
struct work {
	__u8 tcp[64];	   /* its TCP header; the last 4 bytes are never used */
	struct ipv6hdr ip; /* its addresses, or those of a struct iphdr there */
	__u32 at, end;	   /* of the option that is read next, and of all */
	/* what they say: */
	__be32 stamp_be; /* valid with has_stamp */
	__u8 has_stamp, has_sack;
	__u8 wscale; /* STAMP_NO_WSCALE: none */
	/* the answer: */
	__u8 scales, own_wscale;
	__u8 ttl;
	__u16 mss; /* that is said */
	__u32 cookie;
	__u32 window;
	__u32 stamp;
	struct ipv6hdr ip6; /* or, in its last 20 bytes, a struct iphdr: right before */
	struct segment segment;
	/* never used: to Linux 6.1 what is behind a struct iphdr may be as long as what is behind a
	 * struct ipv6hdr */
	__u8 room[sizeof(struct ipv6hdr) - sizeof(struct iphdr)];
};
_Static_assert(offsetof(struct work, segment) - offsetof(struct work, ip6) ==
		       sizeof(struct ipv6hdr),
	       "an answer is written in one piece");
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct work);
} works SEC(".maps");

/* Counts a packet under a reason, or tells it. Returns `action`. (A global function, as are those
 * below that are not static: the verifier looks at it once, and not with all that was before.) */
__noinline int note_challenge(struct xdp_md *ctx, const struct handover *h, __u32 reason,
			      int action)
{
	struct ax_explain *x;

	if (!h)
		return XDP_ABORTED;
	if (!h->explain) {
		count_reason(reason);
		return action;
	}
	x = explanation(ctx, h);
	if (x)
		x->reason = (__u8)reason;
	return action;
}

/* --- the packet --- */

/* Each option has its place by those before it: where that is stands in memory of which the
 * verifier knows nothing, or it would follow them all. By bpf_loop(), or Linux 6.1 would. */
struct walk {
	struct work *w;
};

static __always_inline __u32 byte_of(const struct work *w, __u32 at)
{
	opaque(at);
	return w->tcp[at & (sizeof(w->tcp) - 1)];
}

static long next_option(__u32 i, struct walk *k)
{
	struct work *w = k->w;
	__u32 at = w->at, kind, len;

	(void)i;
	kind = byte_of(w, at);
	if (at >= w->end || kind == OPTION_END)
		return 1;
	if (kind == OPTION_NOP) {
		w->at = at + 1;
		return 0;
	}
	len = byte_of(w, at + 1);
	if (at + 1 >= w->end || len < 2 || at + len > w->end)
		return 1;
	if (kind == OPTION_WSCALE && len == 3) {
		w->wscale = (__u8)byte_of(w, at + 2);
		if (w->wscale > WSCALE_MAX)
			w->wscale = WSCALE_MAX;
	} else if (kind == OPTION_SACK_PERMITTED && len == 2) {
		w->has_sack = true;
	} else if (kind == OPTION_TIMESTAMP && len == 10) {
		w->has_stamp = true;
		w->stamp_be = bpf_htonl(byte_of(w, at + 2) << 24 | byte_of(w, at + 3) << 16 |
					byte_of(w, at + 4) << 8 | byte_of(w, at + 5));
	}
	w->at = at + len;
	return 0;
}

__noinline int read_syn_options(struct work *w, __u32 len)
{
	struct walk k = {.w = w};

	if (!w)
		return 0;
	w->at = sizeof(struct tcphdr);
	w->end = len;
	w->has_stamp = w->has_sack = false;
	w->wscale = STAMP_NO_WSCALE;
	return (int)bpf_loop(sizeof(w->tcp) - sizeof(struct tcphdr), next_option, &k, 0);
}

/* Its addresses and TCP header, as the kernel's helpers take them. Returns how long that one is, 0:
 * it is not there. */
static __always_inline __u32 read_headers(struct xdp_md *ctx, const struct packet *p,
					  struct work *w)
{
	struct iphdr *ip = (void *)&w->ip;
	__u32 len = size_within((__u32)p->payload_off - p->l4_off, 60);

	if (len < sizeof(struct tcphdr) || bpf_xdp_load_bytes(ctx, p->l4_off, w->tcp, len))
		return 0;
	__builtin_memset(&w->ip, 0, sizeof(w->ip));
	if (p->v4) {
		ip->version = 4;
		ip->saddr = p->src.w[3];
		ip->daddr = p->dst.w[3];
	} else {
		w->ip.version = 6;
		__builtin_memcpy(&w->ip.saddr, &p->src, sizeof(p->src));
		__builtin_memcpy(&w->ip.daddr, &p->dst, sizeof(p->dst));
	}
	return len;
}

/* --- whether it is for this host --- */

/* What is plain TCP between two hosts. At ax's own ports for other nodes' apps (include/across.h)
 * an option of the SYN says who asks, of which a cookie keeps nothing. */
static __always_inline bool is_plain(const struct xdp_md *ctx, const struct handover *h)
{
	const struct packet *p = &h->p;

	return p->has_l4 && p->proto == IPPROTO_TCP && p->fragment == AX_FRAGMENT_NONE &&
	       h->len == (__u32)(ctx->data_end - ctx->data) && p->l4_off > p->l3_off &&
	       p->l4_off <= L4_OFF_MAX && p->l3_off <= L3_OFF_MAX &&
	       bpf_ntohs(p->dport_be) < AX_ACROSS_FIRST;
}

static __always_inline bool is_between_hosts(const struct packet *p)
{
	return !is_confined(&p->src, p->v4) && !is_multicast(&p->src, p->v4) &&
	       !is_confined(&p->dst, p->v4) && !is_multicast(&p->dst, p->v4);
}

/* Whether the kernel would take it for its own. It is asked like a router: what it forwards has a
 * next hop. (A socket on a wildcard is found for any address.) While it does not forward what comes
 * in here it says no more than that, and would drop what is not its own. */
static __always_inline bool is_local(struct xdp_md *ctx, const struct packet *p, __u32 ifindex)
{
	struct bpf_fib_lookup fib;
	long answer;

	__builtin_memset(&fib, 0, sizeof(fib));
	fib.family = p->v4 ? 2 /* AF_INET */ : 10 /* AF_INET6 */;
	fib.ifindex = ifindex;
	if (p->v4) {
		fib.tos = p->tos;
		fib.ipv4_src = p->src.w[3];
		fib.ipv4_dst = p->dst.w[3];
	} else {
		__builtin_memcpy(fib.ipv6_src, &p->src, sizeof(fib.ipv6_src));
		__builtin_memcpy(fib.ipv6_dst, &p->dst, sizeof(fib.ipv6_dst));
	}
	answer = bpf_fib_lookup(ctx, &fib, sizeof(fib), 0);
	return answer == BPF_FIB_LKUP_RET_NOT_FWDED || answer == BPF_FIB_LKUP_RET_FWD_DISABLED;
}

/* A frame that was sent by one host, and can be answered to it. */
static __always_inline bool is_from_one(const struct xdp_md *ctx)
{
	const struct ethhdr *eth = (void *)(long)ctx->data;

	return (void *)(eth + 1) <= (void *)(long)ctx->data_end && !(eth->h_source[0] & 1);
}

/* The interface that it comes in by, if what a listening socket was found for is that socket's; 0:
 * it is not, or only the kernel knows. */
__noinline int comes_in_by(struct xdp_md *ctx, const struct handover *h)
{
	const struct ax_way *in;
	const struct packet *p;
	__u32 ifindex;

	if (!h)
		return 0;
	p = &h->p;
	in = way_in(ctx, h);
	/* sockets of a VRF are found by it alone */
	if (!in || in->flags & AX_WAY_VRF || !is_between_hosts(p) || !is_from_one(ctx))
		return 0;
	ifindex = in->ifindex;
	/* an exposed port is an app's, whoever else listens there */
	return !to_exposed(p) && is_local(ctx, p, ifindex) ? (int)ifindex : 0;
}

/* --- the answer --- */

__noinline __u32 log2_of(__u32 n)
{
	__u32 r = 0;

	for (__u32 step = 16; step; step /= 2) {
		if (n >> step) {
			n >>= step;
			r += step;
		}
	}
	return r;
}

/* By how much the kernel will take this side's windows to be scaled (tcp_select_initial_window()):
 * never less, or what is sent would not fit into them. */
static __always_inline __u8 wscale_of(const struct net *net)
{
	__u32 space = (__u32)net->ipv4.sysctl_tcp_rmem[2], n;

	if (space < layout.rmem_max)
		space = layout.rmem_max;
	n = log2_of(space);
	n = n > 15 ? n - 15 : 0;
	return n > WSCALE_MAX ? WSCALE_MAX : (__u8)n;
}

/* What the SYN asks for comes back with the time stamp. */
static __always_inline __u32 stamp_of(const struct work *w)
{
	__u64 now = bpf_ktime_get_ns() / 1000000, stamp = now >> STAMP_BITS << STAMP_BITS;

	stamp |= w->scales ? w->wscale : STAMP_NO_WSCALE;
	if (w->has_sack)
		stamp |= STAMP_SACK;
	return (__u32)(stamp > now ? stamp - (1 << STAMP_BITS) : stamp);
}

/*
 * What the answer says of this side. Scaling and SACK are remembered in the time stamp alone, and
 * that the kernel reads right only if it adds nothing to it that it does not tell anybody
 * (net.ipv4.tcp_timestamps=1 does): else the answer has neither, and the kernel takes it so. It is
 * the same with scaling to a socket whose buffer or window was set by hand: of how much that makes
 * it depends on the kernel.
 */
static __always_inline void make_offer(struct work *w, const struct tcp_sock *tp, __u32 mtu,
				       __u32 peer_mss, bool v4)
{
	const struct sock *sk = (const struct sock *)tp;
	const struct net *net = sk->__sk_common.skc_net.net;
	__u32 headers =
		      sizeof(struct tcphdr) + (v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr)),
	      mss = mtu > headers + 88 ? mtu - headers : 536, user = tp->rx_opt.user_mss;
	bool set = BPF_CORE_READ_BITFIELD(sk, sk_userlocks) & RCVBUF_LOCKED || tp->window_clamp;

	if (user && user < mss)
		mss = user;
	w->mss = (__u16)(mss > 0xffff ? 0xffff : mss);
	w->ttl = v4 ? net->ipv4.sysctl_ip_default_ttl : 64;
	w->window = (__u32)sk->sk_rcvbuf / 2;
	if (w->window > 0xffff)
		w->window = 0xffff;
	if (peer_mss && w->window > peer_mss)
		w->window -= w->window % peer_mss;
	if (net->ipv4.sysctl_tcp_timestamps != NOT_RANDOM)
		w->has_stamp = false;
	if (!net->ipv4.sysctl_tcp_sack)
		w->has_sack = false;
	w->scales = w->wscale != STAMP_NO_WSCALE && net->ipv4.sysctl_tcp_window_scaling && !set;
	w->own_wscale = wscale_of(net);
	w->stamp = stamp_of(w);
}

static __always_inline void write_segment(struct work *w, const struct packet *p)
{
	const struct tcphdr *syn = (const void *)w->tcp;
	struct segment *s = &w->segment;
	__u32 words = 6;

	__builtin_memset(s, 0, sizeof(*s));
	s->option[0] = bpf_htonl(OPTION_MSS << 24 | 4 << 16 | w->mss);
	if (w->has_stamp) {
		words = w->scales ? 10 : 9;
		s->option[1] = w->has_sack ? bpf_htonl(OPTION_SACK_PERMITTED << 24 | 2 << 16 |
						       OPTION_TIMESTAMP << 8 | 10)
					   : bpf_htonl(OPTION_NOP << 24 | OPTION_NOP << 16 |
						       OPTION_TIMESTAMP << 8 | 10);
		s->option[2] = bpf_htonl(w->stamp);
		s->option[3] = w->stamp_be;
	}
	if (words == 10)
		s->option[4] =
			bpf_htonl(OPTION_NOP << 24 | OPTION_WSCALE << 16 | 3 << 8 | w->own_wscale);
	s->tcp.source = p->dport_be;
	s->tcp.dest = p->sport_be;
	s->tcp.seq = bpf_htonl(w->cookie);
	s->tcp.ack_seq = bpf_htonl(bpf_ntohl(syn->seq) + 1);
	s->tcp.doff = words;
	s->tcp.syn = s->tcp.ack = 1;
	s->tcp.window = bpf_htons((__u16)w->window);
}

static __always_inline __u64 words_sum(const void *from, __u32 n)
{
	const __u32 *w = from;
	__u64 sum = 0;

	for (__u32 i = 0; i < n; i++)
		sum += w[i];
	return sum;
}

static __always_inline __u64 ends_sum(const struct packet *p)
{
	if (p->v4)
		return (__u64)p->src.w[3] + p->dst.w[3];
	return words_sum(&p->src, sizeof(p->src) / 4) + words_sum(&p->dst, sizeof(p->dst) / 4);
}

static __always_inline void write_ip(struct work *w, const struct packet *p, __u32 len)
{
	struct iphdr *ip = (struct iphdr *)&w->segment - 1;

	if (p->v4) {
		*ip = (struct iphdr){.version = 4,
				     .ihl = 5,
				     .tot_len = bpf_htons((__u16)(sizeof(*ip) + len)),
				     .frag_off = bpf_htons(0x4000), /* not to be fragmented */
				     .ttl = w->ttl,
				     .protocol = IPPROTO_TCP,
				     .saddr = p->dst.w[3],
				     .daddr = p->src.w[3]};
		ip->check = csum_fold(words_sum(ip, sizeof(*ip) / 4));
		return;
	}
	w->ip6 = (struct ipv6hdr){.version = 6,
				  .payload_len = bpf_htons((__u16)len),
				  .nexthdr = IPPROTO_TCP,
				  .hop_limit = w->ttl};
	__builtin_memcpy(&w->ip6.saddr, &p->dst, sizeof(p->dst));
	__builtin_memcpy(&w->ip6.daddr, &p->src, sizeof(p->src));
}

/* Puts the answer in the place of what is behind the link header. 0: nothing was done, -1: it
 * cannot be sent any more. */
static __always_inline int put_answer(struct xdp_md *ctx, const struct handover *h, struct work *w)
{
	__u32 at = h->p.l3_off & L3_OFF_MAX, len, frame;
	__u8 mac[ETH_ALEN];
	struct ethhdr *eth;
	long r;

	len = w->segment.tcp.doff * 4;
	len = size_within(len, sizeof(w->segment));
	if (!len)
		return 0;
	frame = at + len + (h->p.v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr));
	if (frame < ANSWERED_MIN)
		frame = ANSWERED_MIN;
	if (bpf_xdp_adjust_tail(ctx, (int)frame - (int)h->len))
		return 0;
	/* (the room of one without a scale has zeros behind it, or what the SYN had there) */
	if (h->p.v4)
		r = bpf_xdp_store_bytes(ctx, at, (struct iphdr *)&w->segment - 1,
					sizeof(struct iphdr) + len);
	else
		r = bpf_xdp_store_bytes(ctx, at, &w->ip6, sizeof(struct ipv6hdr) + len);
	eth = (void *)(long)ctx->data;
	if (r || (void *)(eth + 1) > (void *)(long)ctx->data_end)
		return -1;
	__builtin_memcpy(mac, eth->h_source, ETH_ALEN);
	__builtin_memcpy(eth->h_source, eth->h_dest, ETH_ALEN);
	__builtin_memcpy(eth->h_dest, mac, ETH_ALEN);
	return 1;
}

__noinline int answer_syn(struct xdp_md *ctx, const struct handover *h, struct work *w)
{
	const struct packet *p;
	struct tcphdr *tcp;
	__u32 len;
	int r;

	if (!h || !w)
		return XDP_ABORTED;
	p = &h->p;
	tcp = &w->segment.tcp;
	write_segment(w, p);
	len = tcp->doff * 4;
	write_ip(w, p, len);
	tcp->check = csum_fold(words_sum(&w->segment, sizeof(w->segment) / 4) + ends_sum(p) +
			       bpf_htons((__u16)len) + bpf_htons(IPPROTO_TCP));
	r = put_answer(ctx, h, w);
	if (r <= 0)
		return r ? note_challenge(ctx, h, AX_REASON_REWRITE_FAILED, XDP_DROP)
			 : note_challenge(ctx, h, AX_REASON_CHALLENGE_OTHER, XDP_PASS);
	note_sent(h, ctx->ingress_ifindex);
	return note_challenge(ctx, h, AX_REASON_CHALLENGED, XDP_TX);
}

/* --- asking the kernel --- */

/* enum ax_reason: what becomes of a SYN to a listening socket. With AX_REASON_CHALLENGED *w has
 * what its answer is made of, unless it is only explained. */
static __always_inline __u32 ask_cookie(struct xdp_md *ctx, const struct handover *h,
					struct bpf_sock *sk, struct work *w, __u32 ifindex)
{
	__u32 len = read_headers(ctx, &h->p, w), mtu = 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	const struct net *net;
	__s64 cookie;

	if (!tp || len < sizeof(struct tcphdr))
		return AX_REASON_CHALLENGE_OTHER;
	net = ((const struct sock *)tp)->__sk_common.skc_net.net;
	if (h->explain)
		return net->ipv4.sysctl_tcp_syncookies == ALWAYS ? AX_REASON_CHALLENGED
								 : AX_REASON_CHALLENGE_IDLE;
	cookie = bpf_tcp_gen_syncookie(sk, &w->ip, sizeof(w->ip), (struct tcphdr *)w->tcp, len);
	if (cookie < 0)
		return AX_REASON_CHALLENGE_IDLE;
	if (bpf_check_mtu(ctx, ifindex, &mtu, 0, 0) < 0)
		return AX_REASON_CHALLENGE_OTHER;
	w->cookie = (__u32)cookie;
	read_syn_options(w, len);
	make_offer(w, tp, mtu, cookie >> 32 & 0xffff, h->p.v4);
	return AX_REASON_CHALLENGED;
}

/* The same of what is no SYN. */
static __always_inline __u32 check_cookie(struct xdp_md *ctx, const struct handover *h,
					  struct bpf_sock *sk, struct work *w)
{
	if (!read_headers(ctx, &h->p, w))
		return AX_REASON_CHALLENGE_OTHER;
	return bpf_tcp_check_syncookie(sk, &w->ip, sizeof(w->ip), (struct tcphdr *)w->tcp,
				       sizeof(struct tcphdr))
		       ? AX_REASON_BAD_COOKIE
		       : AX_REASON_CHALLENGE_MET;
}

/* AX_REASON_NONE: it belongs to a connection, a request or one that is over. */
static __always_inline __u32 judge_by_socket(struct xdp_md *ctx, const struct handover *h,
					     struct bpf_sock *sk, struct work *w)
{
	__u32 ifindex;

	if (sk->state != BPF_TCP_LISTEN)
		return AX_REASON_NONE;
	ifindex = (__u32)comes_in_by(ctx, h);
	if (!ifindex)
		return AX_REASON_CHALLENGE_OTHER;
	return is_syn(&h->p) ? ask_cookie(ctx, h, sk, w, ifindex) : check_cookie(ctx, h, sk, w);
}

static __noinline __u32 judge(struct xdp_md *ctx, const struct handover *h, struct work *w)
{
	struct bpf_sock_tuple t = {};
	struct bpf_sock *sk;
	__u32 reason;

	if (tuple_of(&h->p, &t) == sizeof(t.ipv4))
		sk = bpf_skc_lookup_tcp(ctx, &t, sizeof(t.ipv4), BPF_F_CURRENT_NETNS, 0);
	else
		sk = bpf_skc_lookup_tcp(ctx, &t, sizeof(t.ipv6), BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return AX_REASON_CHALLENGE_OTHER;
	reason = judge_by_socket(ctx, h, sk, w);
	bpf_sk_release(sk);
	return reason;
}

SEC("xdp")
int ax_challenge(struct xdp_md *ctx)
{
	struct handover *h = bpf_map_lookup_elem(&handovers, &(__u32){0});
	struct work *w = bpf_map_lookup_elem(&works, &(__u32){0});
	__u32 reason;

	if (!h || !w)
		return XDP_ABORTED;
	if (!is_plain(ctx, h))
		return note_challenge(ctx, h, AX_REASON_CHALLENGE_OTHER, XDP_PASS);
	reason = judge(ctx, h, w);
	if (reason == AX_REASON_NONE)
		return XDP_PASS;
	if (reason == AX_REASON_CHALLENGED && !h->explain)
		return answer_syn(ctx, h, w);
	return note_challenge(ctx, h, reason,
			      reason == AX_REASON_CHALLENGED   ? XDP_TX
			      : reason == AX_REASON_BAD_COOKIE ? XDP_DROP
							       : XDP_PASS);
}
