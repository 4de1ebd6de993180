/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looking at an interface's packets while somebody wants to (ax xdp dump, top): xdp/tap.bpf.c.
 *
 * While struct ax_root.tapped is set, the root program jumps to AX_JUMP_TAP first, and from there
 * to the program array `taps`, of which the reader alone has a descriptor: when he is gone,
 * however he went, the kernel empties it and frees what was in it, and the next packet finds
 * nobody and sets `tapped` back. The tap has the list's verdict come back to it by a tail call
 * from a function, and tells the reader of the packet before and after.
 */
#ifndef AX_XDP_TAP_H
#define AX_XDP_TAP_H

#include <linux/types.h>
#include "xdp.h"

/* Entries of the program array `taps`. */
enum ax_tap_entry {
	AX_TAP_ENTRY,
	AX_TAP_WANTED, /* a list of its own that passes what is to be looked at, and drops the rest
			*/
	AX_TAP_TOLD,   /* the list that is current once more, as one that tells what it decides */
	AX_TAP_ENTRIES
};

/* Constant data of the tap. */
struct ax_tap_options {
	__u32 snap;    /* bytes of a packet at most, 1 to AX_CAPTURE_MAX */
	__u8 verdicts; /* tell what became of it, too */
	__u8 filtered; /* AX_TAP_WANTED says what is looked at */
	__u8 pad[2];
};

/* Map `tap_control` (one entry, which the reader changes). */
struct ax_tap_control {
	__u32 sample; /* look at one packet of this many, chosen by chance; 0, 1: at all */
	__u32 nobody; /* 0: what is wanted if AX_TAP_WANTED is empty: nothing */
};

/* Map `tap_counts` (per CPU, one entry). */
struct ax_tap_count {
	__u64 packets; /* that are wanted, looked at or not */
	__u64 bytes;
	__u64 lost; /* records that found no room */
};

enum ax_tapped_kind {
	AX_TAPPED_IN,  /* the packet as it came */
	AX_TAPPED_OUT, /* what became of it; with data when it leaves by XDP_TX or XDP_REDIRECT, or
			* was not dropped by a program of others */
};

/* A record of the tap's ring buffer, with `captured` bytes behind it. A packet's two follow each
 * other among those of its CPU, and have the same number. */
struct ax_tapped {
	__u64 time_ns; /* CLOCK_BOOTTIME */
	__u64 number;  /* counted on this CPU */
	__u32 cpu;
	__u32 queue;
	__u32 frame_len;
	__u32 captured;
	__u32 sample; /* the packet stands for so many */
	__u8 kind;    /* enum ax_tapped_kind */
	__u8 action;  /* AX_TAPPED_OUT: of XDP */
	__u8 pad[2];
	/* AX_TAPPED_OUT: as explained; `key` is the list's generation, 0: nobody told. By programs
	 * of others: `key` is ax_foreign_options.target, `rule` the place of the last one that ran
	 */
	struct ax_explain told;
};
_Static_assert(sizeof(struct ax_tapped) == 72, "struct ax_tapped is a ring buffer record");

/* Constant data of xdp/foreign.bpf.c, which watches programs of others. */
struct ax_foreign_options {
	__u64 netns_cookie; /* packets of this interface alone */
	__u32 ifindex;
	__u32 snap;   /* bytes of a packet at most */
	__u32 target; /* counts the programs that were watched, from 1 */
	__u8 place;   /* of ax_ran's program in the dispatcher, from 1 */
	__u8 pad[3];
};

#endif
