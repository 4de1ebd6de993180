/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a private app answers to clients of its exposed port (expose.bpf.c), as if the host did. */
#ifndef AX_EXPOSE_ANSWER_BPF_H
#define AX_EXPOSE_ANSWER_BPF_H

#include <linux/pkt_cls.h>

#include "count.bpf.h"
#include "endpoint.bpf.h"
#include "fragments.bpf.h"
#include "maps.bpf.h"
#include "rewrite.bpf.h"
#include "verifier.bpf.h"

#define ANSWER_LO_IFINDEX 1

static __always_inline bool is_own_addr(const struct ax_addr *a)
{
	struct ax_vip *vip;

	if (bpf_map_lookup_elem(&local_addrs, a))
		return true;
	vip = bpf_map_lookup_elem(&vips, a);
	return vip && vip->kind == AX_VIP_HOST;
}

/* By the host's routes from the host's address: the interface, 0: none, or -1: it is too long. */
static __noinline int way_out(struct __sk_buff *skb, const struct packet *p,
			      const struct ax_endpoint *from, __be16 client_port_be)
{
	struct bpf_fib_lookup fib = {};
	int r;

	fib.family = p->v4 ? AF_INET : AF_INET6;
	fib.l4_protocol = p->proto;
	fib.sport = from->port_be;
	fib.dport = client_port_be;
	fib.ifindex = skb->ifindex;
	/* segments are cut to fit; of a route's own MTU TCP has been told */
	fib.tot_len = skb->gso_size ? 0 : (__u16)(skb->len - p->l3_off);
	if (p->v4) {
		fib.ipv4_src = from->addr.w[3];
		fib.ipv4_dst = p->dst.w[3];
	} else {
		__builtin_memcpy(fib.ipv6_src, &from->addr, 16);
		__builtin_memcpy(fib.ipv6_dst, &p->dst, 16);
	}
	r = bpf_fib_lookup(skb, &fib, sizeof(fib), 0);
	if (r == BPF_FIB_LKUP_RET_FRAG_NEEDED)
		return -1;
	return r == BPF_FIB_LKUP_RET_SUCCESS || r == BPF_FIB_LKUP_RET_NO_NEIGH ? (int)fib.ifindex
									       : 0;
}

#define MAY_NOT_FRAGMENT 0x4000 /* of IPv4 */

/* Too long for the way: as it stands the stack would send it on, but says instead what fits. (Also
 * of IPv4's packets that routers may cut, which is not done here: who sends them heeds it.) */
static __always_inline int too_long(struct __sk_buff *skb, const struct packet *p)
{
	const __u32 field = p->l3_off + offsetof(struct iphdr, frag_off);
	__be16 was, now;

	if (!p->v4)
		return TC_ACT_OK;
	if (bpf_skb_load_bytes(skb, field, &was, sizeof(was)))
		return TC_ACT_SHOT;
	now = was | bpf_htons(MAY_NOT_FRAGMENT);
	return bpf_l3_csum_replace(skb, p->l3_off + offsetof(struct iphdr, check), was, now, 2) ||
			       bpf_skb_store_bytes(skb, field, &now, sizeof(now), 0)
		       ? TC_ACT_SHOT
		       : TC_ACT_OK;
}

/* To a program of this host: it gets in by lo, as if it had never been elsewhere. */
static __always_inline int to_own(struct __sk_buff *skb)
{
	const __u8 mac[6] = {};

	return bpf_skb_store_bytes(skb, 0, mac, sizeof(mac), 0)
		       ? TC_ACT_SHOT
		       : bpf_redirect(ANSWER_LO_IFINDEX, BPF_F_INGRESS);
}

static __noinline __attribute__((unused)) int answer_exposed(struct __sk_buff *skb,
							     const struct packet *p,
							     const struct ax_endpoint *from,
							     __be16 client_port_be)
{
	struct ax_endpoint client = {.addr = p->dst, .port_be = client_port_be};
	bool own = true;
	int ifindex = 0;

	if (addr_is_loopback(&from->addr)) {
		addr_set_loopback(&client.addr, p->v4);
	} else {
		own = is_own_addr(&p->dst);
	}
	if (!own)
		ifindex = way_out(skb, p, from, client_port_be);
	if (ifindex < 0)
		return too_long(skb, p);
	if (p->fragment)
		fragment_remember(skb, p, &from->addr, FRAGMENT_ANSWER | (__u32)ifindex);
	if ((!own && !ifindex) || rewrite_endpoint(skb, p, true, from) ||
	    rewrite_endpoint(skb, p, false, &client)) {
		count(AX_COUNT_ERROR);
		return TC_ACT_SHOT;
	}
	return own ? to_own(skb) : bpf_redirect_neigh(ifindex, NULL, 0, 0);
}

/* A later fragment: goes where its first one went. -1: there was none. */
static __noinline __attribute__((unused)) int answer_exposed_fragment(struct __sk_buff *skb,
								      const struct packet *p)
{
	const struct ax_exposed_fragment *f = fragment_find(skb, p, true);

	if (!f)
		return -1;
	if (fragment_rewrite(skb, p, true, f)) {
		count(AX_COUNT_ERROR);
		return TC_ACT_SHOT;
	}
	return f->ifindex ? bpf_redirect_neigh((int)f->ifindex, NULL, 0, 0) : to_own(skb);
}

#endif
