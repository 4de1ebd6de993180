/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control/foreign_fd.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* Each may be held by a file of FUSE. What is left over stays open until one is free. */
#define THREADS_MAX 16
#define STACK_SIZE  (64 * 1024)
#define QUEUE_MAX   4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int queue[QUEUE_MAX];
static unsigned n_queue, n_threads;
static atomic_uint n_waiting;

unsigned foreign_fds_waiting(void)
{
	return n_waiting;
}

/* As it is known, without asking who serves the file. 0: it cannot be told. */
static unsigned type_of(int fd)
{
	struct statx x;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &x) < 0)
		return 0;
	return x.stx_mode & S_IFMT;
}

/* -1: it is no socket. */
static int socket_domain(int fd)
{
	socklen_t len = sizeof(int);
	int domain;

	if (type_of(fd) != S_IFSOCK || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0)
		return -1;
	return domain;
}

static void *close_queue(void *arg)
{
	(void)arg;
	for (;;) {
		int fd = -1;

		pthread_mutex_lock(&lock);
		if (n_queue)
			fd = queue[--n_queue];
		else
			n_threads--;
		pthread_mutex_unlock(&lock);
		if (fd < 0)
			return NULL;
		/* a socket of this kind has others in it, maybe */
		if (socket_domain(fd) == AF_UNIX)
			foreign_socket_close(fd);
		else
			close(fd);
		n_waiting--;
	}
}

/* False: there are as many as there may be, or no more. */
static bool start_thread(void)
{
	pthread_attr_t attr;
	pthread_t t;
	bool ok;

	if (n_threads >= THREADS_MAX || pthread_attr_init(&attr))
		return false;
	ok = !pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) &&
	     !pthread_attr_setstacksize(&attr, STACK_SIZE) &&
	     !pthread_create(&t, &attr, close_queue, NULL);
	pthread_attr_destroy(&attr);
	n_threads += ok;
	return ok;
}

/* (Where no thread can be had it stays open until one can, with the next that comes.) */
static void close_later(int fd)
{
	pthread_mutex_lock(&lock);
	if (n_queue < QUEUE_MAX) {
		queue[n_queue++] = fd;
		n_waiting++;
	}
	start_thread();
	pthread_mutex_unlock(&lock);
}

bool fd_is_harmless(int fd)
{
	char path[32], target[8] = "";

	if (fcntl(fd, F_GET_SEALS) >= 0)
		return true;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* "net:[4026531840]"; what has a path begins with a slash */
	return readlink(path, target, sizeof(target) - 1) > 0 && starts_with(target, "net:[");
}

void foreign_fd_close(int fd)
{
	const struct linger none = {0};
	int domain = socket_domain(fd);

	if (domain >= 0) /* (what it has to send is sent as ever, behind its end) */
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	if (domain == AF_INET || domain == AF_INET6 || fd_is_harmless(fd))
		close(fd);
	else
		close_later(fd);
}

static void drop(struct msghdr *m)
{
	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		const int *fds = (const int *)(const void *)CMSG_DATA(h);

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (h->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++)
			foreign_fd_close(fds[i]);
	}
}

void foreign_socket_close(int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int) * FOREIGN_FDS_MAX)];
		struct cmsghdr align;
	} u;
	char data[4096];
	struct iovec iov = {data, sizeof(data)};

	if (fd < 0)
		return;
	/* nobody sends any more, so what is there comes to an end */
	shutdown(fd, SHUT_RDWR);
	for (;;) {
		struct msghdr m = {.msg_iov = &iov,
				   .msg_iovlen = 1,
				   .msg_control = u.buf,
				   .msg_controllen = sizeof(u.buf)};
		ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

		if (n <= 0)
			break;
		drop(&m);
	}
	close(fd);
}
