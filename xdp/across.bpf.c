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
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <stddef.h>

#include "across.bpf.h"
#include "across_flow.bpf.h"
#include "across_option.bpf.h"
#include "expose_icmp.bpf.h"
#include "count.bpf.h"
#include "seen.bpf.h"
#include "serving.bpf.h"
#include "verdict.bpf.h"
#include "verifier.bpf.h"

#define IP_OFFSET     0x1fff
#define IP_FRAGMENT   0x3fff /* that, or more follow */
#define L4_OFF	      (sizeof(struct ethhdr) + sizeof(struct iphdr))
#define TCP_FLAGS_OFF 13

struct segment {
	struct ax_flow_key key; /* `peer` is this node's end */
	struct ax_addr client;	/* whose it is: an app's address, or its node's */
	__be32 seq_be;
	__u32 options, len; /* where they are behind the IP header's begin, and how long */
	bool begins;	    /* it is a SYN; else the following are not known */
	bool says;	    /* whose it is; else it is its node's */
	__u16 pad;
};

/* Whether it is one to this node's own address, or what may be an ICMP error. */
static __noinline int read_segment(struct __sk_buff *skb, struct segment *s)
{
	const struct ax_across_ctl *c = across_get();
	struct tcphdr th;
	struct iphdr ip;
	__u32 at, len;

	if (!s || !c || skb->protocol != bpf_htons(ETH_P_IP) ||
	    bpf_skb_load_bytes_relative(skb, 0, &ip, sizeof(ip), BPF_HDR_START_NET) ||
	    ip.frag_off & bpf_htons(IP_OFFSET))
		return false;
	if (ip.protocol == IPPROTO_ICMP)
		return true;
	if (ip.protocol != IPPROTO_TCP)
		return false;
	at = ip.ihl * 4;
	if (bpf_skb_load_bytes_relative(skb, at, &th, sizeof(th), BPF_HDR_START_NET))
		return false;
	addr_set_v4(&s->key.client.addr, ip.saddr);
	addr_set_v4(&s->key.peer.addr, ip.daddr);
	s->client = s->key.client.addr;
	s->key.client.port_be = th.source;
	s->key.peer.port_be = th.dest;
	s->key.client.proto = s->key.peer.proto = IPPROTO_TCP;
	len = th.doff * 4;
	s->seq_be = th.seq;
	s->options = at + sizeof(th);
	s->len = len > sizeof(th) ? len - sizeof(th) : 0;
	s->begins = th.syn && !th.ack;
	return !addr_is_zero(&c->node) && addr_eq(&c->node, &s->key.peer.addr);
}

/* --- private apps --- */

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

	if (!p || !p->v4 || !is_icmp_error(p) || !quote_ends(skb, p, &q))
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
	if (quote_set4(skb, q.l3_off, offsetof(struct iphdr, daddr), q.flow.client.addr.w[3],
		       other.w[3]) ||
	    quote_write(skb, p, &q)) {
		count(AX_COUNT_ERROR);
		return TC_ACT_SHOT;
	}
	return to_device(skb, ifindex);
}

/* Headers behind Ethernet's, without options: those of what a private app may have, and nothing of
 * anything else. */
static __noinline bool read_packet(struct __sk_buff *skb, struct packet *p)
{
	__be32 ends[2]; /* where the IP header lies is known for sure */
	struct iphdr ip;
	__u8 icmp[2];

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
	p->l3_off = sizeof(struct ethhdr);
	p->l4_off = L4_OFF;
	if (ip.protocol == IPPROTO_ICMP) {
		p->has_icmp = !bpf_skb_load_bytes(skb, L4_OFF, icmp, sizeof(icmp));
		p->icmp = (__u16)(icmp[0] << 8 | icmp[1]);
		return p->has_icmp;
	}
	p->has_l4 = !bpf_skb_load_bytes(skb, L4_OFF, &p->sport_be, sizeof(p->sport_be)) &&
		    !bpf_skb_load_bytes(skb, L4_OFF + 2, &p->dport_be, sizeof(p->dport_be)) &&
		    !bpf_skb_load_bytes(skb, L4_OFF + TCP_FLAGS_OFF, &p->tcp_flags,
					sizeof(p->tcp_flags));
	return p->has_l4;
}

/* What goes on. The stack has what is of no private app's. */
__weak __noinline int to_private(struct __sk_buff *skb)
{
	struct packet p = {};
	int r;

	if (!read_packet(skb, &p))
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
	__u32 port = bpf_ntohs(s->key.peer.port_be);
	struct ax_endpoint *served = bpf_map_lookup_elem(&across_served, &port);
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
	__u32 port;

	if (!s || !opt)
		return TC_ACT_SHOT;
	port = bpf_ntohs(s->key.peer.port_be);
	served = bpf_map_lookup_elem(&across_served, &port);
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

	if (!read_segment(skb, &s))
		return TC_ACT_UNSPEC;
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
