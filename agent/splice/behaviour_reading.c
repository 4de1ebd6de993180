// SPDX-License-Identifier: GPL-2.0-or-later
/* Reading in other ways than read() does. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "splice/behaviour.h"

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

static void low_water(struct run *r)
{
	int low = 100;

	setsockopt(r->server, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof(low));
	put(r, r->client, 40, 0);
	said(r, "at40=%d", !!(events_within(r->server, POLLIN, STAYS_AWAY_MS) & POLLIN));
	put(r, r->client, 60, 40);
	said(r, "at100=%d", !!(events_within(r->server, POLLIN, COMES_MS) & POLLIN));
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
		events_within(r->server, POLLIN, COMES_MS);
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
	pause_ms(20); /* if nobody has wanted stamps before, the kernel begins a little later */
	put(r, r->client, 10, 0);
	said(r, "%s", control_message(r, SOL_SOCKET, SCM_TIMESTAMP, &n) ? "stamp" : "none");
}

static void out_of_band(struct run *r)
{
	char buf[64], c = 0;

	put(r, r->client, 10, 0);
	send(r->client, "!", 1, MSG_OOB);
	pause_ms(30);
	said(r, "pri=%d", !!(events_within(r->server, POLLPRI, STAYS_AWAY_MS) & POLLPRI));
	said_result(r, "oob", recv(r->server, &c, 1, MSG_OOB | MSG_DONTWAIT));
	said_result(r, "inline", recv(r->server, buf, sizeof(buf), MSG_DONTWAIT));
}

const struct behaviour gate_reading[] = {
	{"small writes in order", small_in_order, NEEDED},
	{"requests and answers", ping_pong, NEEDED},
	{"MSG_PEEK", peek, NEEDED},
	{"SO_PEEK_OFF", peek_offset, 0},
	{"MSG_WAITALL", wait_all, BLOCKING_ONLY},
	{"MSG_TRUNC without a buffer", truncate_null, 0},
	{"SO_RCVLOWAT", low_water, 0},
	{"TCP_INQ", queue_message, 0},
	{"SO_TIMESTAMP", time_stamp, 0},
	{"urgent data", out_of_band, 0},
	{NULL, NULL, 0},
};
