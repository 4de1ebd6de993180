// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "splice/behaviour.h"

unsigned slowness = 1;

void said(struct run *r, const char *fmt, ...)
{
	size_t used = strlen(r->text);
	va_list ap;

	if (used && used + 1 < r->room) {
		r->text[used++] = ' ';
		r->text[used] = 0;
	}
	va_start(ap, fmt);
	vsnprintf(r->text + used, r->room - used, fmt, ap);
	va_end(ap);
}

void said_result(struct run *r, const char *what, ssize_t n)
{
	if (n < 0)
		said(r, "%s=%s", what, strerrorname_np(errno));
	else
		said(r, "%s=%zd", what, n);
}

int listener_open(int family)
{
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), e;

	if (fd >= 0 &&
	    bind(fd, family == AF_INET ? (void *)&a4 : (void *)&a6,
		 family == AF_INET ? sizeof(a4) : sizeof(a6)) == 0 &&
	    listen(fd, 8) == 0)
		return fd;
	e = -errno;
	if (fd >= 0)
		close(fd);
	return e;
}

int pair_open(const struct run *r, int *client, int *server)
{
	int type = SOCK_STREAM | SOCK_CLOEXEC;
	struct sockaddr_in6 addr;
	socklen_t len = sizeof(addr);

	*client = *server = -1;
	if (getsockname(r->listener, (struct sockaddr *)&addr, &len) < 0)
		return -errno;
	*client = socket(r->family, type, 0);
	if (*client < 0 || connect(*client, (struct sockaddr *)&addr, len) < 0)
		return -errno;
	*server = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC);
	if (*server < 0)
		return -errno;
	if (r->nonblock) {
		fcntl(*client, F_SETFL, O_NONBLOCK);
		fcntl(*server, F_SETFL, O_NONBLOCK);
	}
	return r->connected ? r->connected(r, *client, *server) : 0;
}

unsigned char pattern_at(uint64_t offset)
{
	return (unsigned char)((offset * 2654435761u) >> 13);
}

int64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int events_within(int fd, int events, int ms)
{
	struct pollfd p = {.fd = fd, .events = (short)events};

	return poll(&p, 1, ms * (int)slowness) > 0 ? p.revents : 0;
}

void put(struct run *r, int fd, size_t n, uint64_t from)
{
	unsigned char buf[65536];

	while (n) {
		size_t part = n < sizeof(buf) ? n : sizeof(buf);
		ssize_t sent;

		for (size_t i = 0; i < part; i++)
			buf[i] = pattern_at(from + i);
		sent = send(fd, buf, part, MSG_NOSIGNAL);
		if (sent < 0 && errno == EAGAIN && events_within(fd, POLLOUT, COMES_MS))
			continue;
		if (sent <= 0) {
			said_result(r, "put", sent);
			return;
		}
		n -= (size_t)sent;
		from += (size_t)sent;
	}
}

ssize_t get(struct run *r, int fd, void *buf, size_t n, int flags)
{
	if (r->nonblock)
		events_within(fd, POLLIN, COMES_MS);
	return recv(fd, buf, n, flags);
}

ssize_t get_all(struct run *r, int fd, size_t n, uint64_t from)
{
	unsigned char buf[65536];
	ssize_t good = 0;

	while ((size_t)good < n) {
		size_t part = n - (size_t)good < sizeof(buf) ? n - (size_t)good : sizeof(buf);
		ssize_t got = get(r, fd, buf, part, 0);

		/* what members do wrong there has behaviours of its own */
		if (got < 0 && errno == EAGAIN && events_within(fd, POLLIN, COMES_MS))
			continue;
		if (got <= 0)
			break;
		for (ssize_t i = 0; i < got; i++) {
			if (buf[i] != pattern_at(from + (uint64_t)good))
				return good;
			good++;
		}
	}
	return good;
}

void pause_ms(unsigned ms)
{
	struct timespec t;

	ms *= slowness;
	t = (struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

/* The state stands behind the name, which may hold blanks and brackets. */
static bool sleeps_or_ended(pid_t pid)
{
	char path[32], text[256];
	const char *end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	end = strrchr(text, ')');
	return end && (strncmp(end, ") S", 3) == 0 || strncmp(end, ") Z", 3) == 0);
}

void until_asleep(pid_t pid)
{
	for (unsigned i = 0; i < 2000 * slowness && !sleeps_or_ended(pid); i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

pid_t later(struct run *r, unsigned ms, void (*act)(struct run *r))
{
	pid_t pid = fork();

	if (pid == 0) {
		if (ms)
			until_asleep(getppid());
		pause_ms(ms);
		act(r);
		_exit(0);
	}
	return pid;
}

void said_events(struct run *r, const char *what, unsigned events)
{
	said(r, "%s=%s%s%s%s%s%s", what, events & EPOLLIN ? "in" : "",
	     events & EPOLLOUT ? "out" : "", events & EPOLLRDHUP ? "rdhup" : "",
	     events & EPOLLHUP ? "hup" : "", events & EPOLLERR ? "err" : "", events ? "" : "none");
}

int epoll_of(int fd, unsigned events)
{
	int ep = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e = {.events = events, .data.fd = fd};

	epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
	return ep;
}

void said_epoll(struct run *r, int ep, const char *what, int ms)
{
	struct epoll_event e = {0};

	said_events(r, what, epoll_wait(ep, &e, 1, ms * (int)slowness) > 0 ? e.events : 0);
}

void linger_zero(int fd)
{
	struct linger l = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	close(fd);
}
