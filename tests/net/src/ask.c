// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests and answers over one TCP connection, every byte checked; or a stream.
 *
 *   ask serve ADDRESS PORT [blocking]   echoes what comes on any number of connections
 *   ask ask ADDRESS PORT [blocking]     sends requests of many sizes, and waits for each one's echo
 *   ask pour ADDRESS PORT SIZE [PAUSE]  sends writes of SIZE bytes and never reads; PAUSE: us
 *                                       between two
 *   ask drain ADDRESS PORT [edges]      takes one connection, reads and never sends; edges: it
 *                                       waits for them, and takes a short read for the last one
 *
 * Those that ask and pour end with SIGTERM and print "good N": how many requests, or bytes; who
 * drains does at the end of what comes. What does not come within 5 s, or is wrong, is an error.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "netutil.h"

#define SERVED_MAX  64
#define REQUEST_MAX 20000
#define STREAM_MAX  262144
#define PAUSE_NS    200000 /* between requests: the machine has other tests to run */

static volatile sig_atomic_t ended;
static bool blocking, edges;
static size_t stream_size;
static long pause_us;

static void on_term(int sig)
{
	(void)sig;
	ended = 1;
}

static void set_mode(int fd)
{
	if (!blocking)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void wait_ready(int fd, short events, const char *what)
{
	errno = 0;
	if (!blocking && wait_fd(fd, events, TIMEOUT_MS) && errno != EINTR)
		fail(what);
}

static void send_all(int fd, const unsigned char *buf, size_t n)
{
	while (n) {
		ssize_t sent = send(fd, buf, n, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN) {
			wait_ready(fd, POLLOUT, "send");
			continue;
		}
		if (sent <= 0)
			fail("send");
		buf += sent;
		n -= (size_t)sent;
	}
}

static void recv_all(int fd, unsigned char *buf, size_t n)
{
	while (n) {
		ssize_t got = recv(fd, buf, n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN) {
			wait_ready(fd, POLLIN, "recv");
			continue;
		}
		if (got <= 0)
			fail(got ? "recv" : "end");
		buf += got;
		n -= (size_t)got;
	}
}

static int connected(const struct endpoint *to)
{
	int fd = endpoint_socket("4", to, SOCK_STREAM);

	if (connect(fd, (const struct sockaddr *)&to->ss, to->len) < 0)
		fail("connect");
	set_mode(fd);
	return fd;
}

static int listening(const struct endpoint *at)
{
	int fd = endpoint_socket("4", at, SOCK_STREAM), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)&at->ss, at->len) < 0 || listen(fd, 16) < 0)
		fail("listen");
	return fd;
}

/* --- who asks --- */

static void run_ask(const struct endpoint *to)
{
	static unsigned char sent[REQUEST_MAX], got[REQUEST_MAX];
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	unsigned long good = 0;
	int fd = connected(to);
	unsigned seed = 1;

	while (!ended) {
		size_t n = good % 4 ? good % 300 + 1 : (good * 37) % REQUEST_MAX + 1;

		for (size_t i = 0; i < n; i++) {
			seed = seed * 1103515245 + 12345;
			sent[i] = (unsigned char)(seed >> 16);
		}
		send_all(fd, sent, n);
		recv_all(fd, got, n);
		if (memcmp(sent, got, n) != 0) {
			printf("error bytes of request %lu\n", good);
			exit(1);
		}
		good++;
		nanosleep(&pause, NULL);
	}
	printf("good %lu\n", good);
}

/* A stream's bytes are told by their positions. */
#define PERIOD 65521

static unsigned char pattern[PERIOD + STREAM_MAX];

static void make_pattern(void)
{
	unsigned seed = 1;

	for (size_t i = 0; i < sizeof(pattern); i++) {
		seed = seed * 1103515245 + 12345;
		pattern[i] = i < PERIOD ? (unsigned char)(seed >> 16) : pattern[i - PERIOD];
	}
}

static void run_pour(const struct endpoint *to)
{
	const struct timespec pause = {.tv_nsec = pause_us * 1000};
	unsigned long good = 0;
	int fd = connected(to);

	make_pattern();
	while (!ended) {
		send_all(fd, pattern + good % PERIOD, stream_size);
		good += stream_size;
		if (pause_us)
			nanosleep(&pause, NULL);
	}
	printf("good %lu\n", good);
}

/* --- who answers --- */

static bool echo(int fd)
{
	unsigned char buf[REQUEST_MAX];
	ssize_t n = recv(fd, buf, sizeof(buf), 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0)
		return false;
	send_all(fd, buf, (size_t)n);
	return true;
}

static void run_serve(const struct endpoint *at)
{
	struct pollfd p[SERVED_MAX] = {{.fd = listening(at), .events = POLLIN}};
	nfds_t n = 1;

	for (;;) {
		if (poll(p, n, -1) < 0)
			continue;
		if (p[0].revents && n < SERVED_MAX) {
			int fd = accept(p[0].fd, NULL, NULL);

			if (fd >= 0) {
				set_mode(fd);
				p[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
			}
		}
		for (nfds_t i = 1; i < n; i++) {
			if (!p[i].revents || echo(p[i].fd))
				continue;
			close(p[i].fd);
			p[i--] = p[--n];
		}
	}
}

/* Until nothing is there; by edges: until less came than was asked for. False: the end. */
static bool drain_some(int fd, unsigned long *good)
{
	static unsigned char buf[STREAM_MAX];

	for (;;) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		if (n == 0)
			return false;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n < 0)
			fail("recv");
		if (memcmp(buf, pattern + *good % PERIOD, (size_t)n) != 0) {
			printf("error bytes from %lu on\n", *good);
			exit(1);
		}
		*good += (unsigned long)n;
		if (edges && n < (ssize_t)sizeof(buf))
			return true;
	}
}

static void run_drain(const struct endpoint *at)
{
	int fd = accept(listening(at), NULL, NULL), ep = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP | (edges ? EPOLLET : 0)};
	unsigned long good = 0;

	set_mode(fd);
	make_pattern();
	epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
	do {
		epoll_wait(ep, &e, 1, -1);
	} while (drain_some(fd, &good) && !(edges && e.events & EPOLLRDHUP));
	while (drain_some(fd, &good))
		;
	printf("good %lu\n", good);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const struct endpoint *e);
	} parts[] = {
		{"ask", run_ask}, {"pour", run_pour}, {"serve", run_serve}, {"drain", run_drain}};
	const struct sigaction term = {.sa_handler = on_term};
	struct endpoint e;

	if (argc < 4)
		return 2;
	blocking = argc > 4 && !strcmp(argv[4], "blocking");
	edges = argc > 4 && !strcmp(argv[4], "edges");
	stream_size = argc > 4 ? (size_t)atoi(argv[4]) : 0;
	pause_us = argc > 5 ? atoi(argv[5]) : 0;
	if (!strcmp(argv[1], "pour") && (!stream_size || stream_size > STREAM_MAX))
		return 2;
	endpoint_parse("4", argv[2], argv[3], &e);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		if (strcmp(argv[1], parts[i].name) != 0)
			continue;
		if (i < 2)
			sigaction(SIGTERM, &term, NULL);
		parts[i].run(&e);
		return 0;
	}
	return 2;
}
