// SPDX-License-Identifier: GPL-2.0-or-later
/* Data that moves without a copy, and descriptors that move between processes. */
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "behaviours.h"

static int file_of(size_t n)
{
	int fd = memfd_create("data", MFD_CLOEXEC);
	unsigned char c;

	for (size_t i = 0; i < n; i++) {
		c = pattern_at(i);
		if (write(fd, &c, 1) != 1)
			break;
	}
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static void send_file(struct run *r)
{
	int fd = file_of(20000);

	said_result(r, "n", sendfile(r->client, fd, NULL, 20000));
	said_result(r, "good", get_all(r, r->server, 20000, 0));
}

static void splice_in(struct run *r)
{
	int p[2], fd = file_of(8000);

	if (pipe(p) < 0)
		return;
	said_result(r, "file", splice(fd, NULL, p[1], NULL, 8000, 0));
	said_result(r, "socket", splice(p[0], NULL, r->client, NULL, 8000, 0));
	said_result(r, "good", get_all(r, r->server, 8000, 0));
}

static void send_40(struct run *r)
{
	put(r, r->client, 40, 0);
}

static void tee_in(struct run *r)
{
	int a[2], b[2];

	if (pipe(a) < 0 || pipe(b) < 0)
		return;
	for (int i = 0; i < 40; i++) {
		unsigned char c = pattern_at((uint64_t)i);

		if (write(a[1], &c, 1) != 1)
			return;
	}
	said_result(r, "tee", tee(a[0], b[1], 40, 0));
	said_result(r, "one", splice(a[0], NULL, r->client, NULL, 40, 0));
	said_result(r, "two", splice(b[0], NULL, r->server, NULL, 40, 0));
	said_result(r, "good", get_all(r, r->server, 40, 0));
	said_result(r, "good", get_all(r, r->client, 40, 0));
}

/* What comes is shown to a second reader, and mapped into memory. */
static void tee_out(struct run *r)
{
	unsigned char one[64], two[64] = {0};
	struct iovec v = {one, sizeof(one)};
	int a[2], b[2];

	if (pipe(a) < 0 || pipe(b) < 0)
		return;
	put(r, r->client, 40, 0);
	pause_ms(20);
	said_result(r, "n", splice(r->server, NULL, a[1], NULL, 4096, SPLICE_F_NONBLOCK));
	said_result(r, "tee", tee(a[0], b[1], 4096, SPLICE_F_NONBLOCK));
	said_result(r, "one", vmsplice(a[0], &v, 1, SPLICE_F_NONBLOCK));
	fcntl(b[0], F_SETFL, O_NONBLOCK);
	said_result(r, "two", read(b[0], two, sizeof(two)));
	said(r, "%s", two[39] == pattern_at(39) && !memcmp(one, two, 40) ? "good" : "bad");
}

/* As an event loop does it: it splices until EAGAIN, and waits for the next edge. */
static void splice_out_edge(struct run *r)
{
	int ep = epoll_of(r->server, EPOLLIN | EPOLLET), p[2];

	fcntl(r->server, F_SETFL, O_NONBLOCK);
	if (pipe(p) < 0)
		return;
	for (int i = 0; i < 2; i++) {
		ssize_t n, got = 0;

		later(r, 10, send_40);
		said_epoll(r, ep, "edge", COMES_MS);
		while ((n = splice(r->server, NULL, p[1], NULL, 4096, SPLICE_F_NONBLOCK)) > 0)
			got += n;
		said_result(r, "n", got ? got : n);
	}
}

/* Until there is no room; what does not fit into the queue of redirected data goes by TCP. */
static void fill_both(struct run *r)
{
	unsigned char buf[4096];
	uint64_t at = 0;
	ssize_t n;

	fcntl(r->client, F_SETFL, O_NONBLOCK);
	do {
		for (size_t i = 0; i < sizeof(buf); i++)
			buf[i] = pattern_at(at + i);
		n = send(r->client, buf, sizeof(buf), MSG_NOSIGNAL);
		at += n > 0 ? (uint64_t)n : 0;
	} while (n > 0);
}

static void splice_out_both(struct run *r)
{
	unsigned char buf[16] = {0};
	bool good = true;
	int p[2];

	if (pipe(p) < 0)
		return;
	fill_both(r);
	pause_ms(20);
	said_result(r, "n", splice(r->server, NULL, p[1], NULL, sizeof(buf), SPLICE_F_NONBLOCK));
	if (read(p[0], buf, sizeof(buf)) != sizeof(buf))
		return;
	for (size_t i = 0; i < sizeof(buf); i++)
		good = good && buf[i] == pattern_at(i);
	said(r, "%s", good ? "in order" : "newer bytes first");
}

static void vm_splice(struct run *r)
{
	static unsigned char buf[4096];
	struct iovec v = {buf, sizeof(buf)};
	int p[2];

	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = pattern_at(i);
	if (pipe(p) < 0)
		return;
	said_result(r, "pipe", vmsplice(p[1], &v, 1, 0));
	said_result(r, "socket", splice(p[0], NULL, r->client, NULL, sizeof(buf), 0));
	said_result(r, "good", get_all(r, r->server, sizeof(buf), 0));
}

/* A proxy as Go's io.Copy and HAProxy make one: between two connections by a pipe. */
static void splice_proxy(struct run *r)
{
	int front, back, p[2];
	ssize_t n;

	if (pipe(p) < 0 || pair_open(r, &front, &back) < 0)
		return;
	later(r, 10, send_40);
	events_within(r->server, POLLIN, COMES_MS);
	n = splice(r->server, NULL, p[1], NULL, 4096, SPLICE_F_NONBLOCK);
	said_result(r, "in", n);
	if (n > 0)
		said_result(r, "out", splice(p[0], NULL, front, NULL, (size_t)n, 0));
	if (n > 0)
		said_result(r, "good", get_all(r, back, (size_t)n, 0));
}

static void zero_copy_receive(struct run *r)
{
	struct tcp_zerocopy_receive z = {.length = 16384};
	socklen_t len = sizeof(z);
	void *at = mmap(NULL, 16384, PROT_READ, MAP_SHARED, r->server, 0);

	if (at == MAP_FAILED) {
		said_result(r, "mmap", -1);
		return;
	}
	put(r, r->client, 8000, 0);
	pause_ms(20);
	z.address = (uint64_t)(uintptr_t)at;
	said_result(r, "get", getsockopt(r->server, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &z, &len));
	said(r, "bytes=%u", z.length + z.recv_skip_hint);
}

static void duplicate(struct run *r)
{
	int fd = dup(r->server);

	put(r, r->client, 40, 0);
	close(r->server);
	said_result(r, "good", get_all(r, fd, 40, 0));
	put(r, fd, 10, 0);
	said_result(r, "back", get_all(r, r->client, 10, 0));
}

/* Parent and child read one after the other from what they share. */
static void shared_by_fork(struct run *r)
{
	int status = 0;
	pid_t pid;

	put(r, r->client, 40, 0);
	pid = fork();
	if (pid == 0)
		_exit((int)get_all(r, r->server, 40, 0));
	waitpid(pid, &status, 0);
	said(r, "child=%d", WEXITSTATUS(status));
	put(r, r->client, 40, 40);
	said_result(r, "parent", get_all(r, r->server, 40, 40));
}

static int send_descriptor(int to, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec v = {"x", 1};
	struct msghdr m = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(to, &m, 0) == 1 ? 0 : -errno;
}

static int receive_descriptor(int from)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	char x;
	struct iovec v = {&x, 1};
	struct msghdr m = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	int fd = -1;

	if (recvmsg(from, &m, 0) == 1 && CMSG_FIRSTHDR(&m))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

/* With data unread on the way, as a server that hands connections on does it. */
static void handed_over(struct run *r)
{
	int ends[2], fd;

	put(r, r->client, 40, 0);
	pause_ms(20);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0 ||
	    send_descriptor(ends[0], r->server) < 0)
		return;
	close(r->server);
	fd = receive_descriptor(ends[1]);
	said_result(r, "good", get_all(r, fd, 40, 0));
	put(r, fd, 10, 0);
	said_result(r, "back", get_all(r, r->client, 10, 0));
}

const struct behaviour behaviours_move[] = {
	{"sendfile", send_file, 0},
	{"splice into", splice_in, 0},
	{"splice between two connections", splice_proxy, 0},
	{"splice from, after epoll's edges", splice_out_edge, 0},
	{"splice from, both queues filled", splice_out_both, 0},
	{"splice from, then tee and vmsplice", tee_out, 0},
	{"tee, then splice into both ends", tee_in, 0},
	{"vmsplice, then splice into", vm_splice, 0},
	{"TCP_ZEROCOPY_RECEIVE", zero_copy_receive, 0},
	{"dup", duplicate, 0},
	{"shared by fork", shared_by_fork, 0},
	{"SCM_RIGHTS with data unread", handed_over, 0},
	{NULL, NULL, 0},
};
