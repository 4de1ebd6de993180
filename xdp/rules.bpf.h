/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the programs of a generation share: its constant layout, its arena, and the maps that stay
 * when generations change. Types here, definitions in filter.bpf.c (see AX_RULES_MAP).
 */
#ifndef AX_RULES_BPF_H
#define AX_RULES_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "balance.h"
#include "expose.h"
#include "flow_state.h"
#include "parse.bpf.h"
#include "xdp.h"
#include "verifier.bpf.h"

#ifndef AX_RULES_MAP /* the defining unit sets it to nothing */
#define AX_RULES_MAP extern
#endif

/* Frozen before the programs are loaded, so the verifier knows every value in it. */
extern const volatile struct ax_layout layout;

/* --- of the generation --- */

AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, 4096); /* the loader sets the real one */
} arena SEC(".maps");

/*
 * What was found last in bit vectors of many rules, by the classes of a packet's fields: these are
 * all that the rule depends on, whatever elements come to sets (struct ax_journal). So packets of a
 * few flows, or of many to the same services, are not looked for again. Each CPU has
 * `found_places`, a power of two, behind each other in one array; 0: nothing is kept. The loader
 * sets both.
 */
extern const volatile __u32 found_places;
struct found {
	__u64 hi, lo; /* the classes, of 16 bits each; the loader sees to it that they fit */
	__u64 rule;   /* and one; above FOUND_RULE a hash of the classes. 0: nothing is here */
	__u64 pad;
};
#define FOUND_RULE 0xffffULL
_Static_assert(AX_XDP_RULES_MAX < FOUND_RULE, "the rule and one");
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); /* it begins at a line of the cache */
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct found);
} founds SEC(".maps");

/* --- of the interface: pinned, taken over by each generation --- */

/* The root's program array. */
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, AX_JUMP_ENTRIES);
	__type(key, __u32);
	__type(value, __u32);
} stages SEC(".maps");

AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1024); /* the loader sets it */
	__type(key, __u32);
	__type(value, struct ax_rule_count);
} rule_counts SEC(".maps");

AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AX_REASONS);
	__type(key, __u32);
	__type(value, __u64);
} reason_counts SEC(".maps");

AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024); /* as rule_counts */
	__type(key, __u32);
	__type(value, __u64);
} limits SEC(".maps");

AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct ax_source_limit_key);
	__type(value, __u64);
} source_limits SEC(".maps");

AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} captures SEC(".maps");

AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} triggers SEC(".maps");

/* struct ax_slot, with the lock's real type, which BTF must show in the map's value */
struct slot {
	struct bpf_spin_lock lock;
	__u32 len;
	__u64 time_ns;
	__u64 count;
	__u8 data[AX_SLOT_BYTES];
};
_Static_assert(sizeof(struct slot) == sizeof(struct ax_slot), "user space reads slots");
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AX_SLOTS);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, AX_DEVICES);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct bpf_devmap_val));
} devices SEC(".maps");

AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, 1); /* the loader sets it: one for each possible CPU */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct bpf_cpumap_val));
} cpus SEC(".maps");

AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ax_redirected);
} redirected SEC(".maps");

/* For failures.bpf.c: the ifindex of each entry of `devices`. */
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AX_DEVICES);
	__type(key, __u32);
	__type(value, __u32);
} ifindexes SEC(".maps");

/* Flow tables of the balancers, see balance.h. */
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, AX_BALANCE_FLOWS);
	__type(key, struct ax_flow4);
	__type(value, struct ax_flow_real);
} flows4 SEC(".maps");
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, AX_BALANCE_FLOWS);
	__type(key, struct ax_flow6);
	__type(value, struct ax_flow_real);
} flows6 SEC(".maps");
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AX_REAL_NUMBERS);
	__type(key, __u32);
	__type(value, struct ax_real_count);
} real_counts SEC(".maps");
/* Where packets go next: to the backend of that number, and behind them to clients, by a hash of
 * their address. A route is asked for a few times a second only. */
#define CLIENT_HOPS 1024
struct link {
	__u32 ifindex;
	__u16 mtu;    /* 0: unknown */
	__u8 mac[12]; /* destination and source */
	__u16 pad;
};
struct hop {
	struct ax_addr to;
	__u64 expires; /* jiffies */
	struct link link;
	__u8 result; /* of bpf_fib_lookup() */
	__u8 pad[3];
};
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AX_REAL_NUMBERS + CLIENT_HOPS);
	__type(key, __u32);
	__type(value, struct hop);
} hops SEC(".maps");

/* The ends that a packet gets. */
struct ends {
	struct ax_addr src, dst;
	__be16 sport_be, dport_be;
};

/*
 * All that is to be known about a flow's packets, by a hash of the flow. It costs a third of what
 * the flow table, the backend and the next hop cost, and is thrown away after an eighth of a
 * second, so that it need not be told of any change. (A new list has new ones.)
 *
 * A flow has FAST_WAYS places, so that thousands of them, on a table of some ten thousands, have
 * one each but for a few. Each CPU has `fast_sets` sets of them of its own, behind each other in
 * one array: a per-CPU array would look up in another table first where the element is, and place
 * it across lines of the cache. The array is one that could be mapped into memory because that
 * begins at a page, so that an IPv4 flow's entry is one line.
 */
#define FAST_WAYS 4
struct fast {
	__u64 expires; /* jiffies */
	struct link link;
	__be16 sport_be, dport_be; /* that its packets get, as the addresses beside this */
	__u16 real;
	__u16 balancer;
	__u8 mode;  /* enum ax_balance_mode */
	__u8 by_id; /* only for packets whose connection id names the backend */
	__u8 pad[2];
};
struct fast4 {
	struct ax_flow4 flow;
	__be32 src, dst;
	struct fast f;
};
_Static_assert(sizeof(struct fast4) == 64, "a line of the cache");
struct fast6 {
	struct ax_flow6 flow;
	struct ax_addr src, dst;
	struct fast f;
	__u8 pad[16];
};
_Static_assert(sizeof(struct fast6) == 128, "two lines");
struct fast_set4 {
	struct fast4 way[FAST_WAYS];
};
struct fast_set6 {
	struct fast6 way[FAST_WAYS];
};
/* A power of two; the loader sets both, and how many there are for all CPUs together. */
extern const volatile __u32 fast_sets;
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fast_set4);
} fast_flows4 SEC(".maps");
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fast_set6);
} fast_flows6 SEC(".maps");

/* How many new flows were entered in the current window of time. */
struct flow_window {
	__u64 window;
	__u64 n;
};
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flow_window);
} flow_windows SEC(".maps");

/* --- of the instance: pinned once for all interfaces --- */

AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, AX_BALANCE_FLOWS);
	__type(key, struct ax_nat_key);
	__type(value, struct ax_nat);
} nat SEC(".maps");
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, AX_BALANCE_FLOWS);
	__type(key, struct ax_nat_key);
	__type(value, struct ax_nat);
} nat_opening SEC(".maps");
/* Which addresses NAT gives as sources, on whatever interface: bit n of the entry of a family (0:
 * IPv4, 1: IPv6) stands for those whose last 5 bits are n. */
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, AX_NAT_FAMILIES);
	__type(key, __u32);
	__type(value, __u32);
} nat_sources SEC(".maps");
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, AX_NAT_FRAGMENTS);
	__type(key, struct ax_nat_fragment);
	__type(value, struct ax_nat);
} nat_fragments SEC(".maps");

/* See include/flow_state.h. */
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, AX_TRACKED_TCP);
	__type(key, struct ax_tracked_key);
	__type(value, struct ax_tracked);
} tracked_tcp SEC(".maps");
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, AX_TRACKED_OTHER);
	__type(key, struct ax_tracked_key);
	__type(value, struct ax_tracked);
} tracked_other SEC(".maps");
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); /* it begins at a line of the cache */
	__uint(max_entries, AX_BEGUN_ENTRIES);
	__type(key, __u32);
	__type(value, struct ax_begun_set);
} begun SEC(".maps");

/* What is exposed, as the agent has it (include/expose.h): see struct ax_exposed_key. With port and
 * protocol 0 it is an address of the host's. */
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AX_XDP_EXPOSED);
	__type(key, struct ax_exposed_key);
	__type(value, __u32);
} exposed SEC(".maps");
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AX_EXPOSED_WORDS);
	__type(key, __u32);
	__type(value, __u64);
} exposed_ports SEC(".maps");

/* --- of the generation again --- */

/* Datagrams of which the first fragment was for an exposed port. */
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, AX_NAT_FRAGMENTS);
	__type(key, struct ax_nat_fragment);
	__type(value, __u32);
} exposed_fragments SEC(".maps");

/* Datagrams of which the first fragment was of an established flow, and until when (CLOCK_MONOTONIC
 * in ns) their later ones are taken for that. */
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, AX_NAT_FRAGMENTS);
	__type(key, struct ax_nat_fragment);
	__type(value, __u64);
} state_fragments SEC(".maps");

/*
 * What the filter hands over to another stage, on its CPU: a tail call passes nothing but the
 * context. Nothing else runs between the two.
 */
struct handover {
	struct packet p;
	struct packet quoted; /* with icmp_error: the flow that it is about, ends swapped */
	__u32 rule;
	union {
		struct {
			__u32 balancer;
			__s32 quic; /* what quic_real() says (balance_quic.bpf.h) */
		};
		struct {	       /* AX_STAGE_ROUTE, AX_STAGE_CHALLENGE: the rule's */
			__u16 counter; /* index in map `rule_counts` */
			__u16 flags;   /* enum ax_action_flag */
		} route;
	};
	__u32 len;	 /* of the frame */
	__u16 quote_off; /* with icmp_error: where the quoted IP header is */
	__u8 icmp_error;
	__u8 explain; /* the frame carries a struct ax_explain: answer there, count and keep nothing
		       */
	struct ax_nat nat;	   /* AX_STAGE_REVERSE: what nat_find() found */
	struct ax_nat_key nat_key; /* the balancer's */
};
AX_RULES_MAP struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct handover);
} handovers SEC(".maps");

/* Room for a packet that another one quotes: on the stack, what is called besides would not fit. */
static __always_inline struct packet *quoted_get(void)
{
	struct handover *h = bpf_map_lookup_elem(&handovers, &(__u32){0});

	return h ? &h->quoted : NULL;
}

static __always_inline void count_reason(__u32 reason)
{
	__u64 *n = bpf_map_lookup_elem(&reason_counts, &reason);

	if (n)
		++*n;
}

static __always_inline __u8 *arena_get(void)
{
	return bpf_map_lookup_elem(&arena, &(__u32){0});
}

#endif
