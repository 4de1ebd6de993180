/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The option that says whose SYN it is (include/across.h). BPF only. */
#ifndef AX_ACROSS_BPF_H
#define AX_ACROSS_BPF_H

#include <stdbool.h>

#include "endpoint.bpf.h"
#include "maps.bpf.h"

static __always_inline __u64 sip_rotate(__u64 x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static __always_inline void sip_round(__u64 v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = sip_rotate(v[1], 13) ^ v[0];
	v[3] = sip_rotate(v[3], 16) ^ v[2];
	v[0] = sip_rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = sip_rotate(v[1], 17) ^ v[2];
	v[3] = sip_rotate(v[3], 21) ^ v[0];
	v[2] = sip_rotate(v[2], 32);
}

/* SipHash-2-4 (Aumasson and Bernstein 2012), its bytes as a little-endian number. A global
 * function: the verifier judges it once. */
__weak __noinline __u64 across_mac(const struct ax_across_mac *m, __u64 k0, __u64 k1)
{
	const __u64 *w = (const __u64 *)m;
	__u64 v[4];

	if (!m)
		return 0;
	v[0] = k0 ^ 0x736f6d6570736575ull;
	v[1] = k1 ^ 0x646f72616e646f6dull;
	v[2] = k0 ^ 0x6c7967656e657261ull;
	v[3] = k1 ^ 0x7465646279746573ull;
#pragma unroll
	for (__u32 i = 0; i < sizeof(*m) / 8; i++) {
		v[3] ^= w[i];
		sip_round(v);
		sip_round(v);
		v[0] ^= w[i];
	}
	v[3] ^= (__u64)sizeof(*m) << 56;
	sip_round(v);
	sip_round(v);
	v[0] ^= (__u64)sizeof(*m) << 56;
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static __always_inline const struct ax_across_ctl *across_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&across_ctl, &zero);
}

/* This node's address of that family. */
static __always_inline const struct ax_addr *across_node(const struct ax_across_ctl *x, bool v4)
{
	return v4 ? &x->node : &x->node6;
}

/* Whose server that port of this node's is; NULL: nobody's. It is of the same family. */
static __always_inline struct ax_endpoint *across_served_at(const struct ax_endpoint *local)
{
	__u32 port = bpf_ntohs(local->port_be);

	if (!addr_is_v4(&local->addr))
		port |= AX_ACROSS_SIX;
	return bpf_map_lookup_elem(&across_served, &port);
}

/* Whether apps of another node are, or were, served there. Who goes there by himself, and not by
 * go_across(), would come as that node's neighbour, whom labels do not keep out: no app may. */
static __always_inline bool is_nodes_port(const struct ax_addr *addr, __be16 port_be)
{
	return bpf_ntohs(port_be) >= AX_ACROSS_FIRST && bpf_map_lookup_elem(&across_nodes, addr);
}

/* Whether a connection to there is one to a server of this node's, if any. */
static __always_inline bool is_across(const struct ax_across_ctl *x,
				      const struct ax_endpoint *local)
{
	const struct ax_addr *node = across_node(x, addr_is_v4(&local->addr));

	return bpf_ntohs(local->port_be) >= AX_ACROSS_FIRST && !addr_is_zero(node) &&
	       addr_eq(node, &local->addr);
}

#endif
