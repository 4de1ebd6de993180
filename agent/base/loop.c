/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/loop.h"

int loop_open(void)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int loop_ctl(int epoll_fd, int op, struct loop_item *item, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = item};

	return epoll_ctl(epoll_fd, op, item->fd, &ev) < 0 ? -errno : 0;
}

int loop_add(int epoll_fd, struct loop_item *item, uint32_t events)
{
	return loop_ctl(epoll_fd, EPOLL_CTL_ADD, item, events);
}

int loop_mod(int epoll_fd, struct loop_item *item, uint32_t events)
{
	return loop_ctl(epoll_fd, EPOLL_CTL_MOD, item, events);
}

void loop_del(int epoll_fd, struct loop_item *item)
{
	if (item->fd >= 0)
		loop_ctl(epoll_fd, EPOLL_CTL_DEL, item, 0);
}

int loop_wait(int epoll_fd, struct loop_item **item, uint32_t *events)
{
	struct epoll_event ev;
	int n;

	do {
		n = epoll_wait(epoll_fd, &ev, 1, -1);
	} while (n == 0 || (n < 0 && errno == EINTR));
	if (n < 0)
		return -errno;
	*item = ev.data.ptr;
	*events = ev.events;
	return 0;
}
