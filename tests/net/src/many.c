// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Many connections at once.
 *
 *  many server FAMILY ADDR PORT COUNT
 *      Accepts COUNT connections (all are open at the same time), echoes what comes, and ends when
 *      all are closed. Prints "ready" first, and at the end "served COUNT peers ADDR=N ...".
 *  many client FAMILY ADDR PORT COUNT
 *      Opens COUNT connections without blocking, waits until all of them echoed their number, then
 *      closes them. Checks getpeername() of each. Prints "connected COUNT local ADDR=N ...".
 *  many forks FAMILY ADDR PORT COUNT
 *      The same by COUNT child processes with one connection each.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>
#include "netutil.h"

#define MAX_ADDRESSES 16

/* How often each address (without its port) was seen. */
struct tally {
	char addr[MAX_ADDRESSES][ADDR_TEXT];
	unsigned count[MAX_ADDRESSES];
	unsigned n;
};

static void tally_add(struct tally *t, const struct endpoint *e)
{
	char text[ADDR_TEXT];
	unsigned i;

	endpoint_text(e, text);
	*strrchr(text, ':') = '\0';
	for (i = 0; i < t->n; i++)
		if (strcmp(t->addr[i], text) == 0)
			break;
	if (i == MAX_ADDRESSES)
		return;
	if (i == t->n)
		memcpy(t->addr[t->n++], text, sizeof(text));
	t->count[i]++;
}

static void tally_print(const struct tally *t)
{
	for (unsigned i = 0; i < t->n; i++)
		printf(" %s=%u", t->addr[i], t->count[i]);
	printf("\n");
	fflush(stdout);
}

static void watch(int epoll_fd, int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.fd = fd};

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev))
		fail("epoll_ctl");
}

static int server_listen(char **argv, int epoll_fd)
{
	struct endpoint e;
	int fd;

	endpoint_parse(argv[2], argv[3], argv[4], &e);
	fd = endpoint_bound(argv[2], &e, SOCK_NONBLOCK);
	if (listen(fd, 4096))
		fail("listen");
	watch(epoll_fd, fd, EPOLLIN);
	printf("ready\n");
	fflush(stdout);
	return fd;
}

static unsigned server_accept(int listener, int epoll_fd, struct tally *t)
{
	unsigned n = 0;

	for (;;) {
		struct endpoint peer = {.len = sizeof(peer.ss)};
		int fd = accept4(listener, (struct sockaddr *)&peer.ss, &peer.len, SOCK_CLOEXEC);

		if (fd < 0) {
			if (errno != EAGAIN)
				fail("accept");
			return n;
		}
		tally_add(t, &peer);
		watch(epoll_fd, fd, EPOLLIN);
		n++;
	}
}

static int cmd_server(char **argv)
{
	unsigned want = (unsigned)atoi(argv[5]), accepted = 0, closed = 0;
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	int listener = server_listen(argv, epoll_fd);
	struct epoll_event ev[64];
	struct tally t = {0};
	char buf[256];

	while (closed < want) {
		int n = epoll_wait(epoll_fd, ev, 64, 6 * TIMEOUT_MS);

		if (n <= 0)
			break;
		for (int i = 0; i < n; i++) {
			int fd = ev[i].data.fd;
			ssize_t r;

			if (fd == listener) {
				accepted += server_accept(listener, epoll_fd, &t);
				continue;
			}
			r = read(fd, buf, sizeof(buf));
			if (r > 0 && write(fd, buf, (size_t)r) == r)
				continue;
			close(fd);
			closed++;
		}
	}
	printf("served %u peers", accepted);
	tally_print(&t);
	return accepted == want && closed == want ? 0 : 1;
}

struct client {
	struct endpoint to;
	int epoll_fd;
	unsigned want, done;
	unsigned char *state; /* by descriptor: 0 connecting, 1 asked, 2 answered */
	struct tally t;
};

static void client_open(struct client *c, const char *family)
{
	int fd = endpoint_socket(family, &c->to, SOCK_STREAM | SOCK_NONBLOCK);

	if (connect(fd, (struct sockaddr *)&c->to.ss, c->to.len) && errno != EINPROGRESS)
		fail("connect");
	watch(c->epoll_fd, fd, EPOLLOUT);
}

static void client_connected(struct client *c, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
	struct endpoint peer, local;
	socklen_t len = sizeof(int);
	int err = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) || err) {
		errno = err;
		fail("connect");
	}
	errno = peer_of(fd, &peer);
	if (errno || !endpoint_eq(&peer, &c->to))
		fail("getpeername");
	local_of(fd, &local);
	tally_add(&c->t, &local);
	if (write(fd, &fd, sizeof(fd)) != sizeof(fd))
		fail("write");
	epoll_ctl(c->epoll_fd, EPOLL_CTL_MOD, fd, &ev);
	c->state[fd] = 1;
}

static void client_answered(struct client *c, int fd)
{
	int answer = -1;

	if (read(fd, &answer, sizeof(answer)) != sizeof(answer) || answer != fd ||
	    c->state[fd] != 1)
		fail("read");
	c->state[fd] = 2;
	c->done++;
}

static int cmd_client(char **argv)
{
	struct client c = {.want = (unsigned)atoi(argv[5])};
	struct epoll_event ev[64];

	c.state = calloc(c.want + 64, 1);
	c.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	endpoint_parse(argv[2], argv[3], argv[4], &c.to);
	if (!c.state || c.epoll_fd < 0)
		fail("epoll_create1");
	for (unsigned i = 0; i < c.want; i++)
		client_open(&c, argv[2]);
	while (c.done < c.want) {
		int n = epoll_wait(c.epoll_fd, ev, 64, 3 * TIMEOUT_MS);

		if (n <= 0) {
			printf("error only %u of %u answered\n", c.done, c.want);
			return 1;
		}
		for (int i = 0; i < n; i++) {
			if (c.state[ev[i].data.fd] == 0)
				client_connected(&c, ev[i].data.fd);
			else
				client_answered(&c, ev[i].data.fd);
		}
	}
	/* every connection is open here: nothing was closed before all had been answered */
	printf("connected %u local", c.done);
	tally_print(&c.t);
	return 0;
}

static int fork_child(char **argv)
{
	struct endpoint to, peer;
	int fd, message = getpid(), answer = 0;

	endpoint_parse(argv[2], argv[3], argv[4], &to);
	fd = endpoint_socket(argv[2], &to, SOCK_STREAM);
	set_timeouts(fd);
	if (connect(fd, (struct sockaddr *)&to.ss, to.len))
		fail("connect");
	if (peer_of(fd, &peer) || !endpoint_eq(&peer, &to))
		return 1;
	if (write(fd, &message, sizeof(message)) != sizeof(message) ||
	    read(fd, &answer, sizeof(answer)) != sizeof(answer))
		fail("echo");
	return answer == message ? 0 : 1;
}

static int cmd_forks(char **argv)
{
	unsigned want = (unsigned)atoi(argv[5]), good = 0;
	int status;

	for (unsigned i = 0; i < want; i++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid == 0)
			exit(fork_child(argv));
	}
	while (wait(&status) > 0)
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			good++;
	printf("children %u good %u\n", want, good);
	return good == want ? 0 : 1;
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	raise_file_limit();
	if (argc == 6 && strcmp(argv[1], "server") == 0)
		return cmd_server(argv);
	if (argc == 6 && strcmp(argv[1], "client") == 0)
		return cmd_client(argv);
	if (argc == 6 && strcmp(argv[1], "forks") == 0)
		return cmd_forks(argv);
	fprintf(stderr, "usage: many server|client|forks FAMILY ADDR PORT COUNT\n");
	return 2;
}
