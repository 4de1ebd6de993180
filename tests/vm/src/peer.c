// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Client and server of the tests inside a VM: small, static (musl, so that names go through its own
 * resolver), and it says what the sockets show.
 *
 *   peer serve ADDR PORT TEXT      TCP: greets with "TEXT peer=A local=A", then echoes
 *   peer get HOST PORT             prints the greeting and "asked=A" (getpeername)
 *   peer chat HOST PORT N MS       N echoes on one connection, MS apart
 *   peer udp-serve ADDR PORT TEXT  answers each datagram with "TEXT WORD peer=A"
 *   peer udp HOST PORT WORD        by sendto() and recvfrom(): prints the answer and "from=A"
 *   peer udp-connected HOST PORT WORD
 *
 * Servers say "listening" once they do. A failing call is printed as "connect: ECONNREFUSED" on
 * stdout, with exit status 1.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TIMEOUT_MS 5000

struct endpoint {
	struct sockaddr_storage ss;
	socklen_t len;
};

static const char *errno_name(int e)
{
	switch (e) {
	case EACCES:
		return "EACCES";
	case EADDRINUSE:
		return "EADDRINUSE";
	case EADDRNOTAVAIL:
		return "EADDRNOTAVAIL";
	case ECONNREFUSED:
		return "ECONNREFUSED";
	case ECONNRESET:
		return "ECONNRESET";
	case EHOSTUNREACH:
		return "EHOSTUNREACH";
	case ENETUNREACH:
		return "ENETUNREACH";
	case EPERM:
		return "EPERM";
	case ETIMEDOUT:
		return "ETIMEDOUT";
	default:
		return strerror(e);
	}
}

__attribute__((noreturn)) static void fail(const char *what)
{
	printf("%s: %s\n", what, errno_name(errno));
	exit(1);
}

static struct endpoint resolve(const char *host, const char *port, int type)
{
	struct addrinfo hints = {.ai_socktype = type}, *list;
	struct endpoint ep = {0};
	int r = getaddrinfo(host, port, &hints, &list);

	if (r) {
		printf("resolve: %s\n", gai_strerror(r));
		exit(1);
	}
	memcpy(&ep.ss, list->ai_addr, list->ai_addrlen);
	ep.len = list->ai_addrlen;
	freeaddrinfo(list);
	return ep;
}

/* v4-mapped addresses are shown as IPv4: which family the socket has is not the question here. */
static const char *show(const struct endpoint *ep, char *buf, size_t size)
{
	const struct sockaddr_in6 *in6 = (const void *)&ep->ss;
	const struct sockaddr_in *in = (const void *)&ep->ss;

	if (ep->ss.ss_family == AF_INET)
		return inet_ntop(AF_INET, &in->sin_addr, buf, (socklen_t)size);
	if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
		return inet_ntop(AF_INET, &in6->sin6_addr.s6_addr[12], buf, (socklen_t)size);
	return inet_ntop(AF_INET6, &in6->sin6_addr, buf, (socklen_t)size);
}

static int bound_socket(const char *host, const char *port, int type)
{
	struct endpoint ep = resolve(host, port, type);
	int one = 1, fd = socket(ep.ss.ss_family, type, 0);

	if (fd < 0)
		fail("socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&ep.ss, ep.len))
		fail("bind");
	return fd;
}

static int connected_socket(const char *host, const char *port, int type)
{
	struct endpoint ep = resolve(host, port, type);
	int fd = socket(ep.ss.ss_family, type, 0);

	if (fd < 0)
		fail("socket");
	if (connect(fd, (struct sockaddr *)&ep.ss, ep.len))
		fail("connect");
	return fd;
}

/* Waits for data; a test must not hang. */
static void await(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (poll(&p, 1, TIMEOUT_MS) == 1)
		return;
	errno = ETIMEDOUT;
	fail("receive");
}

/* One line without its newline. */
static void read_line(int fd, char *buf, size_t size)
{
	size_t n = 0;

	while (n + 1 < size) {
		ssize_t r;

		await(fd);
		r = read(fd, buf + n, 1);
		if (r < 0)
			fail("read");
		if (r == 0) {
			printf("read: the connection ended\n");
			exit(1);
		}
		if (buf[n] == '\n')
			break;
		n++;
	}
	buf[n] = '\0';
}

static void greet_and_echo(int fd, const char *text)
{
	struct endpoint peer = {.len = sizeof(peer.ss)}, local = {.len = sizeof(local.ss)};
	char a[64], b[64], buf[256];
	ssize_t r;

	getpeername(fd, (struct sockaddr *)&peer.ss, &peer.len);
	getsockname(fd, (struct sockaddr *)&local.ss, &local.len);
	dprintf(fd, "%s peer=%s local=%s\n", text, show(&peer, a, sizeof(a)),
		show(&local, b, sizeof(b)));
	while ((r = read(fd, buf, sizeof(buf))) > 0) {
		if (write(fd, buf, (size_t)r) != r)
			return;
	}
}

static void serve(char **argv)
{
	int fd = bound_socket(argv[0], argv[1], SOCK_STREAM);

	if (listen(fd, 64))
		fail("listen");
	puts("listening");
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int c = accept(fd, NULL, NULL);

		if (c >= 0 && fork() == 0) {
			greet_and_echo(c, argv[2]);
			_exit(0);
		}
		close(c);
	}
}

static void get(char **argv)
{
	int fd = connected_socket(argv[0], argv[1], SOCK_STREAM);
	struct endpoint peer = {.len = sizeof(peer.ss)};
	char line[512], a[64];

	getpeername(fd, (struct sockaddr *)&peer.ss, &peer.len);
	read_line(fd, line, sizeof(line));
	printf("%s asked=%s\n", line, show(&peer, a, sizeof(a)));
}

static void chat(char **argv)
{
	int fd = connected_socket(argv[0], argv[1], SOCK_STREAM), n = atoi(argv[2]);
	unsigned ms = (unsigned)atoi(argv[3]);
	char line[512], want[32];

	read_line(fd, line, sizeof(line));
	for (int i = 0; i < n; i++) {
		snprintf(want, sizeof(want), "line %d", i);
		dprintf(fd, "%s\n", want);
		read_line(fd, line, sizeof(line));
		if (strcmp(line, want) != 0) {
			printf("echo: '%s' instead of '%s'\n", line, want);
			exit(1);
		}
		usleep(ms * 1000);
	}
	printf("%d echoes\n", n);
}

static void udp_serve(char **argv)
{
	int fd = bound_socket(argv[0], argv[1], SOCK_DGRAM);
	char word[128], answer[512], a[64];

	puts("listening");
	for (;;) {
		struct endpoint from = {.len = sizeof(from.ss)};
		ssize_t r = recvfrom(fd, word, sizeof(word) - 1, 0, (struct sockaddr *)&from.ss,
				     &from.len);

		if (r < 0)
			continue;
		word[r] = '\0';
		snprintf(answer, sizeof(answer), "%s %s peer=%s", argv[2], word,
			 show(&from, a, sizeof(a)));
		sendto(fd, answer, strlen(answer), 0, (struct sockaddr *)&from.ss, from.len);
	}
}

static void udp(char **argv)
{
	struct endpoint to = resolve(argv[0], argv[1], SOCK_DGRAM), from = {.len = sizeof(from.ss)};
	int fd = socket(to.ss.ss_family, SOCK_DGRAM, 0);
	char answer[512], a[64];
	ssize_t r;

	if (fd < 0)
		fail("socket");
	if (sendto(fd, argv[2], strlen(argv[2]), 0, (struct sockaddr *)&to.ss, to.len) < 0)
		fail("sendto");
	await(fd);
	r = recvfrom(fd, answer, sizeof(answer) - 1, 0, (struct sockaddr *)&from.ss, &from.len);
	if (r < 0)
		fail("recvfrom");
	answer[r] = '\0';
	printf("%s from=%s\n", answer, show(&from, a, sizeof(a)));
}

static void udp_connected(char **argv)
{
	int fd = connected_socket(argv[0], argv[1], SOCK_DGRAM);
	struct endpoint peer = {.len = sizeof(peer.ss)};
	char answer[512], a[64];
	ssize_t r;

	if (send(fd, argv[2], strlen(argv[2]), 0) < 0)
		fail("send");
	await(fd);
	r = recv(fd, answer, sizeof(answer) - 1, 0);
	if (r < 0)
		fail("recv");
	answer[r] = '\0';
	getpeername(fd, (struct sockaddr *)&peer.ss, &peer.len);
	printf("%s asked=%s\n", answer, show(&peer, a, sizeof(a)));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int args;
		void (*run)(char **argv);
	} modes[] = {
		{"serve", 3, serve},	     {"get", 2, get}, {"chat", 4, chat},
		{"udp-serve", 3, udp_serve}, {"udp", 3, udp}, {"udp-connected", 3, udp_connected},
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (!strcmp(argv[1], modes[i].name) && argc == modes[i].args + 2) {
			modes[i].run(argv + 2);
			return 0;
		}
	}
	fprintf(stderr, "usage: peer serve|get|chat|udp-serve|udp|udp-connected ARGS\n");
	return 2;
}
