// SPDX-License-Identifier: GPL-2.0-or-later
/* Ends: half and whole, in order and by force. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "behaviours.h"

static void half_close_back(struct run *r)
{
	char buf[8];

	put(r, r->server, 100, 0);
	shutdown(r->server, SHUT_WR);
	put(r, r->client, 50, 0);
	said_result(r, "good", get_all(r, r->client, 200, 0));
	said_result(r, "back", get_all(r, r->server, 50, 0));
	shutdown(r->client, SHUT_WR);
	said_result(r, "end", get(r, r->server, buf, sizeof(buf), 0));
}

static void drain_after_close(struct run *r)
{
	put(r, r->client, 30000, 0);
	close(r->client);
	pause_ms(30);
	said_result(r, "good", get_all(r, r->server, 40000, 0));
}

static void reset_with_data(struct run *r)
{
	char buf[64];

	put(r, r->client, 40, 0);
	linger_zero(r->client);
	pause_ms(20);
	said_result(r, "first", recv(r->server, buf, sizeof(buf), MSG_DONTWAIT));
	said_result(r, "second", recv(r->server, buf, sizeof(buf), MSG_DONTWAIT));
}

static void reset_error(struct run *r)
{
	socklen_t len = sizeof(int);
	int e = 0, events;

	linger_zero(r->client);
	events = events_within(r->server, POLLIN, COMES_MS);
	said(r, "err=%d hup=%d", !!(events & POLLERR), !!(events & POLLHUP));
	getsockopt(r->server, SOL_SOCKET, SO_ERROR, &e, &len);
	said(r, "SO_ERROR=%s", e ? strerrorname_np(e) : "0");
	getsockopt(r->server, SOL_SOCKET, SO_ERROR, &e, &len);
	said(r, "then=%s", e ? strerrorname_np(e) : "0");
}

static void shut_read(struct run *r)
{
	char buf[64];

	shutdown(r->server, SHUT_RD);
	said_result(r, "empty", recv(r->server, buf, sizeof(buf), MSG_DONTWAIT));
	put(r, r->client, 40, 0);
	pause_ms(20);
	said_result(r, "data", recv(r->server, buf, sizeof(buf), MSG_DONTWAIT));
}

static void name_after_close(struct run *r)
{
	struct sockaddr_in6 a;
	socklen_t len = sizeof(a);

	close(r->server);
	pause_ms(20);
	said_result(r, "peer", getpeername(r->client, (struct sockaddr *)&a, &len));
	said_result(r, "own", getsockname(r->client, (struct sockaddr *)&a, &len));
}

static void name_after_reset(struct run *r)
{
	struct sockaddr_in6 a;
	socklen_t len = sizeof(a);

	linger_zero(r->server);
	pause_ms(20);
	said_result(r, "peer", getpeername(r->client, (struct sockaddr *)&a, &len));
}

static void hang_up(struct run *r)
{
	int events;

	shutdown(r->client, SHUT_WR);
	shutdown(r->server, SHUT_WR);
	pause_ms(20);
	events = events_within(r->client, POLLIN | POLLRDHUP, COMES_MS);
	said(r, "in=%d rdhup=%d hup=%d err=%d", !!(events & POLLIN), !!(events & POLLRDHUP),
	     !!(events & POLLHUP), !!(events & POLLERR));
}

static void killed_with_data(struct run *r)
{
	pid_t pid = fork();

	if (pid == 0) {
		close(r->server);
		put(r, r->client, 20000, 0);
		kill(getpid(), SIGKILL);
	}
	close(r->client);
	waitpid(pid, NULL, 0);
	said_result(r, "good", get_all(r, r->server, 40000, 0));
}

static void linger_wait(struct run *r)
{
	struct linger l = {.l_onoff = 1, .l_linger = 3};
	struct timeval before, after;
	long ms;

	setsockopt(r->client, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	put(r, r->client, 1000, 0);
	gettimeofday(&before, NULL);
	said_result(r, "close", close(r->client));
	gettimeofday(&after, NULL);
	ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_usec - before.tv_usec) / 1000;
	said(r, "%s", ms > 2500 ? "waited" : "at once");
	said_result(r, "good", get_all(r, r->server, 2000, 0));
}

static void connected_again(struct run *r)
{
	int client, server;

	shutdown(r->client, SHUT_RDWR);
	close(r->client);
	close(r->server);
	if (pair_open(r, &client, &server) < 0) {
		said(r, "refused");
		return;
	}
	put(r, client, 100, 0);
	said_result(r, "good", get_all(r, server, 100, 0));
}

const struct behaviour behaviours_end[] = {
	{"half close by the server", half_close_back, 0},
	{"data after close", drain_after_close, 0},
	{"RST behind data", reset_with_data, 0},
	{"RST, then SO_ERROR and poll", reset_error, 0},
	{"shutdown for reading", shut_read, 0},
	{"getpeername after close", name_after_close, 0},
	{"getpeername after RST", name_after_reset, 0},
	{"both ends shut, poll", hang_up, 0},
	{"data of a killed process", killed_with_data, 0},
	{"SO_LINGER, 3 s", linger_wait, 0},
	{"the next connection", connected_again, 0},
	{NULL, NULL, 0},
};
