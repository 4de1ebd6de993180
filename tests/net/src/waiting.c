// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How long clients that wait for a server notice it late. Times are of CLOCK_MONOTONIC, in ns.
 *
 *  waiting listen FAMILY ADDR PORT
 *      Prints "listens TIME" and accepts until it is killed.
 *  waiting connect FAMILY ADDR PORT COUNT [-n]
 *      So many clients at a time, each a blocking connect() in a process of its own, or, with -n,
 *      all of one process, with epoll. Prints "waits" when all have begun, and for each
 *      "connected TIME" or "error ERRNO TIME".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "netutil.h"

static unsigned long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (unsigned long long)ts.tv_sec * 1000000000 + (unsigned long long)ts.tv_nsec;
}

static void say(int err)
{
	if (err)
		printf("error %s %llu\n", strerrorname_np(err), now());
	else
		printf("connected %llu\n", now());
	fflush(stdout);
}

static int serve(char **argv)
{
	struct endpoint e;
	int fd;

	endpoint_parse(argv[2], argv[3], argv[4], &e);
	fd = endpoint_bound(argv[2], &e, 0);
	printf("listens %llu\n", now());
	fflush(stdout);
	if (listen(fd, 1024))
		fail("listen");
	for (;;) {
		int c = accept(fd, NULL, NULL);

		if (c >= 0)
			close(c);
	}
}

static void block(char **argv, const struct endpoint *e, int count)
{
	for (int i = 0; i < count; i++) {
		int fd;

		if (fork())
			continue;
		fd = endpoint_socket(argv[2], e, SOCK_STREAM);
		say(connect(fd, (const struct sockaddr *)&e->ss, e->len) ? errno : 0);
		_exit(0);
	}
	printf("waits\n");
	fflush(stdout);
	while (wait(NULL) > 0)
		;
}

static void poll_all(char **argv, const struct endpoint *e, int count)
{
	int ep = epoll_create1(0);

	for (int i = 0; i < count; i++) {
		struct epoll_event ev = {.events = EPOLLOUT};

		ev.data.fd = endpoint_socket(argv[2], e, SOCK_STREAM | SOCK_NONBLOCK);
		if (connect(ev.data.fd, (const struct sockaddr *)&e->ss, e->len) &&
		    errno != EINPROGRESS)
			fail("connect");
		if (epoll_ctl(ep, EPOLL_CTL_ADD, ev.data.fd, &ev))
			fail("epoll_ctl");
	}
	printf("waits\n");
	fflush(stdout);
	while (count > 0) {
		struct epoll_event ev;
		int err = 0;
		socklen_t len = sizeof(err);

		if (epoll_wait(ep, &ev, 1, -1) != 1)
			continue;
		getsockopt(ev.data.fd, SOL_SOCKET, SO_ERROR, &err, &len);
		say(err);
		close(ev.data.fd);
		count--;
	}
}

int main(int argc, char **argv)
{
	struct endpoint e;

	if (argc == 5 && !strcmp(argv[1], "listen"))
		return serve(argv);
	if (argc < 6 || strcmp(argv[1], "connect") != 0)
		return 2;
	endpoint_parse(argv[2], argv[3], argv[4], &e);
	if (argc > 6)
		poll_all(argv, &e, atoi(argv[5]));
	else
		block(argv, &e, atoi(argv[5]));
	return 0;
}
