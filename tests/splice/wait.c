// SPDX-License-Identifier: GPL-2.0-or-later
/* Waiting: who wakes up, when, and with what. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "behaviours.h"

static void send_10(struct run *r)
{
	put(r, r->client, 10, 0);
}

static void send_10_to_client(struct run *r)
{
	put(r, r->server, 10, 0);
}

static void epoll_level(struct run *r)
{
	int ep = epoll_of(r->server, EPOLLIN);
	char buf[64];

	later(r, 20, send_10);
	said_epoll(r, ep, "first", COMES_MS);
	said_epoll(r, ep, "again", STAYS_AWAY_MS);
	recv(r->server, buf, sizeof(buf), 0);
	said_epoll(r, ep, "empty", STAYS_AWAY_MS);
}

/* It tells of the end again and again, also before the data are read. */
static void epoll_level_hangup(struct run *r)
{
	int ep = epoll_of(r->server, EPOLLIN | EPOLLRDHUP);

	put(r, r->client, 10, 0);
	said_epoll(r, ep, "data", COMES_MS);
	shutdown(r->client, SHUT_WR);
	pause_ms(20);
	said_epoll(r, ep, "fin", COMES_MS);
	said_result(r, "good", get_all(r, r->server, 10, 0));
	said_epoll(r, ep, "end", COMES_MS);
	said_epoll(r, ep, "again", COMES_MS);
}

static void epoll_edge(struct run *r)
{
	int ep = epoll_of(r->server, EPOLLIN | EPOLLET);
	char buf[64];

	later(r, 20, send_10);
	said_epoll(r, ep, "first", COMES_MS);
	said_epoll(r, ep, "again", STAYS_AWAY_MS);
	put(r, r->client, 10, 10);
	said_epoll(r, ep, "more", COMES_MS);
	recv(r->server, buf, sizeof(buf), 0);
	put(r, r->client, 10, 20);
	said_epoll(r, ep, "later", COMES_MS);
}

static void epoll_one_shot(struct run *r)
{
	int ep = epoll_of(r->server, EPOLLIN | EPOLLONESHOT);
	struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT};

	put(r, r->client, 10, 0);
	said_epoll(r, ep, "first", COMES_MS);
	put(r, r->client, 10, 10);
	said_epoll(r, ep, "disarmed", STAYS_AWAY_MS);
	epoll_ctl(ep, EPOLL_CTL_MOD, r->server, &e);
	said_epoll(r, ep, "armed", COMES_MS);
}

static void by_select(struct run *r)
{
	struct timeval limit = {.tv_sec = COMES_MS / 1000};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(r->server, &set);
	later(r, 20, send_10);
	said_result(r, "ready", select(r->server + 1, &set, NULL, NULL, &limit));
}

static void by_poll(struct run *r)
{
	later(r, 20, send_10);
	said_events(r, "poll", (unsigned)events_within(r->server, POLLIN, COMES_MS));
	said_events(r, "both", (unsigned)events_within(r->server, POLLIN | POLLOUT, COMES_MS));
	said_events(r, "client", (unsigned)events_within(r->client, POLLIN, 10));
}

static void by_signal(struct run *r)
{
	struct timespec limit = {.tv_sec = COMES_MS / 1000};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fcntl(r->server, F_SETOWN, getpid());
	fcntl(r->server, F_SETFL, fcntl(r->server, F_GETFL) | O_ASYNC);
	put(r, r->client, 10, 0);
	said_result(r, "signal", sigtimedwait(&set, NULL, &limit));
}

static void answered_while_blocked(struct run *r)
{
	char buf[64];

	later(r, 30, send_10_to_client);
	said_result(r, "n", recv(r->client, buf, sizeof(buf), 0));
}

static void writable_again(struct run *r)
{
	size_t sent = 0;
	ssize_t n;

	fcntl(r->client, F_SETFL, O_NONBLOCK);
	while ((n = send(r->client, (char[65536]){0}, 65536, MSG_NOSIGNAL)) > 0)
		sent += (size_t)n;
	said_result(r, "full", n);
	said(r, "out=%d", !!(events_within(r->client, POLLOUT, 50) & POLLOUT));
	for (size_t got = 0; got < sent; got += (size_t)n)
		if ((n = get(r, r->server, (char[65536]){0}, 65536, 0)) <= 0)
			break;
	said(r, "out=%d", !!(events_within(r->client, POLLOUT, COMES_MS) & POLLOUT));
}

const struct behaviour behaviours_wait[] = {
	{"epoll, level", epoll_level, 0},
	{"epoll, level with RDHUP", epoll_level_hangup, 0},
	{"epoll, edge", epoll_edge, 0},
	{"epoll, one shot", epoll_one_shot, 0},
	{"select", by_select, 0},
	{"poll", by_poll, 0},
	{"SIGIO", by_signal, 0},
	{"recv by the client", answered_while_blocked, BLOCKING_ONLY},
	{"a full queue, then room", writable_again, 0},
	{NULL, NULL, 0},
};
