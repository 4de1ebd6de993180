// SPDX-License-Identifier: GPL-2.0-or-later
/* Reading: what comes, how much of it, and what is known about it before it is read. */
#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#include "behaviour.h"

static void small_in_order(struct run *r)
{
	for (int i = 0; i < 64; i++)
		put(r, r->client, 10, (uint64_t)i * 10);
	said_result(r, "good", get_all(r, r->server, 640, 0));
}

static void ping_pong(struct run *r)
{
	int good = 0;

	for (int i = 0; i < 200; i++) {
		put(r, r->client, 64, (uint64_t)i * 64);
		good += get_all(r, r->server, 64, (uint64_t)i * 64) == 64;
		put(r, r->server, 32, (uint64_t)i * 32);
		good += get_all(r, r->client, 32, (uint64_t)i * 32) == 32;
	}
	said(r, "good=%d", good);
}

static void partial(struct run *r)
{
	char buf[256];

	put(r, r->client, 100, 0);
	said_result(r, "first", get(r, r->server, buf, 40, 0));
	said_result(r, "rest", get(r, r->server, buf, sizeof(buf), 0));
}

static void gathered(struct run *r)
{
	char buf[256];

	put(r, r->client, 40, 0);
	put(r, r->client, 60, 40);
	pause_ms(20);
	said_result(r, "n", get(r, r->server, buf, sizeof(buf), 0));
}

static void peek(struct run *r)
{
	char buf[256], again[256];

	put(r, r->client, 40, 0);
	said_result(r, "peek", get(r, r->server, buf, sizeof(buf), MSG_PEEK));
	put(r, r->client, 60, 40);
	pause_ms(20);
	said_result(r, "peek", get(r, r->server, buf, sizeof(buf), MSG_PEEK));
	said_result(r, "read", get(r, r->server, again, sizeof(again), 0));
	said(r, "%s", memcmp(buf, again, 40) ? "different" : "same");
}

static void peek_offset(struct run *r)
{
	int offset = 10;
	char buf[256];

	if (setsockopt(r->server, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof(offset)) < 0) {
		said_result(r, "set", -1);
		return;
	}
	put(r, r->client, 40, 0);
	pause_ms(20);
	said_result(r, "n", get(r, r->server, buf, 20, MSG_PEEK));
	said(r, "at=%d", (unsigned char)buf[0] == pattern_at(10) ? 10 : 0);
}

static void send_60_more(struct run *r)
{
	put(r, r->client, 60, 40);
}

static void wait_all(struct run *r)
{
	char buf[256];

	put(r, r->client, 40, 0);
	later(r, 50, send_60_more);
	said_result(r, "n", get(r, r->server, buf, 100, MSG_WAITALL));
}

static void truncate_null(struct run *r)
{
	put(r, r->client, 40, 0);
	said_result(r, "n", get(r, r->server, NULL, 40, MSG_TRUNC));
}

static void truncate_buffer(struct run *r)
{
	char buf[64];

	put(r, r->client, 40, 0);
	said_result(r, "n", get(r, r->server, buf, 40, MSG_TRUNC));
}

static void low_water(struct run *r)
{
	int low = 100;

	setsockopt(r->server, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof(low));
	put(r, r->client, 40, 0);
	said(r, "at40=%d", !!(events_within(r->server, POLLIN, 50) & POLLIN));
	put(r, r->client, 60, 40);
	said(r, "at100=%d", !!(events_within(r->server, POLLIN, 200) & POLLIN));
}

static void bytes_ready(struct run *r)
{
	char buf[64];
	int n = -1;

	put(r, r->client, 40, 0);
	pause_ms(20);
	ioctl(r->server, FIONREAD, &n);
	said(r, "n=%d", n);
	get(r, r->server, buf, 10, 0);
	ioctl(r->server, FIONREAD, &n);
	said(r, "left=%d", n);
}

static void bytes_unsent(struct run *r)
{
	char buf[64];
	int n = -1;

	put(r, r->client, 40, 0);
	get(r, r->server, buf, sizeof(buf), 0);
	pause_ms(50);
	ioctl(r->client, SIOCOUTQ, &n);
	said(r, "n=%d", n);
}

static void scattered(struct run *r)
{
	char a[10], b[20], c[70];
	struct iovec v[] = {{a, sizeof(a)}, {b, sizeof(b)}, {c, sizeof(c)}};

	put(r, r->client, 100, 0);
	if (r->nonblock)
		events_within(r->server, POLLIN, 1000);
	said_result(r, "n", readv(r->server, v, 3));
	said(r, "%s", (unsigned char)c[69] == pattern_at(99) ? "good" : "bad");
}

static void many_messages(struct run *r)
{
	char buf[4][32];
	struct iovec v[4];
	struct mmsghdr m[4] = {0};
	struct timespec limit = {.tv_sec = 1};

	for (int i = 0; i < 4; i++) {
		v[i] = (struct iovec){buf[i], 32};
		m[i].msg_hdr.msg_iov = &v[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	put(r, r->client, 100, 0);
	pause_ms(20);
	said_result(r, "messages", recvmmsg(r->server, m, 4, MSG_WAITFORONE, &limit));
	said(r, "lengths=%u,%u,%u,%u", m[0].msg_len, m[1].msg_len, m[2].msg_len, m[3].msg_len);
}

static void nothing_there(struct run *r)
{
	char buf[8];

	said_result(r, "n", recv(r->server, buf, sizeof(buf), MSG_DONTWAIT));
	said_result(r, "zero", recv(r->server, buf, 0, MSG_DONTWAIT));
}

static void time_out(struct run *r)
{
	struct timeval limit = {.tv_usec = 50000}, before, after;
	char buf[8];
	long ms;

	setsockopt(r->server, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	gettimeofday(&before, NULL);
	said_result(r, "n", recv(r->server, buf, sizeof(buf), 0));
	gettimeofday(&after, NULL);
	ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_usec - before.tv_usec) / 1000;
	said(r, "%s", ms >= 40 ? "waited" : "at once");
}

/* A control message of the next recvmsg(). */
static bool control_message(struct run *r, int level, int type, int *value)
{
	char buf[64], control[256];
	struct iovec v = {buf, sizeof(buf)};
	struct msghdr m = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};

	if (r->nonblock)
		events_within(r->server, POLLIN, 1000);
	if (recvmsg(r->server, &m, 0) <= 0)
		return false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != level || c->cmsg_type != type)
			continue;
		memcpy(value, CMSG_DATA(c), sizeof(*value));
		return true;
	}
	return false;
}

static void queue_message(struct run *r)
{
	int on = 1, n = 0;

	setsockopt(r->server, IPPROTO_TCP, TCP_INQ, &on, sizeof(on));
	put(r, r->client, 100, 0);
	pause_ms(20);
	if (control_message(r, IPPROTO_TCP, TCP_CM_INQ, &n))
		said(r, "left=%d", n);
	else
		said(r, "none");
}

static void time_stamp(struct run *r)
{
	int on = 1, n;

	setsockopt(r->server, SOL_SOCKET, SO_TIMESTAMP, &on, sizeof(on));
	pause_ms(100); /* the kernel switches its stamps on a little later */
	put(r, r->client, 10, 0);
	said(r, "%s", control_message(r, SOL_SOCKET, SCM_TIMESTAMP, &n) ? "stamp" : "none");
}

static void out_of_band(struct run *r)
{
	char buf[64], c = 0;

	put(r, r->client, 10, 0);
	send(r->client, "!", 1, MSG_OOB);
	pause_ms(30);
	said(r, "pri=%d", !!(events_within(r->server, POLLPRI, 100) & POLLPRI));
	said_result(r, "oob", recv(r->server, &c, 1, MSG_OOB | MSG_DONTWAIT));
	said_result(r, "inline", recv(r->server, buf, sizeof(buf), MSG_DONTWAIT));
}

static void out_of_band_inline(struct run *r)
{
	int on = 1, mark = -1;
	char buf[64];

	setsockopt(r->server, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	put(r, r->client, 10, 0);
	send(r->client, "!", 1, MSG_OOB);
	put(r, r->client, 5, 11);
	pause_ms(30);
	said_result(r, "before", recv(r->server, buf, sizeof(buf), MSG_DONTWAIT));
	ioctl(r->server, SIOCATMARK, &mark);
	said(r, "mark=%d", mark);
	said_result(r, "after", recv(r->server, buf, sizeof(buf), MSG_DONTWAIT));
}

const struct behaviour behaviours_read[] = {
	{"small writes in order", small_in_order, 0},
	{"requests and answers", ping_pong, 0},
	{"a part, then the rest", partial, 0},
	{"two writes, one read", gathered, 0},
	{"MSG_PEEK", peek, 0},
	{"SO_PEEK_OFF", peek_offset, 0},
	{"MSG_WAITALL", wait_all, BLOCKING_ONLY},
	{"MSG_TRUNC without a buffer", truncate_null, 0},
	{"MSG_TRUNC with a buffer", truncate_buffer, 0},
	{"SO_RCVLOWAT", low_water, 0},
	{"FIONREAD", bytes_ready, 0},
	{"SIOCOUTQ", bytes_unsent, 0},
	{"readv", scattered, 0},
	{"recvmmsg", many_messages, 0},
	{"nothing to read", nothing_there, 0},
	{"SO_RCVTIMEO", time_out, BLOCKING_ONLY},
	{"TCP_INQ", queue_message, 0},
	{"SO_TIMESTAMP", time_stamp, 0},
	{"urgent data", out_of_band, 0},
	{"SO_OOBINLINE, SIOCATMARK", out_of_band_inline, 0},
	{NULL, NULL, 0},
};
