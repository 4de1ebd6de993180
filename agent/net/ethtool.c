/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "net/ethtool.h"

#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/if.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define NETDEV_FAMILY "netdev"
/* linux/netdev.h, which older C libraries' headers do not have */
enum { NETDEV_DEV_GET = 1 };
enum { NETDEV_ATTR_IFINDEX = 1, NETDEV_ATTR_XDP_FEATURES = 3 };

#define REQUEST_SIZE 512
#define RECV_SIZE    (32 * 1024)

struct ethtool {
	struct mnl_socket *s;
	uint32_t seq;
	uint16_t ethtool_id, netdev_id; /* family numbers, 0: not asked for yet */
	char request[REQUEST_SIZE] __attribute__((aligned(NLMSG_ALIGNTO)));
	char buf[RECV_SIZE] __attribute__((aligned(NLMSG_ALIGNTO)));
};

int ethtool_open(struct ethtool **ret)
{
	autofree struct ethtool *et = calloc(1, sizeof(*et));

	if (!et)
		return -ENOMEM;
	et->s = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!et->s)
		return -errno;
	if (mnl_socket_bind(et->s, 0, MNL_SOCKET_AUTOPID) < 0) {
		int err = -errno;

		mnl_socket_close(et->s);
		return err;
	}
	*ret = take_ptr(&et);
	return 0;
}

void ethtool_close(struct ethtool *et)
{
	mnl_socket_close(et->s);
	free(et);
}

/* --- requests --- */

static struct nlmsghdr *request_begin(struct ethtool *et, uint16_t family, uint8_t cmd)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(et->request);
	struct genlmsghdr *genl;

	nlh->nlmsg_type = family;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	nlh->nlmsg_seq = ++et->seq;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = 1;
	return nlh;
}

static ssize_t recv_some(struct ethtool *et)
{
	for (;;) {
		ssize_t n = mnl_socket_recvfrom(et->s, et->buf, sizeof(et->buf));

		if (n >= 0)
			return n;
		if (errno != EINTR)
			return -errno;
	}
}

typedef void on_attr(void *arg, const struct nlattr *a);

/* Sends it; on_attr (may be NULL) gets the attributes of what comes before the acknowledgement. */
static int request_send(struct ethtool *et, const struct nlmsghdr *rq, on_attr *f, void *arg)
{
	while (mnl_socket_sendto(et->s, rq, rq->nlmsg_len) < 0)
		if (errno != EINTR)
			return -errno;
	for (;;) {
		ssize_t n = recv_some(et);
		int len = (int)n;

		if (n < 0)
			return (int)n;
		for (struct nlmsghdr *nlh = (void *)et->buf; mnl_nlmsg_ok(nlh, len);
		     nlh = mnl_nlmsg_next(nlh, &len)) {
			const struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);
			const struct nlattr *a;

			if (nlh->nlmsg_seq != rq->nlmsg_seq)
				continue;
			if (nlh->nlmsg_type == NLMSG_ERROR)
				return mnl_nlmsg_get_payload_len(nlh) < sizeof(e->error) ? -EPROTO
											 : e->error;
			if (f)
				mnl_attr_for_each (a, nlh, sizeof(struct genlmsghdr))
					f(arg, a);
		}
	}
}

static void take_family(void *arg, const struct nlattr *a)
{
	if (mnl_attr_get_type(a) == CTRL_ATTR_FAMILY_ID)
		*(uint16_t *)arg = mnl_attr_get_u16(a);
}

static int find_family(struct ethtool *et, const char *name, uint16_t *id)
{
	struct nlmsghdr *nlh;
	int r;

	if (*id)
		return 0;
	nlh = request_begin(et, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, name);
	r = request_send(et, nlh, take_family, id);
	return r == -ENOENT || (!r && !*id) ? -EOPNOTSUPP : r;
}

/* A request of the family ethtool; all of its commands have the same header. */
static int ethtool_begin(struct ethtool *et, uint8_t cmd, unsigned ifindex, struct nlmsghdr **ret)
{
	int r = find_family(et, ETHTOOL_GENL_NAME, &et->ethtool_id);
	struct nlattr *header;

	if (r)
		return r;
	*ret = request_begin(et, et->ethtool_id, cmd);
	/* the same number in all of them */
	header = mnl_attr_nest_start(*ret, ETHTOOL_A_FEATURES_HEADER);
	mnl_attr_put_u32(*ret, ETHTOOL_A_HEADER_DEV_INDEX, ifindex);
	if (cmd == ETHTOOL_MSG_FEATURES_SET)
		mnl_attr_put_u32(*ret, ETHTOOL_A_HEADER_FLAGS, ETHTOOL_FLAG_OMIT_REPLY);
	mnl_attr_nest_end(*ret, header);
	return 0;
}
_Static_assert((int)ETHTOOL_A_FEATURES_HEADER == (int)ETHTOOL_A_CHANNELS_HEADER, "one header");

/* --- features --- */

static const struct {
	const char *name; /* the kernel's */
	enum ethtool_feature feature;
} names[] = {
	{"rx-gro", ETHTOOL_FEATURE_GRO},
	{"rx-gro-hw", ETHTOOL_FEATURE_HW_GRO},
	{"rx-lro", ETHTOOL_FEATURE_LRO},
	{"tx-generic-segmentation", ETHTOOL_FEATURE_GSO},
	{"tx-tcp-segmentation", ETHTOOL_FEATURE_TSO},
	{"tx-tcp6-segmentation", ETHTOOL_FEATURE_TSO},
	{"tx-checksum-ip-generic", ETHTOOL_FEATURE_TX_CHECKSUM},
	{"tx-checksum-ipv4", ETHTOOL_FEATURE_TX_CHECKSUM},
	{"tx-checksum-ipv6", ETHTOOL_FEATURE_TX_CHECKSUM},
	{"tx-checksum-sctp", ETHTOOL_FEATURE_TX_CHECKSUM},
	{"rx-vlan-hw-parse", ETHTOOL_FEATURE_RX_VLAN},
	{"tx-vlan-hw-insert", ETHTOOL_FEATURE_TX_VLAN},
};

/* Bits by index in `names`. */
struct feature_bits {
	uint32_t active, changeable;
};

static void take_bit(const struct nlattr *bit, bool only_set, uint32_t *ret)
{
	const char *name = NULL;
	bool value = only_set;
	const struct nlattr *a;

	mnl_attr_for_each_nested (a, bit) {
		if (mnl_attr_get_type(a) == ETHTOOL_A_BITSET_BIT_NAME)
			name = mnl_attr_get_str(a);
		else if (mnl_attr_get_type(a) == ETHTOOL_A_BITSET_BIT_VALUE)
			value = true;
	}
	for (size_t i = 0; name && value && i < ARRAY_SIZE(names); i++)
		if (streq(name, names[i].name))
			*ret |= 1u << i;
}

static void take_bits(const struct nlattr *bitset, uint32_t *ret)
{
	const struct nlattr *a, *bit;
	bool only_set = false;

	mnl_attr_for_each_nested (a, bitset)
		only_set |= mnl_attr_get_type(a) == ETHTOOL_A_BITSET_NOMASK;
	mnl_attr_for_each_nested (a, bitset) {
		if (mnl_attr_get_type(a) != ETHTOOL_A_BITSET_BITS)
			continue;
		mnl_attr_for_each_nested (bit, a)
			take_bit(bit, only_set, ret);
	}
}

static void take_features(void *arg, const struct nlattr *a)
{
	struct feature_bits *b = arg;

	if (mnl_attr_get_type(a) == ETHTOOL_A_FEATURES_ACTIVE)
		take_bits(a, &b->active);
	else if (mnl_attr_get_type(a) == ETHTOOL_A_FEATURES_HW)
		take_bits(a, &b->changeable);
}

static int get_bits(struct ethtool *et, unsigned ifindex, struct feature_bits *b)
{
	struct nlmsghdr *nlh;
	int r = ethtool_begin(et, ETHTOOL_MSG_FEATURES_GET, ifindex, &nlh);

	*b = (struct feature_bits){0};
	return r ? r : request_send(et, nlh, take_features, b);
}

int ethtool_features(struct ethtool *et, unsigned ifindex, uint32_t *ret)
{
	struct feature_bits b;
	int r = get_bits(et, ifindex, &b);

	if (r)
		return r;
	*ret = 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (b.active & 1u << i)
			*ret |= 1u << names[i].feature;
	return 0;
}

int ethtool_set_feature(struct ethtool *et, unsigned ifindex, enum ethtool_feature f, bool on)
{
	struct nlattr *wanted, *bits, *bit;
	struct feature_bits b;
	struct nlmsghdr *nlh;
	uint32_t now = 0;
	int r = get_bits(et, ifindex, &b);

	if (!r)
		r = ethtool_begin(et, ETHTOOL_MSG_FEATURES_SET, ifindex, &nlh);
	if (r)
		return r;
	wanted = mnl_attr_nest_start(nlh, ETHTOOL_A_FEATURES_WANTED);
	bits = mnl_attr_nest_start(nlh, ETHTOOL_A_BITSET_BITS);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		/* Asking to change what is fixed fails as a whole. */
		if (names[i].feature != f || !(b.changeable & 1u << i))
			continue;
		bit = mnl_attr_nest_start(nlh, ETHTOOL_A_BITSET_BITS_BIT);
		mnl_attr_put_strz(nlh, ETHTOOL_A_BITSET_BIT_NAME, names[i].name);
		if (on)
			mnl_attr_put(nlh, ETHTOOL_A_BITSET_BIT_VALUE, 0, NULL);
		mnl_attr_nest_end(nlh, bit);
	}
	mnl_attr_nest_end(nlh, bits);
	mnl_attr_nest_end(nlh, wanted);
	r = request_send(et, nlh, NULL, NULL);
	/* What the driver did not want is no error to the kernel. */
	if (!r)
		r = ethtool_features(et, ifindex, &now);
	if (!r && !!(now & 1u << f) != on)
		r = -EOPNOTSUPP;
	return r;
}

/* --- the rest --- */

static void take_channels(void *arg, const struct nlattr *a)
{
	struct ethtool_queues *c = arg;

	switch (mnl_attr_get_type(a)) {
	case ETHTOOL_A_CHANNELS_RX_COUNT:
		c->rx += mnl_attr_get_u32(a);
		break;
	case ETHTOOL_A_CHANNELS_TX_COUNT:
		c->tx += mnl_attr_get_u32(a);
		break;
	case ETHTOOL_A_CHANNELS_COMBINED_COUNT:
		c->rx += mnl_attr_get_u32(a);
		c->tx += mnl_attr_get_u32(a);
		break;
	case ETHTOOL_A_CHANNELS_RX_MAX:
		c->rx_max += mnl_attr_get_u32(a);
		break;
	case ETHTOOL_A_CHANNELS_TX_MAX:
		c->tx_max += mnl_attr_get_u32(a);
		break;
	case ETHTOOL_A_CHANNELS_COMBINED_MAX:
		c->rx_max += mnl_attr_get_u32(a);
		c->tx_max += mnl_attr_get_u32(a);
		break;
	}
}

int ethtool_queues(struct ethtool *et, unsigned ifindex, struct ethtool_queues *ret)
{
	struct nlmsghdr *nlh;
	int r = ethtool_begin(et, ETHTOOL_MSG_CHANNELS_GET, ifindex, &nlh);

	*ret = (struct ethtool_queues){0};
	return r ? r : request_send(et, nlh, take_channels, ret);
}

int ethtool_driver(struct ethtool *et, const char *ifname, char *ret, size_t size)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq ifr = {0};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	ifr.ifr_data = (void *)&info;
	/* Any socket does; this one is in the right network namespace. */
	if (ioctl(mnl_socket_get_fd(et->s), SIOCETHTOOL, &ifr) < 0)
		return -errno;
	if (!info.driver[0])
		return -EOPNOTSUPP;
	snprintf(ret, size, "%.*s", (int)sizeof(info.driver), info.driver);
	return 0;
}

static void take_xdp(void *arg, const struct nlattr *a)
{
	if (mnl_attr_get_type(a) == NETDEV_ATTR_XDP_FEATURES &&
	    mnl_attr_get_payload_len(a) == sizeof(uint64_t))
		*(uint64_t *)arg = mnl_attr_get_u64(a);
}

int ethtool_xdp_features(struct ethtool *et, unsigned ifindex, uint64_t *ret)
{
	int r = find_family(et, NETDEV_FAMILY, &et->netdev_id);
	struct nlmsghdr *nlh;

	if (r)
		return r;
	*ret = 0;
	nlh = request_begin(et, et->netdev_id, NETDEV_DEV_GET);
	mnl_attr_put_u32(nlh, NETDEV_ATTR_IFINDEX, ifindex);
	return request_send(et, nlh, take_xdp, ret);
}
