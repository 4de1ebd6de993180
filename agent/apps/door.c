/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "apps/door.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "datapath/datapath.h"
#include "registry/state.h"

/* The queue takes one more than listen() was told (sk_acceptq_is_full() of include/net/sock.h).
 * Told 0, the kernel would take the first SYN for a flood, and say so. */
#define BACKLOG 1

/* Of one family; -1: none. */
struct side {
	int listener;
	int inside[BACKLOG + 1]; /* those that fill its queue, and are never taken from it */
};
struct door {
	struct side v4, v6;
};

static void close_side(struct side *s)
{
	close_fd(&s->listener);
	for (size_t i = 0; i < ARRAY_SIZE(s->inside); i++)
		close_fd(&s->inside[i]);
}

static int loopback(int family, struct sockaddr_storage *ret, socklen_t *len)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

	*ret = (struct sockaddr_storage){.ss_family = (sa_family_t)family};
	*len = family == AF_INET ? sizeof(*in) : sizeof(*in6);
	if (family == AF_INET)
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		in6->sin6_addr = in6addr_loopback;
	return socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

/* By loopback both ends are there when connect() returns. */
static int fill(struct side *s)
{
	struct sockaddr_storage at = {0};
	socklen_t len = sizeof(at);

	if (getsockname(s->listener, (struct sockaddr *)&at, &len))
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(s->inside); i++) {
		s->inside[i] = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (s->inside[i] < 0 || connect(s->inside[i], (struct sockaddr *)&at, len))
			return -errno;
	}
	return 0;
}

/* Whether it takes nobody any more: somebody may have ended those inside (ss -K). */
static bool is_full(const struct side *s)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	/* (of a listener, tcpi_unacked is what waits to be taken) */
	return s->listener >= 0 && !getsockopt(s->listener, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	       info.tcpi_unacked > BACKLOG;
}

static int open_side(struct agent *a, int family, struct side *s)
{
	struct sockaddr_storage at;
	socklen_t len;
	int r = 0;

	if (is_full(s))
		return 0;
	close_side(s);
	s->listener = loopback(family, &at, &len);
	if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&at, len) ||
	    listen(s->listener, BACKLOG))
		r = -errno;
	r = r ? r : fill(s);
	if (!r && !is_full(s))
		r = -EIO;
	r = r ? r : datapath_door_set(a->dp, family, s->listener);
	if (r)
		close_side(s);
	return r;
}

void door_open(struct agent *a)
{
	static const struct side none = {-1, {-1, -1}};
	int r4, r6;

	if (!a->door) {
		a->door = malloc(sizeof(*a->door));
		if (!a->door)
			return;
		*a->door = (struct door){none, none};
	}
	r4 = open_side(a, AF_INET, &a->door->v4);
	r6 = open_side(a, AF_INET6, &a->door->v6); /* there may be no IPv6 */
	if (r4 && r6 && !a->door_failed)
		log_warn("programs outside ax that come for an app which is started by connections "
			 "are refused: %s",
			 strerror(-r4));
	a->door_failed = r4 && r6;
}

void door_close(struct agent *a)
{
	if (!a->door)
		return;
	close_side(&a->door->v4);
	close_side(&a->door->v6);
	free(a->door);
	a->door = NULL;
}
