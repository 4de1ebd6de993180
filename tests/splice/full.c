// SPDX-License-Identifier: GPL-2.0-or-later
/* Sending to who has no room: what ends the wait. */
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "behaviours.h"

static size_t filled;  /* what the client has sent and nobody read */
static int handled[2]; /* a pipe: written when the signal's handler runs */

static void on_signal(int sig)
{
	(void)sig;
	if (write(handled[1], "", 1) != 1)
		_exit(1);
}

static void fill_by(struct run *r, size_t size)
{
	ssize_t n;

	while ((n = send(r->client, (char[65536]){0}, size, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0)
		filled += (size_t)n;
}

/*
 * Sends until there is no room, also none in the page in which the last segment ends, nor when the
 * other end's window has been probed, which is the first time after 200 ms by the kernel's clock.
 * Buffers of a fixed size do not grow then.
 */
static void fill(struct run *r)
{
	int size = 65536;
	size_t before;

	setsockopt(r->client, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(r->server, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	filled = 0;
	do {
		before = filled;
		fill_by(r, 65536);
		fill_by(r, 1);
		poll(NULL, 0, 300);
	} while (filled != before);
}

static void drain(struct run *r)
{
	for (size_t got = 0; got < filled;) {
		ssize_t n = get(r, r->server, (char[65536]){0}, 65536, 0);

		if (n < 0 && errno == EAGAIN)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
}

static void said_send(struct run *r)
{
	said_result(r, "n", send(r->client, (char[1000]){0}, 1000, MSG_NOSIGNAL));
}

/* Signals the sender, and reads when its handler has run. */
static void signal_and_drain(struct run *r)
{
	char c;

	kill(getppid(), SIGUSR1);
	if (read(handled[0], &c, 1) == 1)
		drain(r);
}

static void signalled(struct run *r, int flags)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = flags};

	if (pipe(handled) < 0)
		return;
	sigaction(SIGUSR1, &sa, NULL);
	fill(r);
	later(r, 10, signal_and_drain);
	said_send(r);
}

static void signal_restart(struct run *r)
{
	signalled(r, SA_RESTART);
}

static void signal_interrupt(struct run *r)
{
	signalled(r, 0);
}

static void shut_client(struct run *r)
{
	shutdown(r->client, SHUT_RDWR);
}

static void shut_while_blocked(struct run *r)
{
	fill(r);
	later(r, 10, shut_client);
	said_send(r);
}

/* The sender has closed its copy of the other end: this is the last one. */
static void reset(struct run *r)
{
	linger_zero(r->server);
}

static void reset_while_blocked(struct run *r)
{
	fill(r);
	later(r, 10, reset);
	close(r->server);
	said_send(r);
	said_send(r);
}

static void room_while_blocked(struct run *r)
{
	fill(r);
	later(r, 10, drain);
	said_send(r);
}

static void bytes_unsent(struct run *r)
{
	int n = -1;

	fill(r);
	ioctl(r->client, SIOCOUTQ, &n);
	said(r, "some=%d", n > 0);
	drain(r);
	for (int tries = 0; tries < 50 && n; tries++) {
		pause_ms(10);
		ioctl(r->client, SIOCOUTQ, &n);
	}
	said(r, "then=%d", n);
}

const struct behaviour behaviours_full[] = {
	{"send, no room, then room", room_while_blocked, BLOCKING_ONLY},
	{"send, no room, and a signal with SA_RESTART", signal_restart, BLOCKING_ONLY},
	{"send, no room, and a signal without", signal_interrupt, BLOCKING_ONLY},
	{"send, no room, and one's own shutdown", shut_while_blocked, BLOCKING_ONLY},
	{"send, no room, and RST", reset_while_blocked, BLOCKING_ONLY},
	{"SIOCOUTQ of a full queue", bytes_unsent, 0},
	{NULL, NULL, 0},
};
