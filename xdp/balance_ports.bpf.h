/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * NAT's source ports: a backend sees one of our addresses and a port that no other flow to it has,
 * and answers there (balance.h).
 */
#ifndef AX_BALANCE_PORTS_BPF_H
#define AX_BALANCE_PORTS_BPF_H

#include "balance.bpf.h"

static __always_inline bool same_flow(const struct ax_nat *a, const struct ax_nat *b)
{
	return same_addr(&a->client, &b->client) && same_addr(&a->service, &b->service) &&
	       a->client_port_be == b->client_port_be && a->service_port_be == b->service_port_be;
}

static __always_inline bool is_closed(__u8 closed)
{
	return closed & AX_NAT_RESET || (closed & AX_NAT_FINS) == AX_NAT_FINS;
}

/* How long a port's flow has been over; 0: it may go on. */
static __always_inline __u32 over_for(const struct ax_nat *n, __u8 proto, __u32 now)
{
	__u32 idle = now - n->seen, limit;

	if (is_closed(n->closed))
		limit = AX_NAT_CLOSED;
	else
		limit = proto == IPPROTO_TCP ? AX_NAT_IDLE_TCP : AX_NAT_IDLE_UDP;
	return idle >= limit ? idle : 0;
}

/* Takes the port of a flow that is over, unless another CPU does so. */
static __always_inline bool take_over(const struct ax_nat_key *key, const struct ax_nat *value)
{
	struct ax_nat *n = bpf_map_lookup_elem(&nat, key);
	__u32 seen;

	if (!n)
		return !bpf_map_update_elem(&nat, key, value, BPF_NOEXIST);
	seen = n->seen;
	if (!over_for(n, key->proto, value->seen) ||
	    __sync_val_compare_and_swap(&n->seen, seen, value->seen) != seen)
		return false;
	return !bpf_map_update_elem(&nat, key, value, BPF_ANY);
}

/*
 * Finds a port for a new flow and enters it: key->source_port_be. The ports that are tried are the
 * flow's own, so that one that was forgotten by the flow table finds its port again. 0 or -1.
 *
 * A global function: the verifier looks at it once.
 */
__noinline int nat_take(struct ax_nat_key *key, const struct ax_nat *value, __u32 hash)
{
	__be16 best_be = 0;
	__u32 longest = 0;

	if (!key || !value)
		return -1;
	for (int i = 0; i < AX_NAT_TRIES; i++) {
		struct ax_nat *n;
		__u32 idle;

		key->source_port_be =
			bpf_htons((__u16)(AX_NAT_PORT + ((__u64)hash * AX_NAT_PORTS >> 32)));
		hash = hash * 1664525 + 1013904223;
		if (!bpf_map_update_elem(&nat, key, value, BPF_NOEXIST))
			return 0;
		n = bpf_map_lookup_elem(&nat, key);
		if (!n)
			continue;
		if (same_flow(n, value))
			return 0;
		idle = over_for(n, key->proto, value->seen);
		if (idle > longest) {
			longest = idle;
			best_be = key->source_port_be;
		}
	}
	key->source_port_be = best_be;
	return longest && take_over(key, value) ? 0 : -1;
}

/* What a flow's first port to try is: where an explained packet would go. */
static __always_inline __be16 nat_guess(__u32 hash)
{
	return bpf_htons((__u16)(AX_NAT_PORT + ((__u64)hash * AX_NAT_PORTS >> 32)));
}

#endif
