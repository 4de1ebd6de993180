// SPDX-License-Identifier: GPL-2.0-or-later
/* Writing: little by little, held back, and towards somebody who does not read. */
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "splice/behaviour.h"

static void put_sizes(struct run *r)
{
	uint64_t at = 0;

	for (size_t n = 1; n <= 1 << 18; n = n * 3 + 1) {
		put(r, r->client, n, at);
		at += n;
	}
}

static void growing(struct run *r)
{
	size_t all = 0;

	for (size_t n = 1; n <= 1 << 18; n = n * 3 + 1)
		all += n;
	later(r, 0, put_sizes);
	said_result(r, "missing", (ssize_t)all - get_all(r, r->server, all, 0));
}

/* How much is taken while nobody reads, against what TCP may hold here. */
static void stalled(struct run *r)
{
	size_t sent = 0, limit = 16 << 20;
	ssize_t n;

	fcntl(r->client, F_SETFL, O_NONBLOCK);
	while (sent < 4 * limit) {
		n = send(r->client, (char[65536]){0}, 65536, MSG_NOSIGNAL);
		if (n <= 0 && !(events_within(r->client, POLLOUT, 50) & POLLOUT))
			break;
		if (n > 0)
			sent += (size_t)n;
	}
	said(r, "%s", sent < limit ? "bounded" : "without a bound");
}

/* What it does not hold is there at once, and the kernel holds nothing for longer than 200 ms: who
 * did not run for as long cannot tell, and tries again. */
#define HELD_MS	   200
#define HELD_TRIES 10

static bool is_held(struct run *r, int flags)
{
	for (int tries = 1;; tries++) {
		int64_t since = clock_ms();
		bool held;

		send(r->client, "12345", 5, flags);
		held = !(events_within(r->server, POLLIN, 10) & POLLIN);
		if (held || tries == HELD_TRIES || clock_ms() - since < HELD_MS / 2)
			return held;
		get(r, r->server, (char[5]){0}, 5, 0);
	}
}

static void more_follows(struct run *r)
{
	said(r, "held=%d", is_held(r, MSG_MORE));
	send(r->client, "67890", 5, 0);
	said_result(r, "n", get(r, r->server, (char[64]){0}, 64, 0));
}

static void corked(struct run *r)
{
	int on = 1, off = 0;

	setsockopt(r->client, IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
	said(r, "held=%d", is_held(r, 0));
	setsockopt(r->client, IPPROTO_TCP, TCP_CORK, &off, sizeof(off));
	said_result(r, "n", get(r, r->server, (char[64]){0}, 64, 0));
}

static void zero_copy(struct run *r)
{
	static unsigned char buf[16384];
	char control[256];
	struct msghdr m = {.msg_control = control, .msg_controllen = sizeof(control)};
	int on = 1;

	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = pattern_at(i);
	said_result(r, "set", setsockopt(r->client, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)));
	said_result(r, "n", send(r->client, buf, sizeof(buf), MSG_ZEROCOPY));
	said_result(r, "good", get_all(r, r->server, sizeof(buf), 0));
	events_within(r->client, POLLERR, COMES_MS / 2);
	said(r, "notice=%d", recvmsg(r->client, &m, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0);
}

const struct behaviour gate_writing[] = {
	{"writes of growing size", growing, NEEDED},
	{"a reader that does not read", stalled, NEEDED},
	{"MSG_MORE", more_follows, 0},
	{"TCP_CORK", corked, 0},
	{"MSG_ZEROCOPY", zero_copy, 0},
	{NULL, NULL, 0},
};
