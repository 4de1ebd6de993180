/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Network namespaces of a test's own, and traffic between them. */
#ifndef AX_TESTS_NETNS_H
#define AX_TESTS_NETNS_H

#include "base/address.h"
#include "net/netlink.h"

/* Less than TCP's first retransmission (1 s) and less than duplicate address detection takes:
 * nothing may depend on a second try. */
#define NS_TIMEOUT_MS 700

/* All return -errno when they fail, and new descriptors where they are not said to return 0. */

struct ax_addr ns_addr(const char *text);
/* The namespace of the calling thread. */
int ns_current(void);

/* A new namespace; the calling thread stays where it is. It lives as long as the descriptor. */
int ns_new(void);

int ns_socket(int ns, int domain, int type, int proto);
/* Until poll()'s events are there: 0 or -ETIMEDOUT. */
int ns_wait(int fd, short events);

/* A socket bound to addr, at a port that the kernel chooses. */
int ns_bound(int ns, int type, const struct ax_addr *addr, __be16 *port_be);

int ns_connect(int ns, int type, const struct ax_addr *addr, __be16 port_be);

/* 0: a TCP connection with a byte in both directions. *client: its address as the server sees it.
 */
int ns_tcp(int server_ns, int client_ns, const struct ax_addr *addr, struct ax_addr *client);

/* The same with a datagram in both directions. */
int ns_udp(int server_ns, int client_ns, const struct ax_addr *addr, struct ax_addr *client);

/* 0: one ICMP echo. A raw socket hears other ICMP packets too, so a few are read. */
int ns_ping(int ns, const struct ax_addr *addr);

/* A netlink socket there; 0. */
int ns_open_nl(int ns, struct nl **nl);

#endif
