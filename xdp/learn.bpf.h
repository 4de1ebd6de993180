/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sets whose elements come for a time: which of them an address is in, or a packet as a flow, and
 * rules that put it there (include/xdp.h: struct ax_timed_set).
 *
 * Who makes sources up fills a set with them: then those that were not seen for the longest time go
 * (LRU), of that set alone, and nothing of what the list itself has in it, or somebody holds there.
 * An element that was renewed lately is left as it is, so a flood from one source does not write.
 */
#ifndef AX_LEARN_BPF_H
#define AX_LEARN_BPF_H

#include "act.bpf.h"

struct learned_set {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* whoever puts one there (agent/iface/timed.c) sets it */
	__type(key, struct ax_addr);
	__type(value, __u64);
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, AX_TIMED_SLOTS);
	__type(key, __u32);
	__array(values, struct learned_set);
} learned SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_TIMED_ELEMENTS);
	__type(key, struct ax_held_key);
	__type(value, __u64);
} held SEC(".maps");

/* The same for flows. */
struct learned_flow_set {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct ax_set_flow);
	__type(value, __u64);
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, AX_TIMED_SLOTS);
	__type(key, __u32);
	__array(values, struct learned_flow_set);
} learned_flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_TIMED_ELEMENTS); /* less, where no list has sets of flows */
	__type(key, struct ax_held_flow);
	__type(value, __u64);
} held_flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AX_TIMED_SLOTS);
	__type(key, __u32);
	__type(value, struct ax_timed_slot);
} timed_slots SEC(".maps");

static __always_inline struct ax_addr timed_key(const struct ax_addr *addr, __u32 v4, __u32 len4,
						__u32 len6)
{
	return prefix_of(addr, v4 ? len4 + 96u : len6);
}

static __always_inline bool lasts(const __u64 *until)
{
	return until && *(const volatile __u64 *)until > bpf_ktime_get_boot_ns();
}

/* Whether an address is in the timed set `i` of the list. */
static __always_inline bool is_there(__u32 i, const struct ax_addr *addr, __u32 v4)
{
	struct ax_held_key key = {.slot = layout.timed[i].slot};
	const struct ax_timed_slot *there = bpf_map_lookup_elem(&timed_slots, &key.slot);
	void *set;

	if (!there || !(there->learned | there->held))
		return false;
	key.addr = timed_key(addr, v4, layout.timed[i].len4, layout.timed[i].len6);
	set = there->learned ? bpf_map_lookup_elem(&learned, &key.slot) : NULL;
	if (set && lasts(bpf_map_lookup_elem(set, &key.addr)))
		return true;
	return there->held && lasts(bpf_map_lookup_elem(&held, &key));
}

/* Bits: in which of the list's timed sets an end of a packet is, of those that rules ask for.
 * (Global functions: the verifier looks at them once; and called by the program alone, not from
 * where it matches: it has stack for so many.) */
static __always_inline __u32 sets_of(const struct ax_addr *addr, __u32 v4, __u32 asked)
{
	__u32 sets = 0;

#pragma unroll
	for (__u32 i = 0; i < AX_TIMED_SETS; i++)
		if (i < layout.timed_n && asked & 1u << i && is_there(i, addr, v4))
			sets |= 1u << i;
	return sets;
}

__weak __noinline int src_sets_of(const struct packet *p)
{
	if (!p || p->fragment == AX_FRAGMENT_NOT_IP)
		return 0;
	return (int)sets_of(&p->src, p->v4, layout.field[AX_FIELD_SRC].timed_asked);
}

__weak __noinline int dst_sets_of(const struct packet *p)
{
	if (!p || p->fragment == AX_FRAGMENT_NOT_IP)
		return 0;
	return (int)sets_of(&p->dst, p->v4, layout.field[AX_FIELD_DST].timed_asked);
}

/* --- flows --- */

static __always_inline void flow_between(const struct packet *p, struct ax_set_flow *f)
{
	f->src = p->src;
	f->dst = p->dst;
	f->dport_be = p->dport_be;
	f->proto = p->proto;
	f->pad = 0;
}

/* Whether a flow is in the timed set `i` of the list; the key's slot is filled in. */
static __always_inline bool flow_is_there(__u32 i, struct ax_held_flow *key)
{
	const struct ax_timed_slot *there;
	void *set;

	key->slot = layout.timed[i].slot;
	there = bpf_map_lookup_elem(&timed_slots, &key->slot);
	if (!there || !(there->learned | there->held))
		return false;
	set = there->learned ? bpf_map_lookup_elem(&learned_flows, &key->slot) : NULL;
	if (set && lasts(bpf_map_lookup_elem(set, &key->flow)))
		return true;
	return there->held && lasts(bpf_map_lookup_elem(&held_flows, key));
}

/* As src_sets_of(). What shows no ports (later fragments, and what is neither TCP nor UDP) is in
 * none. */
__weak __noinline int flow_sets_of(const struct packet *p)
{
	struct ax_held_flow key;
	__u32 sets = 0;

	if (!p || !p->has_l4)
		return 0;
	flow_between(p, &key.flow);
#pragma unroll
	for (__u32 i = 0; i < AX_TIMED_SETS; i++)
		if (layout.field[AX_FIELD_FLOW].timed_asked & 1u << i && flow_is_there(i, &key))
			sets |= 1u << i;
	return (int)sets;
}

/* To be called before a packet is matched. */
static __always_inline void find_sets(struct packet *p)
{
	if (layout.field[AX_FIELD_SRC].timed)
		p->sets = (__u8)src_sets_of(p) & 15;
	if (layout.field[AX_FIELD_FLOW].timed_asked)
		p->sets |= (__u8)flow_sets_of(p) & 15;
	if (layout.field[AX_FIELD_DST].timed)
		p->sets |= (__u8)(dst_sets_of(p) << 4);
}

/* --- learning --- */

/* `set`: the slot's map, `key`: of its kind. */
static __always_inline void put_learned(const struct ax_learn *l, __u32 slot, void *set,
					const void *key)
{
	struct ax_timed_slot *there = bpf_map_lookup_elem(&timed_slots, &slot);
	__u64 now = bpf_ktime_get_boot_ns(), until = now + l->time, *was;

	if (!there || !set)
		return;
	was = bpf_map_lookup_elem(set, key);
	if (was && *(volatile __u64 *)was > now + l->fresh)
		return;
	/* not written where it is: it may be another element's place by now */
	bpf_map_update_elem(set, key, &until, BPF_ANY);
	if (!there->learned)
		there->learned = 1;
}

static __always_inline void learn_flow(const struct packet *p, const struct ax_learn *l, __u32 slot)
{
	struct ax_set_flow flow;

	if (!l->proto && !p->has_l4)
		return;
	flow_between(p, &flow);
	if (l->proto) {
		flow.proto = l->proto;
		flow.dport_be = l->port_be;
	}
	put_learned(l, slot, bpf_map_lookup_elem(&learned_flows, &slot), &flow);
}

/* What rule number `number` of those that learn does with a packet; `above`: it is above the rule's
 * rate. */
__weak __noinline int learn(const struct packet *p, __u32 number, __u32 above)
{
	const __u8 *a = arena_get();
	const struct ax_learn *l;
	__u32 i = number, set, slot;
	struct ax_addr key;

	if (!a || !p || p->fragment == AX_FRAGMENT_NOT_IP)
		return 0;
	opaque(i);
	if (i >= layout.learns_n)
		return 0;
	l = (const void *)(a + layout.learns + i * sizeof(*l));
	set = l->set;
	opaque(set);
	if (set >= AX_TIMED_SETS || (l->limited && !above))
		return 0;
	slot = layout.timed[set].slot;
	if (layout.flow_learns && l->flow) {
		learn_flow(p, l, slot);
		return 0;
	}
	key = l->dst ? p->dst : p->src;
	key = timed_key(&key, p->v4, layout.timed[set].len4, layout.timed[set].len6);
	put_learned(l, slot, bpf_map_lookup_elem(&learned, &slot), &key);
	return 0;
}

#endif
