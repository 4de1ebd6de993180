/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fragments of datagrams by exposed ports: only the first one has the ports. What it led to holds
 * for the later ones, which have its addresses, identification and protocol (struct
 * ax_exposed_fragment). Who gets them puts them together. One that comes before the first one, or
 * after the first one's entry was pushed out, is as lost as any fragment that is lost on its way.
 * BPF only.
 */
#ifndef AX_FRAGMENTS_BPF_H
#define AX_FRAGMENTS_BPF_H

#include <stddef.h>
#include <linux/bpf.h>

#include "endpoint.bpf.h"
#include "maps.bpf.h"
#include "parse.bpf.h"
#include "rewrite.bpf.h"

/* The fragmentation header of IPv6 is right in front of what is fragmented, or it is not looked at.
 */
static __always_inline bool fragment_key(struct __sk_buff *skb, const struct packet *p, bool answer,
					 struct ax_exposed_fragment_key *key)
{
	__be16 id;

	key->src = p->src;
	key->dst = p->dst;
	if (p->v4) {
		if (bpf_skb_load_bytes(skb, p->l3_off + offsetof(struct iphdr, id), &id,
				       sizeof(id)))
			return false;
		key->id_be = id;
	} else {
		if (p->l4_off < sizeof(struct ipv6_frag) ||
		    bpf_skb_load_bytes(skb, p->l4_off - sizeof(struct ipv6_frag), &key->proto,
				       sizeof(struct ipv6_frag)) ||
		    key->proto != p->proto || key->answer)
			return false;
	}
	key->proto = p->proto;
	key->answer = answer;
	key->pad = 0;
	return true;
}

#define FRAGMENT_ANSWER (1ull << 32)

/* To be called before the first one is rewritten: the address that it gets, and where it goes.
 * `way`: an interface, and FRAGMENT_ANSWER. */
static __noinline __attribute__((unused)) void fragment_remember(struct __sk_buff *skb,
								 const struct packet *p,
								 const struct ax_addr *addr,
								 __u64 way)
{
	const struct ax_exposed_fragment f = {.addr = *addr, .ifindex = (__u32)way};
	struct ax_exposed_fragment_key key = {};

	if (fragment_key(skb, p, way & FRAGMENT_ANSWER, &key))
		bpf_map_update_elem(&fragments, &key, &f, BPF_ANY);
}

/* Of a later one: what its first one got, and where it went. NULL: there was none. */
static __noinline __attribute__((unused)) const struct ax_exposed_fragment *
fragment_find(struct __sk_buff *skb, const struct packet *p, bool answer)
{
	struct ax_exposed_fragment_key key = {};

	return fragment_key(skb, p, answer, &key) ? bpf_map_lookup_elem(&fragments, &key) : NULL;
}

/* Of a first one: its later ones are not those of the last datagram that had its identification.
 * (Who sends one with another's address would have the app get what the host is sent.) */
static __noinline __attribute__((unused)) void fragment_forget(struct __sk_buff *skb,
							       const struct packet *p)
{
	struct ax_exposed_fragment_key key = {};

	if (fragment_key(skb, p, false, &key))
		bpf_map_delete_elem(&fragments, &key);
}

static __always_inline int fragment_rewrite(struct __sk_buff *skb, const struct packet *p,
					    bool answer, const struct ax_exposed_fragment *f)
{
	struct ax_addr client;

	if (rewrite_address(skb, p, answer, &f->addr))
		return -1;
	if (!answer || !addr_is_loopback(&f->addr))
		return 0;
	addr_set_loopback(&client, p->v4);
	return rewrite_address(skb, p, false, &client);
}

#endif
