/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The name that a TLS client asks for: the server_name of its hello (RFC 8446, 4.1.2; RFC 6066, 3).
 * It has to be in the segment and in the first record, as far as the name's end; whether the rest
 * of the hello is there does not matter, of which new key shares make more than a segment.
 */
#ifndef AX_NAME_TLS_BPF_H
#define AX_NAME_TLS_BPF_H

#include "name_room.bpf.h"

#define TLS_HANDSHAKE	   22 /* kind of a record */
#define TLS_CLIENT_HELLO   1
#define TLS_SERVER_NAME	   0 /* kind of an extension, and of a name in it */
#define TLS_SESSION_MAX	   32
#define TLS_EXTENSIONS_MAX 64 /* with those that mean nothing (GREASE) there are some twenty */
#define TLS_NAME_MAX	   255
#define TLS_RECORD_HEADER  5
#define TLS_MESSAGE_HEADER 4

/* A record with a hello, up to the session's length. */
struct tls_hello {
	__u8 record;
	__u8 major, minor;
	__be16 record_len_be;
	__u8 message;
	__u8 message_len[3];
	__u8 version[2];
	__u8 random[32];
	__u8 session_len;
} __attribute__((packed));

struct tls_extension {
	__be16 kind_be, len_be;
};

struct tls_server_name {
	__be16 list_len_be;
	__u8 kind;
	__be16 len_be;
} __attribute__((packed));

static __always_inline __u32 at_most(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

/* Where the hello ends by its own word, and by the segment's and the record's: what is said behind
 * the latter is not looked at. */
struct tls_ends {
	__u32 message, here;
};

static __always_inline bool tls_read_hello(const struct tls_hello *h, __u32 len,
					   struct tls_ends *ends)
{
	__u32 record = TLS_RECORD_HEADER + bpf_ntohs(h->record_len_be);

	if (h->record != TLS_HANDSHAKE || h->major != 3 || h->message != TLS_CLIENT_HELLO ||
	    h->version[0] != 3 || h->session_len > TLS_SESSION_MAX)
		return false;
	ends->message = TLS_RECORD_HEADER + TLS_MESSAGE_HEADER +
			(h->message_len[0] << 16 | h->message_len[1] << 8 | h->message_len[2]);
	ends->here = at_most(at_most(record, ends->message), len);
	return true;
}

/* A number of one or two bytes at `at` of what is at `off`; -1: it is not all there. */
static __always_inline int tls_len8(packet_ctx *ctx, __u32 off, __u32 at, __u32 end)
{
	__u8 len;

	return at + 1 > end || packet_load(ctx, off + at, &len, 1) ? -1 : len;
}

static __always_inline int tls_len16(packet_ctx *ctx, __u32 off, __u32 at, __u32 end)
{
	__be16 len;

	return at + 2 > end || packet_load(ctx, off + at, &len, 2) ? -1 : bpf_ntohs(len);
}

/* Where the extensions begin, of a hello whose session is over at `at`; 0: it has none, or is not
 * one. *end: where they end. */
static __always_inline __u32 tls_extensions(packet_ctx *ctx, __u32 off, __u32 at,
					    const struct tls_ends *ends, __u32 *end)
{
	int len = tls_len16(ctx, off, at, ends->here); /* ciphers, of two bytes each */

	if (len < 2 || len & 1)
		return 0;
	at += 2 + (__u32)len;
	len = tls_len8(ctx, off, at, ends->here); /* ways to compress */
	if (len < 1)
		return 0;
	at += 1 + (__u32)len;
	len = tls_len16(ctx, off, at, ends->here);
	if (len < 0 || at + 2 + (__u32)len > ends->message)
		return 0;
	*end = at_most(at + 2 + (__u32)len, ends->here);
	return at + 2;
}

/* The next extension; 1: it was the last that is looked at. */
static __noinline long tls_next(__u32 i, struct name_loop *l)
{
	struct name_room *room = l->room;
	__u32 at = room->at;
	struct tls_extension e;

	(void)i;
	if (at + sizeof(e) > room->end || packet_load(l->ctx, room->off + at, &e, sizeof(e)))
		return 1;
	if (e.kind_be == bpf_htons(TLS_SERVER_NAME)) {
		room->found = at;
		return 1;
	}
	room->at = at + sizeof(e) + bpf_ntohs(e.len_be);
	return 0;
}

/* The name in the extension at `at`, which has to be the only one there. */
static __always_inline int tls_name(packet_ctx *ctx, struct name_room *room, __u32 off, __u32 at,
				    __u32 end)
{
	struct tls_server_name s;
	int all = tls_len16(ctx, off, at + 2, end);
	__u32 len, n;

	at += sizeof(struct tls_extension);
	if (all < (int)sizeof(s) || at + (__u32)all > end ||
	    packet_load(ctx, off + at, &s, sizeof(s)))
		return 0;
	len = bpf_ntohs(s.len_be);
	if (s.kind != TLS_SERVER_NAME || len + sizeof(s) != (__u32)all ||
	    bpf_ntohs(s.list_len_be) + 2u != (__u32)all || len > TLS_NAME_MAX)
		return 0;
	n = size_within(len, TLS_NAME_MAX);
	if (!n || packet_load(ctx, off + at + sizeof(s), room->b + 1, n))
		return 0;
	return name_text(room, 1, len);
}

/* (The hello is read to the room: there is little left of the stack where it comes from.) */
static __always_inline int name_in_tls(packet_ctx *ctx, struct name_room *room, __u32 off,
				       __u32 len)
{
	struct name_loop l = {.ctx = ctx, .room = room};
	const struct tls_hello *h = (const void *)room->b;
	struct tls_ends ends;
	__u32 at, end;

	if (len < sizeof(*h) || packet_load(ctx, off, room->b, sizeof(*h)) ||
	    !tls_read_hello(h, len, &ends))
		return 0;
	at = tls_extensions(ctx, off, sizeof(*h) + h->session_len, &ends, &end);
	if (!at)
		return 0;
	l.room->off = off;
	l.room->at = at;
	l.room->end = end;
	l.room->found = 0;
	bpf_loop(TLS_EXTENSIONS_MAX, tls_next, &l, 0);
	if (!l.room->found)
		return 0;
	return tls_name(ctx, l.room, off, l.room->found, l.room->end);
}

#endif
