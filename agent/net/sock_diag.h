/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ending sockets from outside, through sock_diag(7). */
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

/* How many TCP sockets that nobody holds any more still have to send something from this address
 * (zero: 0), in a network namespace (-1: the caller's). A negative errno where it cannot be told.
 */
int socks_sending(int netns_fd, const struct ax_addr *local);

#endif
