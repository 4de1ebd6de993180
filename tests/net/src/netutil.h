/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the test programs share: addresses from and to text, error names, bounded waiting. */
#ifndef TEST_NETUTIL_H
#define TEST_NETUTIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define TIMEOUT_MS 5000 /* for everything that a test program waits for */
#define ADDR_TEXT  72

uint64_t now_ms(void); /* of the monotonic clock */

struct endpoint {
	struct sockaddr_storage ss;
	socklen_t len;
};

/* family: "4", "6" (an IPv4 address becomes a v4-mapped one: the socket is AF_INET6), "6only"
 * (the same with IPV6_V6ONLY set). Exits with a message when the text is wrong. */
void endpoint_parse(const char *family, const char *addr, const char *port, struct endpoint *ret);
/* Opens a socket of the endpoint's family and sets IPV6_V6ONLY as `family` says. */
int endpoint_socket(const char *family, const struct endpoint *e, int type);
/* Such a socket of TCP that is bound there, also if others were a moment ago. Exits if that fails.
 */
int endpoint_bound(const char *family, const struct endpoint *e, int flags);
/* "1.2.3.4:80", "[fd00::1]:80"; v4-mapped addresses are shown as they are: "[::ffff:1.2.3.4]:80".
 */
char *endpoint_text(const struct endpoint *e, char buf[ADDR_TEXT]);
/* The same address and port; a v4-mapped address and its IPv4 form are the same. */
bool endpoint_eq(const struct endpoint *a, const struct endpoint *b);
void local_of(int fd, struct endpoint *ret);
/* Returns 0 or the errno. */
int peer_of(int fd, struct endpoint *ret);

const char *errno_name(int err);
/* Prints "error WHAT NAME" on stdout and exits with 1: what tests look at. */
void fail(const char *what) __attribute__((noreturn));
/* 0 when fd has one of the events in time, else -1. */
int wait_fd(int fd, short events, int timeout_ms);
void set_timeouts(int fd);
void raise_file_limit(void);

#endif
