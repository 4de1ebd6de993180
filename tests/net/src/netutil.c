// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include "netutil.h"

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void endpoint_parse(const char *family, const char *addr, const char *port, struct endpoint *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&ret->ss;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&ret->ss;
	char mapped[ADDR_TEXT];

	memset(ret, 0, sizeof(*ret));
	if (strcmp(family, "4") == 0) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((unsigned short)atoi(port));
		ret->len = sizeof(*v4);
		if (inet_pton(AF_INET, addr, &v4->sin_addr) == 1)
			return;
	} else {
		if (strchr(addr, ':'))
			snprintf(mapped, sizeof(mapped), "%s", addr);
		else
			snprintf(mapped, sizeof(mapped), "::ffff:%s", addr);
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((unsigned short)atoi(port));
		ret->len = sizeof(*v6);
		if (inet_pton(AF_INET6, mapped, &v6->sin6_addr) == 1)
			return;
	}
	fprintf(stderr, "not an address of family %s: %s\n", family, addr);
	exit(2);
}

int endpoint_socket(const char *family, const struct endpoint *e, int type)
{
	int v6only = strcmp(family, "6only") == 0;
	int fd = socket(e->ss.ss_family, type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		fail("socket");
	if (e->ss.ss_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof(v6only)))
		fail("setsockopt");
	return fd;
}

int endpoint_bound(const char *family, const struct endpoint *e, int flags)
{
	int fd = endpoint_socket(family, e, SOCK_STREAM | flags), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)&e->ss, e->len))
		fail("bind");
	return fd;
}

char *endpoint_text(const struct endpoint *e, char buf[ADDR_TEXT])
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&e->ss;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&e->ss;
	char addr[INET6_ADDRSTRLEN] = "?";

	if (e->ss.ss_family == AF_INET) {
		inet_ntop(AF_INET, &v4->sin_addr, addr, sizeof(addr));
		snprintf(buf, ADDR_TEXT, "%s:%u", addr, ntohs(v4->sin_port));
	} else if (e->ss.ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &v6->sin6_addr, addr, sizeof(addr));
		snprintf(buf, ADDR_TEXT, "[%s]:%u", addr, ntohs(v6->sin6_port));
	} else {
		snprintf(buf, ADDR_TEXT, "family-%d", e->ss.ss_family);
	}
	return buf;
}

static void to_v6(const struct endpoint *e, struct sockaddr_in6 *ret)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&e->ss;

	if (e->ss.ss_family == AF_INET6) {
		memcpy(ret, &e->ss, sizeof(*ret));
		return;
	}
	memset(ret, 0, sizeof(*ret));
	ret->sin6_port = v4->sin_port;
	ret->sin6_addr.s6_addr[10] = 0xff;
	ret->sin6_addr.s6_addr[11] = 0xff;
	memcpy(ret->sin6_addr.s6_addr + 12, &v4->sin_addr, 4);
}

bool endpoint_eq(const struct endpoint *a, const struct endpoint *b)
{
	struct sockaddr_in6 x, y;

	to_v6(a, &x);
	to_v6(b, &y);
	return x.sin6_port == y.sin6_port && memcmp(&x.sin6_addr, &y.sin6_addr, 16) == 0;
}

void local_of(int fd, struct endpoint *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->len = sizeof(ret->ss);
	if (getsockname(fd, (struct sockaddr *)&ret->ss, &ret->len))
		fail("getsockname");
}

int peer_of(int fd, struct endpoint *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->len = sizeof(ret->ss);
	return getpeername(fd, (struct sockaddr *)&ret->ss, &ret->len) ? errno : 0;
}

const char *errno_name(int err)
{
	static const struct {
		int err;
		const char *name;
	} names[] = {
		{EPERM, "EPERM"},
		{EACCES, "EACCES"},
		{EAGAIN, "EAGAIN"},
		{EINVAL, "EINVAL"},
		{EPIPE, "EPIPE"},
		{EADDRINUSE, "EADDRINUSE"},
		{EADDRNOTAVAIL, "EADDRNOTAVAIL"},
		{ECONNREFUSED, "ECONNREFUSED"},
		{ECONNRESET, "ECONNRESET"},
		{ECONNABORTED, "ECONNABORTED"},
		{EHOSTUNREACH, "EHOSTUNREACH"},
		{ENETUNREACH, "ENETUNREACH"},
		{EINPROGRESS, "EINPROGRESS"},
		{ENOTCONN, "ENOTCONN"},
		{ETIMEDOUT, "ETIMEDOUT"},
		{ENOBUFS, "ENOBUFS"},
		{EAFNOSUPPORT, "EAFNOSUPPORT"},
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].err == err)
			return names[i].name;
	return strerror(err);
}

void fail(const char *what)
{
	printf("error %s %s\n", what, errno_name(errno));
	fflush(stdout);
	exit(1);
}

int wait_fd(int fd, short events, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = events};

	return poll(&p, 1, timeout_ms) == 1 ? 0 : -1;
}

void set_timeouts(int fd)
{
	struct timeval tv = {.tv_sec = TIMEOUT_MS / 1000};

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)))
		fail("setsockopt");
}

void raise_file_limit(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
}
