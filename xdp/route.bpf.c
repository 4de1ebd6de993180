// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Routing: a stage behind the filter, for packets of rules with `action route`. The host's routes
 * and neighbours are asked where a packet goes (bpf_fib_lookup()); then it is one router further
 * and handed to that device, without the network stack, its netfilter and its tc programs.
 *
 * Whatever is not plain is left to the kernel, unchanged, and counted under a reason: what it has
 * to answer with an ICMP error, to resolve, to look into or to refuse. So it is with what this
 * program cannot judge as well as the kernel. A packet is taken only if its source is where it
 * comes from (as with rp_filter=1, which may be off), and only between interfaces that user space
 * has entered in map `ways`; ax's own are never there, so what comes from apps or goes to them is
 * judged by the programs at these.
 */
#define AX_WAYS_MAP
#include "balance_fast.bpf.h"
#include "checksum.bpf.h"
#include "ways.bpf.h"

/*
 * Nobody but the kernel's own stack makes the kernel look whether a neighbour is still there: a
 * next hop that only XDP sends to would never be asked again, and what is sent to one that was
 * replaced would be lost for ever. So now and then a packet goes by the kernel: when the last one
 * did, by a hash of the next hop's address, in jiffies.
 */
#define LOOKS	     256
#define LOOK_SECONDS 5
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LOOKS);
	__type(key, __u32);
	__type(value, __u64);
} looks SEC(".maps");

/* Where it goes, once that is known. */
struct course {
	__u32 out; /* the interface of the route */
	__u8 mac[2 * ETH_ALEN];
};

/* All of a packet that its way depends on. */
struct flow {
	struct ax_addr src, dst;
	__be16 sport_be, dport_be; /* a route of several next hops may look at them */
	__be32 info;		   /* IPv6's traffic class and flow label */
	__u8 tos, proto;
	__u16 vlan;
	__be16 ethertype_be; /* of the frame */
	__u8 mac[ETH_ALEN];  /* that it is addressed to */
	__u8 l3_off;	     /* how many tags it has */
	__u8 pad[3];
};

/*
 * What was found for a flow, by a hash of it: asking the kernel twice costs more than all else. It
 * is thrown away after an eighth of a second, so that it need not be told of any change.
 */
#define FAST_ROUTES 4096
struct fast_route {
	struct flow flow;
	__u64 expires; /* jiffies */
	struct course course;
	struct ax_way to;
	__u32 mtu;
	__u32 pad;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, FAST_ROUTES);
	__type(key, __u32);
	__type(value, struct fast_route);
} fast_routes SEC(".maps");

/* Counts a packet under a reason, or tells it. `ifindex`: where its route leads, 0: not known. A
 * global function: it is verified once. */
__noinline int routed(struct xdp_md *ctx, const struct handover *h, __u32 reason, __u32 ifindex)
{
	struct ax_explain *x;

	if (!h)
		return 0;
	if (!h->explain) {
		count_reason(reason);
		return 0;
	}
	x = explanation(ctx, h);
	if (x) {
		x->reason = (__u8)reason;
		x->ifindex = ifindex;
	}
	return 0;
}

static __always_inline int to_kernel(struct xdp_md *ctx, const struct handover *h, __u32 reason)
{
	routed(ctx, h, reason, 0);
	return XDP_PASS;
}

/* --- what is plain --- */

/* The header of a packet without options: what the kernel checks of it, and the lifetime. 0, or why
 * it is the kernel's. */
static __always_inline __u32 header_trouble(const struct iphdr *ip, const void *end)
{
	const __u32 *w = (const void *)ip;

	if ((const void *)(ip + 1) > end)
		return AX_REASON_ROUTE_OTHER;
	if (diff_fold((__u64)w[0] + w[1] + w[2] + w[3] + w[4]) != 0xffff)
		return AX_REASON_ROUTE_OTHER; /* its checksum is wrong */
	return ip->ttl > 1 ? 0 : AX_REASON_ROUTE_TTL;
}

/* Each router has to look into hop-by-hop options. */
static __always_inline __u32 header6_trouble(const struct ipv6hdr *ip, const void *end)
{
	if ((const void *)(ip + 1) > end || ip->nexthdr == IPPROTO_HOPOPTS)
		return AX_REASON_ROUTE_OTHER;
	return ip->hop_limit > 1 ? 0 : AX_REASON_ROUTE_TTL;
}

static __always_inline __u32 packet_trouble(struct xdp_md *ctx, const struct packet *p, bool v4)
{
	struct bytes b = bytes_of(ctx);
	void *l3 = b.data + (p->l3_off & L3_OFF_MAX);

	if (v4 && (__u32)p->l4_off - p->l3_off != sizeof(struct iphdr))
		return AX_REASON_ROUTE_OTHER;
	if (is_confined(&p->src, v4) || is_multicast(&p->src, v4))
		return AX_REASON_ROUTE_SOURCE;
	if (is_confined(&p->dst, v4) || is_multicast(&p->dst, v4))
		return AX_REASON_ROUTE_LOCAL;
	return v4 ? header_trouble(l3, b.end) : header6_trouble(l3, b.end);
}

/* --- asking the kernel --- */

/* IPv6's traffic class and flow label, as its lookup wants them. */
static __always_inline __be32 flow_info(struct xdp_md *ctx, const struct packet *p)
{
	struct bytes b = bytes_of(ctx);
	__be32 *first = b.data + (p->l3_off & L3_OFF_MAX);

	return (void *)(first + 1) <= b.end ? *first & bpf_htonl(0x0fffffff) : 0;
}

/* `back`: where what answers it goes, once it has come in by the interface; without the next hop's
 * address. Returns enum BPF_FIB_LKUP_RET_*, or a negative errno. */
static __always_inline int ask(struct xdp_md *ctx, struct bpf_fib_lookup *fib,
			       const struct packet *p, __u32 ifindex, bool back, bool v4)
{
	const struct ax_addr *from = back ? &p->dst : &p->src, *to = back ? &p->src : &p->dst;

	__builtin_memset(fib, 0, sizeof(*fib));
	fib->family = v4 ? 2 /* AF_INET */ : 10 /* AF_INET6 */;
	fib->ifindex = ifindex;
	if (v4) {
		fib->tos = p->tos;
		fib->ipv4_src = from->w[3];
		fib->ipv4_dst = to->w[3];
	} else {
		fib->flowinfo = flow_info(ctx, p);
		__builtin_memcpy(fib->ipv6_src, from, sizeof(fib->ipv6_src));
		__builtin_memcpy(fib->ipv6_dst, to, sizeof(fib->ipv6_dst));
	}
	if (!back) {
		fib->tot_len = (__u16)ip_length(p);
		fib->l4_protocol = p->proto;
		fib->sport = p->has_l4 ? p->sport_be : 0;
		fib->dport = p->has_l4 ? p->dport_be : 0;
	}
	return (int)bpf_fib_lookup(ctx, fib, sizeof(*fib), 0);
}

static __always_inline __u32 answer_trouble(int answer)
{
	switch (answer) {
	case BPF_FIB_LKUP_RET_SUCCESS:
		return 0;
	case BPF_FIB_LKUP_RET_BLACKHOLE:
	case BPF_FIB_LKUP_RET_UNREACHABLE:
	case BPF_FIB_LKUP_RET_PROHIBIT:
		return AX_REASON_ROUTE_UNREACHABLE;
	case BPF_FIB_LKUP_RET_NOT_FWDED:
		return AX_REASON_ROUTE_LOCAL;
	case BPF_FIB_LKUP_RET_FWD_DISABLED:
		return AX_REASON_ROUTE_OFF;
	case BPF_FIB_LKUP_RET_NO_NEIGH:
		return AX_REASON_ROUTE_NEIGHBOUR;
	case BPF_FIB_LKUP_RET_FRAG_NEEDED:
		return AX_REASON_ROUTE_MTU;
	default:
		return AX_REASON_ROUTE_OTHER;
	}
}

/*
 * Whether the way back to the source is the one that it came by. It is asked for as the kernel does
 * for rp_filter, as of what came in by the interface that it leaves by; so is the answer if that
 * one may not forward. What is not so may still be right: the kernel knows what is wanted here.
 */
static __always_inline bool came_right(struct xdp_md *ctx, struct bpf_fib_lookup *fib,
				       const struct packet *p, __u32 in, __u32 out, bool v4)
{
	int answer = ask(ctx, fib, p, out, true, v4);

	return (answer == BPF_FIB_LKUP_RET_SUCCESS || answer == BPF_FIB_LKUP_RET_NO_NEIGH) &&
	       fib->ifindex == in;
}

/* Whether the kernel is to see this packet for the sake of its next hop. */
static __always_inline bool kernels_turn(const __u8 mac[ETH_ALEN])
{
	__u32 i = mac[3] ^ mac[4] ^ mac[5];
	__u64 now = bpf_jiffies64(), *last = bpf_map_lookup_elem(&looks, &i);

	if (!last)
		return false;
	if (*last && now - *last < LOOK_SECONDS * layout.hz)
		return false;
	i = *last != 0; /* the first was just asked for */
	*last = now;
	return i;
}

/* --- what was found before --- */

static __always_inline bool same_flow(const struct flow *a, const struct flow *b)
{
	const __u64 *x = (const void *)a, *y = (const void *)b;
	__u64 differ = 0;

	_Static_assert(sizeof(*a) % 8 == 0, "flows are compared by words");
	for (__u32 i = 0; i < sizeof(*a) / 8; i++)
		differ |= x[i] ^ y[i];
	return !differ;
}

/* False: the frame ends before. */
static __always_inline bool flow_of(struct xdp_md *ctx, const struct packet *p, struct flow *f,
				    bool v4)
{
	struct ethhdr *eth = (void *)(long)ctx->data;

	__builtin_memset(f, 0, sizeof(*f));
	if ((void *)(eth + 1) > (void *)(long)ctx->data_end)
		return false;
	f->src = p->src;
	f->dst = p->dst;
	f->sport_be = p->has_l4 ? p->sport_be : 0;
	f->dport_be = p->has_l4 ? p->dport_be : 0;
	f->info = v4 ? 0 : flow_info(ctx, p);
	f->tos = p->tos;
	f->proto = p->proto;
	f->vlan = p->vlan;
	f->l3_off = p->l3_off;
	f->ethertype_be = eth->h_proto;
	__builtin_memcpy(f->mac, eth->h_dest, ETH_ALEN);
	return true;
}

static __always_inline struct fast_route *fast_find(const struct flow *f, bool v4)
{
	__u64 h = mix(mix_addr(mix_addr(f->proto, &f->src, v4), &f->dst, v4),
		      (__u32)f->sport_be << 16 | f->dport_be);
	__u32 i = mix(h, 0) & (FAST_ROUTES - 1);

	return bpf_map_lookup_elem(&fast_routes, &i);
}

/* --- sending --- */

/* The link header gets the way's size and is written anew. 0, 1: nothing was done, or -1: it cannot
 * be sent any more. */
static __always_inline int put_link(struct xdp_md *ctx, struct packet *p, const struct ax_way *to,
				    const struct course *c, bool v4)
{
	bool tagged = to->vlan != AX_VLAN_NONE;
	__u32 size = sizeof(struct ethhdr) + (tagged ? 4 : 0);
	int more = (int)size - (int)p->l3_off;
	__be16 proto = v4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6), *at;
	struct bytes b;

	if (more && bpf_xdp_adjust_head(ctx, -more))
		return 1;
	p->l3_off = (__u8)size;
	p->l4_off = (__u16)(p->l4_off + more);
	b = bytes_of(ctx);
	at = b.data + 2 * ETH_ALEN;
	if ((void *)(at + 3) > b.end)
		return -1;
	__builtin_memcpy(b.data, c->mac, sizeof(c->mac));
	if (tagged) {
		at[0] = to->ethertype_be;
		at[1] = bpf_htons(to->vlan);
	}
	at[tagged ? 2 : 0] = proto;
	return 0;
}

static __always_inline bool count_hop(struct xdp_md *ctx, const struct packet *p, bool v4)
{
	struct bytes b = bytes_of(ctx);
	void *l3 = b.data + (p->l3_off & L3_OFF_MAX);
	struct ipv6hdr *ip6 = l3;
	struct iphdr *ip = l3;
	__u16 *word, old;

	if (l3 + (v4 ? sizeof(*ip) : sizeof(*ip6)) > b.end)
		return false;
	if (!v4) {
		ip6->hop_limit--;
		return true;
	}
	word = (__u16 *)&ip->ttl;
	old = *word;
	ip->ttl--;
	ip->check = diff_apply(ip->check, diff16(old, *word));
	return true;
}

static __noinline int lost(struct xdp_md *ctx, const struct handover *h)
{
	routed(ctx, h, AX_REASON_REWRITE_FAILED, 0);
	return XDP_DROP;
}

/* A copy of the way: the map's may become another one. */
static __always_inline int send_on(struct xdp_md *ctx, struct handover *h, struct ax_way to,
				   const struct course *c, bool v4)
{
	struct packet *p = &h->p;
	int r = put_link(ctx, p, &to, c, v4);

	if (r > 0)
		return to_kernel(ctx, h, AX_REASON_ROUTE_OTHER);
	if (r < 0 || !count_hop(ctx, p, v4))
		return lost(ctx, h);
	if (h->route.flags & AX_ACTION_CHECKSUM && p->fragment == AX_FRAGMENT_NONE &&
	    (p->has_l4 || p->has_icmp) && checksum_anew(ctx, p, &p->src, &p->dst) < 0)
		return lost(ctx, h);
	routed(ctx, h, AX_REASON_ROUTED, c->out);
	if (!h->explain)
		note_sent(h, to.ifindex);
	return (int)bpf_redirect(to.ifindex, 0);
}

/* `fast` (NULL: nothing) remembers what is found of the flow. */
static __always_inline int route(struct xdp_md *ctx, struct handover *h, const struct flow *flow,
				 struct fast_route *fast, bool v4)
{
	const struct ax_way *in = way_in(ctx, h), *out;
	__u32 trouble = packet_trouble(ctx, &h->p, v4), came;
	struct bpf_fib_lookup fib;
	struct course c;
	struct ax_way to;
	__u32 mtu;

	if (!in || trouble)
		return to_kernel(ctx, h, in ? trouble : AX_REASON_ROUTE_OTHER);
	if (!v4 && in->flags & AX_WAY_NO_IPV6)
		return to_kernel(ctx, h, AX_REASON_ROUTE_OFF);
	came = in->ifindex;
	trouble = answer_trouble(ask(ctx, &fib, &h->p, came, false, v4));
	if (trouble)
		return to_kernel(ctx, h, trouble);
	/* back where it came from: the kernel tells the sender of the shorter way */
	out = fib.ifindex == came ? NULL : way(fib.ifindex, 0, AX_WAY_OUT);
	if (!out)
		return to_kernel(ctx, h, AX_REASON_ROUTE_DEVICE);
	to = *out;
	mtu = fib.mtu_result; /* Linux 5.12 */
	c.out = fib.ifindex;
	__builtin_memcpy(c.mac, fib.dmac, ETH_ALEN);
	__builtin_memcpy(c.mac + ETH_ALEN, fib.smac, ETH_ALEN);
	if (!came_right(ctx, &fib, &h->p, came, c.out, v4))
		return to_kernel(ctx, h, AX_REASON_ROUTE_SOURCE);
	if (!h->explain && kernels_turn(c.mac))
		return to_kernel(ctx, h, AX_REASON_ROUTE_NEIGHBOUR);
	if (fast) {
		fast->flow = *flow;
		fast->expires = bpf_jiffies64() + layout.hz / 8;
		fast->course = c;
		fast->to = to;
		fast->mtu = mtu;
	}
	return send_on(ctx, h, to, &c, v4);
}

static __always_inline int route_fast(struct xdp_md *ctx, struct handover *h, bool v4)
{
	struct fast_route *fast;
	struct flow flow;

	if (!flow_of(ctx, &h->p, &flow, v4))
		return to_kernel(ctx, h, AX_REASON_ROUTE_OTHER);
	fast = h->explain ? NULL : fast_find(&flow, v4);
	/* what is not plain has its reason told where all is asked */
	if (fast && fast->expires > bpf_jiffies64() && same_flow(&fast->flow, &flow) &&
	    ip_length(&h->p) <= fast->mtu && !packet_trouble(ctx, &h->p, v4))
		return send_on(ctx, h, fast->to, &fast->course, v4);
	return route(ctx, h, &flow, fast, v4);
}

SEC("xdp")
int ax_route(struct xdp_md *ctx)
{
	struct handover *h = bpf_map_lookup_elem(&handovers, &(__u32){0});

	if (!h)
		return XDP_ABORTED;
	/* Frames of several buffers not every device sends, and of odd packets nobody knows where
	 * their headers are. (Fragments and tunnels are routed like anything else.) */
	if (h->p.fragment == AX_FRAGMENT_NOT_IP || h->len != (__u32)(ctx->data_end - ctx->data) ||
	    h->p.l4_off <= h->p.l3_off || h->p.l4_off > L4_OFF_MAX || h->p.l3_off > L3_OFF_MAX)
		return to_kernel(ctx, h, AX_REASON_ROUTE_OTHER);
	return h->p.v4 ? route_fast(ctx, h, true) : route_fast(ctx, h, false);
}
