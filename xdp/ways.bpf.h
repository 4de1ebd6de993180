/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the stages behind the filter that stand in for this host's network stack know alike
 * (route.bpf.c, challenge.bpf.c): as which interface's a packet comes in (include/route.h), and
 * which addresses are nobody's to answer or to send on. One unit of the object defines the map.
 */
#ifndef AX_WAYS_BPF_H
#define AX_WAYS_BPF_H

#include "balance_packet.bpf.h"
#include "route.h"
#include "rules.bpf.h"

#ifndef AX_WAYS_MAP /* the defining unit sets it to nothing */
#define AX_WAYS_MAP extern
#endif

AX_WAYS_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_WAYS);
	__type(key, struct ax_way_key);
	__type(value, struct ax_way);
} ways SEC(".maps");

static __always_inline struct ax_explain *explanation(struct xdp_md *ctx, const struct handover *h)
{
	struct ax_explain *x = (void *)(long)ctx->data_meta;

	return h->explain && (void *)(x + 1) <= (void *)(long)ctx->data ? x : NULL;
}

/* --- addresses --- */

static __always_inline bool is_multicast(const struct ax_addr *a, bool v4)
{
	return v4 ? (a->b[12] & 0xf0) == 0xe0 : a->b[0] == 0xff;
}

/* Addresses that mean something on a host or a link only: 0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16,
 * 255.255.255.255; ::/96, fe80::/10. (IPv4-mapped ones are odd already.) */
static __always_inline bool is_confined(const struct ax_addr *a, bool v4)
{
	if (v4)
		return !a->b[12] || a->b[12] == 127 || (a->b[12] == 169 && a->b[13] == 254) ||
		       a->w[3] == 0xffffffff;
	return !(a->w[0] | a->w[1] | a->w[2]) || (a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80);
}

/* --- the interface that it came in by --- */

static __always_inline const struct ax_way *way(__u32 ifindex, __u16 vlan, __u8 kind)
{
	struct ax_way_key key = {.netns_cookie = layout.netns_cookie,
				 .ifindex = ifindex,
				 .vlan = vlan,
				 .kind = kind};

	return bpf_map_lookup_elem(&ways, &key);
}

static __always_inline bool is_addressed(const struct ethhdr *eth, const struct ax_way *in)
{
	const __u16 *a = (const __u16 *)eth->h_dest, *b = (const __u16 *)in->mac;

	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

/* NULL: the kernel would not take the frame, or for another one. */
static __always_inline const struct ax_way *way_in(struct xdp_md *ctx, const struct handover *h)
{
	const struct packet *p = &h->p;
	const struct ax_way *in = way(layout.ifindex, p->vlan, AX_WAY_IN);
	const struct ax_explain *x = explanation(ctx, h);
	struct ethhdr *eth = (void *)(long)ctx->data;

	if (!in || (void *)(eth + 1) > (void *)(long)ctx->data_end ||
	    (!is_addressed(eth, in) && !(x && x->for_us)))
		return NULL;
	if (in->vlan == AX_VLAN_NONE)
		return p->l3_off == sizeof(*eth) ? in : NULL;
	return p->l3_off == sizeof(*eth) + 4 && eth->h_proto == in->ethertype_be ? in : NULL;
}

/* Remembers where it goes, for failures.bpf.c. */
static __always_inline void note_sent(const struct handover *h, __u32 ifindex)
{
	struct ax_redirected *r = bpf_map_lookup_elem(&redirected, &(__u32){0});

	if (r)
		r->last[r->n++ % AX_REDIRECTED] =
			(struct ax_redirect){.to = AX_TO_IFINDEX << AX_REDIRECT_TO_SHIFT | ifindex,
					     .counter = h->route.counter};
}

#endif
