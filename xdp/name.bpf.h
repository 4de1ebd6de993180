/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names that packets carry. A packet is looked at by itself: what it has not, or says in a way that
 * is not understood, is no name.
 */
#ifndef AX_NAME_BPF_H
#define AX_NAME_BPF_H

#include "name_dns.bpf.h"
#include "name_http.bpf.h"
#include "name_tls.bpf.h"
#include "payload.bpf.h"

/* --- any packet --- */

static __always_inline bool looks_for(__u32 kind)
{
	return layout.name_kinds >> kind & 1;
}

static __always_inline bool has_dns_port(const struct packet *p)
{
	return p->sport_be == bpf_htons(DNS_PORT) || p->dport_be == bpf_htons(DNS_PORT);
}

/*
 * Linux 6.1 lets a program and what it calls have 512 bytes of stack, of which the filter itself
 * has most. So each of these is called by it alone, one after the other, and leaves what it found
 * in the room. (Global functions: the verifier looks at them once.)
 */

/* The first of them: it forgets what the last packet had. */
__weak __noinline int find_dns_name(packet_ctx *ctx, const struct packet *p)
{
	struct name_room *room = name_room_get();

	if (!layout.field[AX_FIELD_NAME].used || !room || !p)
		return 0;
	room->place = 0;
	if (!looks_for(AX_NAME_DNS) || !p->has_l4 || p->proto != IPPROTO_UDP || !has_dns_port(p))
		return 0;
	room->kind = AX_NAME_DNS;
	room->place = (__u32)name_in_dns(ctx, room, p->payload_off, payload_len(ctx, p));
	return 0;
}

/* By the first byte: that of a record, */
__weak __noinline int find_tls_name(packet_ctx *ctx, const struct packet *p)
{
	struct name_room *room = name_room_get();

	if (!looks_for(AX_NAME_TLS) || !room || !p || !p->has_l4 || p->proto != IPPROTO_TCP ||
	    !payload_len(ctx, p) || packet_load(ctx, p->payload_off, room->b, 1) ||
	    room->b[0] != TLS_HANDSHAKE)
		return 0;
	room->kind = AX_NAME_TLS;
	room->place = (__u32)name_in_tls(ctx, room, p->payload_off, payload_len(ctx, p));
	return 0;
}

/* or of a method. */
__weak __noinline int find_http_name(packet_ctx *ctx, const struct packet *p)
{
	struct name_room *room = name_room_get();

	if (!looks_for(AX_NAME_HTTP) || !room || room->place /* nor is the room written to */ ||
	    !p || !p->has_l4 || p->proto != IPPROTO_TCP || !payload_len(ctx, p) ||
	    packet_load(ctx, p->payload_off, room->b, 1) || (__u32)room->b[0] - 'A' >= 26)
		return 0;
	room->kind = AX_NAME_HTTP;
	room->place = (__u32)name_in_http(ctx, room, p->payload_off, payload_len(ctx, p));
	return 0;
}

/* The last: AX_FIELD_NAME has its value. */
__weak __noinline int note_name(packet_ctx *ctx, struct packet *p)
{
	struct name_room *room = name_room_get();

	if (layout.field[AX_FIELD_NAME].used && room && p && p->has_l4)
		p->name = (__u16)name_value(ctx, room);
	return 0;
}

/* --- what rules want to know --- */

/* Some rule has a condition on what is in the payload. */
static __always_inline bool asks_payload(void)
{
	return layout.field[AX_FIELD_PAYLOAD].used || layout.field[AX_FIELD_NAME].used;
}

/* Whether there can be a name: most packets of a connection say nothing, or are none of those that
 * have one. Others are not matched twice for it. */
static __always_inline bool can_have_name(const struct packet *p)
{
	if (p->proto == IPPROTO_UDP)
		return looks_for(AX_NAME_DNS) && has_dns_port(p);
	return layout.name_kinds & ~(1u << AX_NAME_DNS) &&
	       (__u32)p->payload_off - p->l4_off < p->l4_len;
}

/* To be called before a packet is matched; not for one that is quoted, which has no name. (Global,
 * as note_payload() is.) */
__weak __noinline int expect_name(struct packet *p)
{
	if (p && p->has_l4 && can_have_name(p))
		p->name = AX_NAME_UNASKED;
	return 0;
}

/* Looks at the payload. The packet is unknown to the verifier after that: it goes on once, whatever
 * was found. For lists that it has more to follow of than of others. */
__weak __noinline int note_payload(packet_ctx *ctx, struct packet *p)
{
	if (p)
		p->payload = (__u16)payload_of(ctx, p);
	return 0;
}

/* The same, and at names in it. */
static __always_inline void look_into(packet_ctx *ctx, struct packet *p)
{
	note_payload(ctx, p);
	if (!layout.field[AX_FIELD_NAME].used)
		return;
	find_dns_name(ctx, p);
	find_tls_name(ctx, p);
	find_http_name(ctx, p);
	note_name(ctx, p);
}

#endif
