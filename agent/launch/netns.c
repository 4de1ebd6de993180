/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A private app's network namespace, made before there is a process to be in it. */
#include <fcntl.h>
#include <sched.h>

#include "launch/parts.h"

static int open_own(void)
{
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int launch_netns_make(void)
{
	autoclose int back = open_own();
	int fd;

	if (back < 0)
		return back;
	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	fd = open_own();
	/* what the launcher asks for later (users, say) is to be found in the caller's network */
	if (setns(back, CLONE_NEWNET) < 0)
		abort();
	return fd;
}
