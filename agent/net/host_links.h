/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host's own interfaces and addresses, and when they change. */
#ifndef AX_NET_HOST_LINKS_H
#define AX_NET_HOST_LINKS_H

#include "net/netlink.h"

struct nl_host_link {
	unsigned ifindex;
	bool enslaved; /* part of another (a bridge's, a bond's), whose packets its are */
};

/* By which packets for the host come in: those with Ethernet headers, and lo; not ax's own. */
int nl_host_link_each(struct nl *nl, int (*f)(void *arg, const struct nl_host_link *link),
		      void *arg);
/* All but lo by which packets from elsewhere come in, whatever headers they have (wireguard, tun);
 * not ax's own, nor its ways to other nodes. */
int nl_outer_link_each(struct nl *nl, int (*f)(void *arg, const struct nl_host_link *link),
		       void *arg);
/* Whether anybody has a filter in its clsact. */
bool nl_link_has_filters(struct nl *nl, unsigned ifindex);

/* Every address of every interface. */
int nl_host_addr_each(struct nl *nl, int (*f)(void *arg, const struct ax_addr *addr), void *arg);
/* The IPv6 ones by which others may reach this machine for long: no link-local ones, none of lo,
 * and none that are temporary (RFC 8981), deprecated, or not known to be this machine's alone. */
int nl_host_addr6_each(struct nl *nl, int (*f)(void *arg, const struct ax_addr *addr), void *arg);

/* A socket that is readable when one of them may have changed, or a negative errno. */
int nl_host_watch(void);
/* Reads what there is. Returns whether it is more than coming and going of ax's own devices. */
bool nl_host_watch_read(int fd);

#endif
