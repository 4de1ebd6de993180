/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "net/ether_links.h"

#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <net/if_arp.h>

#include "net/netlink_request.h"

static void parse_vlan(const struct nlattr *data, struct ether_link *l)
{
	const struct nlattr *a;

	l->ethertype_be = htons(ETH_P_8021Q);
	mnl_attr_for_each_nested (a, data) {
		if (mnl_attr_get_type(a) == IFLA_VLAN_ID)
			l->vlan = mnl_attr_get_u16(a);
		else if (mnl_attr_get_type(a) == IFLA_VLAN_PROTOCOL)
			l->ethertype_be = mnl_attr_get_u16(a);
	}
}

static void parse_info(const struct nlattr *info, struct ether_link *l)
{
	const struct nlattr *a, *data = NULL;

	mnl_attr_for_each_nested (a, info) {
		switch (mnl_attr_get_type(a)) {
		case IFLA_INFO_KIND:
			snprintf(l->kind, sizeof(l->kind), "%s", mnl_attr_get_str(a));
			break;
		case IFLA_INFO_SLAVE_KIND:
			snprintf(l->part_of, sizeof(l->part_of), "%s", mnl_attr_get_str(a));
			break;
		case IFLA_INFO_DATA:
			data = a;
			break;
		}
	}
	if (data && streq(l->kind, "vlan"))
		parse_vlan(data, l);
}

static void parse_xdp(const struct nlattr *xdp, struct ether_link *l)
{
	const struct nlattr *a;
	uint8_t attached = XDP_ATTACHED_NONE;
	uint32_t id = 0;

	mnl_attr_for_each_nested (a, xdp) {
		if (mnl_attr_get_type(a) == IFLA_XDP_ATTACHED)
			attached = mnl_attr_get_u8(a);
		else if (mnl_attr_get_type(a) == IFLA_XDP_PROG_ID)
			id = mnl_attr_get_u32(a);
		else if (mnl_attr_get_type(a) == IFLA_XDP_DRV_PROG_ID)
			l->native = mnl_attr_get_u32(a);
	}
	if (attached == XDP_ATTACHED_DRV)
		l->native = id;
}

static void parse_attr(const struct nlattr *a, struct ether_link *l, bool *elsewhere, bool *part)
{
	switch (mnl_attr_get_type(a)) {
	case IFLA_IFNAME:
		snprintf(l->name, sizeof(l->name), "%s", mnl_attr_get_str(a));
		break;
	case IFLA_ADDRESS:
		if (mnl_attr_get_payload_len(a) == sizeof(l->mac))
			memcpy(l->mac, mnl_attr_get_payload(a), sizeof(l->mac));
		break;
	case IFLA_GROUP:
		l->ours = mnl_attr_get_u32(a) == NL_LINK_GROUP;
		break;
	case IFLA_LINK:
		l->link = mnl_attr_get_u32(a);
		break;
	case IFLA_LINK_NETNSID:
		*elsewhere = true;
		break;
	case IFLA_MASTER:
		*part = mnl_attr_get_u32(a) != 0;
		break;
	case IFLA_LINKINFO:
		parse_info(a, l);
		break;
	case IFLA_XDP:
		parse_xdp(a, l);
		break;
	}
}

struct links {
	struct ether_link *v;
	size_t n;
};

static int note_link(void *arg, const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	bool elsewhere = false, part = false;
	struct ether_link l = {0}, *more;
	struct links *all = arg;
	const struct nlattr *a;

	if (nlh->nlmsg_type != RTM_NEWLINK || ifi->ifi_type != ARPHRD_ETHER)
		return 0;
	l.ifindex = (unsigned)ifi->ifi_index;
	l.up = ifi->ifi_flags & IFF_UP;
	mnl_attr_for_each (a, nlh, sizeof(*ifi))
		parse_attr(a, &l, &elsewhere, &part);
	if (elsewhere)
		l.link = 0;
	if (part && !*l.part_of) /* of something that does not say what it is */
		snprintf(l.part_of, sizeof(l.part_of), "master");
	more = reallocarray(all->v, all->n + 1, sizeof(l));
	if (!more)
		return -ENOMEM;
	all->v = more;
	all->v[all->n++] = l;
	return 0;
}

static void put_links(struct nlmsghdr *nlh, void *arg)
{
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));

	(void)arg;
	ifi->ifi_family = AF_UNSPEC;
}

static void forget_links(void *arg)
{
	((struct links *)arg)->n = 0;
}

int nl_ether_links(struct nl *nl, struct ether_link **ret, size_t *n)
{
	struct links all = {0};
	const struct nl_dump d = {.type = RTM_GETLINK,
				  .put = put_links,
				  .on_entry = note_link,
				  .restart = forget_links,
				  .arg = &all};
	int r = nl_dump_run(nl, &d);

	if (r) {
		free(all.v);
		return r;
	}
	*ret = all.v;
	*n = all.n;
	return 0;
}

/* --- routes --- */

struct devices {
	struct route_device *v;
	size_t n;
};

static int add_device(struct devices *d, uint32_t ifindex, uint32_t mtu)
{
	struct route_device *more;

	for (size_t i = 0; i < d->n; i++)
		if (d->v[i].ifindex == ifindex) {
			if (mtu && (!d->v[i].mtu || mtu < d->v[i].mtu))
				d->v[i].mtu = mtu;
			return 0;
		}
	more = reallocarray(d->v, d->n + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	d->v = more;
	d->v[d->n++] = (struct route_device){ifindex, mtu};
	return 0;
}

static int add_hops(struct devices *d, const struct nlattr *multipath, uint32_t mtu)
{
	int len = (int)mnl_attr_get_payload_len(multipath), r = 0;
	const struct rtnexthop *hop = mnl_attr_get_payload(multipath);

	for (; RTNH_OK(hop, len) && !r; hop = RTNH_NEXT(hop)) {
		r = add_device(d, (uint32_t)hop->rtnh_ifindex, mtu);
		len -= (int)RTNH_ALIGN(hop->rtnh_len);
	}
	return r;
}

/* 0: it has none, or it is locked. */
static uint32_t unlocked_mtu(const struct nlattr *metrics)
{
	uint32_t mtu = 0, locked = 0;
	const struct nlattr *a;

	mnl_attr_for_each_nested (a, metrics) {
		if (mnl_attr_get_type(a) == RTAX_MTU)
			mtu = mnl_attr_get_u32(a);
		else if (mnl_attr_get_type(a) == RTAX_LOCK)
			locked = mnl_attr_get_u32(a);
	}
	return locked & 1u << RTAX_MTU ? 0 : mtu;
}

static int note_route(void *arg, const struct nlmsghdr *nlh)
{
	const struct rtmsg *rt = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *a, *hops = NULL;
	struct devices *d = arg;
	uint32_t oif = 0, mtu = 0;

	if (nlh->nlmsg_type != RTM_NEWROUTE || rt->rtm_type != RTN_UNICAST)
		return 0;
	mnl_attr_for_each (a, nlh, sizeof(*rt)) {
		if (mnl_attr_get_type(a) == RTA_OIF)
			oif = mnl_attr_get_u32(a);
		else if (mnl_attr_get_type(a) == RTA_MULTIPATH)
			hops = a;
		else if (mnl_attr_get_type(a) == RTA_METRICS && rt->rtm_family == AF_INET)
			mtu = unlocked_mtu(a);
	}
	if (hops)
		return add_hops(d, hops, mtu);
	return oif ? add_device(d, oif, mtu) : 0;
}

static void put_routes(struct nlmsghdr *nlh, void *arg)
{
	struct rtmsg *rt = mnl_nlmsg_put_extra_header(nlh, sizeof(*rt));

	(void)arg;
	rt->rtm_family = AF_UNSPEC;
}

/* What came of a dump that is run again is true all the same. */
static void keep_devices(void *arg)
{
	(void)arg;
}

int nl_route_devices(struct nl *nl, int (*f)(void *arg, const struct route_device *d), void *arg)
{
	struct devices all = {0};
	const struct nl_dump d = {.type = RTM_GETROUTE,
				  .put = put_routes,
				  .on_entry = note_route,
				  .restart = keep_devices,
				  .arg = &all};
	int r = nl_dump_run(nl, &d);

	for (size_t i = 0; i < all.n && !r; i++)
		r = f(arg, &all.v[i]);
	free(all.v);
	return r;
}
