/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One splice(2) from a TCP connection to a pipe, done by other means. The files are the app's:
 * their flags are not to be changed, and what is done to them must not block, whatever the app does
 * to them meanwhile.
 *
 * What is there is looked at first (MSG_PEEK) and put into a pipe of our own. From there it goes to
 * the app's by splice(2), which between two pipes can be told not to wait, and says how much there
 * was room for. Only so much is then taken from the connection.
 *
 * Whoever does this may be killed at any moment, and another process goes on (standby.c). What it
 * has to know the kernel writes down for it, by the same system calls that move bytes: what went
 * to the app's pipe is what is missing from ours, and what was taken from the connection stands in
 * a buffer that had the opposite of each byte that is expected there.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "launch/emulate.h"

#define MOVED_MAX (256u << 10)

enum phase {
	PHASE_LOOKING, /* nothing has gone anywhere but to our pipe */
	PHASE_PUTTING, /* our pipe was filled: what is missing there is in the app's */
	PHASE_TAKING,  /* that is known, and on its way from the connection */
};

/* In memory that the next process has, too. */
struct mover {
	int in, out; /* of a pipe of our own */
	size_t room;
	enum phase phase;
	size_t filled; /* that our pipe had, */
	size_t put;    /* and how much of it went on */
	unsigned char seen[MOVED_MAX], taken[MOVED_MAX];
};

void mover_place(struct mover *m, const int ends[2])
{
	m->in = ends[1];
	m->out = ends[0];
}

int mover_open(struct mover **ret, int ends[2])
{
	struct mover *m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	int room;

	if (m == MAP_FAILED)
		return -errno;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
		munmap(m, sizeof(*m));
		return -errno;
	}
	/* what has a page does not fail halfway (else it is as unlikely as swapping it) */
	mlock(m, sizeof(*m));
	mover_place(m, ends);
	room = fcntl(m->in, F_SETPIPE_SZ, MOVED_MAX);
	room = room < 0 ? fcntl(m->in, F_GETPIPE_SZ) : room;
	m->room = room < 0 ? 4096 : (size_t)room < MOVED_MAX ? (size_t)room : MOVED_MAX;
	*ret = m;
	return 0;
}

static void enter(struct mover *m, enum phase phase)
{
	__atomic_store_n(&m->phase, phase, __ATOMIC_RELEASE);
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
	char buf[4096];

	while (read(m->out, buf, sizeof(buf)) > 0)
		;
}

/* So much of what our pipe had is in the app's. */
static void has_put(struct mover *m, size_t n)
{
	m->put = n;
	for (size_t i = 0; i < n; i++)
		m->taken[i] = (unsigned char)~m->seen[i];
	enter(m, PHASE_TAKING);
}

/* From our buffer to the app's pipe. How much; or a negative errno. */
static ssize_t put(const struct splice_call *c, struct mover *m, size_t n)
{
	ssize_t in = write(m->in, m->seen, n), out;

	if (in <= 0)
		return in < 0 ? -errno : -EIO;
	m->filled = (size_t)in;
	enter(m, PHASE_PUTTING);
	out = splice(m->out, NULL, c->out, NULL, (size_t)in, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	if (out > 0) {
		has_put(m, (size_t)out);
		return out;
	}
	out = out < 0 ? -errno : 0;
	enter(m, PHASE_LOOKING);
	empty(m);
	return out;
}

/* Takes away what was put, but for the first `from` bytes: it is there, unless somebody else reads
 * the same connection. */
static void take(int fd, struct mover *m, size_t from)
{
	ssize_t r = 1;

	for (size_t at = from; at < m->put && r > 0; at += (size_t)r)
		r = recv(fd, m->taken + at, m->put - at, MSG_DONTWAIT);
	empty(m);
}

static enum splice_answer move(const struct splice_call *c, struct mover *m, ssize_t *result)
{
	size_t most = c->len < m->room ? c->len : m->room;
	ssize_t n = recv(c->in, m->seen, most, MSG_PEEK | MSG_DONTWAIT);

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
		take(c->in, m, 0);
	return done(n, result);
}

void splice_call_begin(struct mover *m)
{
	enter(m, PHASE_LOOKING);
}

void splice_call_forget(struct mover *m)
{
	enter(m, PHASE_LOOKING);
	empty(m);
}

bool splice_call_resume(const struct splice_call *c, struct mover *m, ssize_t *result)
{
	size_t taken = 0;
	int left = 0;

	if (m->phase == PHASE_PUTTING && ioctl(m->out, FIONREAD, &left) == 0 &&
	    (size_t)left < m->filled)
		has_put(m, m->filled - (size_t)left);
	if (m->phase != PHASE_TAKING) {
		splice_call_forget(m);
		return false;
	}
	while (taken < m->put && m->taken[taken] == m->seen[taken])
		taken++;
	take(c->in, m, taken);
	*result = (ssize_t)m->put;
	return true;
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
