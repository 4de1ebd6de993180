// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Connections and segments in numbers for which a script is too slow.
 *
 *  storm serve PORT
 *      Sends each connection's bytes back, and is the first to close where it is asked to.
 *  storm mix SERVICE PORT BACKEND PORT N [FIRST]
 *      N connections in turn to the service and to the backend itself, from the same few ports, and
 *      to both at once. Half of them end by a FIN of both sides, half by a RST. Prints how many
 * were answered wrongly or not at all. The ports are free ones from FIRST on. They are used again
 * at once, so the backend's network namespace has to keep nothing of what has ended
 *      (net.ipv4.tcp_max_tw_buckets=0).
 *  storm load SERVICE PORT SECONDS
 *      32 connections that always have a question, and after some make room for another one. Prints
 *      how many connections failed, and whether a thousand questions had answers.
 *  storm syns SERVICE PORT SECONDS
 *      SYNs from addresses of nobody, as fast as it goes, until then or until it is ended. Prints
 *      how many a second, and a second of its processor time. IPv4.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#include "netutil.h"

#define BATCH	     64
#define PORTS	     7
#define FIRST_PORT   20000 /* some, below those that the kernel gives to whoever connects */
#define SHOWN_ERRORS 20
#define AT_ONCE	     32 /* connections of a load */
#define QUESTIONS    16 /* that one of those has */

static struct sockaddr_in address(const char *ip, const char *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};

	if (inet_pton(AF_INET, ip, &a.sin_addr) != 1)
		fail("address");
	return a;
}

/* --- the server --- */

static const uint64_t that_was_all = UINT64_MAX;

static void answer(int fd)
{
	char buf[256];
	ssize_t n = read(fd, buf, sizeof(buf));

	if (n == sizeof(that_was_all) && memcmp(buf, &that_was_all, sizeof(that_was_all)) == 0)
		shutdown(fd, SHUT_WR);
	else if (n <= 0 || write(fd, buf, (size_t)n) != n)
		close(fd);
}

static void cmd_serve(const char *port)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6,
				  .sin6_port = htons((uint16_t)atoi(port))}; /* both families */
	int s = socket(AF_INET6, SOCK_STREAM, 0), e = epoll_create1(0), one = 1;
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = s}, got[BATCH];

	raise_file_limit();
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(s, (struct sockaddr *)&at, sizeof(at)) || listen(s, 4096) ||
	    epoll_ctl(e, EPOLL_CTL_ADD, s, &ev))
		fail("listen");
	for (;;) {
		int n = epoll_wait(e, got, BATCH, -1);

		for (int i = 0; i < n; i++) {
			if (got[i].data.fd != s) {
				answer(got[i].data.fd);
				continue;
			}
			ev.data.fd = accept(s, NULL, NULL);
			if (ev.data.fd >= 0)
				epoll_ctl(e, EPOLL_CTL_ADD, ev.data.fd, &ev);
		}
	}
}

/* --- direct and service connections --- */

static unsigned own_ports[PORTS];

/* In both families. */
static bool is_free(unsigned port)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	bool got = bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0;

	close(fd);
	return got;
}

static void find_ports(const char *first)
{
	unsigned port = first ? (unsigned)atoi(first) : FIRST_PORT + (unsigned)getpid() % 10000;

	for (unsigned n = 0; n < PORTS; port++)
		if (is_free(port))
			own_ports[n++] = port;
}

static const char *family_of(const char *addr)
{
	return strchr(addr, ':') ? "6only" : "4";
}

/* From that port of ours, which may have another connection that goes elsewhere; 0: from any. */
static int connect_from(const struct endpoint *to, unsigned port)
{
	bool v6 = to->ss.ss_family == AF_INET6;
	struct linger at_once = {.l_onoff = 1};
	int fd, one = 1, err;
	struct endpoint from;
	char text[8];

	snprintf(text, sizeof(text), "%u", port % 65536);
	endpoint_parse(v6 ? "6only" : "4", v6 ? "::" : "0.0.0.0", text, &from);
	fd = endpoint_socket(v6 ? "6only" : "4", to, SOCK_STREAM);
	set_timeouts(fd);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	if ((!port || bind(fd, (struct sockaddr *)&from.ss, from.len) == 0) &&
	    connect(fd, (const struct sockaddr *)&to->ss, to->len) == 0)
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

/* What came back is what was said on this very connection. */
static bool answered(int fd, uint64_t word)
{
	uint64_t back = 0;

	errno = 0;
	return recv(fd, &back, sizeof(back), MSG_WAITALL) == sizeof(back) && back == word;
}

static bool ask(int fd, uint64_t word)
{
	return write(fd, &word, sizeof(word)) == sizeof(word) && answered(fd, word);
}

/* By FIN: of the server first, so that nothing of it stays on this side. Else by a RST. */
static bool end(int fd, bool by_fin)
{
	const struct linger as_usual = {0};
	bool good = true;
	char more;
	int err;

	if (fd < 0)
		return true;
	errno = 0;
	if (by_fin)
		good = setsockopt(fd, SOL_SOCKET, SO_LINGER, &as_usual, sizeof(as_usual)) == 0 &&
		       write(fd, &that_was_all, sizeof(that_was_all)) == sizeof(that_was_all) &&
		       recv(fd, &more, sizeof(more), 0) == 0;
	err = errno;
	close(fd);
	errno = err;
	return good;
}

/* (The second one goes on for a moment, and ends the other way.) */
static bool end_both(int first, int second, bool by_fin)
{
	bool good = end(first, by_fin);
	int err = errno;

	if (!end(second, !by_fin))
		return false;
	errno = err;
	return good;
}

static bool talk(const struct endpoint to[2], uint64_t i)
{
	unsigned port = own_ports[i % PORTS];
	int first = connect_from(&to[i % 2], port), second = -1, err;
	bool good = first >= 0;

	if (good && i % 3 == 0) {
		good = ask(first, 3 * i);
		second = good ? connect_from(&to[(i + 1) % 2], port) : -1;
		good = second >= 0 && ask(second, 3 * i + 1);
	}
	if (good && ask(first, 3 * i + 2))
		return end_both(first, second, i / 6 % 2);
	err = errno;
	end(first, false);
	end(second, false);
	errno = err;
	return false;
}

static void failed(uint64_t *n, uint64_t which)
{
	if ((*n)++ < SHOWN_ERRORS)
		fprintf(stderr, "%llu: %s\n", (unsigned long long)which, errno_name(errno));
}

static void cmd_mix(char **argv)
{
	uint64_t n = strtoull(argv[6], NULL, 10), wrong = 0, made = 0;
	struct endpoint to[2];

	endpoint_parse(family_of(argv[2]), argv[2], argv[3], &to[0]);
	endpoint_parse(family_of(argv[4]), argv[4], argv[5], &to[1]);
	find_ports(argv[7]);
	for (uint64_t i = 0; made < n; i++) {
		made += i % 3 ? 1 : 2;
		if (!talk(to, i))
			failed(&wrong, i);
	}
	printf("%llu\n", (unsigned long long)wrong);
}

/* --- a load --- */

struct load {
	struct endpoint to;
	int fd[AT_ONCE];
	uint64_t answers, wrong;
};

/* Some of them give way to new ones each time. */
static void load_change(struct load *l, uint64_t round)
{
	for (uint64_t i = 0; i < AT_ONCE; i++) {
		if (l->fd[i] >= 0 && (round + i) % QUESTIONS)
			continue;
		if (!end(l->fd[i], i % 2))
			failed(&l->wrong, i);
		l->fd[i] = connect_from(&l->to, 0);
		if (l->fd[i] < 0)
			failed(&l->wrong, i);
	}
}

/* All are asked before any answer is looked at. */
static void load_ask(struct load *l, uint64_t round)
{
	bool asked[AT_ONCE];

	for (uint64_t i = 0; i < AT_ONCE; i++) {
		uint64_t word = round * AT_ONCE + i;

		asked[i] = l->fd[i] >= 0 && write(l->fd[i], &word, sizeof(word)) == sizeof(word);
	}
	for (uint64_t i = 0; i < AT_ONCE; i++) {
		if (asked[i] && answered(l->fd[i], round * AT_ONCE + i)) {
			l->answers++;
		} else if (l->fd[i] >= 0) {
			failed(&l->wrong, i);
			end(l->fd[i], false);
			l->fd[i] = -1;
		}
	}
}

static void cmd_load(char **argv)
{
	uint64_t until = now_ms() + strtoull(argv[4], NULL, 10) * 1000;
	struct load l = {0};

	endpoint_parse(family_of(argv[2]), argv[2], argv[3], &l.to);
	for (size_t i = 0; i < AT_ONCE; i++)
		l.fd[i] = -1;
	for (uint64_t round = 0; now_ms() < until; round++) {
		load_change(&l, round);
		load_ask(&l, round);
	}
	printf("%llu %s\n", (unsigned long long)l.wrong, l.answers >= 1000 ? "many" : "few");
}

/* --- SYNs --- */

struct segment {
	struct iphdr ip;
	struct tcphdr tcp;
};

static uint32_t sum(const void *data, size_t size, uint32_t s)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < size; i += 2)
		s += (uint32_t)p[i] << 8 | p[i + 1];
	return s;
}

static void make_syn(struct segment *g, const struct sockaddr_in *to, uint64_t i)
{
	uint32_t s;

	*g = (struct segment){.ip = {.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_TCP}};
	g->ip.tot_len = htons(sizeof(*g));
	g->ip.saddr = htonl((uint32_t)(0xcb007100 + i % 200 + 1));
	g->ip.daddr = to->sin_addr.s_addr;
	g->tcp.source = htons((uint16_t)(1024 + i / 200 % 64000));
	g->tcp.dest = to->sin_port;
	g->tcp.seq = htonl((uint32_t)i);
	g->tcp.doff = 5;
	g->tcp.syn = 1;
	g->tcp.window = htons(8192);
	s = sum(&g->ip.saddr, 8, IPPROTO_TCP + sizeof(g->tcp));
	s = sum(&g->tcp, sizeof(g->tcp), s);
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	g->tcp.check = htons((uint16_t)~s);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void cmd_syns(char **argv)
{
	static struct segment g[BATCH];
	static struct iovec iov[BATCH];
	static struct mmsghdr m[BATCH];
	struct sockaddr_in to = address(argv[2], argv[3]), where = to;
	int fd = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	double begin = now(), end = begin + atof(argv[4]);
	uint64_t made = 0, sent = 0;

	if (fd < 0)
		fail("socket");
	where.sin_port = 0;
	for (int i = 0; i < BATCH; i++) {
		iov[i] = (struct iovec){&g[i], sizeof(g[i])};
		m[i].msg_hdr = (struct msghdr){.msg_name = &where,
					       .msg_namelen = sizeof(where),
					       .msg_iov = &iov[i],
					       .msg_iovlen = 1};
	}
	while (now() < end) {
		int n;

		for (int i = 0; i < BATCH; i++)
			make_syn(&g[i], &to, made++);
		n = sendmmsg(fd, m, BATCH, 0);
		sent += n > 0 ? (uint64_t)n : 0;
	}
	printf("%.0f, of processor time %.0f\n", (double)sent / (now() - begin),
	       (double)sent * CLOCKS_PER_SEC / (double)clock());
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (strcmp(what, "serve") == 0)
		cmd_serve(argv[2]);
	else if (strcmp(what, "mix") == 0 && (argc == 7 || argc == 8))
		cmd_mix(argv);
	else if (strcmp(what, "load") == 0 && argc == 5)
		cmd_load(argv);
	else if (strcmp(what, "syns") == 0 && argc == 5)
		cmd_syns(argv);
	else
		return 2;
	return 0;
}
