/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two processes for one task, of which one waits for the other one's end: whoever is killed, also
 * by kill -9, is replaced. They have the same table of descriptors, so that what one has opened is
 * not closed with it; what is to be known of its work stands in memory that they share. Not all
 * memory is: when it is short the kernel would end both of them together.
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "launch/emulate.h"

/* A descriptor gets a number that both know. */
static int place(int fd, int at)
{
	int r;

	if (fd < 0)
		return -errno;
	r = dup3(fd, at, O_CLOEXEC) < 0 ? -errno : 0;
	close(fd);
	return r;
}

/* A process like fork()'s, but for the descriptors, which stay common. */
static pid_t start(int *pidfd)
{
	const unsigned long flags = CLONE_FILES | CLONE_PIDFD | SIGCHLD;

	return (pid_t)syscall(SYS_clone, flags, NULL, pidfd, NULL, NULL);
}

static void wait_for_end(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	while (!(p.revents & POLLIN)) {
		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			_exit(1);
		if (p.revents & POLLNVAL)
			_exit(1); /* (who knows: two that work would be worse) */
	}
}

int standby_start(const bool *over, const int pidfds[2])
{
	char name[16];

	prctl(PR_GET_NAME, name);
	for (;;) {
		int fd = -1, r = place((int)syscall(SYS_pidfd_open, getpid(), 0), pidfds[0]);
		pid_t pid = r ? -1 : start(&fd);

		if (pid < 0) {
			r = r ? r : -errno;
			close(pidfds[1]);
			return r;
		}
		if (pid > 0)
			return place(fd, pidfds[1]);
		prctl(PR_SET_NAME, "ax-standby");
		wait_for_end(pidfds[0]);
		if (__atomic_load_n(over, __ATOMIC_ACQUIRE))
			_exit(0);
		prctl(PR_SET_NAME, name);
	}
}
