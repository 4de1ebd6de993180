/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flows that this host forwards, or sends from sockets that nobody can be asked about, as lists
 * that ask for states know them where the kernel's connection tracking cannot be asked. The maps
 * are the instance's: what one list lets through, another one sees the answers of.
 *
 * Whoever sends what a list lets through can begin flows, with any source: so what begins one is
 * only noted, in a table that has room for so many and costs one line of the cache, whatever comes
 * (`begun`). What was answered, by another way than it came, has a place in a table of flows, which
 * nobody fills with what was never answered: TCP's when the answer was answered with the number
 * that it asked for, all others' with the answer. They have tables of their own, so that datagrams
 * do not push out connections.
 */
#ifndef AX_FLOW_STATE_H
#define AX_FLOW_STATE_H

#include <linux/types.h>
#include "addr.h"

/* Maps `tracked_tcp` and `tracked_other` (LRU), of flows that were answered. ICMP: echoes, with
 * their identifier as both ports. */
#define AX_TRACKED_TCP	 (1 << 17)
#define AX_TRACKED_OTHER (1 << 16)
struct ax_tracked_key {
	struct ax_addr low, high; /* the ends, by their order as numbers, so both ways have one */
	__be16 low_port_be, high_port_be;
	__u8 proto;
	__u8 netns[3]; /* of the network namespace's cookie */
} __attribute__((aligned(8)));
_Static_assert(sizeof(struct ax_tracked_key) == 40, "struct ax_tracked_key is a map key");

enum ax_tracked_state { /* << 1 for what `high` has sent */
			AX_TRACKED_FIN = 1 << 0,
			AX_TRACKED_FINS = 3 << 0,
			AX_TRACKED_RST = 1 << 2,
			AX_TRACKED_RSTS = 3 << 2,
};
struct ax_tracked {
	__u32 seen;  /* CLOCK_MONOTONIC, in 2^30 ns */
	__u32 state; /* enum ax_tracked_state */
};
_Static_assert(sizeof(struct ax_tracked) == 8, "struct ax_tracked is a map value");

/* How long a flow may be idle, in seconds (nearly: 2^30 ns). */
#define AX_TRACKED_LIFE_OPEN   7440 /* RFC 5382 asks for it */
#define AX_TRACKED_LIFE_CLOSED 60   /* for what is still on its way, or sent again */
#define AX_TRACKED_LIFE_RESET  10
#define AX_TRACKED_LIFE_OTHER  180 /* datagrams */
#define AX_TRACKED_LIFE_ECHO   30

/*
 * Map `begun` (array): a set by a hash of the flow with the layout's key, for TCP in the first
 * half, for all else in the second. An entry is of the flow whose whole hash is `rest ^ tag`: what
 * two CPUs write at a time is of none. When a set is full, what has been there for the longest
 * time goes. Behind the sets is the key, in the first two words.
 */
#define AX_BEGUN_WAYS 4
#define AX_BEGUN_SETS (1 << 15)
struct ax_begun {
	__u64 tag;
	/* proof: TCP's answer was this number - 1, with AX_BEGUN_ANSWERED | seen (2^32 ns) |
	 * by which interface it came | flags */
	__u64 rest;
};
struct ax_begun_set {
	struct ax_begun way[AX_BEGUN_WAYS];
};
_Static_assert(sizeof(struct ax_begun_set) == 64, "a line of the cache");
#define AX_BEGUN_SEEN_SHIFT 32
#define AX_BEGUN_SEEN_MASK  0xfffull
#define AX_BEGUN_WAY_SHIFT  44
#define AX_BEGUN_WAY_MASK   0x1ffffull
#define AX_BEGUN_ANSWERED   (1ull << 61)
#define AX_BEGUN_BY_HIGH    (1ull << 62)
#define AX_BEGUN_USED	    (1ull << 63)
#define AX_BEGUN_LIFE	    8 /* in 2^32 ns: 30 to 34 s */
#define AX_BEGUN_ENTRIES    (2 * AX_BEGUN_SETS + 1)

#endif
