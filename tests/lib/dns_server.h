/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DNS servers on loopback for the tests of the server. Servers and clients share one thread:
 * whoever waits for an answer turns the servers' loop meanwhile.
 */
#ifndef AX_TESTS_DNS_SERVER_H
#define AX_TESTS_DNS_SERVER_H

#include "tests/lib/dns_zone.h"

#define WAIT_MS 8000 /* for what must come */

/* The test's own. */
struct dns_world {
	int epoll_fd;
	struct dns_server *server;   /* ax.internal, forwards to */
	struct dns_server *upstream; /* up.test, which forwards nothing */
	uint8_t reply[65535];	     /* the last one */
};
extern struct dns_world dns;

unsigned dns_get16(const uint8_t *p);
unsigned dns_rcode(void);
/* Turns the loop until fd (-1: none) is readable; false after ms milliseconds. */
bool dns_run(int fd, int ms);

struct dns_server *dns_server_new(const char *domain, __be16 port_be, const struct dns_upstream *u,
				  size_t n);
struct dns_upstream dns_upstream_at(__be16 port_be);
void dns_set_upstreams(const struct dns_upstream *u, size_t n);
int dns_setup(void **state);
int dns_teardown(void **state);
/* A socket of another asker: connected from 127.0.x.y to a port of loopback. */
int dns_socket_from(int type, unsigned xy, __be16 port_be);

/* A socket connected to a port of loopback; with port 0 bound to one. */
int dns_socket_to(int type, __be16 port_be);

__be16 dns_port_of(int fd);
void dns_send_query(int fd, const struct test_query *q);
size_t dns_receive(int fd, unsigned id);
size_t dns_ask_udp(const char *name, unsigned type);
void dns_send_framed(int fd, const struct test_query *q);
void dns_read_exactly(int fd, uint8_t *to, size_t len);
size_t dns_receive_framed(int fd);
void dns_assert_closed(int fd, int ms);
/* Whether any timer of this process is set: nothing may wake an idle agent up. */
bool dns_timer_is_set(void);

void dns_allow_descriptors(void);
/* Sends from..to-1 by UDP, and turns the loop. */
void dns_send_many(int fd, unsigned from, unsigned to);

#endif
