// SPDX-License-Identifier: GPL-2.0-or-later
/* The same by io_uring. */
#include <errno.h>
#include <liburing.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "behaviours.h"

/* Waits for one completion, or says why there is none. */
static int completed(struct io_uring *ring)
{
	struct __kernel_timespec limit = {.tv_sec = COMES_MS / 1000 * slowness};
	struct io_uring_cqe *cqe = NULL;
	int res = io_uring_submit_and_wait_timeout(ring, &cqe, 1, &limit, NULL);

	if (res < 0 || !cqe)
		return res < 0 ? res : -ETIME;
	res = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return res;
}

static bool ring_open(struct run *r, struct io_uring *ring)
{
	int e = io_uring_queue_init(8, ring, 0);

	if (e < 0)
		said(r, "io_uring=%s", strerrorname_np(-e));
	return e == 0;
}

static void said_completion(struct run *r, const char *what, struct io_uring *ring)
{
	int res = completed(ring);

	errno = -res;
	said_result(r, what, res < 0 ? -1 : res);
}

static void send_40(struct run *r)
{
	put(r, r->client, 40, 0);
}

static void send_60_more(struct run *r)
{
	put(r, r->client, 60, 40);
}

static void ring_recv(struct run *r)
{
	struct io_uring ring;
	char buf[64];

	if (!ring_open(r, &ring))
		return;
	later(r, 20, send_40);
	io_uring_prep_recv(io_uring_get_sqe(&ring), r->server, buf, sizeof(buf), 0);
	said_completion(r, "n", &ring);
}

static void ring_recv_all(struct run *r)
{
	struct io_uring ring;
	char buf[100];

	if (!ring_open(r, &ring))
		return;
	put(r, r->client, 40, 0);
	later(r, 40, send_60_more);
	io_uring_prep_recv(io_uring_get_sqe(&ring), r->server, buf, sizeof(buf), MSG_WAITALL);
	said_completion(r, "n", &ring);
}

static void ring_read(struct run *r)
{
	struct io_uring ring;
	char buf[64];

	if (!ring_open(r, &ring))
		return;
	put(r, r->client, 40, 0);
	io_uring_prep_read(io_uring_get_sqe(&ring), r->server, buf, sizeof(buf), 0);
	said_completion(r, "n", &ring);
}

static void ring_poll(struct run *r)
{
	struct io_uring ring;

	if (!ring_open(r, &ring))
		return;
	later(r, 20, send_40);
	io_uring_prep_poll_add(io_uring_get_sqe(&ring), r->server, 1 /* POLLIN */);
	said(r, "in=%d", completed(&ring) & 1);
}

static void ring_send(struct run *r)
{
	unsigned char buf[1000];
	struct io_uring ring;

	if (!ring_open(r, &ring))
		return;
	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = pattern_at(i);
	io_uring_prep_send(io_uring_get_sqe(&ring), r->client, buf, sizeof(buf), 0);
	said_completion(r, "n", &ring);
	said_result(r, "good", get_all(r, r->server, sizeof(buf), 0));
}

static void ring_splice(struct run *r)
{
	struct io_uring ring;
	int p[2];

	if (!ring_open(r, &ring) || pipe(p) < 0)
		return;
	put(r, r->client, 40, 0);
	io_uring_prep_splice(io_uring_get_sqe(&ring), r->server, -1, p[1], -1, 4096, 0);
	said_completion(r, "n", &ring);
}

static void ring_splice_in(struct run *r)
{
	unsigned char buf[1000];
	struct io_uring ring;
	int p[2];

	if (!ring_open(r, &ring) || pipe(p) < 0)
		return;
	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = pattern_at(i);
	if (write(p[1], buf, sizeof(buf)) != sizeof(buf))
		return;
	io_uring_prep_splice(io_uring_get_sqe(&ring), p[0], -1, r->client, -1, sizeof(buf), 0);
	said_completion(r, "n", &ring);
	said_result(r, "good", get_all(r, r->server, sizeof(buf), 0));
}

const struct behaviour behaviours_uring[] = {
	{"io_uring recv", ring_recv, 0},
	{"io_uring recv with MSG_WAITALL", ring_recv_all, 0},
	{"io_uring read", ring_read, 0},
	{"io_uring poll", ring_poll, 0},
	{"io_uring send", ring_send, 0},
	{"io_uring splice from", ring_splice, 0},
	{"io_uring splice into", ring_splice_in, 0},
	{NULL, NULL, 0},
};
