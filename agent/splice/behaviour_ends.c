// SPDX-License-Identifier: GPL-2.0-or-later
/* Ends by force and in order, and what a socket says of itself. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "splice/behaviour.h"

static volatile sig_atomic_t pipes;

static void reset_read(struct run *r)
{
	char buf[8];

	linger_zero(r->client);
	pause_ms(20);
	said_result(r, "first", recv(r->server, buf, sizeof(buf), MSG_DONTWAIT));
	said_result(r, "second", recv(r->server, buf, sizeof(buf), MSG_DONTWAIT));
}

static void reset_write(struct run *r)
{
	linger_zero(r->client);
	pause_ms(20);
	for (int i = 0; i < 3; i++)
		said_result(r, "send", send(r->server, "x", 1, MSG_NOSIGNAL));
}

static void close_unread(struct run *r)
{
	char buf[8];

	put(r, r->client, 40, 0);
	pause_ms(20);
	close(r->server);
	pause_ms(20);
	said_result(r, "read", recv(r->client, buf, sizeof(buf), MSG_DONTWAIT));
	said_result(r, "send", send(r->client, "x", 1, MSG_NOSIGNAL));
}

static void on_pipe(int sig)
{
	(void)sig;
	pipes++;
}

static void broken_pipe(struct run *r)
{
	signal(SIGPIPE, on_pipe);
	close(r->server);
	events_within(r->client, POLLRDHUP, STAYS_AWAY_MS);
	for (int i = 0; i < 3; i++) {
		said_result(r, "send", send(r->client, "x", 1, 0));
		/* RST has come: nothing but errors is waited for */
		events_within(r->client, 0, STAYS_AWAY_MS);
	}
	said(r, "SIGPIPE=%d", (int)pipes);
}

static void broken_pipe_quiet(struct run *r)
{
	signal(SIGPIPE, on_pipe);
	shutdown(r->client, SHUT_WR);
	said_result(r, "send", send(r->client, "x", 1, MSG_NOSIGNAL));
	said(r, "SIGPIPE=%d", (int)pipes);
}

static void half_close(struct run *r)
{
	char buf[8];

	put(r, r->client, 100, 0);
	shutdown(r->client, SHUT_WR);
	said_result(r, "good", get_all(r, r->server, 200, 0));
	said_result(r, "end", get(r, r->server, buf, sizeof(buf), 0));
	put(r, r->server, 50, 0);
	close(r->server);
	said_result(r, "answer", get_all(r, r->client, 200, 0));
	said_result(r, "end", get(r, r->client, buf, sizeof(buf), 0));
}

static void nothing_there(struct run *r)
{
	char buf[8];

	said_result(r, "n", recv(r->server, buf, sizeof(buf), MSG_DONTWAIT));
	said_result(r, "zero", recv(r->server, buf, 0, MSG_DONTWAIT));
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

static void information(struct run *r)
{
	struct tcp_info i = {0};
	socklen_t len = sizeof(i);

	put(r, r->client, 1000, 0);
	get_all(r, r->server, 1000, 0);
	/* the first ones are not delayed */
	for (int tries = 0; tries < 5 && i.tcpi_bytes_acked < 1000; tries++) {
		pause_ms(10);
		getsockopt(r->client, IPPROTO_TCP, TCP_INFO, &i, &len);
	}
	said(r, "state=%u acked=%llu", i.tcpi_state, (unsigned long long)i.tcpi_bytes_acked);
	len = sizeof(i);
	getsockopt(r->server, IPPROTO_TCP, TCP_INFO, &i, &len);
	said(r, "received=%llu", (unsigned long long)i.tcpi_bytes_received);
}

const struct behaviour gate_ends[] = {
	{"RST, then recv", reset_read, 0},
	{"RST, then sends", reset_write, 0},
	{"close with unread data", close_unread, 0},
	{"EPIPE and SIGPIPE", broken_pipe, 0},
	{"EPIPE with MSG_NOSIGNAL", broken_pipe_quiet, 0},
	{"half close by the client", half_close, NEEDED},
	{"nothing to read", nothing_there, 0},
	{"FIONREAD", bytes_ready, IS_FIONREAD},
	{"TCP_INFO", information, 0},
	{NULL, NULL, 0},
};
