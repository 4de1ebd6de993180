// SPDX-License-Identifier: GPL-2.0-or-later
/* Writing: much, little, held back, and towards somebody who does not read. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "behaviours.h"

static void server_first(struct run *r)
{
	put(r, r->server, 100, 0);
	said_result(r, "good", get_all(r, r->client, 100, 0));
	put(r, r->client, 10, 0);
	said_result(r, "back", get_all(r, r->server, 10, 0));
}

static void put_much(struct run *r)
{
	put(r, r->client, 8 << 20, 0);
}

static void large(struct run *r)
{
	later(r, 0, put_much);
	said_result(r, "good", get_all(r, r->server, 8 << 20, 0));
}

static void pausing_reader(struct run *r)
{
	size_t good = 0;

	later(r, 0, put_much);
	for (int i = 0; i < 8; i++) {
		pause_ms(15);
		good += (size_t)get_all(r, r->server, 1 << 20, good);
	}
	said(r, "good=%zu", good);
}

static void put_much_back(struct run *r)
{
	put(r, r->server, 8 << 20, 0);
}

static void get_much_back(struct run *r)
{
	get_all(r, r->client, 8 << 20, 0);
}

static void both_ways(struct run *r)
{
	pid_t pids[3] = {later(r, 0, put_much), later(r, 0, put_much_back),
			 later(r, 0, get_much_back)};

	said_result(r, "good", get_all(r, r->server, 8 << 20, 0));
	for (int i = 0; i < 3; i++)
		waitpid(pids[i], NULL, 0);
}

static void send_time_out(struct run *r)
{
	struct timeval limit = {.tv_usec = 50000};
	ssize_t n = 0;

	setsockopt(r->client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	for (int i = 0; i < 1000; i++)
		if ((n = send(r->client, (char[65536]){0}, 65536, MSG_NOSIGNAL)) <= 0)
			break;
	said_result(r, "n", n);
}

static void from_many(struct run *r)
{
	unsigned char a[10], b[90];
	struct iovec v[] = {{a, sizeof(a)}, {b, sizeof(b)}};

	for (int i = 0; i < 10; i++)
		a[i] = pattern_at((uint64_t)i);
	for (int i = 0; i < 90; i++)
		b[i] = pattern_at((uint64_t)i + 10);
	said_result(r, "n", writev(r->client, v, 2));
	said_result(r, "good", get_all(r, r->server, 100, 0));
}

static void many_at_once(struct run *r)
{
	unsigned char buf[4][25];
	struct iovec v[4];
	struct mmsghdr m[4] = {0};

	for (int i = 0; i < 4; i++) {
		for (int k = 0; k < 25; k++)
			buf[i][k] = pattern_at((uint64_t)i * 25 + (uint64_t)k);
		v[i] = (struct iovec){buf[i], 25};
		m[i].msg_hdr.msg_iov = &v[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	said_result(r, "messages", sendmmsg(r->client, m, 4, 0));
	said_result(r, "good", get_all(r, r->server, 100, 0));
}

static void no_delay(struct run *r)
{
	int on = 1;

	setsockopt(r->client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	for (int i = 0; i < 10; i++) {
		put(r, r->client, 1, (uint64_t)i);
		said_result(r, "", get(r, r->server, (char[8]){0}, 8, 0));
	}
}

static void quick_ack(struct run *r)
{
	int on = 1;

	said_result(r, "set", setsockopt(r->server, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on)));
	put(r, r->client, 100, 0);
	said_result(r, "good", get_all(r, r->server, 100, 0));
}

static void not_waiting(struct run *r)
{
	char buf[10] = {0};

	said_result(r, "n", send(r->client, buf, sizeof(buf), MSG_DONTWAIT));
	said_result(r, "zero", send(r->client, buf, 0, MSG_DONTWAIT));
	said_result(r, "got", get(r, r->server, buf, sizeof(buf), 0));
}

/* Data with the first segment of the client, without a cookie, and an answer. */
static void fast_open(struct run *r)
{
	int on = 5, fd = socket(r->family, SOCK_STREAM | SOCK_CLOEXEC, 0), server;
	int all = open("/proc/sys/net/ipv4/tcp_fastopen", O_WRONLY | O_CLOEXEC);
	struct tcp_info i = {0};
	struct sockaddr_in6 a;
	socklen_t len = sizeof(a);

	if (write(all, "519", 3) != 3) /* of this network namespace: 1 | 2 | 4 | 512 */
		said_result(r, "tcp_fastopen", -1);
	setsockopt(r->listener, IPPROTO_TCP, TCP_FASTOPEN, &on, sizeof(on));
	getsockname(r->listener, (struct sockaddr *)&a, &len);
	said_result(r, "sent", sendto(fd, "12345", 5, MSG_FASTOPEN, (struct sockaddr *)&a, len));
	server = accept(r->listener, NULL, NULL);
	said_result(r, "got", get(r, server, (char[64]){0}, 64, 0));
	len = sizeof(i);
	getsockopt(server, IPPROTO_TCP, TCP_INFO, &i, &len);
	said(r, "early=%d", !!(i.tcpi_options & TCPI_OPT_SYN_DATA));
	put(r, server, 10, 0);
	said_result(r, "answer", get_all(r, fd, 10, 0));
}

const struct behaviour behaviours_write[] = {
	{"server speaks first", server_first, 0},
	{"8 MiB in large writes", large, 0},
	{"a reader that pauses", pausing_reader, 0},
	{"8 MiB both ways at once", both_ways, 0},
	{"SO_SNDTIMEO", send_time_out, BLOCKING_ONLY},
	{"writev", from_many, 0},
	{"sendmmsg", many_at_once, 0},
	{"TCP_NODELAY", no_delay, 0},
	{"TCP_QUICKACK", quick_ack, 0},
	{"MSG_DONTWAIT", not_waiting, 0},
	{"fast open", fast_open, ALONE},
	{NULL, NULL, 0},
};
