// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * splice_later ADDR PORT DIR PROGRAM
 *     Echoes what comes on one connection, by recv() and send(), without blocking. When DIR/exec is
 *     there it executes PROGRAM with the connection; when DIR/dlopen is, it loads DIR/splice.so,
 * whose echo() goes on.
 *
 * Built with -DSPLICES it is both of these: PROGRAM FD DIR, and the library. It goes on as before,
 * and by splice(2) once DIR/splice is there: then it prints "splices".
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#ifndef SPLICES
#include "netutil.h"
#endif

static int is_there(const char *dir, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

static void wait_for(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	poll(&p, 1, 200);
}

/* Not before all is sent. Exits at the end. */
static void echo_once(int fd)
{
	char buf[65536];
	ssize_t n = recv(fd, buf, sizeof(buf), 0), sent;

	if (n < 0 && errno == EAGAIN) {
		wait_for(fd, POLLIN);
		return;
	}
	if (n <= 0)
		exit(0);
	for (ssize_t at = 0; at < n; at += sent) {
		sent = send(fd, buf + at, (size_t)(n - at), MSG_NOSIGNAL);
		if (sent < 0 && errno != EAGAIN)
			exit(1);
		if (sent < 0)
			wait_for(fd, POLLOUT);
		sent = sent < 0 ? 0 : sent;
	}
}

#ifdef SPLICES

static void splice_once(int fd, const int p[2])
{
	ssize_t n = splice(fd, NULL, p[1], NULL, 65536, SPLICE_F_NONBLOCK), sent;

	if (n < 0 && errno == EAGAIN) {
		wait_for(fd, POLLIN);
		return;
	}
	if (n <= 0)
		exit(0);
	while (n > 0) {
		sent = splice(p[0], NULL, fd, NULL, (size_t)n, 0);
		if (sent < 0 && errno != EAGAIN)
			exit(1);
		if (sent < 0)
			wait_for(fd, POLLOUT);
		n -= sent < 0 ? 0 : sent;
	}
}

void echo(int fd, const char *dir)
{
	int p[2];

	while (!is_there(dir, "splice"))
		echo_once(fd);
	puts("splices");
	fflush(stdout);
	if (pipe2(p, O_NONBLOCK) < 0)
		exit(1);
	for (;;)
		splice_once(fd, p);
}

int main(int argc, char **argv)
{
	if (argc == 3)
		echo(atoi(argv[1]), argv[2]);
	return 2;
}

#else

static int accept_one(const char *addr, const char *port)
{
	struct endpoint at;
	int one = 1, fd, conn;

	endpoint_parse("4", addr, port, &at);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&at.ss, at.len) < 0 || listen(fd, 1) < 0)
		fail("listen");
	conn = accept4(fd, NULL, NULL, SOCK_NONBLOCK);
	if (conn < 0)
		fail("accept");
	return conn;
}

static void load(const char *dir, int fd)
{
	void (*echo)(int fd, const char *dir);
	char path[512];
	void *library;

	snprintf(path, sizeof(path), "%s/splice.so", dir);
	library = dlopen(path, RTLD_NOW);
	if (library)
		*(void **)&echo = dlsym(library, "echo");
	if (!library || !echo)
		fail("dlopen");
	echo(fd, dir);
}

int main(int argc, char **argv)
{
	char number[16];
	int fd;

	if (argc != 5)
		return 2;
	fd = accept_one(argv[1], argv[2]);
	snprintf(number, sizeof(number), "%d", fd);
	for (;;) {
		echo_once(fd);
		if (is_there(argv[3], "exec"))
			execl(argv[4], argv[4], number, argv[3], NULL);
		if (is_there(argv[3], "dlopen"))
			load(argv[3], fd);
	}
}

#endif
