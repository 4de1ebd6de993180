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

#include "behaviours.h"

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

static void truncate_buffer(struct run *r)
{
	char buf[64];

	put(r, r->client, 40, 0);
	said_result(r, "n", get(r, r->server, buf, 40, MSG_TRUNC));
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
		events_within(r->server, POLLIN, COMES_MS);
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

static void time_out(struct run *r)
{
	struct timeval limit = {.tv_usec = 200000}, before, after;
	char buf[8];
	long ms;

	setsockopt(r->server, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	gettimeofday(&before, NULL);
	said_result(r, "n", recv(r->server, buf, sizeof(buf), 0));
	gettimeofday(&after, NULL);
	ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_usec - before.tv_usec) / 1000;
	said(r, "%s", ms >= 20 ? "waited" : "at once");
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
	{"a part, then the rest", partial, 0},
	{"two writes, one read", gathered, 0},
	{"MSG_TRUNC with a buffer", truncate_buffer, 0},
	{"SIOCOUTQ", bytes_unsent, 0},
	{"readv", scattered, 0},
	{"recvmmsg", many_messages, 0},
	{"SO_RCVTIMEO", time_out, BLOCKING_ONLY},
	{"SO_OOBINLINE, SIOCATMARK", out_of_band_inline, 0},
	{NULL, NULL, 0},
};
