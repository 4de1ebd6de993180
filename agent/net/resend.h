/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sending a packet once more that a socket of somebody else has made. */
#ifndef AX_NET_RESEND_H
#define AX_NET_RESEND_H

#include "base/address.h"
#include "base/util.h"

#define RESEND_MAX 128

/*
 * Sends the SYN, from its IP header on, in a network namespace (-1: the caller's), with a checksum
 * of its own. -EINVAL: it is no whole SYN without data from `from` to `to`, which may have any
 * port.
 */
int resend_syn(int netns_fd, const void *packet, size_t len, const struct ax_addr *from,
	       const struct ax_addr *to);

#endif
