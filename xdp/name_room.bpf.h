/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a name ends with (struct ax_name). It is copied to room of this CPU's and gone through from
 * its end, as far as the list has something there, whatever stands in front of that.
 *
 * Linux 6.1 follows what bpf_loop() calls once, with what it knows in the first round, and takes
 * out what cannot happen then. So all that changes from round to round is in the map, of whose
 * values it knows nothing.
 */
#ifndef AX_NAME_ROOM_BPF_H
#define AX_NAME_ROOM_BPF_H

#include "context.bpf.h"
#include "rules.bpf.h"
#include "verifier.bpf.h"

#define NAME_ROOM 2048 /* a power of two */
struct name_room {
	__u8 b[NAME_ROOM];
	__u64 starts[8]; /* of a DNS message's name: bits, where the lengths of labels are */
	__u64 node, label;
	__u32 off;   /* where the payload begins in the packet */
	__u32 last;  /* where the name ends */
	__u32 at;    /* how far a search has come, */
	__u32 end;   /* what it does not go beyond, */
	__u32 found; /* and where it ended; 0: with nothing */
	/* of a request: what the line is (enum http_line), and how far it was compared; where its
	 * target is, and its Host, if there was one, and whether it is over; what is wrong */
	__u32 line, column;
	__u32 target, target_end, in_target;
	__u32 host, host_end, hosts, host_last, known;
	__u32 colon, bad;
	__u32 wire; /* labels are as in DNS messages, else with dots between */
	__u32 value;
	__u32 place, kind; /* where the name is, see name_place(), and which one; 0: nowhere */
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct name_room);
} name_room SEC(".maps");

/* What is to be done to bytes one by one. The packet's context is a pointer of its own kind: it
 * cannot be in a map. */
struct name_loop {
	packet_ctx *ctx;
	struct name_room *room;
};

static __always_inline struct name_room *name_room_get(void)
{
	return bpf_map_lookup_elem(&name_room, &(__u32){0});
}

static __always_inline __u64 lower(__u64 c)
{
	return c - 'A' < 26 ? c + 32 : c;
}

/* --- the end of a name --- */

static __always_inline __u64 name_mix(__u64 parent, __u64 label)
{
	__u64 node = (parent ^ label) * layout.name_key[1];

	node ^= node >> 32;
	node *= layout.name_key[1];
	node ^= node >> 32;
	return node ? node : 1;
}

/* One of the buckets where a node may be. */
static __always_inline const struct ax_name *name_bucket(const __u8 *a, __u32 half)
{
	__u64 at = half & (layout.names_n / AX_NAME_BUCKET - 1);

	return (const void *)(a + layout.names + at * (AX_NAME_BUCKET * sizeof(struct ax_name)));
}

static __always_inline bool name_is_in(const struct ax_name *n, __u64 node, __u32 *value)
{
	for (int i = 0; i < AX_NAME_BUCKET; i++)
		if (n[i].node == node) {
			*value = n[i].value;
			return true;
		}
	return false;
}

/* The label that has been gone through; 1: nothing that the list has goes on there. */
static __always_inline long name_label(struct name_room *room)
{
	__u64 node = name_mix(room->node, room->label);
	const __u8 *a = arena_get();
	__u32 value;

	if (!a || (!name_is_in(name_bucket(a, node >> 32), node, &value) &&
		   !name_is_in(name_bucket(a, (__u32)node), node, &value)))
		return 1;
	room->value = value;
	room->node = node;
	room->label = layout.name_key[0];
	return 0;
}

static __noinline long name_byte(__u32 i, struct name_loop *l)
{
	struct name_room *room = l->room;
	__u32 at = (room->last - i) & (NAME_ROOM - 1);
	__u64 c = room->b[at], label;

	if (room->wire ? room->starts[at >> 6 & 7] >> (at & 63) & 1 : c == '.')
		return name_label(room);
	label = (room->label ^ lower(c)) * layout.name_key[1];
	room->label = label ^ label >> 32;
	return 0;
}

/* Where a name is in the room: the byte in front of it, and how many there are with that. */
#define NAME_THERE     (1u << 31)
#define NAME_LEN_MAX   256
#define NAME_OFF_SHIFT 12
static __always_inline int name_place(__u32 off, __u32 len)
{
	return (int)(NAME_THERE | off << NAME_OFF_SHIFT | len);
}

/* The place of what is at `off` of the room, with dots between labels, and maybe one at the end. */
static __always_inline int name_text(struct name_room *room, __u32 off, __u32 len)
{
	__u32 last = off + len - 1;

	/* (clang 19 knows the upper half of len's register to be 0, and Linux 6.1 does not) */
	opaque(last);
	if (len > 1 && room->b[last & (NAME_ROOM - 1)] == '.')
		len--;
	room->b[(off - 1) & (NAME_ROOM - 1)] = '.';
	return name_place(off - 1, len + 1);
}

/* The value of the name at the room's place. */
static __always_inline __u32 name_value(packet_ctx *ctx, struct name_room *room)
{
	struct name_loop l = {.ctx = ctx, .room = room};
	__u32 len = room->place & ((1 << NAME_OFF_SHIFT) - 1);

	if (!room->place || !layout.names_n)
		return AX_NAME_NONE;
	room->value = layout.name_roots[room->kind & 3];
	room->node = room->kind;
	room->label = layout.name_key[0];
	room->wire = room->kind == AX_NAME_DNS;
	room->last = ((room->place & ~NAME_THERE) >> NAME_OFF_SHIFT) + len - 1;
	bpf_loop(len < NAME_LEN_MAX ? len : NAME_LEN_MAX, name_byte, &l, 0);
	return room->value;
}

#endif
