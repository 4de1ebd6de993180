/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control/foreign_fd.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>

/* Each may be held by a file of FUSE, for good; so there are more than descriptors that a user can
 * have here (FOREIGN_FDS_WAITING and those of a message): what waits for a thread is a process's
 * own that the agent starts, too, and held up there. */
#define THREADS_MAX	 2048
#define USER_THREADS_MAX (FOREIGN_FDS_WAITING + 2 * FOREIGN_FDS_MAX)
#define STACK_SIZE	 (64 * 1024)

struct user {
	struct user *next;
	unsigned uid;
	unsigned threads; /* at work for it */
	unsigned waiting; /* in queue, and at work */
	int *queue;
	size_t n, size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all of these */
static struct user *users;
static unsigned n_threads;

static void close_all(int fd, unsigned uid);

static struct user *user_of(unsigned uid, bool make)
{
	struct user *u = users;

	while (u && u->uid != uid)
		u = u->next;
	if (u || !make)
		return u;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	u->next = users;
	users = u;
	return u;
}

static void forget(struct user *gone)
{
	struct user **p = &users;

	while (*p != gone)
		p = &(*p)->next;
	*p = gone->next;
	free(gone->queue);
	free(gone);
}

unsigned foreign_fds_of(unsigned uid)
{
	struct user *u;
	unsigned n;

	pthread_mutex_lock(&lock);
	u = user_of(uid, false);
	n = u ? u->waiting : 0;
	pthread_mutex_unlock(&lock);
	return n;
}

/* One of the queue, or -1, with which the thread is over; done: it has closed one. */
static int next_of(struct user *u, bool done)
{
	int fd = -1;

	pthread_mutex_lock(&lock);
	u->waiting -= done;
	if (u->n) {
		fd = u->queue[--u->n];
	} else {
		u->threads--;
		n_threads--;
		if (!u->waiting && !u->threads)
			forget(u);
	}
	pthread_mutex_unlock(&lock);
	return fd;
}

static void *work(void *arg)
{
	struct user *u = arg;
	unsigned uid = u->uid;

	for (int fd = next_of(u, false); fd >= 0; fd = next_of(u, true))
		close_all(fd, uid);
	return NULL;
}

/* With the lock held. Where there are as many as may be the others come to it, and where none can
 * be had, the next one. */
static void start_thread(struct user *u)
{
	pthread_attr_t attr;
	pthread_t t;

	if (n_threads >= THREADS_MAX || u->threads >= USER_THREADS_MAX || pthread_attr_init(&attr))
		return;
	if (!pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) &&
	    !pthread_attr_setstacksize(&attr, STACK_SIZE) && !pthread_create(&t, &attr, work, u)) {
		u->threads++;
		n_threads++;
	}
	pthread_attr_destroy(&attr);
}

/* False: there is no memory. */
static bool queue(struct user *u, int fd)
{
	size_t size = u->size ? 2 * u->size : 64;
	int *v;

	if (u->n == u->size) {
		v = realloc(u->queue, size * sizeof(*v));
		if (!v)
			return false;
		u->queue = v;
		u->size = size;
	}
	u->queue[u->n++] = fd;
	u->waiting++;
	return true;
}

void foreign_fd_close(int fd, unsigned uid)
{
	struct user *u;

	if (fd < 0)
		return;
	pthread_mutex_lock(&lock);
	u = user_of(uid, true);
	if (u && queue(u, fd)) {
		start_thread(u);
		fd = -1;
	}
	pthread_mutex_unlock(&lock);
	close_fd(&fd);
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

/* --- what a thread does --- */

static void close_sent(struct msghdr *m, unsigned uid)
{
	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		const int *fds = (const int *)(const void *)CMSG_DATA(h);

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (h->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++)
			foreign_fd_close(fds[i], uid);
	}
}

/* Of a Unix socket: others may be in it, of which each is to be closed by itself. */
static void empty(int fd, unsigned uid)
{
	union {
		char buf[CMSG_SPACE(sizeof(int) * FOREIGN_FDS_MAX)];
		struct cmsghdr align;
	} u;
	char data[4096];
	struct iovec iov = {data, sizeof(data)};
	const int on = 1;

	/* nobody sends any more, so what is there comes to an end; urgent data is of it */
	shutdown(fd, SHUT_RDWR);
	setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	for (;;) {
		struct msghdr m = {.msg_iov = &iov,
				   .msg_iovlen = 1,
				   .msg_control = u.buf,
				   .msg_controllen = sizeof(u.buf)};
		ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

		if (n < 0)
			break;
		close_sent(&m, uid);
		if (n == 0 && !m.msg_controllen)
			break; /* (a datagram may be empty but for descriptors) */
	}
}

static void close_all(int fd, unsigned uid)
{
	const struct linger none = {0};
	socklen_t len = sizeof(int);
	int domain;

	/* (a file of FUSE knows no such system call, and is not asked) */
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0) {
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
		if (domain == AF_UNIX)
			empty(fd, uid);
	}
	close(fd);
}
