/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Links, addresses and routes through rtnetlink (libmnl). Every call waits for the kernel's
 * acknowledgement and returns 0 or the kernel's negative errno. Nothing here logs.
 */
#ifndef AX_NET_NETLINK_H
#define AX_NET_NETLINK_H

#include "base/address.h"
#include "base/util.h"

struct nl; /* a NETLINK_ROUTE socket; it stays in the network namespace where it was opened */

int nl_open(struct nl **ret);
void nl_close(struct nl *nl);
static inline void nl_closep(struct nl **nl)
{
	if (*nl)
		nl_close(*nl);
}

/*
 * A veth pair with `name` here and `peer_name` in the network namespace `peer_netns_fd`, both ends
 * with the same MAC address and without ARP or neighbour discovery (IFF_NOARP): then whatever is
 * sent on one end is addressed to the other, and no neighbour entry is ever needed. No IPv6
 * link-local addresses are made (IFLA_INET6_ADDR_GEN_MODE none). The host end is created up, if
 * the kernel allows it in one request. *ifindex is the host end's, which belongs to NL_LINK_GROUP:
 * whatever instance made it, it is ax's.
 */
#define NL_LINK_GROUP 0x6178
/* That of the ways to other nodes that ax makes (wireguard.h): what comes in by them is not ax's.
 */
#define NL_TUNNEL_GROUP 0x6179
int nl_link_add_veth(struct nl *nl, const char *name, const char *peer_name, int peer_netns_fd,
		     const uint8_t mac[6], unsigned mtu, unsigned *ifindex);
int nl_link_set_group(struct nl *nl, unsigned ifindex);
int nl_link_set_up(struct nl *nl, unsigned ifindex);
int nl_link_del(struct nl *nl, unsigned ifindex);
/* -ENODEV when there is none. */
int nl_link_index(struct nl *nl, const char *name, unsigned *ifindex);
/* In bytes. -ENODEV. */
int nl_link_mtu(struct nl *nl, unsigned ifindex, unsigned *mtu);
/* The id of the XDP program on a link, 0: there is none. -ENODEV; -EMLINK: it has several, each in
 * a mode of its own. */
int nl_link_xdp(struct nl *nl, unsigned ifindex, uint32_t *prog);
/*
 * Waits until a link can send. A veth's end that was up before its peer loses what it is given
 * until the kernel's link watcher has noticed the carrier, some 100 us after the peer went up
 * (netns_configure()); asking makes kernels from 6.8 on notice at once. -ETIMEDOUT.
 */
int nl_link_wait_up(struct nl *nl, unsigned ifindex, unsigned timeout_ms);
/* Calls f for every link whose name starts with prefix, until it returns non-zero; f may use nl. */
int nl_link_each(struct nl *nl, const char *prefix,
		 int (*f)(void *arg, const char *name, unsigned ifindex), void *arg);

/* prefix_len: 0..32 for IPv4 (or 96..128, in the mapped form), 0..128 for IPv6. Adding what exists
 * is not an error. Without IPv6 in the kernel -EAFNOSUPPORT, switched off by sysctl -EACCES.
 * Deleting what does not exist is -EADDRNOTAVAIL. */
int nl_addr_add(struct nl *nl, unsigned ifindex, const struct ax_addr *addr, unsigned prefix_len);
int nl_addr_del(struct nl *nl, unsigned ifindex, const struct ax_addr *addr, unsigned prefix_len);
/*
 * An IPv6 address on lo for the sake of bind() alone: unlike IPv4's, IPv6's bind() takes no address
 * that is only a local route. The kernel's route for it is removed again, because it would come
 * before the caller's own, which says what source a program gets that connects to the address; the
 * caller adds that one next.
 */
int nl_addr_add_bindable(struct nl *nl, unsigned lo, const struct ax_addr *addr);
/* Whether the kernel takes packets to this address for this machine's own. */
int nl_addr_is_local(struct nl *nl, const struct ax_addr *addr, bool *ret);
/* Calls f for every IPv6 address of a link, until it returns non-zero; f may use nl. */
int nl_addr6_each(struct nl *nl, unsigned ifindex, int (*f)(void *arg, const struct ax_addr *addr),
		  void *arg);

struct nl_route {
	struct prefix dst; /* length in the mapped form (address.h); len 0 with v6: default6,
			      with is_v4_default: 0.0.0.0/0 */
	bool v4_default;   /* the IPv4 default route (dst is ignored) */
	bool v6_default;
	bool local; /* type local in table local (AnyIP), else unicast in table main */
	unsigned ifindex;
	struct ax_addr gateway; /* of the same family; zero: none */
	struct ax_addr prefsrc; /* zero: none */
	uint32_t metric;	/* 0: none; ours carry the instance's */
};
/*
 * Adding what exists is not an error (with a metric, a route of the same destination and metric is
 * replaced); deleting what does not exist is -ESRCH. The kernel takes any local address as prefsrc
 * of IPv4 routes, but for IPv6 only an address of an interface (nl_addr_add() on lo): without that
 * the route is made without prefsrc.
 */
int nl_route_add(struct nl *nl, const struct nl_route *r);
int nl_route_del(struct nl *nl, const struct nl_route *r);
/* Many with few round trips. All are tried; errs, unless NULL, gets the result of each. Returns the
 * first that is not 0. */
int nl_route_add_many(struct nl *nl, const struct nl_route *r, size_t n, int *errs);
int nl_route_del_many(struct nl *nl, const struct nl_route *r, size_t n, int *errs);
/* Calls f for every route of ours (rtm_protocol AX_ROUTE_PROTOCOL) with this metric,
 * until it returns non-zero; f may use nl. */
#define AX_ROUTE_PROTOCOL 0x61
int nl_route_each(struct nl *nl, uint32_t metric, int (*f)(void *arg, const struct nl_route *r),
		  void *arg);
/* The same for every route of table main that is somebody else's. */
int nl_route_each_foreign(struct nl *nl, int (*f)(void *arg, const struct nl_route *r), void *arg);

/* Runs f(arg) with the calling thread in network namespace netns_fd and comes back. When coming
 * back fails the process aborts: going on in a foreign namespace would be worse. */
int netns_call(int netns_fd, int (*f)(void *arg), void *arg);
/* The cookie of a network namespace (SO_NETNS_COOKIE), 0 and -errno. */
int netns_cookie(int netns_fd, uint64_t *ret);

/*
 * Inside network namespace netns_fd: lo up, the end `ifname` up, its addresses (zero: none) as
 * /32 and /128, and default routes through it for the families it has.
 */
int netns_configure(int netns_fd, const char *ifname, const struct ax_addr *ip4,
		    const struct ax_addr *ip6);

#endif
