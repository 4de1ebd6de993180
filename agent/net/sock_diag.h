/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looking at sockets and ending them from outside, through sock_diag(7). */
#ifndef AX_NET_SOCK_DIAG_H
#define AX_NET_SOCK_DIAG_H

#include "base/address.h"
#include "base/util.h"

/*
 * Ends every UDP socket of a network namespace (-1: the caller's) that is connected to an address
 * whose owner is gone: nothing else would tell it, and it would send into the void for ever. Its
 * next call fails with ECONNABORTED and the program connects anew. Returns how many there were, or
 * a negative errno; -EOPNOTSUPP on a kernel without CONFIG_INET_DIAG_DESTROY or
 * CONFIG_INET_UDP_DIAG.
 */
int socks_end_udp(int netns_fd, const struct ax_addr *peer);

/* A TCP connection or connected UDP socket: `proto` of its ends says which, and its cookie
 * (SO_COOKIE) which one, or another one might have the ends by the time. */
struct sock_conn {
	struct ax_endpoint local, remote;
	uint64_t cookie;
	uint32_t ifindex; /* of the interface that it is bound to (SO_BINDTODEVICE), or 0 */
};

/* A list of such, {0} at first; its memory is the caller's, who frees v. */
struct sock_conns {
	struct sock_conn *v;
	size_t n, size;
};
/* 0 or -ENOMEM. */
int sock_conns_add(struct sock_conns *l, const struct sock_conn *one);

/*
 * Ends such sockets of a network namespace (-1: the caller's), those that are still there: their
 * next call fails with ECONNABORTED, and the other side of TCP is
 * reset. Returns how many there still were, or a negative errno; -EOPNOTSUPP as above.
 */
int socks_end_conns(int netns_fd, const struct sock_conn *conns, size_t n);

/* How many TCP sockets that nobody holds any more still have to send something from this address
 * (zero: 0), in a network namespace (-1: the caller's). A negative errno where it cannot be told.
 */
int socks_sending(int netns_fd, const struct ax_addr *local);

/* 1: there is a TCP connection in the caller's network namespace of which that is the local end
 * (address zero: whichever), and which the program here has not closed; 0; or a negative errno
 * where it cannot be told. */
int socks_open_at(const struct ax_addr *local, uint16_t port);

/*
 * Ends what TCP still does in the caller's network namespace from an address in the names of those
 * who are gone: closes that nobody answers, and TIME-WAIT (from Linux 6.5 on). Costs next to
 * nothing where there is none. Returns how many there were, or a negative errno; -EOPNOTSUPP as
 * above.
 */
int socks_end_orphans(const struct ax_addr *local);

struct sock_found {
	uint8_t proto; /* IPPROTO_TCP or IPPROTO_UDP */
	uint16_t port; /* host byte order */
	uint32_t uid;
	struct ax_addr addr;
};

enum sock_question {
	SOCKS_ALL, /* TCP ones that have not begun to listen included (Linux 6.8; before that the
		    * kernel does not tell): it walks all TCP sockets of the machine, and those in
		    * TIME-WAIT: 5 ms where there are 25,000 */
	SOCKS_SERVING, /* those that listen, and all UDP ones: some 50 us */
};

/*
 * Hands over the sockets in the caller's network namespace that a program has bound to an address
 * of the prefix, until it is told that it is enough. 0, or a negative errno where it cannot be
 * told.
 */
int socks_bound(const struct prefix *within, enum sock_question what,
		bool (*each)(const struct sock_found *found, void *arg), void *arg);

/* How many TCP sockets the machine has, with those in TIME-WAIT of the caller's network namespace;
 * -1: it cannot be told. */
int socks_tcp_count(void);

#endif
