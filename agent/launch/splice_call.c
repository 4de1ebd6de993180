/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One splice(2) from a TCP connection to a pipe, done by other means. The files are the app's:
 * their flags are not to be changed, and what is done to them must not block, whatever the app does
 * to them meanwhile.
 *
 * What is there is looked at first (MSG_PEEK) and put into a pipe of our own. From there it goes to
 * the app's by splice(2), which between two pipes can be told not to wait, and says how much there
 * was room for. Only so much is then taken from the connection.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "launch/emulate.h"

#define MOVED_MAX (256u << 10)

struct mover {
	int in, out; /* of a pipe of our own */
	size_t room;
	char *buf;
};

int mover_open(struct mover **ret)
{
	struct mover *m = calloc(1, sizeof(*m));
	int p[2], room;

	if (!m)
		return -ENOMEM;
	m->buf = malloc(MOVED_MAX);
	if (!m->buf || pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(m->buf);
		free(m);
		return -ENOMEM;
	}
	m->in = p[1];
	m->out = p[0];
	room = fcntl(m->in, F_SETPIPE_SZ, MOVED_MAX);
	room = room < 0 ? fcntl(m->in, F_GETPIPE_SZ) : room;
	m->room = room < 0 ? 4096 : (size_t)room < MOVED_MAX ? (size_t)room : MOVED_MAX;
	*ret = m;
	return 0;
}

/* --- whose call it is --- */

static int option(int fd, int which)
{
	socklen_t len = sizeof(int);
	int value;

	return getsockopt(fd, SOL_SOCKET, which, &value, &len) < 0 ? -1 : value;
}

static bool is_tcp(int fd)
{
	int family = option(fd, SO_DOMAIN);

	return (family == AF_INET || family == AF_INET6) && option(fd, SO_PROTOCOL) == IPPROTO_TCP;
}

/* (asks no filesystem, as fstat() would) */
static bool is_pipe(int fd)
{
	return fcntl(fd, F_GETPIPE_SZ) >= 0;
}

bool splice_call_concerns(const struct splice_call *c, const struct launch_options *o)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	struct ax_addr remote;
	__be16 port_be;

	if (!is_tcp(c->in) || !is_pipe(c->out) || option(c->in, SO_ACCEPTCONN) > 0)
		return false;
	if (!o->may_be_spliced)
		return true;
	/* one that was reset has no peer any more, and may hold data all the same */
	if (getpeername(c->in, (struct sockaddr *)&ss, &len) < 0)
		return true;
	return addr_from_sockaddr((struct sockaddr *)&ss, &remote, &port_be) ||
	       o->may_be_spliced(o->may_arg, &remote);
}

/* --- moving --- */

static bool is_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_NONBLOCK);
}

static enum splice_answer done(ssize_t n, ssize_t *result)
{
	*result = n;
	return SPLICE_DONE;
}

static enum splice_answer no_room(const struct splice_call *c, ssize_t *result)
{
	if (c->flags & SPLICE_F_NONBLOCK || is_nonblocking(c->out))
		return done(-EAGAIN, result);
	*result = is_nonblocking(c->in) ? -EAGAIN : -EINTR; /* if it cannot wait any longer */
	return SPLICE_WHEN_ROOM;
}

static void empty(struct mover *m)
{
	while (read(m->out, m->buf, m->room) > 0)
		;
}

/* From our buffer to the app's pipe. How much; or a negative errno. */
static ssize_t put(const struct splice_call *c, struct mover *m, size_t n)
{
	ssize_t in = write(m->in, m->buf, n), out;

	if (in <= 0)
		return in < 0 ? -errno : -EIO;
	out = splice(m->out, NULL, c->out, NULL, (size_t)in, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	if (out < 0)
		out = -errno;
	if (out < in)
		empty(m);
	return out;
}

/* Takes away what was put: it is there, unless somebody else reads the same connection. */
static void take(int fd, struct mover *m, size_t n)
{
	while (n) {
		ssize_t r = recv(fd, m->buf, n, MSG_DONTWAIT);

		if (r <= 0)
			return;
		n -= (size_t)r;
	}
}

static enum splice_answer move(const struct splice_call *c, struct mover *m, ssize_t *result)
{
	size_t most = c->len < m->room ? c->len : m->room;
	ssize_t n = recv(c->in, m->buf, most, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN) /* what comes while the app may wait comes by TCP */
		return is_nonblocking(c->in) ? done(-EAGAIN, result) : SPLICE_KERNEL;
	if (n <= 0)
		return done(n < 0 ? -errno : 0, result);
	n = put(c, m, (size_t)n);
	if (n == -EPIPE)
		return SPLICE_KERNEL; /* has a signal for it */
	if (n == -EAGAIN)
		return no_room(c, result);
	if (n > 0)
		take(c->in, m, (size_t)n);
	return done(n, result);
}

enum splice_answer splice_call_move(const struct splice_call *c, struct mover *m, ssize_t *result)
{
	struct pollfd p = {.fd = c->out, .events = POLLOUT};

	/* (looking would move the offset) */
	if (option(c->in, SO_PEEK_OFF) >= 0)
		return done(-EINVAL, result);
	if (poll(&p, 1, 0) < 0)
		return done(-EINVAL, result);
	if (p.revents & (POLLERR | POLLNVAL))
		return SPLICE_KERNEL;
	if (!(p.revents & POLLOUT))
		return no_room(c, result);
	return move(c, m, result);
}
