/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fabric between private apps and the host: tc programs on the host end of each app's veth
 * pair. A packet between two private apps is handed to the peer's namespace by
 * bpf_redirect_peer(), which keeps its GSO state; XDP on veth would lose it (2.5 times slower in
 * bulk). Everything else goes through the host's stack.
 */
#include <linux/pkt_cls.h>

#include "across.bpf.h"
#include "across_client.bpf.h"
#include "answer.bpf.h"
#include "count.bpf.h"
#include "endpoint.bpf.h"
#include "expose_answer.bpf.h"
#include "extensions.bpf.h"
#include "fabric_rules.bpf.h"
#include "flow_enter.bpf.h"
#include "flows.bpf.h"
#include "host_socket.bpf.h"
#include "leavers.bpf.h"
#include "maps.bpf.h"
#include "parse_tc.bpf.h"
#include "quote_tc.bpf.h"
#include "refuse_ping.bpf.h"
#include "seen.bpf.h"
#include "service_mixed.bpf.h"
#include "serving.bpf.h"
#include "to_device.bpf.h"
#include "verdict.bpf.h"
#include "visitors.bpf.h"
#include "wild.bpf.h"
#include "rewrite.bpf.h"

static __always_inline int drop(__u32 reason)
{
	count(reason);
	return TC_ACT_SHOT;
}

static __always_inline bool is_multicast(const struct packet *p)
{
	return p->v4 ? (p->dst.b[12] & 0xf0) == 0xe0 : p->dst.b[0] == 0xff;
}

static __always_inline void flow_of(const struct ax_addr *client, __be16 client_port_be,
				    const struct ax_addr *peer, __be16 peer_port_be, __u8 proto,
				    struct ax_flow_key *ret)
{
	__builtin_memset(ret, 0, sizeof(*ret));
	ret->client.addr = *client;
	ret->client.port_be = client_port_be;
	ret->client.proto = proto;
	ret->peer.addr = *peer;
	ret->peer.port_be = peer_port_be;
	ret->peer.proto = proto;
}

/* Whether a service's address is routed to the services' device; else it is this host's
 * (AX_VIP_MIXED). */
static __always_inline bool is_by_device(const struct ax_addr *service)
{
	const struct ax_vip *vip = bpf_map_lookup_elem(&vips, service);

	return vip && vip->flags & AX_VIP_BY_DEVICE;
}

/*
 * An answer to a program outside ax that had asked for a service (service.bpf.c): it gets the
 * service's address back, and enters by the device to which the service is routed, so that a strict
 * reverse path filter agrees; if that address is the host's, it is as if the host had answered. Or
 * to a datagram that came to the app itself, which only passes. Returns a verdict, or -1: no such
 * flow.
 */
static __always_inline int answer_of_flow(struct __sk_buff *skb, const struct packet *p,
					  const struct ax_ctl *c)
{
	struct ax_endpoint asked;
	struct ax_flow_key flow;
	__be16 client_port_be;
	struct ax_flow *f;
	__u8 kind;

	if (!c)
		return -1;
	if (p->later && c->exposed & AX_EXPOSED_PACKETS)
		return answer_exposed_fragment(skb, p);
	if (!p->has_l4)
		return -1;
	flow_of(&p->dst, p->dport_be, &p->src, p->sport_be, p->proto, &flow);
	f = c->service_ifindex || c->exposed & AX_EXPOSED_PACKETS ? flow_find(&flow) : NULL;
	if (!f)
		return p->proto == IPPROTO_UDP && bpf_map_lookup_elem(&datagrams, &flow) ? TC_ACT_OK
											 : -1;
	asked = f->to;
	client_port_be = f->client_port_be;
	kind = f->kind;
	flow_seen(&flow, f, p->tcp_flags, true);
	if (kind == AX_FLOW_EXPOSED || (kind == AX_FLOW_SERVICE && !is_by_device(&asked.addr)))
		return answer_exposed(skb, p, &asked, client_port_be);
	if (rewrite_port(skb, p, false, client_port_be))
		return drop(AX_COUNT_ERROR);
	if (kind == AX_FLOW_DIRECT)
		return TC_ACT_OK;
	if (rewrite_endpoint(skb, p, true, &asked))
		return drop(AX_COUNT_ERROR);
	return bpf_redirect(c->service_ifindex, BPF_F_INGRESS);
}

/*
 * A datagram to the app itself, from outside ax: its answer may pass though the app has no way out
 * of its own, if it was let in. A flow of the client's that has its port there is over, or could
 * not be told from this.
 */
static __always_inline void datagram_to_itself(const struct ax_flow_key *flow, bool let_in,
					       const struct ax_ctl *c)
{
	struct ax_flow *f = c->service_ifindex || c->exposed ? flow_find(flow) : NULL;
	__u32 one = 1;

	/* (a client's own port: whoever guesses it does not end what is open) */
	if (f && (f->kind != AX_FLOW_EXPOSED || !(f->state & AX_FLOW_OPEN)))
		flow_forget(flow);
	if (let_in && !bpf_map_lookup_elem(&datagrams, flow))
		bpf_map_update_elem(&datagrams, flow, &one, BPF_NOEXIST);
}

/* An answer to an app that has waited at a service's address, by whose device it is (0: of the
 * host's network). Returns a verdict, or -1: it is none. A global function: the verifier looks at
 * it once. */
__weak __noinline int answer_of_service(struct __sk_buff *skb, const struct packet *p,
					const struct ax_ctl *c, __u32 ifindex)
{
	struct ax_endpoint asked;
	struct ax_flow_key flow;
	__be16 client_port_be;
	struct ax_flow *f;

	if (!p || !c || !p->has_l4)
		return -1;
	flow_of(&p->dst, p->dport_be, &p->src, p->sport_be, p->proto, &flow);
	f = flow_find(&flow);
	if (!f || f->kind != AX_FLOW_SERVICE)
		return -1;
	asked = f->to;
	client_port_be = f->client_port_be;
	flow_seen(&flow, f, p->tcp_flags, true);
	if (rewrite_port(skb, p, false, client_port_be) || rewrite_endpoint(skb, p, true, &asked))
		return drop(AX_COUNT_ERROR);
	if (ifindex)
		return to_device(skb, ifindex);
	return is_by_device(&asked.addr) ? (int)bpf_redirect(c->service_ifindex, BPF_F_INGRESS)
					 : to_own(skb);
}

/* A number of TCP's header, at an offset in it (host byte order); 0: there is none. */
static __always_inline __u32 tcp_number(struct __sk_buff *skb, const struct packet *p, __u32 off)
{
	__be32 n;

	return bpf_skb_load_bytes(skb, p->l4_off + off, &n, sizeof(n)) ? 0 : bpf_ntohl(n);
}

/* A segment that came to an app through this host from elsewhere: its answers may leave. */
static __always_inline void remember_visitor(struct __sk_buff *skb, const struct packet *p,
					     const struct ax_flow_key *flow, __u32 app)
{
	__u32 none = 0, *answered;

	if (!skb->ingress_ifindex || is_visitor(app, &flow->client, flow->peer.port_be))
		return;
	answered = bpf_map_lookup_elem(&newcomers, flow);
	if (!answered) {
		bpf_map_update_elem(&newcomers, flow, &none, BPF_NOEXIST);
	} else if (*answered && is_answer(p) &&
		   tcp_number(skb, p, offsetof(struct tcphdr, ack_seq)) == *answered) {
		visit_of(app, &flow->client, flow->peer.port_be);
		bpf_map_delete_elem(&newcomers, flow);
	}
}

/* Whether a segment of an app goes to one of those. */
static __always_inline bool goes_to_visitor(struct __sk_buff *skb, const struct packet *p,
					    const struct ax_flow_key *flow, __u32 app)
{
	__u32 *answered;

	if (is_visitor(app, &flow->client, flow->peer.port_be))
		return true;
	answered = bpf_map_lookup_elem(&newcomers, flow);
	if (answered && p->tcp_flags & TCP_FLAG_SYN_BIT)
		*answered = tcp_number(skb, p, offsetof(struct tcphdr, seq)) + 1;
	return answered;
}

/* The port that the app sees, of a connection to itself that has one of its own; 0: it has not. */
static __noinline __be16 direct_port(const struct ax_flow_key *flow, const struct packet *p)
{
	struct ax_flow *f = flow_find(flow);
	__be16 port_be;

	if (!f)
		return 0;
	if (p->tcp_flags & TCP_FLAG_SYN_BIT && flow_is_closed(f->state)) {
		flow_forget(flow); /* another one from the same port */
		return 0;
	}
	port_be = f->client_port_be;
	flow_seen(flow, f, p->tcp_flags, false);
	return port_be;
}

/* A segment to the app itself, whose client's port may be that of another flow there: then it comes
 * by another one (AX_FLOW_DIRECT). False: there was none. */
static __always_inline bool turn_direct(struct __sk_buff *skb, const struct packet *p,
					struct ax_flow_key *flow, const struct ax_ctl *c)
{
	__be16 port_be;
	bool taken;

	flow->peer.pad = AX_FLOW_DIRECT;
	port_be = direct_port(flow, p);
	if (!port_be) {
		if ((p->tcp_flags & (TCP_FLAG_SYN_BIT | TCP_FLAG_ACK_BIT)) != TCP_FLAG_SYN_BIT)
			return true;
		flow->peer.pad = 0;
		taken = flow_find(flow);
		flow->peer.pad = AX_FLOW_DIRECT;
		if (!taken)
			return true;
		port_be = flow_enter(skb, flow, &flow->peer, AX_FLOW_DIRECT, c);
		if (!port_be)
			return false;
	}
	return !rewrite_port(skb, p, true, port_be);
}

/* An ICMP error about what the app has sent to a client whose port it sees as another one: it
 * quotes the packet as it went on, and the app's connection would not be found by that. 0, or -1.
 * (Not static: the verifier looks at it once.) */
__weak __noinline int quote_direct(struct __sk_buff *skb, const struct packet *p)
{
	struct quote q = {};
	struct ax_flow *f;
	__be16 port_be;

	if (!p || !quote_ends(skb, p, &q))
		return 0;
	q.flow.peer.pad = AX_FLOW_DIRECT;
	f = flow_find(&q.flow);
	if (!f)
		return 0;
	port_be = f->client_port_be;
	return bpf_l4_csum_replace(skb, q.check_off, q.flow.client.port_be, port_be, 2) ||
			       bpf_skb_store_bytes(skb, q.l4_off + 2, &port_be, sizeof(port_be), 0)
		       ? -1
		       : 0;
}

/* (Exposed ports leave their clients any port of theirs.) */
static __always_inline bool may_be_direct(const struct packet *p, const struct ax_ctl *c)
{
	return c->exposed & AX_EXPOSED_PACKETS ||
	       (c->service_ifindex && is_flow_port(c, p->sport_be));
}

/* What comes to an app itself, from outside ax. False: it cannot. (Not static: the verifier looks
 * at it once.) */
__weak __noinline int to_itself(struct __sk_buff *skb, const struct packet *p,
				const struct ax_ctl *c, bool let_in, __u32 app)
{
	struct ax_flow_key flow;

	if (!p || !c)
		return false;
	if (is_icmp_error(p))
		return !quote_direct(skb, p);
	if (!p->has_l4)
		return true;
	flow_of(&p->src, p->sport_be, &p->dst, p->dport_be, p->proto, &flow);
	if (p->proto == IPPROTO_UDP)
		datagram_to_itself(&flow, let_in, c);
	if (p->proto != IPPROTO_TCP)
		return true;
	if (let_in)
		remember_visitor(skb, p, &flow, app);
	return !may_be_direct(p, c) || turn_direct(skb, p, &flow, c);
}

/* Flags prove nothing: who may send what it likes sets them as it likes. So somebody must have
 * asked for this, which only the whole header says. */
static __noinline bool was_asked_for(struct __sk_buff *skb, const struct packet *p, __u32 app)
{
	struct ax_flow_key flow;

	if (p->proto != IPPROTO_TCP || !p->has_l4 || !is_answer(p))
		return false;
	flow_of(&p->dst, p->dport_be, &p->src, p->sport_be, p->proto, &flow);
	return goes_to_visitor(skb, p, &flow, app) || is_leaver(app, &flow.client, p->sport_be) ||
	       host_is_connected(skb, &flow.client, &flow.peer);
}

/* A connection begins that a rule lets through, maybe for a name whose address is soon another. */
static __noinline void remember_leaver(const struct packet *p, __u32 app)
{
	struct ax_endpoint to = {.addr = p->dst, .port_be = p->dport_be, .proto = p->proto};

	if (p->proto != IPPROTO_TCP || !p->has_l4 || is_answer(p))
		return;
	leave_to(app, &to, p->sport_be);
}

/* The verdict on what leaves ax, and on it as a question. (It has a frame of its own: its caller's
 * is short.) */
static __noinline __u64 way_out_verdict(const struct packet *p, __u32 party, __u64 *way_out)
{
	struct question q = question_of(p, party, AX_PARTY_NONE);
	__u64 v = party_verdict(q.parties, q.ports, &p->dst);

	*way_out = v;
	return v & VERDICT_DENY ? verdict_of(&q, &p->dst) : v; /* what may be an answer */
}

/* To an address that is not an app's: the host, or the world. */
/* Whether this host takes it for its own; also where it forwards nothing at all. */
static __noinline bool stays_here(struct __sk_buff *skb, const struct packet *p)
{
	struct bpf_fib_lookup fib = {.family = AF_INET, .ifindex = skb->ifindex};
	long r;

	fib.ipv4_src = p->src.w[3];
	fib.ipv4_dst = p->dst.w[3];
	r = bpf_fib_lookup(skb, &fib, sizeof(fib), 0);
	return r == BPF_FIB_LKUP_RET_NOT_FWDED || r == BPF_FIB_LKUP_RET_FWD_DISABLED;
}

/* A broadcast to this host's network: each socket on the wildcard gets it, and no sk_lookup program
 * is asked. True: an app is at that port that may not be reached. A global function: the verifier
 * looks at it once. */
__weak __noinline int is_for_others(struct __sk_buff *skb, const struct packet *p, __u32 party)
{
	const struct ax_wild *w;
	const struct ax_vip *dst;
	struct ax_addr addr;
	struct question q;

	if (!p || !p->v4 || p->proto != IPPROTO_UDP || !p->has_l4)
		return false;
	w = wild_at_port(&p->dst, p->dport_be);
	if (!w || !stays_here(skb, p))
		return false;
	addr = w->vip;
	dst = bpf_map_lookup_elem(&vips, &addr);
	if (!dst || dst->kind != AX_VIP_APP)
		return false;
	q = question_of(p, party, dst->party);
	return (verdict_of(&q, &p->src) & VERDICT_REFUSED) != 0;
}

static __always_inline int leave(struct __sk_buff *skb, const struct packet *p,
				 const struct ax_vip *src, bool host, const struct ax_ctl *c)
{
	int r = answer_of_flow(skb, p, c);
	__u64 v, way_out;

	if (r >= 0)
		return r;
	/* (nor may it meddle with what others have there, by what looks like an answer) */
	if (p->proto == IPPROTO_TCP && p->has_l4 && is_nodes_port(&p->dst, p->dport_be))
		return was_asked_for(skb, p, src->id)
			       ? TC_ACT_OK
			       : refuse_packet(skb, p, AX_COUNT_FABRIC_DENIED);
	if (is_for_others(skb, p, src->party))
		return refuse_packet(skb, p, AX_COUNT_FABRIC_DENIED);
	v = way_out_verdict(p, src->party, &way_out);
	if (!(v & VERDICT_DENY) && (allows(way_out) || src->flags & AX_VIP_EGRESS)) {
		if (allows(way_out))
			remember_leaver(p, src->id);
		if (p->proto == IPPROTO_UDP)
			await_packet(p, src->party, AX_PARTY_NONE, src->id, c && c->host_access);
		return TC_ACT_OK;
	}
	if (was_asked_for(skb, p, src->id))
		return TC_ACT_OK;
	if (host && p->has_l4 && c && p->dport_be == c->dns_port_be)
		return TC_ACT_OK;
	if (host && (p->proto == IPPROTO_ICMP || p->proto == IPPROTO_ICMPV6))
		return TC_ACT_OK;
	saw_packet(p, v, AX_SEEN_EGRESS);
	if (v & VERDICT_DENY) {
		count_verdict(v);
		return refuse_packet(skb, p, AX_COUNT_FABRIC_DENIED);
	}
	return refuse_packet(skb, p, AX_COUNT_NO_EGRESS);
}

/* To an app that may have it. */
static __always_inline int to_app(struct __sk_buff *skb, const struct packet *p,
				  const struct ax_vip *dst, const struct ax_ctl *c)
{
	int r;

	/* (clients' own ports are not among those) */
	if (waited_any && p->proto == IPPROTO_TCP && c &&
	    (c->service_ifindex || c->exposed & AX_EXPOSED_MIXED) && is_flow_port(c, p->dport_be)) {
		r = answer_of_service(skb, p, c, dst->ifindex);
		if (r >= 0)
			return r;
	}
	return dst->ifindex ? to_device(skb, dst->ifindex) : TC_ACT_OK;
}

/* From an app that has waited at a service's address: who gets it is decided, and judged, where
 * that leads (service.bpf.c, sk_lookup.bpf.c). */
static __noinline int to_service(struct __sk_buff *skb, const struct packet *p,
				 const struct ax_vip *dst, const struct ax_ctl *c, __u32 mark)
{
	int r;

	if (is_mixed(dst) && c) {
		r = to_mixed(skb, p, c, mark);
		return r == TC_ACT_UNSPEC ? TC_ACT_OK : r;
	}
	if (!(dst->flags & AX_VIP_BY_DEVICE))
		return TC_ACT_OK;
	return c && c->service_ifindex ? (int)bpf_redirect(c->service_ifindex, 0) : TC_ACT_SHOT;
}

/* Whether it is for whoever serves an address: nobody owns a service's own one; of one that private
 * apps share its owner has what is his alone. (Flows are those of apps that have waited there.) */
static __noinline bool goes_to_service(const struct packet *p, const struct ax_vip *dst)
{
	struct ax_flow_key flow;

	if (dst->kind != AX_VIP_APP || !(dst->flags & AX_VIP_BY_DEVICE))
		return dst->kind == AX_VIP_SERVICE;
	flow_of(&p->src, p->sport_be, &p->dst, p->dport_be, p->proto, &flow);
	return flow_find(&flow) || (!is_answer(p) && !server_of(&flow.peer, dst));
}

/* To an app of another node that is reached by translation alone (include/across.h). */
static __always_inline int to_node(struct __sk_buff *skb, const struct packet *p,
				   const struct ax_vip *src, const struct ax_vip *dst)
{
	int r = -1;

	if (p->proto == IPPROTO_TCP && may_pass(p, src, dst) &&
	    (!begins(p) ||
	     (!across_begin(skb, p, src->id, dst->ifindex) && !across_sign(skb, p, src->id))))
		r = across_out(skb, p, src->id, dst->ifindex);
	return r < 0 ? refuse_packet(skb, p, AX_COUNT_FABRIC_DENIED) : r;
}

/* What goes on with a node itself, whose connection to the app did not say whose it is, or with an
 * app that is not known any more. -1: there is none. */
static __always_inline int to_known_node(struct __sk_buff *skb, const struct packet *p,
					 const struct ax_vip *src)
{
	if (!across_any || p->proto != IPPROTO_TCP || begins(p))
		return -1;
	return across_out(skb, p, src->id, 0);
}

/* From an app: its host end's ingress. */
SEC("tc")
int ax_from_app(struct __sk_buff *skb)
{
	struct ax_vip *src, *dst;
	struct ax_ctl *c;
	struct packet p = {}; /* (see parse_tc()) */
	__u32 zero = 0;
	__u32 mark = skb->tc_index;
	int r = parse_skb(skb, &p);

	skb->tc_index = 0; /* marks are ours: the app may have written one on its side */
	if (r == PARSE_MALFORMED || (r == PARSE_OK && hides_ports(&p)))
		return drop(AX_COUNT_FABRIC_MALFORMED);
	if (r != PARSE_OK || is_multicast(&p))
		return TC_ACT_SHOT; /* nobody on the other side: there is no ARP here */
	src = bpf_map_lookup_elem(&vips, &p.src);
	if (!src || src->ifindex != skb->ifindex)
		return drop(AX_COUNT_FABRIC_SOURCE);
	c = bpf_map_lookup_elem(&ctl, &zero);
	dst = bpf_map_lookup_elem(&vips, &p.dst);
	if (dst && dst->kind == AX_VIP_BALANCER)
		return c ? bpf_redirect(c->service_ifindex, 0) : TC_ACT_SHOT;
	if (!dst) {
		r = to_known_node(skb, &p, src);
		if (r >= 0)
			return r;
	}
	if (!dst || dst->kind == AX_VIP_HOST)
		return leave(skb, &p, src, dst != NULL, c);
	if (dst->kind == AX_VIP_ACROSS)
		return to_node(skb, &p, src, dst);
	if (p.proto == IPPROTO_TCP && p.has_l4 && waited_any && goes_to_service(&p, dst))
		return to_service(skb, &p, dst, c, mark);
	if (!may_pass(&p, src, dst))
		return refuse_packet(skb, &p, AX_COUNT_FABRIC_DENIED);
	return dst->kind == AX_VIP_APP ? to_app(skb, &p, dst, c) : TC_ACT_OK;
}

/*
 * From a NAT balancer to apps of this machine (include/balance.h), where its packets come in: the
 * ingress of the services' device. Host-mode apps are found by this machine's own stack. Whom it
 * sends to was decided by who wrote the balancer: no rules between apps are asked.
 */
SEC("tc")
int ax_from_balancer(struct __sk_buff *skb)
{
	struct ax_vip *src, *dst;
	struct packet p = {}; /* (see parse_tc()) */

	if (parse_skb(skb, &p) != PARSE_OK)
		return TC_ACT_SHOT;
	src = bpf_map_lookup_elem(&vips, &p.src);
	if (!src || src->kind != AX_VIP_BALANCER)
		return TC_ACT_OK; /* an answer of a service's (answer_of_flow()) */
	dst = bpf_map_lookup_elem(&vips, &p.dst);
	if (!dst || dst->kind != AX_VIP_APP)
		return TC_ACT_SHOT; /* it has just ended */
	return dst->ifindex ? to_device(skb, dst->ifindex) : TC_ACT_OK;
}

/* What apps answered to a balancer, turned back at the other end of that device by an XDP program,
 * which says in front of the frame where it leaves. */
SEC("tc")
int ax_from_backends(struct __sk_buff *skb)
{
	__u32 *ifindex = (void *)(long)skb->data_meta;

	if ((void *)(ifindex + 1) > (void *)(long)skb->data)
		return TC_ACT_SHOT;
	return bpf_redirect(*ifindex, 0);
}

/* Whether the app has asked outside for it, by UDP. */
static __noinline bool answers_datagram(const struct packet *p, const struct ax_vip *dst)
{
	struct question q = question_of(p, AX_PARTY_NONE, dst->party);
	struct ax_endpoint from = {.proto = IPPROTO_UDP};
	__u64 question;

	from.addr = p->src;
	if (p->has_l4)
		from.port_be = p->sport_be;
	if (!is_awaited(dst->id, &from, p->has_l4 ? p->dport_be : 0))
		return false;
	question = turned_verdict(q.parties, q.ports, &from.addr);
	return allows(question) || (!(question & VERDICT_DENY) && dst->flags & AX_VIP_EGRESS);
}

#define ANSWERS 2 /* besides true */

/* What comes to an app from outside ax, or from the host. *let_in: by a rule, or because all are;
 * else it may still be an answer; a datagram that is one ANSWERS. False: a rule says no. */
static __always_inline int may_enter(const struct packet *p, const struct ax_vip *dst,
				     const struct ax_ctl *c, bool *let_in)
{
	struct question q = question_of(p, AX_PARTY_NONE, dst->party);
	__u64 v;

	*let_in = c->host_access;
	if (is_answer(p))
		return true;
	v = verdict_of(&q, &p->src);
	if (VERDICT_RULE(v))
		*let_in = !(v & VERDICT_DENY);
	if (!*let_in && p->proto == IPPROTO_UDP && answers_datagram(p, dst))
		return ANSWERS;
	if (v) {
		count_verdict(v);
		saw_packet(p, v, 0);
	}
	return v & VERDICT_DENY ? 0 : 1;
}

/* Private apps come through the peer's door, or, where a service led them, by their own device
 * (ax_from_app() has seen it); host-mode ones come from this host itself, those of another node by
 * the way to it: whoever comes in from elsewhere with such a source lies. */
static __always_inline bool is_believed(const struct __sk_buff *skb, const struct ax_vip *src)
{
	__u32 from = skb->ingress_ifindex;

	/* (what was on its way to a service at this host's address was on lo before) */
	return from == src->ifindex || (!src->ifindex && from == ANSWER_LO_IFINDEX);
}

/* For one that was just started by a connection, and does not listen yet, or ends: its own kernel
 * would refuse it. As if lost, and TCP tries again. (Programs outside ax: of apps the SYN is held,
 * see sockops/held.bpf.h.) */
static __always_inline bool is_too_early(const struct packet *p, const struct ax_vip *dst)
{
	return p->proto == IPPROTO_TCP && p->has_l4 && !is_answer(p) && is_to_start(dst);
}

static __always_inline int judge_to_app(struct __sk_buff *skb)
{
	struct ax_vip *src, *dst;
	struct ax_ctl *c;
	struct packet p = {}; /* (see parse_tc()) */
	__u32 zero = 0;
	int r = parse_skb(skb, &p);
	bool let_in;
	int may;

	if (r == PARSE_MALFORMED || (r == PARSE_OK && hides_ports(&p)))
		return drop(AX_COUNT_FABRIC_MALFORMED);
	c = bpf_map_lookup_elem(&ctl, &zero);
	if (r != PARSE_OK || !c || is_multicast(&p))
		return TC_ACT_SHOT;
	dst = bpf_map_lookup_elem(&vips, &p.dst);
	if (!dst)
		return drop(AX_COUNT_FABRIC_DENIED);
	src = bpf_map_lookup_elem(&vips, &p.src);
	if (src && is_running(src)) {
		if (!is_believed(skb, src))
			return drop(AX_COUNT_FABRIC_SOURCE);
		if (!may_pass(&p, src, dst))
			return drop(AX_COUNT_FABRIC_DENIED);
		return TC_ACT_OK;
	}
	if (src && src->kind == AX_VIP_HOST && p.has_l4 && c->dns_port_be &&
	    p.sport_be == c->dns_port_be)
		return TC_ACT_OK; /* the agent's DNS */
	if (src ? src->kind == AX_VIP_ACROSS : skb->ingress_ifindex && is_nobodys(&p.src))
		return drop(AX_COUNT_FABRIC_SOURCE);
	may = may_enter(&p, dst, c, &let_in);
	if (!may)
		return drop(AX_COUNT_FABRIC_DENIED);
	if (may == ANSWERS) {
		skb->tc_index = 0;
		return TC_ACT_OK;
	}
	if (is_too_early(&p, dst))
		return TC_ACT_SHOT;
	if (skb->tc_index == FOR_EXPOSED) {
		skb->tc_index = 0;
		return TC_ACT_OK;
	}
	if (skb->tc_index == FOR_SERVICE)
		skb->tc_index = 0;
	else if (!to_itself(skb, &p, c, let_in, dst->id))
		return drop(AX_COUNT_ERROR);
	if (let_in || is_answer(&p))
		return TC_ACT_OK;
	/* what this host says of packets of the app's that are too long (expose_answer.bpf.h) */
	if (!skb->ingress_ifindex && c->exposed & AX_EXPOSED_PACKETS &&
	    (p.proto == IPPROTO_ICMP || p.proto == IPPROTO_ICMPV6))
		return TC_ACT_OK;
	/* and of what is too long for the way to another node: TCP would stand still */
	if (!skb->ingress_ifindex && is_icmp_error(&p))
		return TC_ACT_OK;
	/* what answers an app's pings and the like to the outside, but not from this host */
	if (!src && (dst->flags & (AX_VIP_EGRESS | AX_VIP_LEAVES)) && p.proto != IPPROTO_TCP &&
	    p.proto != IPPROTO_UDP)
		return TC_ACT_OK;
	saw_packet(&p, 0, AX_SEEN_HOST_ACCESS);
	return drop(AX_COUNT_FABRIC_DENIED);
}

/* To an app, from the host's stack: its host end's egress. (Packets of private apps do not come
 * by here, unless there is a list to be asked, which is behind this.) */
SEC("tc")
int ax_to_app(struct __sk_buff *skb)
{
	int r = TC_ACT_OK;

	if (skb->tc_index == FOR_LISTED)
		skb->tc_index = 0;
	else
		r = judge_to_app(skb);
	return r == TC_ACT_OK ? TC_ACT_UNSPEC : r;
}

/* What is known of a packet without its ports, wherever its header lies: a way to other nodes may
 * have no Ethernet (WireGuard). PARSE_MALFORMED: it cannot be judged. */
static __always_inline int read_ip(struct __sk_buff *skb, struct packet *p)
{
	struct ipv6hdr ip6;
	struct iphdr ip;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (bpf_skb_load_bytes_relative(skb, 0, &ip, sizeof(ip), BPF_HDR_START_NET))
			return PARSE_MALFORMED;
		addr_set_v4(&p->src, ip.saddr);
		addr_set_v4(&p->dst, ip.daddr);
		p->v4 = true;
		p->proto = ip.protocol;
		p->later = ip.frag_off & bpf_htons(0x1fff);
		return PARSE_OK;
	}
	if (skb->protocol != bpf_htons(ETH_P_IPV6))
		return PARSE_NOT_IP;
	if (bpf_skb_load_bytes_relative(skb, 0, &ip6, sizeof(ip6), BPF_HDR_START_NET))
		return PARSE_MALFORMED;
	__builtin_memcpy(&p->src, &ip6.saddr, sizeof(p->src));
	__builtin_memcpy(&p->dst, &ip6.daddr, sizeof(p->dst));
	p->proto = ip6.nexthdr;
	return is_mapped(&ip6.saddr) || is_mapped(&ip6.daddr) ? PARSE_MALFORMED : PARSE_OK;
}

static __always_inline bool is_reserved(const struct ax_addr *addr)
{
	struct ax_prefix p = {.len = 128, .addr = *addr};

	return bpf_map_lookup_elem(&reserved, &p);
}

/* The ports of host-mode apps sk_lookup judges, and private apps their devices; what has no ports
 * and goes to the former nobody else does. */
static __always_inline int judge_rest(struct __sk_buff *skb, struct packet *p,
				      const struct ax_vip *src)
{
	struct ax_vip *dst = bpf_map_lookup_elem(&vips, &p->dst);

	if (!dst || dst->ifindex)
		return TC_ACT_UNSPEC;
	if (!p->v4 && !read_extensions(skb, p))
		return drop(AX_COUNT_FABRIC_DENIED);
	if (p->proto == IPPROTO_TCP || p->proto == IPPROTO_UDP)
		return TC_ACT_UNSPEC;
	return may_pass(p, src, dst) ? TC_ACT_UNSPEC : drop(AX_COUNT_FABRIC_DENIED);
}

/*
 * What comes in by an interface that leads to other nodes, or by any other one where those have a
 * way of their own: a source of the pool is believed if it is known and comes by the right one.
 * Nothing is answered, so that TCP asks again when an app is known that has just begun.
 */
SEC("tc")
int ax_from_nodes(struct __sk_buff *skb)
{
	struct packet p = {}; /* (see parse_tc()) */
	struct ax_vip *src;
	int r = read_ip(skb, &p);

	if (r == PARSE_MALFORMED)
		return drop(AX_COUNT_FABRIC_SOURCE);
	if (r != PARSE_OK || !is_reserved(&p.src))
		return TC_ACT_UNSPEC;
	src = bpf_map_lookup_elem(&vips, &p.src);
	if (!src || src->kind != AX_VIP_REMOTE || src->ifindex != skb->ifindex)
		return drop(AX_COUNT_FABRIC_SOURCE);
	return judge_rest(skb, &p, src);
}

/* What comes in by a way that only apps have (a tunnel): from them, and to those of this node. Who
 * keeps the other end reaches no program of this host by it that the host's other interfaces, and
 * what guards them, would not let him reach. */
SEC("tc")
int ax_from_tunnel(struct __sk_buff *skb)
{
	struct packet p = {}; /* (see parse_tc()) */
	struct ax_vip *src;

	if (read_ip(skb, &p) != PARSE_OK)
		return drop(AX_COUNT_FABRIC_SOURCE);
	src = bpf_map_lookup_elem(&vips, &p.src);
	if (!src || src->kind != AX_VIP_REMOTE || src->ifindex != skb->ifindex)
		return drop(AX_COUNT_FABRIC_SOURCE);
	if (!is_reserved(&p.dst))
		return drop(AX_COUNT_FABRIC_DENIED);
	return judge_rest(skb, &p, src);
}
