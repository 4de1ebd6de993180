/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a network device's driver can do, and is set to: offloads, queues, XDP. Through generic
 * netlink (families ethtool, Linux 5.6, and netdev, 6.3). 0 or the kernel's negative errno.
 */
#ifndef AX_NET_ETHTOOL_H
#define AX_NET_ETHTOOL_H

#include "base/util.h"

struct ethtool; /* a socket; it stays in the network namespace where it was opened */

int ethtool_open(struct ethtool **ret);
void ethtool_close(struct ethtool *et);
static inline void ethtool_closep(struct ethtool **et)
{
	if (*et)
		ethtool_close(*et);
}

enum ethtool_feature {
	ETHTOOL_FEATURE_GRO,
	ETHTOOL_FEATURE_HW_GRO,
	ETHTOOL_FEATURE_LRO,
	ETHTOOL_FEATURE_GSO,
	ETHTOOL_FEATURE_TSO,
	ETHTOOL_FEATURE_TX_CHECKSUM,
	ETHTOOL_FEATURE_RX_VLAN, /* tags are taken out of frames that come in */
	ETHTOOL_FEATURE_TX_VLAN, /* and left to be put into those that go out */
};

/* *ret: a bit for each enum ethtool_feature that is on, in any of its forms. */
int ethtool_features(struct ethtool *et, unsigned ifindex, uint32_t *ret);
/* Like `ethtool -K`: all forms off, or on. -EOPNOTSUPP: the driver left it as it was. */
int ethtool_set_feature(struct ethtool *et, unsigned ifindex, enum ethtool_feature f, bool on);

struct ethtool_queues {
	unsigned rx, tx;	 /* in use, with those that do both */
	unsigned rx_max, tx_max; /* what can be asked for */
};
/* -EOPNOTSUPP: the driver does not say. */
int ethtool_queues(struct ethtool *et, unsigned ifindex, struct ethtool_queues *ret);

/* "virtio_net"; -EOPNOTSUPP: there is nothing to say. */
int ethtool_driver(struct ethtool *et, const char *ifname, char *ret, size_t size);

/* enum netdev_xdp_act: the C library's headers may be older */
enum ethtool_xdp_feature {
	ETHTOOL_XDP_BASIC = 1 << 0,
	ETHTOOL_XDP_REDIRECT = 1 << 1,
	ETHTOOL_XDP_SEND = 1 << 2, /* frames that are redirected to it, now */
	ETHTOOL_XDP_FRAGS = 1 << 5,
};
/* -EOPNOTSUPP before Linux 6.3. */
int ethtool_xdp_features(struct ethtool *et, unsigned ifindex, uint64_t *ret);

#endif
