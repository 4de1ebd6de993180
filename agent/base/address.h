/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text to addresses and back; the only place that does it. */
#ifndef AX_BASE_ADDRESS_H
#define AX_BASE_ADDRESS_H

#include <netinet/in.h>
#include <sys/socket.h>
#include "base/util.h"
#include "addr.h"

#define ADDR_STRLEN 64 /* also for "[v6]:65535" and "v6/128" */

struct prefix {
	struct ax_addr addr;
	unsigned len; /* 0..128 in the mapped form: 10.0.0.0/8 has 104 */
};

static inline bool addr_is_zero(const struct ax_addr *a)
{
	return !(a->w[0] | a->w[1] | a->w[2] | a->w[3]);
}
static inline bool addr_eq(const struct ax_addr *a, const struct ax_addr *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}
bool addr_is_v4(const struct ax_addr *a); /* mapped */
int addr_cmp(const struct ax_addr *a, const struct ax_addr *b);

struct ax_addr addr_from_v4(__be32 v4);
struct ax_addr addr_from_v6(const struct in6_addr *v6);

/* "1.2.3.4", "fd00::1" (also "[fd00::1]" and "::ffff:1.2.3.4"). -EINVAL for anything else. */
int addr_parse(const char *s, struct ax_addr *ret);
/* "10.0.0.0/8", "fd00::/64"; without a length the whole address. -EINVAL; host bits set: -ERANGE.
 */
int prefix_parse(const char *s, struct prefix *ret);
/* The prefix that a text with host bits meant: 10.0.0.0/8 of "10.1.2.3/8". -EINVAL. */
int prefix_without_host_bits(const char *s, struct prefix *ret);
bool prefix_contains(const struct prefix *p, const struct ax_addr *a);
bool prefix_eq(const struct prefix *a, const struct prefix *b);
bool prefix_overlaps(const struct prefix *a, const struct prefix *b);
/* "1.2.3.4:80", "[fd00::1]:80"; port in network byte order. -EINVAL. */
int addr_port_parse(const char *s, struct ax_addr *addr, __be16 *port_be);
/* 1..65535 in decimal, nothing else. Returns the port in host byte order or -EINVAL. */
int port_parse(const char *s);

/* Format into buf (ADDR_STRLEN) and return it. IPv4 in dotted form. */
char *addr_format(const struct ax_addr *a, char *buf);
char *prefix_format(const struct prefix *p, char *buf);
char *addr_port_format(const struct ax_addr *a, __be16 port_be, char *buf);

/* To and from socket addresses. v4-mapped becomes AF_INET. Returns the length used. */
socklen_t addr_to_sockaddr(const struct ax_addr *a, __be16 port_be, struct sockaddr_storage *ss);
int addr_from_sockaddr(const struct sockaddr *sa, struct ax_addr *a, __be16 *port_be);

/* Whether it can be that of an app, a service or a backend: NULL, or what was expected instead.
 * A server's may also be on this machine (loopback). */
const char *want_unicast(const struct ax_addr *a);
const char *want_server(const struct ax_addr *a);

#endif
