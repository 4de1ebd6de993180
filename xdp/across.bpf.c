/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SYNs that come from other nodes to this one's ports for servers of its apps (include/across.h),
 * where they come in: whose they are is noted for sk_lookup, which sees no options. One that says
 * what is not true is dropped, and so is one of an app that is not known yet: TCP asks again.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <stddef.h>

#include "across.bpf.h"
#include "count.bpf.h"
#include "verifier.bpf.h"

#define OPTIONS_MAX 40
#define IP_OFFSET   0x1fff

struct syn {
	struct ax_flow_key key;
	__be32 seq_be;
	__u32 options, len; /* where they are behind the IP header's begin, and how long */
};

/* Where the option is, by bpf_loop(): Linux 6.1 would judge each turn of a loop. */
struct walk {
	struct __sk_buff *skb;
	__u32 at, left;
	struct ax_across_option opt; /* if found */
	__u16 found;		     /* 1; 2: there is one that is too short or too long */
};

static long next_option(__u32 i, struct walk *w)
{
	__u8 head[4];

	(void)i;
	if (!w->left || bpf_skb_load_bytes_relative(w->skb, w->at, head, 1, BPF_HDR_START_NET) ||
	    !head[0])
		return 1;
	if (head[0] == 1) { /* padding */
		w->at++;
		w->left--;
		return 0;
	}
	if (w->left < 2 || bpf_skb_load_bytes_relative(w->skb, w->at, head, 2, BPF_HDR_START_NET) ||
	    head[1] < 2 || head[1] > w->left)
		return 1;
	if (head[0] == AX_ACROSS_KIND && head[1] >= 4 &&
	    !bpf_skb_load_bytes_relative(w->skb, w->at, head, 4, BPF_HDR_START_NET) &&
	    head[2] == AX_ACROSS_EXID >> 8 && head[3] == (AX_ACROSS_EXID & 0xff)) {
		w->found = 2;
		if (head[1] == sizeof(w->opt) &&
		    !bpf_skb_load_bytes_relative(w->skb, w->at, &w->opt, sizeof(w->opt),
						 BPF_HDR_START_NET))
			w->found = 1;
		return 1;
	}
	w->at += head[1];
	w->left -= head[1];
	return 0;
}

/* Whether it is the SYN of a connection to one of this node's ports for servers. */
static __noinline int read_syn(struct __sk_buff *skb, struct syn *s)
{
	const struct ax_across_ctl *c = across_get();
	struct tcphdr th;
	struct iphdr ip;
	__u32 at, len;

	if (!s || !c || skb->protocol != bpf_htons(ETH_P_IP) ||
	    bpf_skb_load_bytes_relative(skb, 0, &ip, sizeof(ip), BPF_HDR_START_NET) ||
	    ip.protocol != IPPROTO_TCP || ip.frag_off & bpf_htons(IP_OFFSET))
		return false;
	at = ip.ihl * 4;
	if (bpf_skb_load_bytes_relative(skb, at, &th, sizeof(th), BPF_HDR_START_NET) || !th.syn ||
	    th.ack)
		return false;
	addr_set_v4(&s->key.client.addr, ip.saddr);
	addr_set_v4(&s->key.peer.addr, ip.daddr);
	s->key.client.port_be = th.source;
	s->key.peer.port_be = th.dest;
	s->key.client.proto = s->key.peer.proto = IPPROTO_TCP;
	len = th.doff * 4;
	s->seq_be = th.seq;
	s->options = at + sizeof(th);
	s->len = len > sizeof(th) ? len - sizeof(th) : 0;
	return is_across(c, &s->key.peer);
}

static __noinline bool is_true(const struct syn *s, const struct ax_across_option *opt,
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

static __noinline int came(const struct __sk_buff *skb, struct syn *s,
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
	c.client = *client;
	c.ifindex = skb->ifindex;
	if (bpf_map_update_elem(&across_came, &s->key, &c, BPF_ANY)) {
		count(AX_COUNT_ERROR);
		return TC_ACT_SHOT;
	}
	count(AX_COUNT_ACROSS_CAME);
	return TC_ACT_UNSPEC;
}

SEC("tc")
int ax_across(struct __sk_buff *skb)
{
	struct syn s = {};
	struct walk w = {.skb = skb};

	if (!read_syn(skb, &s))
		return TC_ACT_UNSPEC;
	w.at = s.options;
	w.left = s.len;
	bpf_loop(OPTIONS_MAX, next_option, &w, 0);
	if (w.found == 1)
		return came(skb, &s, &w.opt);
	if (w.found) {
		count(AX_COUNT_ACROSS_FORGED);
		return TC_ACT_SHOT;
	}
	/* (what the last one from there has said is not said of this one) */
	bpf_map_delete_elem(&across_came, &s.key);
	return TC_ACT_UNSPEC;
}
