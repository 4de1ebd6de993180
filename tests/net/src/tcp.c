// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TCP and the addresses that both ends see.
 *
 *  tcp listen FAMILY ADDR PORT [NAME [patient]]
 *      For every connection prints "accept=PEER getpeer=PEER local=LOCAL"; sends the client
 *      "NAME you=PEER me=LOCAL" and then echoes until the client closes. First of all prints
 *      "listening at LOCAL". A client that says nothing for 5 s is left, but by a patient server,
 *      whose connections end with it.
 *  tcp connect FAMILY ADDR PORT [-b ADDR PORT] [-n] [-k SECONDS]
 *      Prints "peer=PEER local=LOCAL" and the server's line, checks that an echo comes back, and
 *      ends with 0; or "error connect ERRNO" and 1. -b binds first, -n connects without blocking,
 *      -k keeps the connection so long and echoes again.
 *  tcp bind FAMILY ADDR PORT
 *      Prints "bound LOCAL" or "error bind ERRNO".
 *  tcp ports FAMILY ADDR FROM TO
 *      Listens on two ports at once (the line's NAME is the port).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "netutil.h"

static int listen_at(const char *family, const char *addr, const char *port)
{
	struct endpoint e, local;
	char text[ADDR_TEXT];
	int fd;

	endpoint_parse(family, addr, port, &e);
	fd = endpoint_bound(family, &e, 0);
	if (listen(fd, 128))
		fail("listen");
	local_of(fd, &local);
	printf("listening at %s\n", endpoint_text(&local, text));
	return fd;
}

/* Of a server that leaves it to its clients how long they stay, and takes its children with it. */
static bool patient;

static void serve(int fd, const char *name, const char *peer)
{
	char text[ADDR_TEXT], line[256];
	struct endpoint local;
	ssize_t n;

	if (!patient)
		set_timeouts(fd);
	local_of(fd, &local);
	n = snprintf(line, sizeof(line), "%s you=%s me=%s\n", name, peer,
		     endpoint_text(&local, text));
	while (n > 0 && write(fd, line, (size_t)n) == n)
		n = read(fd, line, sizeof(line));
	close(fd);
}

static void accept_one(int listener, const char *name)
{
	char text[3][ADDR_TEXT];
	struct endpoint peer = {.len = sizeof(peer.ss)}, again, local;
	int fd = accept(listener, (struct sockaddr *)&peer.ss, &peer.len);

	if (fd < 0)
		fail("accept");
	local_of(fd, &local);
	if (peer_of(fd, &again))
		memset(&again, 0, sizeof(again));
	printf("accept=%s getpeer=%s local=%s\n", endpoint_text(&peer, text[0]),
	       endpoint_text(&again, text[1]), endpoint_text(&local, text[2]));
	fflush(stdout);
	if (fork() == 0) {
		if (patient && prctl(PR_SET_PDEATHSIG, SIGKILL))
			fail("prctl");
		serve(fd, name, text[0]);
		_exit(0);
	}
	close(fd);
}

static void cmd_listen(int argc, char **argv)
{
	const char *name = argc > 5 ? argv[5] : "server";
	int fd = listen_at(argv[2], argv[3], argv[4]);

	patient = argc > 6;
	fflush(stdout);
	signal(SIGCHLD, SIG_IGN);
	for (;;)
		accept_one(fd, name);
}

static void cmd_ports(char **argv)
{
	struct pollfd p[2] = {{.events = POLLIN}, {.events = POLLIN}};

	p[0].fd = listen_at(argv[2], argv[3], argv[4]);
	p[1].fd = listen_at(argv[2], argv[3], argv[5]);
	fflush(stdout);
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		if (poll(p, 2, -1) < 0)
			fail("poll");
		for (int i = 0; i < 2; i++)
			if (p[i].revents)
				accept_one(p[i].fd, argv[4 + i]);
	}
}

static int cmd_bind(char **argv)
{
	struct endpoint e, local;
	char text[ADDR_TEXT];
	int fd;

	endpoint_parse(argv[2], argv[3], argv[4], &e);
	fd = endpoint_socket(argv[2], &e, SOCK_STREAM);
	if (bind(fd, (struct sockaddr *)&e.ss, e.len))
		fail("bind");
	local_of(fd, &local);
	printf("bound %s\n", endpoint_text(&local, text));
	return 0;
}

static void connect_to(int fd, const struct endpoint *to, bool non_blocking)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (connect(fd, (const struct sockaddr *)&to->ss, to->len) == 0)
		return;
	if (!non_blocking || errno != EINPROGRESS)
		fail("connect");
	if (wait_fd(fd, POLLOUT, 2 * TIMEOUT_MS)) {
		errno = ETIMEDOUT;
		fail("poll");
	}
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) || err) {
		errno = err;
		fail("connect");
	}
}

static void echo(int fd, const char *message)
{
	char buf[64];
	size_t want = strlen(message), have = 0;
	ssize_t n;

	if (write(fd, message, want) != (ssize_t)want)
		fail("write");
	while (have < want) {
		if (wait_fd(fd, POLLIN, TIMEOUT_MS)) {
			errno = ETIMEDOUT;
			fail("read");
		}
		n = read(fd, buf + have, want - have);
		if (n <= 0)
			fail("read");
		have += (size_t)n;
	}
	if (memcmp(buf, message, want) != 0) {
		printf("error echo differs\n");
		exit(1);
	}
}

static void read_line(int fd, char *line, size_t size)
{
	size_t have = 0;

	while (have + 1 < size && (have == 0 || line[have - 1] != '\n')) {
		if (wait_fd(fd, POLLIN, TIMEOUT_MS)) {
			errno = ETIMEDOUT;
			fail("read");
		}
		if (read(fd, line + have, 1) != 1)
			fail("read");
		have++;
	}
	line[have ? have - 1 : 0] = '\0';
}

static int cmd_connect(int argc, char **argv)
{
	struct endpoint to, from, peer, local;
	char text[2][ADDR_TEXT], line[256];
	bool non_blocking = false, bound = false;
	unsigned keep = 0;
	int fd;

	endpoint_parse(argv[2], argv[3], argv[4], &to);
	for (int i = 5; i < argc; i++) {
		if (strcmp(argv[i], "-n") == 0) {
			non_blocking = true;
		} else if (strcmp(argv[i], "-k") == 0 && i + 1 < argc) {
			keep = (unsigned)atoi(argv[++i]);
		} else if (strcmp(argv[i], "-b") == 0 && i + 2 < argc) {
			endpoint_parse(argv[2], argv[i + 1], argv[i + 2], &from);
			bound = true;
			i += 2;
		}
	}
	fd = endpoint_socket(argv[2], &to, SOCK_STREAM | (non_blocking ? SOCK_NONBLOCK : 0));
	if (bound && bind(fd, (struct sockaddr *)&from.ss, from.len))
		fail("bind");
	connect_to(fd, &to, non_blocking);
	errno = peer_of(fd, &peer);
	if (errno)
		fail("getpeername");
	local_of(fd, &local);
	read_line(fd, line, sizeof(line));
	echo(fd, "ping\n");
	printf("peer=%s local=%s %s\n", endpoint_text(&peer, text[0]),
	       endpoint_text(&local, text[1]), line);
	fflush(stdout);
	if (keep) {
		sleep(keep);
		echo(fd, "pong\n");
		printf("echoed again\n");
	}
	return 0;
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	if (argc >= 5 && strcmp(argv[1], "listen") == 0)
		cmd_listen(argc, argv);
	if (argc >= 5 && strcmp(argv[1], "connect") == 0)
		return cmd_connect(argc, argv);
	if (argc == 5 && strcmp(argv[1], "bind") == 0)
		return cmd_bind(argv);
	if (argc == 6 && strcmp(argv[1], "ports") == 0)
		cmd_ports(argv);
	fprintf(stderr, "usage: tcp listen|connect|bind|ports FAMILY ADDR PORT ...\n");
	return 2;
}
