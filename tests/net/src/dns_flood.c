// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * dns_flood udp|gso|tcp ADDR SECONDS
 *     Asks the DNS server at ADDR for ever new names of flood.example.test, as fast as it can, and
 *     reads no answer. gso: many queries in one packet. tcp: on 200 connections, many at once.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "netutil.h"

#define LEN		   46 /* of one query */
#define BATCH		   16
#define CONNECTIONS	   200
#define UDP_SEGMENT_OPTION 103 /* UDP_SEGMENT, which other headers declare */

static unsigned serial;

static void query(uint8_t *p)
{
	static const uint8_t header[12] = {0, 0, 1, 0, 0, 1};
	static const uint8_t tail[24] = {5,   'f', 'l', 'o', 'o', 'd', 7,   'e', 'x', 'a', 'm', 'p',
					 'l', 'e', 4,	't', 'e', 's', 't', 0,	 0,   1,   0,	1};

	memcpy(p, header, sizeof(header));
	p[0] = (uint8_t)(serial >> 8);
	p[1] = (uint8_t)serial;
	sprintf((char *)p + 12, "\nq%09u", serial++);
	memcpy(p + 23, tail, sizeof(tail));
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int flood_udp(const struct endpoint *e, int gso, double end)
{
	int fd = socket(e->ss.ss_family, SOCK_DGRAM, 0), size = LEN + 1, n = gso ? BATCH : 1;
	uint8_t buf[BATCH * (LEN + 1)];
	unsigned long sent = 0;

	if (gso && setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT_OPTION, &size, sizeof(size)))
		fail("UDP_SEGMENT");
	while (now() < end) {
		for (int i = 0; i < n; i++)
			query(buf + i * size);
		if (sendto(fd, buf, (size_t)n * (size_t)size, 0, (const struct sockaddr *)&e->ss,
			   e->len) > 0)
			sent += (unsigned)n;
	}
	printf("sent %lu\n", sent);
	return 0;
}

static int flood_tcp(const struct endpoint *e, double end)
{
	uint8_t buf[BATCH * (LEN + 3)];
	int fd[CONNECTIONS];

	for (int i = 0; i < CONNECTIONS; i++)
		fd[i] = -1;
	while (now() < end) {
		for (int i = 0; i < CONNECTIONS; i++) {
			if (fd[i] < 0) {
				fd[i] = socket(e->ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
				(void)connect(fd[i], (const struct sockaddr *)&e->ss, e->len);
			}
			for (int j = 0; j < BATCH; j++) {
				buf[j * (LEN + 3)] = 0;
				buf[j * (LEN + 3) + 1] = LEN + 1;
				query(buf + j * (LEN + 3) + 2);
			}
			if (send(fd[i], buf, sizeof(buf), MSG_NOSIGNAL) < 0 && errno != EAGAIN &&
			    errno != EINPROGRESS) {
				close(fd[i]);
				fd[i] = -1;
			}
		}
	}
	printf("done\n");
	return 0;
}

int main(int argc, char **argv)
{
	struct endpoint e;
	double end;

	if (argc != 4)
		return 2;
	endpoint_parse(strchr(argv[2], ':') ? "6" : "4", argv[2], "53", &e);
	end = now() + atof(argv[3]);
	if (strcmp(argv[1], "tcp") == 0)
		return flood_tcp(&e, end);
	return flood_udp(&e, strcmp(argv[1], "gso") == 0, end);
}
