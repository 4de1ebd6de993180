// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sockets on addresses that are not one's own, by IP_FREEBIND, which takes no privilege, and more
 * sockets than anybody needs.
 *
 *  squat bind PROTO FAMILY ADDR PORT
 *      PROTO: tcp or udp, a + behind it for SO_REUSEADDR, a - to hold a TCP socket that does not
 *      listen. Prints "bound" or "error bind ERRNO".
 *  squat hold PROTO FAMILY PORT ADDR...
 *      Binds them all, prints "holds N" (those that it got), and says "squatter" to whoever comes.
 *  squat leave PROTO FAMILY ADDR PORT
 *      A child that leaves the app's cgroup for the root one holds the socket, and does the same.
 *  squat many PORT N
 *      UDP sockets on the wildcard, ports PORT and following. Prints "bound N", then stays.
 *  squat crowd N
 *      TCP sockets that do nothing. Prints "holds N", then stays.
 *  squat flood PORT N
 *      Binds and closes a UDP socket N times, with SO_REUSEADDR. Prints the CPU time in clock ticks
 *      that this took, then stays.
 *  squat wander N
 *      One UDP socket that is bound to N ports, one after the other. Prints "bound N", then stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/times.h>
#include <unistd.h>
#include "netutil.h"

#define HOLD_MAX 1024

static int freebound(const char *proto, const char *family, const struct endpoint *e)
{
	int fd = endpoint_socket(family, e, proto[0] == 'u' ? SOCK_DGRAM : SOCK_STREAM), one = 1;

	setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof(one));
	if (proto[3] == '+')
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)&e->ss, e->len) == 0)
		return fd;
	close(fd);
	return -1;
}

static void say(const char *proto, int fd)
{
	static const char word[] = "squatter\n";
	struct endpoint from = {.len = sizeof(from.ss)};
	char in[256];
	int conn;

	if (proto[0] == 'u') {
		recvfrom(fd, in, sizeof(in), 0, (struct sockaddr *)&from.ss, &from.len);
		sendto(fd, word, sizeof(word) - 1, 0, (struct sockaddr *)&from.ss, from.len);
		return;
	}
	conn = accept(fd, NULL, NULL);
	if (conn >= 0 && write(conn, word, sizeof(word) - 1) >= 0)
		close(conn);
}

static void serve(const char *proto, struct pollfd *p, nfds_t n)
{
	for (;;) {
		poll(p, n, -1);
		for (nfds_t i = 0; i < n; i++) {
			if (p[i].revents & POLLIN)
				say(proto, p[i].fd);
			else if (p[i].revents)
				p[i].fd = -1; /* somebody has ended it */
		}
	}
}

static void cmd_bind(char **argv)
{
	struct endpoint e;

	endpoint_parse(argv[3], argv[4], argv[5], &e);
	if (freebound(argv[2], argv[3], &e) < 0)
		fail("bind");
	puts("bound");
}

static void cmd_hold(int argc, char **argv)
{
	static struct pollfd p[HOLD_MAX];
	nfds_t n = 0;

	raise_file_limit();
	for (int i = 5; i < argc && n < HOLD_MAX; i++) {
		struct endpoint e;

		endpoint_parse(argv[3], argv[i], argv[4], &e);
		p[n].fd = freebound(argv[2], argv[3], &e);
		p[n].events = POLLIN;
		if (p[n].fd < 0)
			continue;
		if (argv[2][0] == 't' && argv[2][3] != '-')
			listen(p[n].fd, 8);
		n++;
	}
	printf("holds %d\n", (int)n);
	fflush(stdout);
	serve(argv[2], p, n);
}

static void cmd_leave(char **argv)
{
	struct pollfd p = {.events = POLLIN};
	struct endpoint e;
	int in, out;
	FILE *f;

	endpoint_parse(argv[3], argv[4], argv[5], &e);
	p.fd = freebound(argv[2], argv[3], &e);
	if (p.fd < 0)
		fail("bind");
	if (argv[2][0] == 't')
		listen(p.fd, 8);
	if (fork())
		exit(0);
	f = fopen(getenv("CGROUP_PROCS"), "w");
	if (!f || fprintf(f, "0\n") < 0 || fclose(f))
		fail("leave");
	printf("left %d\n", (int)getpid());
	fflush(stdout);
	in = open("/dev/null", O_RDONLY);
	out = open("/dev/null", O_WRONLY);
	dup2(in, 0);
	dup2(out, 1);
	dup2(out, 2);
	serve(argv[2], &p, 1);
}

static void bound_and_stay(int n)
{
	printf("bound %d\n", n);
	fflush(stdout);
	pause();
}

static void cmd_many(char **argv)
{
	int first = atoi(argv[2]), want = atoi(argv[3]), n = 0;

	raise_file_limit();
	for (int i = 0; i < want; i++) {
		struct endpoint e;
		char port[8];

		snprintf(port, sizeof(port), "%d", first + i);
		endpoint_parse("4", "0.0.0.0", port, &e);
		n += freebound("udp", "4", &e) >= 0;
	}
	bound_and_stay(n);
}

static void cmd_crowd(char **argv)
{
	int want = atoi(argv[2]), n = 0;

	raise_file_limit();
	while (n < want && socket(AF_INET, SOCK_STREAM, 0) >= 0)
		n++;
	printf("holds %d\n", n);
	fflush(stdout);
	for (;;)
		pause();
}

static void cmd_flood(char **argv)
{
	struct endpoint e;
	struct tms t;

	endpoint_parse("4", "0.0.0.0", argv[2], &e);
	for (int i = atoi(argv[3]); i; i--)
		close(freebound("udp+", "4", &e));
	times(&t);
	printf("ticks %ld\n", (long)(t.tms_utime + t.tms_stime));
	fflush(stdout);
	pause();
}

static void cmd_wander(char **argv)
{
	const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
	struct endpoint any, peer;
	int fd, n = 0;

	endpoint_parse("4", "0.0.0.0", "0", &any);
	endpoint_parse("4", "127.0.0.1", "9", &peer);
	fd = endpoint_socket("4", &any, SOCK_DGRAM);
	for (int i = atoi(argv[2]); i; i--) {
		n += bind(fd, (struct sockaddr *)&any.ss, any.len) == 0;
		(void)connect(fd, (struct sockaddr *)&peer.ss, peer.len);
		(void)connect(fd, &nobody, sizeof(nobody));
	}
	n += bind(fd, (struct sockaddr *)&any.ss, any.len) == 0;
	bound_and_stay(n);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (strcmp(what, "bind") == 0 && argc == 6)
		cmd_bind(argv);
	else if (strcmp(what, "hold") == 0 && argc > 5)
		cmd_hold(argc, argv);
	else if (strcmp(what, "leave") == 0 && argc == 6)
		cmd_leave(argv);
	else if (strcmp(what, "many") == 0 && argc == 4)
		cmd_many(argv);
	else if (strcmp(what, "flood") == 0 && argc == 4)
		cmd_flood(argv);
	else if (strcmp(what, "crowd") == 0)
		cmd_crowd(argv);
	else if (strcmp(what, "wander") == 0)
		cmd_wander(argv);
	else
		return 2;
	return 0;
}
