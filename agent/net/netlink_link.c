/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Links and addresses. */
#include "net/netlink_request.h"

#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/veth.h>
#include <net/ethernet.h>
#include <time.h>

/* A worker that has not run for so long is not going to. */
#define ADDR_WAIT_MS 1000

static struct ifinfomsg *put_ifinfo(struct nlmsghdr *nlh, unsigned ifindex)
{
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));

	ifi->ifi_family = AF_UNSPEC;
	ifi->ifi_index = (int)ifindex;
	return ifi;
}

void nl_put_getlink(struct nl_request *rq, const char *name, unsigned ifindex)
{
	struct nlmsghdr *nlh = nl_request_add(rq, RTM_GETLINK, 0);

	put_ifinfo(nlh, ifindex);
	if (name)
		mnl_attr_put_strz(nlh, IFLA_IFNAME, name);
	mnl_attr_put_u32(nlh, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
}

void nl_put_link_up(struct nl_request *rq, unsigned ifindex)
{
	struct nlmsghdr *nlh = nl_request_add(rq, RTM_NEWLINK, 0);
	struct ifinfomsg *ifi = put_ifinfo(nlh, ifindex);

	ifi->ifi_flags = IFF_UP;
	ifi->ifi_change = IFF_UP;
}

void nl_put_no_addr_gen(struct nl_request *rq, unsigned ifindex)
{
	struct nlmsghdr *nlh = nl_request_add(rq, RTM_NEWLINK, 0);
	struct nlattr *spec, *inet6;

	put_ifinfo(nlh, ifindex);
	spec = mnl_attr_nest_start(nlh, IFLA_AF_SPEC);
	inet6 = mnl_attr_nest_start(nlh, AF_INET6);
	mnl_attr_put_u8(nlh, IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
	mnl_attr_nest_end(nlh, inet6);
	mnl_attr_nest_end(nlh, spec);
}

static void parse_af_spec(const struct nlattr *spec, struct nl_link *link)
{
	const struct nlattr *family, *a;

	mnl_attr_for_each_nested (family, spec) {
		if (mnl_attr_get_type(family) != AF_INET6)
			continue;
		mnl_attr_for_each_nested (a, family)
			if (mnl_attr_get_type(a) == IFLA_INET6_ADDR_GEN_MODE) {
				link->has_inet6 = true;
				link->addr_gen_mode = mnl_attr_get_u8(a);
			}
	}
}

void nl_link_parse(const struct nlmsghdr *nlh, struct nl_link *link)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *a;

	*link = (struct nl_link){.ifindex = (unsigned)ifi->ifi_index,
				 .up = ifi->ifi_flags & IFF_UP};
	mnl_attr_for_each (a, nlh, sizeof(*ifi)) {
		switch (mnl_attr_get_type(a)) {
		case IFLA_IFNAME:
			snprintf(link->name, sizeof(link->name), "%s", mnl_attr_get_str(a));
			break;
		case IFLA_OPERSTATE:
			link->operstate = mnl_attr_get_u8(a);
			break;
		case IFLA_AF_SPEC:
			parse_af_spec(a, link);
			break;
		}
	}
}

static void on_link(void *arg, const struct nlmsghdr *nlh)
{
	if (nlh->nlmsg_type == RTM_NEWLINK)
		nl_link_parse(nlh, arg);
}

/* What both ends have in common; the host end is sent up, which the kernel refuses for the peer:
 * a veth opens only when it has a peer. */
static void put_end(struct nlmsghdr *nlh, struct ifinfomsg *ifi, const char *name,
		    const uint8_t mac[6], unsigned mtu)
{
	ifi->ifi_flags = ifi->ifi_change = IFF_NOARP;
	mnl_attr_put_strz(nlh, IFLA_IFNAME, name);
	mnl_attr_put(nlh, IFLA_ADDRESS, ETH_ALEN, mac);
	if (mtu)
		mnl_attr_put_u32(nlh, IFLA_MTU, mtu);
	/* As many as are in use unless somebody asks for more. Left to itself veth makes one for
	 * each possible CPU, registers them all, and takes all but one away again. */
	mnl_attr_put_u32(nlh, IFLA_NUM_TX_QUEUES, 1);
	mnl_attr_put_u32(nlh, IFLA_NUM_RX_QUEUES, 1);
}

static void put_veth(struct nl_request *rq, const char *name, const char *peer_name,
		     int peer_netns_fd, const uint8_t mac[6], unsigned mtu)
{
	struct nlmsghdr *nlh = nl_request_add(rq, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	struct ifinfomsg *ifi = put_ifinfo(nlh, 0);
	struct nlattr *info, *data, *peer;

	put_end(nlh, ifi, name, mac, mtu);
	ifi->ifi_flags |= IFF_UP;
	ifi->ifi_change |= IFF_UP;
	mnl_attr_put_u32(nlh, IFLA_GROUP, NL_LINK_GROUP);
	info = mnl_attr_nest_start(nlh, IFLA_LINKINFO);
	mnl_attr_put_str(nlh, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(nlh, IFLA_INFO_DATA);
	peer = mnl_attr_nest_start(nlh, VETH_INFO_PEER);
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	put_end(nlh, ifi, peer_name, mac, mtu);
	mnl_attr_put_u32(nlh, IFLA_NET_NS_FD, (uint32_t)peer_netns_fd);
	mnl_attr_nest_end(nlh, peer);
	mnl_attr_nest_end(nlh, data);
	mnl_attr_nest_end(nlh, info);
}

int nl_link_add_veth(struct nl *nl, const char *name, const char *peer_name, int peer_netns_fd,
		     const uint8_t mac[6], unsigned mtu, unsigned *ifindex)
{
	struct nl_link link = {0};
	struct nl_request rq;
	int errs[2], r;

	if (strlen(name) >= IFNAMSIZ || strlen(peer_name) >= IFNAMSIZ)
		return -ENAMETOOLONG;
	nl_request_init(&rq, nl);
	put_veth(&rq, name, peer_name, peer_netns_fd, mac, mtu);
	nl_put_getlink(&rq, name, 0);
	r = nl_request_send(&rq, errs, on_link, &link);
	if (errs[0])
		return errs[0];
	if (r)
		return r;
	*ifindex = link.ifindex;
	/* The kernel takes IFLA_AF_SPEC only for links that exist (and refuses it where there is no
	 * IPv6). That is soon enough: a veth has no carrier, and so makes no link-local address,
	 * before its peer is up. */
	if (!link.has_inet6 || link.addr_gen_mode == IN6_ADDR_GEN_MODE_NONE)
		return 0;
	nl_request_init(&rq, nl);
	nl_put_no_addr_gen(&rq, link.ifindex);
	r = nl_request_send(&rq, NULL, NULL, NULL);
	if (r)
		nl_link_del(nl, link.ifindex);
	return r;
}

int nl_link_set_group(struct nl *nl, unsigned ifindex)
{
	struct nl_request rq;
	struct nlmsghdr *nlh;

	nl_request_init(&rq, nl);
	nlh = nl_request_add(&rq, RTM_NEWLINK, 0);
	put_ifinfo(nlh, ifindex);
	mnl_attr_put_u32(nlh, IFLA_GROUP, NL_LINK_GROUP);
	return nl_request_send(&rq, NULL, NULL, NULL);
}

int nl_link_set_up(struct nl *nl, unsigned ifindex)
{
	struct nl_request rq;

	nl_request_init(&rq, nl);
	nl_put_link_up(&rq, ifindex);
	return nl_request_send(&rq, NULL, NULL, NULL);
}

int nl_link_del(struct nl *nl, unsigned ifindex)
{
	struct nl_request rq;

	if (!ifindex)
		return -ENODEV;
	nl_request_init(&rq, nl);
	put_ifinfo(nl_request_add(&rq, RTM_DELLINK, 0), ifindex);
	return nl_request_send(&rq, NULL, NULL, NULL);
}

static int get_link(struct nl *nl, const char *name, unsigned ifindex, struct nl_link *link)
{
	struct nl_request rq;

	nl_request_init(&rq, nl);
	nl_put_getlink(&rq, name, ifindex);
	return nl_request_send(&rq, NULL, on_link, link);
}

int nl_link_index(struct nl *nl, const char *name, unsigned *ifindex)
{
	struct nl_link link = {0};
	int r;

	/* An empty name or one that is too long is EINVAL or ERANGE to the kernel. */
	if (!*name || strlen(name) >= IFNAMSIZ)
		return -ENODEV;
	r = get_link(nl, name, 0, &link);
	if (!r)
		*ifindex = link.ifindex;
	return r;
}

static void on_mtu(void *arg, const struct nlmsghdr *nlh)
{
	const struct nlattr *a;

	if (nlh->nlmsg_type != RTM_NEWLINK)
		return;
	mnl_attr_for_each (a, nlh, sizeof(struct ifinfomsg))
		if (mnl_attr_get_type(a) == IFLA_MTU)
			*(unsigned *)arg = mnl_attr_get_u32(a);
}

int nl_link_mtu(struct nl *nl, unsigned ifindex, unsigned *mtu)
{
	struct nl_request rq;

	if (!ifindex)
		return -ENODEV;
	*mtu = 0;
	nl_request_init(&rq, nl);
	nl_put_getlink(&rq, NULL, ifindex);
	return nl_request_send(&rq, NULL, on_mtu, mtu);
}

static void on_xdp(void *arg, const struct nlmsghdr *nlh)
{
	const struct nlattr *a, *x;
	uint32_t *ret = arg; /* how it is attached, and the program */

	if (nlh->nlmsg_type != RTM_NEWLINK)
		return;
	mnl_attr_for_each (a, nlh, sizeof(struct ifinfomsg)) {
		if (mnl_attr_get_type(a) != IFLA_XDP)
			continue;
		mnl_attr_for_each_nested (x, a) {
			if (mnl_attr_get_type(x) == IFLA_XDP_ATTACHED)
				ret[0] = mnl_attr_get_u8(x);
			else if (mnl_attr_get_type(x) == IFLA_XDP_PROG_ID)
				ret[1] = mnl_attr_get_u32(x);
		}
	}
}

int nl_link_xdp(struct nl *nl, unsigned ifindex, uint32_t *prog)
{
	uint32_t found[2] = {0};
	struct nl_request rq;
	int r;

	if (!ifindex)
		return -ENODEV;
	nl_request_init(&rq, nl);
	nl_put_getlink(&rq, NULL, ifindex);
	r = nl_request_send(&rq, NULL, on_xdp, found);
	*prog = found[1];
	return r ? r : found[0] == XDP_ATTACHED_MULTI ? -EMLINK : 0;
}

int nl_link_wait_up(struct nl *nl, unsigned ifindex, unsigned timeout_ms)
{
	const struct timespec pause = {.tv_nsec = 50 * 1000};
	uint64_t end = time_mono_ns() + timeout_ms * 1000000ULL;

	for (;;) {
		struct nl_link link = {0};
		int r = get_link(nl, NULL, ifindex, &link);

		if (r || link.operstate == IF_OPER_UP)
			return r;
		if (time_mono_ns() >= end)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
}

struct link_list {
	const char *prefix;
	struct nl_link *v;
	size_t n, size;
};

static void put_link_dump(struct nlmsghdr *nlh, void *arg)
{
	(void)arg;
	put_ifinfo(nlh, 0);
	mnl_attr_put_u32(nlh, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
}

static int collect_link(void *arg, const struct nlmsghdr *nlh)
{
	struct link_list *l = arg;
	struct nl_link link;

	if (nlh->nlmsg_type != RTM_NEWLINK)
		return 0;
	nl_link_parse(nlh, &link);
	if (!starts_with(link.name, l->prefix))
		return 0;
	if (l->n == l->size) {
		size_t size = l->size ? 2 * l->size : 64;
		struct nl_link *v = reallocarray(l->v, size, sizeof(*v));

		if (!v)
			return -ENOMEM;
		l->v = v;
		l->size = size;
	}
	l->v[l->n++] = link;
	return 0;
}

static void forget_links(void *arg)
{
	((struct link_list *)arg)->n = 0;
}

int nl_link_each(struct nl *nl, const char *prefix,
		 int (*f)(void *arg, const char *name, unsigned ifindex), void *arg)
{
	struct link_list l = {.prefix = prefix};
	struct nl_dump d = {.type = RTM_GETLINK,
			    .put = put_link_dump,
			    .on_entry = collect_link,
			    .restart = forget_links,
			    .arg = &l};
	int r = nl_dump_run(nl, &d);

	/* Only now, so that f may use nl itself. */
	for (size_t i = 0; i < l.n && !r; i++)
		r = f(arg, l.v[i].name, l.v[i].ifindex);
	free(l.v);
	return r;
}

void nl_put_addr(struct nl_request *rq, unsigned ifindex, const struct ax_addr *addr,
		 unsigned prefix_len)
{
	struct nlmsghdr *nlh = nl_request_add(rq, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE);
	struct ifaddrmsg *ifa = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifa));
	bool v4 = addr_is_v4(addr);
	const void *bytes = v4 ? (const void *)&addr->w[3] : addr->b;
	size_t len = v4 ? 4 : 16;

	ifa->ifa_family = v4 ? AF_INET : AF_INET6;
	ifa->ifa_prefixlen = (uint8_t)(v4 && prefix_len >= 96 ? prefix_len - 96 : prefix_len);
	ifa->ifa_scope = RT_SCOPE_UNIVERSE;
	ifa->ifa_index = ifindex;
	mnl_attr_put(nlh, IFA_LOCAL, len, bytes);
	mnl_attr_put(nlh, IFA_ADDRESS, len, bytes);
	/* Nobody else can have it: usable at once instead of after a second of looking. */
	if (!v4)
		mnl_attr_put_u32(nlh, IFA_FLAGS,
				 IFA_F_NODAD | (prefix_len == 128 ? IFA_F_NOPREFIXROUTE : 0));
}

static void on_route(void *arg, const struct nlmsghdr *nlh)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);

	if (nlh->nlmsg_type == RTM_NEWROUTE)
		*(uint8_t *)arg = rtm->rtm_type;
}

/*
 * Even without duplicate address detection the kernel leaves the local route of an IPv6 address to
 * a worker. Without that route packets to the address are refused, so this waits for it; an
 * address on a link that is down does not get one before the link goes up.
 */
static int wait_local6(struct nl *nl, unsigned ifindex, const struct ax_addr *addr)
{
	const struct timespec pause = {.tv_nsec = 20 * 1000};
	uint64_t end = time_mono_ns() + ADDR_WAIT_MS * 1000000ULL;
	struct nl_link link = {0};
	int r = get_link(nl, NULL, ifindex, &link);

	while (!r && link.up) {
		struct nl_request rq;
		struct rtmsg *rtm;
		uint8_t type = RTN_UNSPEC;

		nl_request_init(&rq, nl);
		rtm = mnl_nlmsg_put_extra_header(nl_request_add(&rq, RTM_GETROUTE, 0),
						 sizeof(*rtm));
		rtm->rtm_family = AF_INET6;
		rtm->rtm_dst_len = 128;
		mnl_attr_put(rq.last, RTA_DST, sizeof(addr->b), addr->b);
		r = nl_request_send(&rq, NULL, on_route, &type);
		/* With no route at all: ENETUNREACH. */
		if (type == RTN_LOCAL)
			return 0;
		if (time_mono_ns() >= end)
			return r ? r : -ETIMEDOUT;
		r = 0;
		nanosleep(&pause, NULL);
	}
	return r;
}

int nl_addr_add(struct nl *nl, unsigned ifindex, const struct ax_addr *addr, unsigned prefix_len)
{
	bool v4 = addr_is_v4(addr);
	struct nl_request rq;
	int r;

	nl_request_init(&rq, nl);
	nl_put_addr(&rq, ifindex, addr, prefix_len);
	r = nl_family_error(nl_request_send(&rq, NULL, NULL, NULL), !v4);
	return r || v4 ? r : wait_local6(nl, ifindex, addr);
}

int nl_addr_del(struct nl *nl, unsigned ifindex, const struct ax_addr *addr, unsigned prefix_len)
{
	struct nl_request rq;

	nl_request_init(&rq, nl);
	nl_put_addr(&rq, ifindex, addr, prefix_len);
	rq.last->nlmsg_type = RTM_DELADDR;
	rq.last->nlmsg_flags = NLM_F_REQUEST;
	return nl_family_error(nl_request_send(&rq, NULL, NULL, NULL), !addr_is_v4(addr));
}
