/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The device by which WireGuard's packets come and go. */
#include "net/wireguard.h"

#include <linux/if.h>
#include <linux/if_link.h>

#include "net/netlink_request.h"

#define KIND "wireguard"

static struct ifinfomsg *put_ifinfo(struct nlmsghdr *nlh, unsigned ifindex)
{
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));

	ifi->ifi_family = AF_UNSPEC;
	ifi->ifi_index = (int)ifindex;
	return ifi;
}

static bool is_kind(const struct nlattr *info)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested (a, info)
		if (mnl_attr_get_type(a) == IFLA_INFO_KIND)
			return mnl_attr_get_payload_len(a) == sizeof(KIND) &&
			       memcmp(mnl_attr_get_payload(a), KIND, sizeof(KIND)) == 0;
	return false;
}

static void on_link(void *arg, const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct wg_link *l = arg;
	bool kind = false, group = false;
	const struct nlattr *a;

	if (nlh->nlmsg_type != RTM_NEWLINK)
		return;
	*l = (struct wg_link){.ifindex = (unsigned)ifi->ifi_index, .up = ifi->ifi_flags & IFF_UP};
	mnl_attr_for_each (a, nlh, sizeof(*ifi)) {
		switch (mnl_attr_get_type(a)) {
		case IFLA_LINKINFO:
			kind = is_kind(a);
			break;
		case IFLA_GROUP:
			group = mnl_attr_get_u32(a) == NL_TUNNEL_GROUP;
			break;
		case IFLA_MTU:
			l->mtu = mnl_attr_get_u32(a);
			break;
		}
	}
	l->ours = kind && group;
}

int wg_link_find(struct nl *nl, const char *name, struct wg_link *ret)
{
	struct nl_request rq;
	int r;

	*ret = (struct wg_link){0};
	nl_request_init(&rq, nl);
	nl_put_getlink(&rq, name, 0);
	r = nl_request_send(&rq, NULL, on_link, ret);
	return r || ret->ifindex ? r : -ENODEV;
}

/* The group is in the message that makes it, and so tells whose it is from the first moment on: the
 * kernel takes no alias there. */
int wg_link_add(struct nl *nl, const char *name, const char *alias, unsigned mtu, unsigned *ifindex)
{
	struct wg_link made = {0};
	struct nl_request rq;
	struct nlmsghdr *nlh;
	struct nlattr *info;
	int errs[3];

	nl_request_init(&rq, nl);
	nlh = nl_request_add(&rq, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	put_ifinfo(nlh, 0);
	mnl_attr_put_strz(nlh, IFLA_IFNAME, name);
	mnl_attr_put_u32(nlh, IFLA_GROUP, NL_TUNNEL_GROUP);
	mnl_attr_put_u32(nlh, IFLA_MTU, mtu);
	info = mnl_attr_nest_start(nlh, IFLA_LINKINFO);
	mnl_attr_put_strz(nlh, IFLA_INFO_KIND, KIND);
	mnl_attr_nest_end(nlh, info);
	nlh = nl_request_add(&rq, RTM_NEWLINK, 0);
	put_ifinfo(nlh, 0);
	mnl_attr_put_strz(nlh, IFLA_IFNAME, name);
	mnl_attr_put_strz(nlh, IFLA_IFALIAS, alias);
	nl_put_getlink(&rq, name, 0);
	nl_request_send(&rq, errs, on_link, &made);
	*ifindex = made.ifindex;
	return errs[0] ? errs[0] : errs[2] ? errs[2] : made.ours ? 0 : -EEXIST;
}

int wg_link_set(struct nl *nl, unsigned ifindex, unsigned mtu)
{
	struct nl_request rq;
	struct nlmsghdr *nlh;

	nl_request_init(&rq, nl);
	nlh = nl_request_add(&rq, RTM_NEWLINK, 0);
	put_ifinfo(nlh, ifindex);
	mnl_attr_put_u32(nlh, IFLA_MTU, mtu);
	nl_put_link_up(&rq, ifindex);
	return nl_request_send(&rq, NULL, NULL, NULL);
}

int wg_link_remove(struct nl *nl, const char *name)
{
	struct wg_link l;
	int r = wg_link_find(nl, name, &l);

	if (r || !l.ours)
		return r ? r : -ENODEV;
	return nl_link_del(nl, l.ifindex);
}
