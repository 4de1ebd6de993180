// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * splice_relay ADDR PORT TO_ADDR TO_PORT [waiting|sendfile]
 *     A proxy of bytes, by splice(2) from socket to pipe and from pipe to socket, edge-triggered
 *     and without blocking. waiting: its pipes may be waited for. sendfile: from socket to pipe by
 *     sendfile(2). Where that is refused (ENOSYS, EINVAL) it goes on with read() and write().
 *     Prints "ready", and of each connection that ended "end SPLICED READ": bytes that splice() got
 *     from its sockets, and that read() did.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <unistd.h>
#include "netutil.h"

#define PART 65536

struct way {
	int from, to;
	int pipe[2];
	size_t held; /* in the pipe */
	char buf[PART];
	size_t in_buf, at;
	int ended, plain;
};

struct relay {
	struct way ways[2];
	unsigned long long spliced, was_read;
};

static int by_sendfile;

static int retry(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* >0: bytes came; 0: the end; -1: not now. Others are an error: the end, too. */
static ssize_t get(struct relay *r, struct way *w)
{
	ssize_t n;

	if (!w->plain) {
		n = by_sendfile ? sendfile(w->pipe[1], w->from, NULL, 1 << 20)
				: splice(w->from, NULL, w->pipe[1], NULL, 1 << 20, SPLICE_F_MOVE);
		if (n > 0) {
			w->held += (size_t)n;
			r->spliced += (size_t)n;
			return n;
		}
		if (n == 0 || retry() || (errno != ENOSYS && errno != EINVAL))
			return n == 0 ? 0 : retry() ? -1 : 0;
		w->plain = 1;
	}
	n = read(w->from, w->buf, PART);
	if (n > 0) {
		w->in_buf = (size_t)n;
		w->at = 0;
		r->was_read += (size_t)n;
	}
	return n < 0 && retry() ? -1 : n > 0 ? n : 0;
}

/* What is in the pipe, by whatever works. 0: all is on its way; -1: not now; -2: an error. */
static int put(struct way *w)
{
	while (w->held || w->in_buf) {
		ssize_t n;

		if (w->in_buf) {
			n = write(w->to, w->buf + w->at, w->in_buf);
			if (n < 0)
				return retry() ? -1 : -2;
			w->at += (size_t)n;
			w->in_buf -= (size_t)n;
			continue;
		}
		if (!w->plain) {
			n = splice(w->pipe[0], NULL, w->to, NULL, w->held, SPLICE_F_MOVE);
			if (n < 0 && (errno == ENOSYS || errno == EINVAL)) {
				w->plain = 1;
				continue;
			}
			if (n < 0)
				return retry() ? -1 : -2;
			w->held -= (size_t)n;
			continue;
		}
		n = read(w->pipe[0], w->buf, w->held < PART ? w->held : PART);
		if (n <= 0)
			return -2;
		w->held -= (size_t)n;
		w->in_buf = (size_t)n;
		w->at = 0;
	}
	return 0;
}

static void pump(struct relay *r, struct way *w)
{
	while (!w->ended) {
		int sent = put(w);
		ssize_t n;

		if (sent == -1)
			return;
		n = sent == -2 ? 0 : get(r, w);
		if (n < 0)
			return;
		if (n == 0) {
			w->ended = 1;
			shutdown(w->to, SHUT_WR);
		}
	}
}

static void begin(int ep, int client, const struct endpoint *to, int flags)
{
	struct relay *r = calloc(1, sizeof(*r));
	int one = 1, server = socket(to->ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = r};

	if (!r || server < 0 || connect(server, (const struct sockaddr *)&to->ss, to->len) < 0)
		fail("connect");
	fcntl(server, F_SETFL, O_NONBLOCK);
	setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	r->ways[0] = (struct way){.from = client, .to = server};
	r->ways[1] = (struct way){.from = server, .to = client};
	if (pipe2(r->ways[0].pipe, O_CLOEXEC | flags) < 0 ||
	    pipe2(r->ways[1].pipe, O_CLOEXEC | flags) < 0)
		fail("pipe");
	epoll_ctl(ep, EPOLL_CTL_ADD, client, &e);
	epoll_ctl(ep, EPOLL_CTL_ADD, server, &e);
}

static void end(struct relay *r)
{
	printf("end %llu %llu\n", r->spliced, r->was_read);
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		close(r->ways[i].from);
		close(r->ways[i].pipe[0]);
		close(r->ways[i].pipe[1]);
	}
	free(r);
}

int main(int argc, char **argv)
{
	struct endpoint at, to;
	struct epoll_event e = {.events = EPOLLIN};
	int one = 1, ep = epoll_create1(EPOLL_CLOEXEC), flags, fd;

	if (argc < 5)
		return 2;
	by_sendfile = argc > 5 && strcmp(argv[5], "sendfile") == 0;
	flags = argc > 5 && !by_sendfile ? 0 : O_NONBLOCK;
	signal(SIGPIPE, SIG_IGN);
	endpoint_parse("4", argv[1], argv[2], &at);
	endpoint_parse("4", argv[3], argv[4], &to);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&at.ss, at.len) < 0 || listen(fd, 64) < 0)
		fail("listen");
	epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
	puts("ready");
	fflush(stdout);
	for (;;) {
		struct relay *r;

		if (epoll_wait(ep, &e, 1, -1) < 1)
			continue;
		r = e.data.ptr;
		if (!r) {
			int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

			if (client >= 0)
				begin(ep, client, &to, flags);
			continue;
		}
		pump(r, &r->ways[0]);
		pump(r, &r->ways[1]);
		if (r->ways[0].ended && r->ways[1].ended)
			end(r);
	}
}
