/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All interfaces of the network namespace that have Ethernet headers, and what they stand on. */
#ifndef AX_NET_ETHER_LINKS_H
#define AX_NET_ETHER_LINKS_H

#include "net/netlink.h"

struct ether_link {
	char name[16];
	char kind[16];	  /* "veth", "vlan", "bridge" ...; "": hardware's, mostly */
	char part_of[16]; /* what it is a part of ("bridge", "bond", "vrf"); "": of nothing */
	unsigned ifindex;
	unsigned link; /* what a VLAN is of, 0: something in another network namespace */
	bool up;
	bool ours;	       /* ax's own, of whatever instance */
	uint32_t native;       /* the id of its XDP program in native mode, 0: none */
	uint16_t vlan;	       /* of a VLAN: its id, */
	uint16_t ethertype_be; /* and of which kind the tags are */
	uint8_t mac[6];
};

/* *ret is malloc'ed. */
int nl_ether_links(struct nl *nl, struct ether_link **ret, size_t *n);

/* An interface that a unicast route of any table leads to. */
struct route_device {
	unsigned ifindex;
	uint32_t mtu; /* the least of IPv4 routes that have one, but not locked; 0: none has */
};
/* Calls f for each, until it returns non-zero; f may use nl. */
int nl_route_devices(struct nl *nl, int (*f)(void *arg, const struct route_device *d), void *arg);

#endif
