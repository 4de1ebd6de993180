/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The name that the question of a DNS message asks for (RFC 1035, 4.1). */
#ifndef AX_NAME_DNS_BPF_H
#define AX_NAME_DNS_BPF_H

#include "name_room.bpf.h"

#define DNS_PORT       53
#define DNS_LABELS_MAX 128
#define DNS_NAME_MAX   255 /* the length of the root label included */
#define DNS_TYPE_CLASS 4   /* bytes behind the name */
#define DNS_HEADER     12
#define DNS_REACH      (DNS_HEADER + DNS_NAME_MAX + DNS_TYPE_CLASS)

/* A name is not compressed in a question: there is nothing in front that it could point to. */
static __noinline long dns_label(__u32 i, struct name_loop *l)
{
	struct name_room *room = l->room;
	__u32 at = room->at, len;

	(void)i;
	if (at >= room->end || at >= DNS_HEADER + DNS_NAME_MAX)
		return 1;
	len = room->b[at & (NAME_ROOM - 1)];
	if (len > 63)
		return 1;
	if (!len) {
		room->found = at + 1;
		return 1;
	}
	room->starts[at >> 6 & 7] |= 1ull << (at & 63);
	room->at = at + 1 + len;
	return 0;
}

/* One question; a query, or its response, by the opcode. */
static __always_inline bool dns_asks(const struct name_room *room)
{
	return !(room->b[2] & 0x78) && !room->b[4] && room->b[5] == 1;
}

/* The name that the only question of a message asks for. */
static __always_inline int name_in_dns(packet_ctx *ctx, struct name_room *room, __u32 off,
				       __u32 len)
{
	struct name_loop l = {.ctx = ctx, .room = room};
	__u32 n = size_within(len < DNS_REACH ? len : DNS_REACH, DNS_REACH);

	if (!n || n <= DNS_HEADER || packet_load(ctx, off, room->b, n) || !dns_asks(room))
		return 0;
	for (int i = 0; i < 5; i++)
		room->starts[i] = 0;
	room->at = DNS_HEADER;
	room->found = 0;
	room->end = n;
	bpf_loop(DNS_LABELS_MAX, dns_label, &l, 0);
	if (!room->found || room->found + DNS_TYPE_CLASS > room->end)
		return 0;
	return name_place(DNS_HEADER, room->found - 1 - DNS_HEADER);
}

#endif
