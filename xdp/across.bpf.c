/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What comes from other nodes to this one's ports for servers of its apps (include/across.h), where
 * it comes in. Whose a SYN is says its option: one that says what is not true is dropped, and so is
 * one of an app that is not known yet: TCP asks again. For servers in host mode it is noted for
 * sk_lookup, which sees no options. What is a private app's goes to its device, with the client's
 * own address as its source.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <stddef.h>

#include "across.bpf.h"
#include "across_flow.bpf.h"
#include "across_option.bpf.h"
#include "expose_icmp.bpf.h"
#include "extensions.bpf.h"
#include "count.bpf.h"
#include "seen.bpf.h"
#include "serving.bpf.h"
#include "verdict.bpf.h"
#include "verifier.bpf.h"

#define IP_OFFSET     0x1fff
#define IP_FRAGMENT   0x3fff /* that, or more follow */
#define TCP_FLAGS_OFF 13

struct segment {
	struct ax_flow_key key; /* `peer` is this node's end */
	struct ax_addr client;	/* whose it is: an app's address, or its node's */
	__be32 seq_be;
	__u32 options, len; /* where they are behind the IP header's begin, and how long */
	__u32 at;	    /* the same of TCP's header; 0: not known */
	bool begins;	    /* it is a SYN; else the following are not known */
	bool says;	    /* whose it is; else it is its node's */
	bool hides;	    /* behind extension headers */
	__u8 proto;
};

static __noinline bool read_head4(struct __sk_buff *skb, struct segment *s)
{
	struct iphdr ip;

	if (bpf_skb_load_bytes_relative(skb, 0, &ip, sizeof(ip), BPF_HDR_START_NET) ||
	    ip.frag_off & bpf_htons(IP_OFFSET))
		return false;
	addr_set_v4(&s->key.client.addr, ip.saddr);
	addr_set_v4(&s->key.peer.addr, ip.daddr);
	s->proto = ip.protocol;
	s->at = ip.ihl * 4;
	return true;
}

/* (A fragment header is an extension, too, also that of a whole datagram.) */
static __noinline bool read_head6(struct __sk_buff *skb, struct segment *s)
{
	struct packet p = {};
	struct ipv6hdr ip;

	if (bpf_skb_load_bytes_relative(skb, 0, &ip, sizeof(ip), BPF_HDR_START_NET) ||
	    is_mapped(&ip.saddr) || is_mapped(&ip.daddr)) /* IPv4 it would be, here */
		return false;
	__builtin_memcpy(&s->key.client.addr, &ip.saddr, sizeof(ip.saddr));
	__builtin_memcpy(&s->key.peer.addr, &ip.daddr, sizeof(ip.daddr));
	p.proto = ip.nexthdr;
	p.l4_off = sizeof(ip);
	s->hides = is_extension(ip.nexthdr);
	if (s->hides && !read_extensions(skb, &p)) {
		s->proto = IPPROTO_TCP; /* it may be that */
		return true;
	}
	s->proto = p.proto;
	s->at = p.l4_off;
	return !p.later;
}

static __always_inline bool is_own(const struct segment *s)
{
	const struct ax_across_ctl *c = across_get();
	const struct ax_addr *node;

	if (!c)
		return false;
	node = across_node(c, addr_is_v4(&s->key.peer.addr));
	return !addr_is_zero(node) && addr_eq(node, &s->key.peer.addr);
}

/* A SYN, or what may be one, that no TCP sends. (Other segments may have a header that this kernel
 * has put there: BIG TCP's.) */
static __always_inline bool is_hidden(const struct segment *s)
{
	__u32 port = bpf_ntohs(s->key.peer.port_be);

	return s->hides && s->proto == IPPROTO_TCP &&
	       (!port || (s->begins && port >= AX_ACROSS_FIRST));
}

/* Whether it is one to this node's own address, or what may be an ICMP error. A global function:
 * the verifier judges what follows once, and not for each kind of header. */
__weak __noinline int across_segment(struct __sk_buff *skb, struct segment *s)
{
	struct tcphdr th;
	__u32 len;

	if (!s)
		return false;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (!read_head4(skb, s))
			return false;
	} else if (skb->protocol != bpf_htons(ETH_P_IPV6) || !read_head6(skb, s)) {
		return false;
	}
	if (s->proto == IPPROTO_ICMP || s->proto == IPPROTO_ICMPV6)
		return true;
	if (s->proto != IPPROTO_TCP)
		return false;
	if (!s->at || bpf_skb_load_bytes_relative(skb, s->at, &th, sizeof(th), BPF_HDR_START_NET))
		return s->hides && is_own(s);
	s->client = s->key.client.addr;
	s->key.client.port_be = th.source;
	s->key.peer.port_be = th.dest;
	s->key.client.proto = s->key.peer.proto = IPPROTO_TCP;
	len = th.doff * 4;
	s->seq_be = th.seq;
	s->options = s->at + sizeof(th);
	s->len = len > sizeof(th) ? len - sizeof(th) : 0;
	s->begins = th.syn && !th.ack;
	return is_own(s);
}

/* --- private apps --- */

/* To whom it was sent. 0 or -1. */
static __noinline int quote_other(struct __sk_buff *skb, const struct packet *p,
				  const struct quote *q, const struct ax_addr *other)
{
	struct ax_addr was = q->flow.client.addr, now = *other;
	__s64 diff;

	if (p->v4)
		return quote_set4(skb, q->l3_off, offsetof(struct iphdr, daddr), was.w[3], now.w[3])
			       ? -1
			       : 0;
	diff = diff6(&was, &now);
	return diff < 0 || bpf_l4_csum_replace(skb, q->check_off, 0, (__u64)diff, 0) ||
			       bpf_skb_store_bytes(skb, q->l3_off + offsetof(struct ipv6hdr, daddr),
						   &now, sizeof(now), 0)
		       ? -1
		       : 0;
}

/* An ICMP error about what an app has sent (path MTU discovery, for one): it quotes the packet as
 * this node has sent it, and the app gets it as it has sent it itself. As across_in(). */
__weak __noinline int error_in(struct __sk_buff *skb, const struct packet *p)
{
	struct quote q = {};
	struct ax_across_ends ends;
	struct ax_across_flow *f;
	const struct ax_vip *vip;
	struct ax_addr other;
	__u32 ifindex;

	if (!p || !is_icmp_error(p) || !quote_ends(skb, p, &q))
		return -1;
	ends.own = q.flow.peer;
	ends.other = q.flow.client;
	f = bpf_map_lookup_elem(&across_flows, &ends);
	vip = f ? bpf_map_lookup_elem(&vips, &f->as.own.addr) : NULL;
	if (!f || !vip || vip->kind != AX_VIP_APP || vip->id != f->app || !vip->ifindex)
		return -1;
	q.to = f->as.own;
	q.client_port_be = f->as.other.port_be;
	other = f->as.other.addr;
	ifindex = vip->ifindex;
	if (quote_other(skb, p, &q, &other) || quote_write(skb, p, &q)) {
		count(AX_COUNT_ERROR);
		return TC_ACT_SHOT;
	}
	return to_device(skb, ifindex);
}

/* Headers behind Ethernet's, without options or extensions: those of what a private app may have,
 * and nothing of anything else. */
static __noinline bool read_packet4(struct __sk_buff *skb, struct packet *p)
{
	__be32 ends[2]; /* where the IP header lies is known for sure */
	struct iphdr ip;

	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr), &ip, sizeof(ip)) ||
	    bpf_skb_load_bytes_relative(skb, offsetof(struct iphdr, saddr), ends, sizeof(ends),
					BPF_HDR_START_NET) ||
	    ends[0] != ip.saddr || ends[1] != ip.daddr || ip.version != 4 || ip.ihl != 5 ||
	    ip.frag_off & bpf_htons(IP_FRAGMENT))
		return false;
	addr_set_v4(&p->src, ip.saddr);
	addr_set_v4(&p->dst, ip.daddr);
	p->v4 = true;
	p->proto = ip.protocol;
	return true;
}

static __noinline bool read_packet6(struct __sk_buff *skb, struct packet *p)
{
	struct ax_addr ends[2]; /* as above */
	struct ipv6hdr ip;

	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr), &ip, sizeof(ip)) ||
	    bpf_skb_load_bytes_relative(skb, offsetof(struct ipv6hdr, saddr), ends, sizeof(ends),
					BPF_HDR_START_NET) ||
	    ip.version != 6 || is_mapped(&ip.saddr) || is_mapped(&ip.daddr))
		return false;
	__builtin_memcpy(&p->src, &ip.saddr, sizeof(p->src));
	__builtin_memcpy(&p->dst, &ip.daddr, sizeof(p->dst));
	p->proto = ip.nexthdr;
	return addr_eq(&p->src, &ends[0]) && addr_eq(&p->dst, &ends[1]);
}

/* (A global function, as across_segment().) */
__weak __noinline int across_packet(struct __sk_buff *skb, struct packet *p)
{
	bool v4 = skb->protocol == bpf_htons(ETH_P_IP);
	__u8 icmp[2];
	__u32 at;

	if (!p || !(v4 ? read_packet4(skb, p) : read_packet6(skb, p)))
		return false;
	at = sizeof(struct ethhdr) + ip_size(p);
	p->l3_off = sizeof(struct ethhdr);
	p->l4_off = (__u16)at;
	if (is_icmp(p)) {
		p->has_icmp = !bpf_skb_load_bytes(skb, at, icmp, sizeof(icmp));
		p->icmp = (__u16)(icmp[0] << 8 | icmp[1]);
		return p->has_icmp;
	}
	p->has_l4 =
		!bpf_skb_load_bytes(skb, at, &p->sport_be, sizeof(p->sport_be)) &&
		!bpf_skb_load_bytes(skb, at + 2, &p->dport_be, sizeof(p->dport_be)) &&
		!bpf_skb_load_bytes(skb, at + TCP_FLAGS_OFF, &p->tcp_flags, sizeof(p->tcp_flags));
	return p->has_l4;
}

/* What goes on. The stack has what is of no private app's. */
__weak __noinline int to_private(struct __sk_buff *skb)
{
	struct packet p = {};
	int r;

	if (!across_packet(skb, &p))
		return TC_ACT_UNSPEC;
	r = p.has_icmp ? error_in(skb, &p) : across_in(skb, &p);
	return r < 0 ? TC_ACT_UNSPEC : r;
}

/* Whether who asks may have that server: an app of another node, or (with its node's address) a
 * program outside ax. What is refused the stack refuses, by a verdict of its own, which
 * is counted there (assign_across() of sk_lookup.bpf.c). */
__weak __noinline int may_have_private(const struct ax_endpoint *client,
				       const struct ax_endpoint *server, __u32 party, bool app)
{
	const struct ax_ctl *c = bpf_map_lookup_elem(&ctl, &(__u32){0});
	struct ax_addr addr; /* keys are on the stack to Linux 6.1 */
	const struct ax_vip *vip;
	__u32 from = AX_PARTY_NONE;
	__u64 v;

	if (!client || !server || !c)
		return false;
	addr = client->addr;
	vip = bpf_map_lookup_elem(&vips, &addr);
	if (app != (vip && vip->kind == AX_VIP_ACROSS))
		return false;
	if (app && vip)
		from = vip->party;
	if (app && (!from || !party)) /* labels that could not be kept */
		return false;
	v = party_verdict(question_parties(from, party),
			  question_ports(IPPROTO_TCP, server->port_be, client->port_be), &addr);
	if (v & VERDICT_REFUSED || (!app && !VERDICT_RULE(v) && !c->host_access))
		return false;
	if (v) {
		count_verdict(v);
		saw(&addr, server, v, SEEN(AX_SEEN_AT_FABRIC, 0), 0);
	}
	return true;
}

#define ENTERED 100 /* besides verdicts: to_private() has it */

/* The SYN of a connection to a private app's server, of whom was found out. Returns a verdict
 * (TC_ACT_UNSPEC: the stack is to have it), or ENTERED. */
static __noinline int to_server(struct __sk_buff *skb, const struct segment *s)
{
	struct across_new n = {.serves = 1};
	struct ax_endpoint *served = across_served_at(&s->key.peer);
	struct ax_vip *vip = served ? bpf_map_lookup_elem(&vips, &served->addr) : NULL;

	if (!vip || vip->kind != AX_VIP_APP || !vip->ifindex || !server_of(served, vip))
		return TC_ACT_UNSPEC;
	n.nodes.own = s->key.peer;
	n.nodes.other = s->key.client;
	n.app.own = *served;
	n.app.other = s->key.client;
	n.app.other.addr = s->client;
	n.id = vip->id;
	n.ifindex = skb->ifindex;
	if (!may_have_private(&n.app.other, &n.app.own, vip->party, s->says))
		return TC_ACT_UNSPEC;
	if (!s->says)
		count(AX_COUNT_ACROSS_PLAIN);
	return across_enter(&n) ? TC_ACT_SHOT : ENTERED;
}

/* --- whose it is --- */

static __noinline bool is_true(const struct segment *s, const struct ax_across_option *opt,
			       const struct ax_endpoint *served)
{
	const struct ax_across_ctl *c = across_get();
	struct ax_across_mac m = {.version = AX_ACROSS_VERSION};
	__u64 mac, said;
	__u32 id = opt->key_id;

	if (!c || !id || opt->version != AX_ACROSS_VERSION)
		return false;
	m.client = s->key.client.addr;
	m.server = served->addr;
	m.client_port_be = s->key.client.port_be;
	m.to_port_be = s->key.peer.port_be;
	m.server_port_be = served->port_be;
	m.seq_be = s->seq_be;
	m.number_be = opt->number_be;
	m.key_id = opt->key_id;
	if (id == c->now.id)
		mac = across_mac(&m, c->now.k[0], c->now.k[1]);
	else if (id == c->before.id)
		mac = across_mac(&m, c->before.k[0], c->before.k[1]);
	else
		return false;
	__builtin_memcpy(&said, opt->mac, sizeof(said));
	return said == mac;
}

static __noinline int came(struct __sk_buff *skb, struct segment *s,
			   const struct ax_across_option *opt)
{
	struct ax_across_app app = {};
	struct ax_across_came c = {};
	struct ax_endpoint *served;
	struct ax_addr *client;

	if (!s || !opt)
		return TC_ACT_SHOT;
	served = across_served_at(&s->key.peer);
	if (!served) /* nor is it for whatever program of the host listens there */
		return TC_ACT_SHOT;
	if (!bpf_map_lookup_elem(&across_nodes, &s->key.client.addr) || !is_true(s, opt, served)) {
		count(AX_COUNT_ACROSS_FORGED);
		return TC_ACT_SHOT;
	}
	app.node = s->key.client.addr;
	app.number = bpf_ntohl(opt->number_be);
	client = bpf_map_lookup_elem(&across_apps, &app);
	if (!client)
		return TC_ACT_SHOT;
	s->says = true;
	s->client = c.client = *client;
	c.ifindex = skb->ifindex;
	if (bpf_map_update_elem(&across_came, &s->key, &c, BPF_ANY)) {
		count(AX_COUNT_ERROR);
		return TC_ACT_SHOT;
	}
	count(AX_COUNT_ACROSS_CAME);
	return TC_ACT_UNSPEC;
}

/* One that says nothing. Whether it is from another node. */
static __noinline int came_plain(struct segment *s)
{
	__u32 *now;

	if (!s)
		return false;
	/* (what the last one from there has said is not said of this one) */
	bpf_map_delete_elem(&across_came, &s->key);
	now = bpf_map_lookup_elem(&across_nodes, &s->key.client.addr);
	return now && *now;
}

SEC("tc")
int ax_across(struct __sk_buff *skb)
{
	struct segment s = {};
	struct walk w = {.skb = skb};
	int r = TC_ACT_UNSPEC;

	if (!across_segment(skb, &s))
		return TC_ACT_UNSPEC;
	if (is_hidden(&s)) {
		count(AX_COUNT_ACROSS_FORGED);
		return TC_ACT_SHOT;
	}
	if (!s.begins)
		return across_any ? to_private(skb) : TC_ACT_UNSPEC;
	if (bpf_ntohs(s.key.peer.port_be) < AX_ACROSS_FIRST)
		return TC_ACT_UNSPEC;
	w.at = s.options;
	w.left = s.len;
	find_option(&w);
	if (w.found > 1) {
		count(AX_COUNT_ACROSS_FORGED);
		return TC_ACT_SHOT;
	}
	if (w.found)
		r = came(skb, &s, &w.opt);
	else if (!came_plain(&s))
		return TC_ACT_UNSPEC;
	if (r == TC_ACT_UNSPEC)
		r = to_server(skb, &s);
	return r == ENTERED ? to_private(skb) : r;
}
