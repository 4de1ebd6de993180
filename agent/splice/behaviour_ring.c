// SPDX-License-Identifier: GPL-2.0-or-later
/* What io_uring sends without a copy. By system calls: ax has no other use for liburing. */
#include <errno.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "splice/behaviour.h"

#define ENTRIES 4

/* The least that one call needs of a ring. */
struct ring {
	int fd;
	struct io_uring_params p;
	struct io_uring_sqe *sqes;
	unsigned char *sq, *cq; /* one mapping (IORING_FEAT_SINGLE_MMAP, Linux 5.4) */
};

static unsigned *word(unsigned char *base, unsigned offset)
{
	return (unsigned *)(void *)(base + offset);
}

static int ring_open(struct ring *ring)
{
	size_t cqes, size;
	void *at;

	*ring = (struct ring){0};
	ring->fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &ring->p);
	if (ring->fd < 0)
		return -errno;
	cqes = ring->p.cq_off.cqes + ring->p.cq_entries * sizeof(struct io_uring_cqe);
	size = ring->p.sq_off.array + ring->p.sq_entries * sizeof(unsigned);
	size = size > cqes ? size : cqes;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_SQ_RING);
	if (at == MAP_FAILED)
		return -errno;
	ring->sq = ring->cq = at;
	at = mmap(NULL, ring->p.sq_entries * sizeof(*ring->sqes), PROT_READ | PROT_WRITE,
		  MAP_SHARED, ring->fd, IORING_OFF_SQES);
	if (at == MAP_FAILED)
		return -errno;
	ring->sqes = at;
	return 0;
}

/* Submits the first entry and returns what became of it: a result, or a negative errno. */
static int ring_call(struct ring *ring)
{
	unsigned *tail = word(ring->sq, ring->p.sq_off.tail);
	const struct io_uring_cqe *cqe;

	*word(ring->sq, ring->p.sq_off.array) = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		return -errno;
	if (__atomic_load_n(word(ring->cq, ring->p.cq_off.tail), __ATOMIC_ACQUIRE) == 0)
		return -ETIME;
	cqe = (const void *)(ring->cq + ring->p.cq_off.cqes);
	return cqe->res;
}

static void send_without_copy(struct run *r)
{
	static unsigned char buf[1000];
	struct ring ring;
	int res = ring_open(&ring);

	if (res < 0) {
		said(r, "io_uring=%s", strerrorname_np(-res));
		return;
	}
	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = pattern_at(i);
	ring.sqes[0] = (struct io_uring_sqe){.opcode = IORING_OP_SEND_ZC,
					     .fd = r->client,
					     .addr = (uint64_t)(uintptr_t)buf,
					     .len = sizeof(buf)};
	res = ring_call(&ring);
	errno = -res;
	said_result(r, "n", res < 0 ? -1 : res);
	if (res > 0)
		events_within(r->server, POLLIN, COMES_MS);
	said_result(r, "got", recv(r->server, buf, sizeof(buf), MSG_DONTWAIT));
}

const struct behaviour gate_ring[] = {
	{"io_uring send_zc", send_without_copy, 0},
	{NULL, NULL, 0},
};
