/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Both ends of TCP connections, and what is sent over them, byte for byte. */
#ifndef AX_TESTS_TCP_PAIR_H
#define AX_TESTS_TCP_PAIR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "addr.h"

struct tcp_pair {
	int client, server; /* not blocking, TCP_NODELAY; -1: closed */
};

/* The client's address and namespace (descriptor), the server's; 0 or a negative errno. */
int tcp_pair_open(struct tcp_pair *p, int client_ns, const struct ax_addr *client, int server_ns,
		  const struct ax_addr *server);
void tcp_pair_close(struct tcp_pair *p);
uint64_t tcp_cookie(int fd);

/* One direction. Each byte tells its place. */
struct tcp_stream {
	int from, to;
	uint64_t sent, got;
};

/* Sends the next n bytes in one call; bytes that were taken, or a negative errno. */
ssize_t tcp_stream_put(struct tcp_stream *s, size_t n, int flags);
/* Reads at most n bytes in one call: how many, 0: the end, or a negative errno; -EBADMSG: not the
 * bytes that come next. */
ssize_t tcp_stream_get(struct tcp_stream *s, size_t n);
/* Reads until all that was sent is there. 0, or a negative errno, -ETIMEDOUT after a while. */
int tcp_stream_get_all(struct tcp_stream *s);

#endif
