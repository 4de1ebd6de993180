/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Private apps' connections to servers of other nodes, where they begin (fabric.bpf.c): a port of
 * this node's address, and who asks. The app's own kernel leaves room for that in the SYN
 * (sockops/across_ops.bpf.h); nothing of what is in there is believed. BPF only.
 */
#ifndef AX_ACROSS_CLIENT_BPF_H
#define AX_ACROSS_CLIENT_BPF_H

#include <linux/tcp.h>
#include <stddef.h>

#include "across_flow.bpf.h"
#include "across_option.bpf.h"
#include "host_socket.bpf.h"

#define ACROSS_PORT_TRIES 8

/* A port from which nobody of this machine has a connection to there: none of those that its own
 * clients get (flow_port()). In bpf_loop(), as above. */
struct port_search {
	struct __sk_buff *skb;
	struct ax_across_ends *nodes;
	__u64 found;
};

static long try_port(__u32 i, struct port_search *s)
{
	const struct ax_ctl *c = bpf_map_lookup_elem(&ctl, &(__u32){0});
	struct ax_across_ends at = *s->nodes;
	struct ax_across_flow *f;

	(void)i;
	if (!c)
		return 1;
	at.own.port_be = flow_port(c);
	f = bpf_map_lookup_elem(&across_flows, &at);
	if (f && !across_is_over(f, flow_now()))
		return 0;
	if (host_is_connected(s->skb, &at.own, &at.other))
		return 0;
	s->nodes->own.port_be = at.own.port_be;
	s->found = true;
	return 1;
}

/* Its ends on the nodes' side, if it goes on to the same server's port there. */
static __noinline bool known_client(const struct across_new *n, struct ax_across_ends *ret)
{
	struct ax_across_ends key = n->app;
	struct ax_across_flow *f = bpf_map_lookup_elem(&across_flows, &key);
	struct ax_across_flow *known = f ? bpf_map_lookup_elem(&across_flows, &f->as) : NULL;

	if (!known || f->app != n->id || f->serves || !goes_on(known) ||
	    !endpoint_eq(&f->as.other, &n->nodes.other) ||
	    !addr_eq(&f->as.own.addr, &n->nodes.own.addr))
		return false;
	*ret = f->as;
	return true;
}

/* The server's port of its node, and this node's address. */
static __noinline bool find_nodes(struct across_new *n)
{
	const struct ax_across_ctl *x = across_get();
	struct ax_endpoint key = n->app.other, *to;
	const struct ax_addr *node;

	to = bpf_map_lookup_elem(&across_to, &key);
	if (!to || !x)
		return false;
	node = across_node(x, addr_is_v4(&key.addr));
	if (addr_is_zero(node))
		return false;
	n->nodes.other = *to;
	n->nodes.own.addr = *node;
	n->nodes.own.proto = IPPROTO_TCP;
	return true;
}

/* Where a SYN is led: n->nodes. 0, or -1: nowhere. */
__weak __noinline int across_ask(struct __sk_buff *skb, struct across_new *n)
{
	struct port_search s = {.skb = skb};

	if (!n || !find_nodes(n))
		return -1;
	if (known_client(n, &n->nodes))
		return 0;
	s.nodes = &n->nodes;
	bpf_loop(ACROSS_PORT_TRIES, try_port, &s, 0);
	if (s.found)
		return 0;
	count(AX_COUNT_ACROSS_FULL);
	return -1;
}

/* What of the option is to be said, in words of which its checksum is made. */
struct said {
	__u8 version, key_id;
	__be32 number_be;
	__u8 mac[8];
	__u16 none;
} __attribute__((packed));
_Static_assert(sizeof(struct said) == 16 &&
		       offsetof(struct said, none) ==
			       sizeof(struct ax_across_option) -
				       offsetof(struct ax_across_option, version),
	       "the end of struct ax_across_option");

/* How the nodes have the ends of what the app sends. NULL: not at all. */
static __noinline const struct ax_across_ends *nodes_ends(const struct packet *p)
{
	struct ax_across_ends ends;
	const struct ax_across_flow *f;

	ends_of(p, true, &ends);
	f = bpf_map_lookup_elem(&across_flows, &ends);
	return f ? &f->as : NULL;
}

/* Says in a SYN whose it is. 0, or -1: there is no room for it, or no key. */
__weak __noinline int across_sign(struct __sk_buff *skb, const struct packet *p, __u32 number)
{
	const struct ax_across_ctl *x = across_get();
	struct said was = {}, now = {.version = AX_ACROSS_VERSION};
	struct ax_across_mac m = {.version = AX_ACROSS_VERSION};
	struct walk w = {.skb = skb};
	const struct ax_across_ends *nodes;
	struct tcphdr th;
	__u64 mac;
	__s64 diff;
	__u32 at;

	if (!p || !x || !x->now.id || bpf_skb_load_bytes(skb, p->l4_off, &th, sizeof(th)) ||
	    th.doff * 4 <= sizeof(th))
		return -1;
	w.at = ip_size(p) + sizeof(th);
	w.left = th.doff * 4 - sizeof(th);
	find_option(&w);
	nodes = nodes_ends(p);
	if (w.found != 1 || w.at % 2 || !nodes)
		return -1;
	m.client = nodes->own.addr;
	m.client_port_be = nodes->own.port_be;
	m.to_port_be = nodes->other.port_be;
	m.server = p->dst;
	m.server_port_be = p->dport_be;
	m.seq_be = th.seq;
	m.number_be = now.number_be = bpf_htonl(number);
	m.key_id = now.key_id = (__u8)x->now.id;
	mac = across_mac(&m, x->now.k[0], x->now.k[1]);
	__builtin_memcpy(now.mac, &mac, sizeof(now.mac));
	__builtin_memcpy(&was, &w.opt.version, offsetof(struct said, none));
	diff = bpf_csum_diff((__be32 *)&was, sizeof(was), (__be32 *)&now, sizeof(now), 0);
	at = sizeof(struct ethhdr) + w.at + offsetof(struct ax_across_option, version);
	return bpf_l4_csum_replace(skb, p->l4_off + offsetof(struct tcphdr, check), 0, (__u64)diff,
				   0) ||
			       bpf_skb_store_bytes(skb, at, &now, offsetof(struct said, none), 0)
		       ? -1
		       : 0;
}

/* A SYN of the app `id` to a server of another node, by that interface: from now on its connection
 * is known. 0, or -1: it cannot be. */
__weak __noinline int across_begin(struct __sk_buff *skb, const struct packet *p, __u32 id,
				   __u32 ifindex)
{
	struct across_new n = {.id = id, .ifindex = ifindex};

	if (!p || !may_cross(p))
		return -1;
	ends_of(p, true, &n.app);
	return across_ask(skb, &n) || across_enter(&n) ? -1 : 0;
}

#endif
