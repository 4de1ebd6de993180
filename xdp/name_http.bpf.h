/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host that an HTTP/1 request is for (RFC 9112, 3.2; RFC 9110, 7.2): that of its target where
 * that has one, else its only Host. What is in the first bytes of the segment counts, as far as the
 * line with the Host is over there and is not continued on the next.
 */
#ifndef AX_NAME_HTTP_BPF_H
#define AX_NAME_HTTP_BPF_H

#include "name_room.bpf.h"

#define HTTP_REACH	1536 /* less than NAME_ROOM */
#define HTTP_METHOD_MAX 24
#define HTTP_NAME_MAX	255
#define HTTP_VERSION	(sizeof(" HTTP/1.1") - 1)
#define HTTP_AUTHORITY	(HTTP_NAME_MAX + sizeof(":65535"))

enum http_line {
	HTTP_REQUEST,
	HTTP_BEGINS, /* a header, or nothing */
	HTTP_NAME,   /* so far it is the beginning of "host:" */
	HTTP_OTHER,  /* of no interest */
	HTTP_HOST,   /* behind "host:" */
};

static __always_inline __u8 http_at(const struct name_room *room, __u32 at)
{
	return room->b[at & (NAME_ROOM - 1)];
}

/* Whether that text, of up to 8 bytes in lower case, is there. */
static __always_inline bool http_is(const struct name_room *room, __u32 at, const char *text, int n)
{
	for (int i = 0; i < n; i++)
		if (lower(http_at(room, at + (__u32)i)) != (__u64)text[i])
			return false;
	return true;
}

/* --- lines --- */

/* The request's line ends with the version, which tells it from anything else. */
static __always_inline long http_request_ends(struct name_room *room, __u32 at)
{
	__u32 end = http_at(room, at - 1) == '\r' ? at - 1 : at;

	if (!room->target || end <= room->target + HTTP_VERSION ||
	    !http_is(room, end - HTTP_VERSION, " http/1.", 8) ||
	    http_at(room, end - 1) - '0' > 9u) {
		room->bad = 1;
		return 1;
	}
	room->target_end = end - HTTP_VERSION;
	room->line = HTTP_BEGINS;
	return 0;
}

static __always_inline long http_request(struct name_room *room, __u32 at, __u32 c)
{
	if (room->target)
		return 0;
	if (c == ' ') {
		room->target = at + 1;
		return 0;
	}
	/* methods are mostly of capitals; others are none that anybody serves */
	if ((c - 'A' < 26u || c == '-') && at < HTTP_METHOD_MAX)
		return 0;
	room->bad = 1;
	return 1;
}

/* The first byte of a line behind the request's. Only by that it is known that the line before is
 * over; one that goes on here is of a form that servers refuse, or read in one way or another. */
static __always_inline long http_begins(struct name_room *room, __u32 c)
{
	if (c == ' ' || c == '\t') {
		room->bad |= room->host_last;
		room->line = HTTP_OTHER;
		return 0;
	}
	room->known |= room->host_last;
	room->host_last = 0;
	if (c == '\r' || c == '\n')
		return 1;
	room->column = 1;
	room->line = lower(c) == 'h' ? HTTP_NAME : HTTP_OTHER;
	return 0;
}

#define OST_COLON ('o' | 's' << 8 | 't' << 16 | (__u32)':' << 24)

/* A second Host makes it nobody's request. */
static __always_inline long http_name(struct name_room *room, __u32 c)
{
	__u32 column = room->column;

	if (lower(c) != (OST_COLON >> ((column - 1) & 3) * 8 & 0xff)) {
		room->line = HTTP_OTHER;
		return 0;
	}
	room->column = column + 1;
	if (column < 4)
		return 0;
	room->bad |= room->hosts;
	room->hosts = room->host_last = 1;
	room->line = HTTP_HOST;
	return 0;
}

static __noinline long http_byte(__u32 i, struct name_loop *l)
{
	struct name_room *room = l->room;
	__u32 line = room->line, c = http_at(room, i);

	if (line == HTTP_BEGINS)
		return http_begins(room, c);
	if (c == '\n') {
		if (line == HTTP_REQUEST)
			return http_request_ends(room, i);
		room->line = HTTP_BEGINS;
		return 0;
	}
	if (line == HTTP_REQUEST)
		return http_request(room, i, c);
	if (line == HTTP_NAME)
		return http_name(room, c);
	if (line == HTTP_HOST && c != ' ' && c != '\t' && c != '\r') {
		if (!room->host_end)
			room->host = i;
		room->host_end = i + 1;
	}
	return 0;
}

/* --- the host and its port --- */

/* A name and maybe a port, up to room->end; in a target up to its path, too. Nothing else: no
 * user, and no address in brackets. */
static __noinline long http_authority(__u32 i, struct name_loop *l)
{
	struct name_room *room = l->room;
	__u32 at = room->at + i, c;

	if (at >= room->end)
		return 1;
	c = http_at(room, at);
	if (room->in_target && (c == '/' || c == '?' || c == '#'))
		return 1;
	if (room->colon) {
		room->bad |= c - '0' > 9u;
		return 0;
	}
	if (c == ':') {
		room->colon = 1;
		return 0;
	}
	room->bad |=
		c <= ' ' || c == '@' || c == '[' || c == '/' || c == '?' || c == '#' || c == ',';
	room->found = at + 1;
	return 0;
}

/* Sets where the host is looked for; false: the target is of no known form. */
static __always_inline bool http_find(struct name_room *room)
{
	__u32 target = room->target, first = http_at(room, target);

	room->in_target = first != '/' && first != '*';
	if (!room->in_target) {
		room->at = room->host;
		room->end = room->host_end;
		return room->known;
	}
	room->at = target;
	room->end = room->target_end;
	if (http_is(room, target, "http://", 7))
		room->at = target + 7;
	else if (http_is(room, target, "https://", 8))
		room->at = target + 8;
	else
		return http_is(room, 0, "connect ", 8);
	return true;
}

static __always_inline int name_in_http(packet_ctx *ctx, struct name_room *room, __u32 off,
					__u32 len)
{
	struct name_loop l = {.ctx = ctx, .room = room};
	__u32 n = size_within(len < HTTP_REACH ? len : HTTP_REACH, HTTP_REACH);

	if (!n || packet_load(ctx, off, room->b, n))
		return 0;
	room->line = HTTP_REQUEST;
	room->target = room->target_end = room->bad = room->known = 0;
	room->hosts = room->host_last = room->host = room->host_end = 0;
	bpf_loop(n, http_byte, &l, 0);
	if (room->bad || !room->target_end || !http_find(room))
		return 0;
	room->colon = room->found = 0;
	bpf_loop(HTTP_AUTHORITY, http_authority, &l, 0);
	len = room->found - room->at;
	if (room->bad || !room->found || len > HTTP_NAME_MAX)
		return 0;
	return name_text(room, room->at, len);
}

#endif
