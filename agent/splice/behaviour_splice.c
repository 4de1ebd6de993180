// SPDX-License-Identifier: GPL-2.0-or-later
/* What splice(2) gets out of a connection, and epoll beside it. */
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "splice/behaviour.h"

static void send_40(struct run *r)
{
	put(r, r->client, 40, 0);
}

static void epoll_hangup(struct run *r)
{
	int ep = epoll_of(r->server, EPOLLIN | EPOLLRDHUP | EPOLLET);

	put(r, r->client, 10, 0);
	said_epoll(r, ep, "data", COMES_MS);
	shutdown(r->client, SHUT_WR);
	said_epoll(r, ep, "fin", COMES_MS);
	said_result(r, "good", get_all(r, r->server, 20, 0));
}

/* What a pipe holds after splice() of the server's data. */
static void said_splice(struct run *r, unsigned flags)
{
	char buf[64];
	int p[2];
	ssize_t n;

	if (pipe(p) < 0)
		return;
	n = splice(r->server, NULL, p[1], NULL, 4096, flags);
	said_result(r, "n", n);
	if (n > 0 && read(p[0], buf, sizeof(buf)) == n)
		said(r, "%s",
		     (unsigned char)buf[n - 1] == pattern_at((uint64_t)n - 1) ? "good" : "bad");
}

static void splice_out(struct run *r)
{
	put(r, r->client, 40, 0);
	pause_ms(20);
	said_splice(r, 0);
}

static void splice_out_waiting(struct run *r)
{
	later(r, 40, send_40);
	said_splice(r, 0);
}

static void splice_out_not_waiting(struct run *r)
{
	put(r, r->client, 40, 0);
	pause_ms(20);
	said_splice(r, SPLICE_F_NONBLOCK);
}

static void splice_out_polled(struct run *r)
{
	later(r, 20, send_40);
	said(r, "in=%d", !!(events_within(r->server, POLLIN, COMES_MS) & POLLIN));
	said_splice(r, SPLICE_F_NONBLOCK);
	said(r, "left=%d", !!(events_within(r->server, POLLIN, 20) & POLLIN));
}

static void splice_then_recv(struct run *r)
{
	char buf[64];

	put(r, r->client, 40, 0);
	pause_ms(20);
	said_splice(r, SPLICE_F_NONBLOCK);
	put(r, r->client, 20, 40);
	pause_ms(20);
	said_result(r, "recv", recv(r->server, buf, sizeof(buf), MSG_DONTWAIT));
	said(r, "%s", (unsigned char)buf[0] == pattern_at(40) ? "in order" : "out of order");
}

const struct behaviour gate_splice[] = {
	{"epoll, edge with RDHUP", epoll_hangup, NEEDED},
	{"splice from, after data", splice_out, 0},
	{"splice from, before data", splice_out_waiting, BLOCKING_ONLY},
	{"splice from, SPLICE_F_NONBLOCK", splice_out_not_waiting, 0},
	{"splice from, after poll", splice_out_polled, 0},
	{"splice, then recv", splice_then_recv, 0},
	{NULL, NULL, 0},
};
