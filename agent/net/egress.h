/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Egress of private apps to addresses that are not ax's: source NAT by nf_tables, spoken natively
 * (libnftnl over libmnl, so that no nft binary is needed), and IP forwarding while needed.
 *
 * One table `ax_<instance>` (family inet) with two sets of addresses and one nat chain at
 * postrouting that masquerades what comes from a set and leaves by an interface that is not the
 * instance's. It exists only while a set has an element: connection tracking, which it turns on,
 * is paid for only then.
 */
#ifndef AX_NET_EGRESS_H
#define AX_NET_EGRESS_H

#include "base/address.h"
#include "machine/instance.h"
#include "base/util.h"

/*
 * Replaces the whole table in one transaction by one that masquerades these addresses on their way
 * to all but `nodes`, whose apps see each other as they are; with n == 0 removes it. Also turns IP
 * forwarding on for their families and for nodes, and when there are neither back to what it was if
 * ax had changed it (remembered in <run_dir>/forwarding). forwarding.h says what that means for
 * IPv6 router advertisements and for other instances. -EOPNOTSUPP: the kernel cannot masquerade.
 */
struct egress_addr {
	struct ax_addr addr;
	struct ax_addr source; /* what it becomes; zero: the address of the interface */
};
struct egress_tables {
	bool own, guard; /* they are there: the instance's, and that of guard.h */
};
/* *made (NULL: nobody asks): which it has made, if it returns 0. */
int egress_set(const struct instance *inst, const struct egress_addr *addrs, size_t n,
	       const struct prefix *nodes, size_t n_nodes, struct egress_tables *made,
	       struct error *e);

/* Takes what a socket of nft_watch_open() has to say. Whether somebody took away one of these, and
 * nobody has put it back: egress_set() does. */
bool egress_was_flushed(const struct instance *inst, int fd, const struct egress_tables *made);

#endif
