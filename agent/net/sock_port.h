/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ports of this host that are kept from others, and who has one. */
#ifndef AX_NET_SOCK_PORT_H
#define AX_NET_SOCK_PORT_H

#include "base/address.h"
#include "base/util.h"

struct port_holder {
	struct ax_addr addr; /* zero: every address of both families */
	uint32_t uid;
	bool listens; /* or holds it for later, or is UDP; else there are only connections */
};

/* Who has a port of the caller's network namespace, of one family: 1 with *ret filled (a program
 * that listens there before others), 0: nobody, or a negative errno where it cannot be told. */
int port_holder(sa_family_t family, uint8_t proto, uint16_t port, struct port_holder *ret);

/*
 * A socket that has the port, at an address or at the wildcard of a family, by one device or by any
 * (""), and does nothing there: nobody else can bind the port while it is open. Connections that
 * are left from before are not in its way. A descriptor or a negative errno.
 */
int port_reserve(const struct ax_addr *addr, uint8_t proto, uint16_t port, const char *device);

#endif
