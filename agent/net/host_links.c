/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <net/if.h>
#include <linux/pkt_sched.h>
#include <net/if_arp.h>

#include "net/host_links.h"
#include "net/netlink_request.h"

/* What a message says of a link; 0: it is none. */
struct host_link {
	unsigned ifindex, master;
	uint32_t group;
	bool ethernet;
	bool loopback;
};

static struct host_link link_of(const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct host_link l = {0};
	struct nlattr *attr;

	if (nlh->nlmsg_type != RTM_NEWLINK && nlh->nlmsg_type != RTM_DELLINK)
		return l;
	l.ifindex = (unsigned)ifi->ifi_index;
	l.loopback = ifi->ifi_type == ARPHRD_LOOPBACK;
	l.ethernet = ifi->ifi_type == ARPHRD_ETHER || l.loopback;
	mnl_attr_for_each (attr, nlh, sizeof(*ifi)) {
		if (mnl_attr_get_payload_len(attr) < sizeof(uint32_t))
			continue;
		if (mnl_attr_get_type(attr) == IFLA_MASTER)
			l.master = mnl_attr_get_u32(attr);
		else if (mnl_attr_get_type(attr) == IFLA_GROUP)
			l.group = mnl_attr_get_u32(attr);
	}
	return l;
}

struct list {
	char *v;
	size_t n, size; /* of one */
};

static int list_add(struct list *l, const void *one)
{
	char *more = reallocarray(l->v, l->n + 1, l->size);

	if (!more)
		return -ENOMEM;
	l->v = more;
	memcpy(more + l->size * l->n++, one, l->size);
	return 0;
}

static void list_forget(void *arg)
{
	((struct list *)arg)->n = 0;
}

static void put_links(struct nlmsghdr *nlh, void *arg)
{
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));

	(void)arg;
	ifi->ifi_family = AF_UNSPEC;
}

static int note_link(void *arg, const struct nlmsghdr *nlh)
{
	const struct host_link l = link_of(nlh);

	const struct nl_host_link one = {.ifindex = l.ifindex, .enslaved = l.master != 0};

	if (!l.ifindex || !l.ethernet || l.group == NL_LINK_GROUP)
		return 0;
	return list_add(arg, &one);
}

static int note_outer(void *arg, const struct nlmsghdr *nlh)
{
	const struct host_link l = link_of(nlh);
	const struct nl_host_link one = {.ifindex = l.ifindex, .enslaved = l.master != 0};

	if (!l.ifindex || l.loopback || l.group == NL_LINK_GROUP || l.group == NL_TUNNEL_GROUP)
		return 0;
	return list_add(arg, &one);
}

static int link_each(struct nl *nl, int (*note)(void *arg, const struct nlmsghdr *nlh),
		     int (*f)(void *arg, const struct nl_host_link *link), void *arg)
{
	struct list l = {.size = sizeof(struct nl_host_link)};
	const struct nl_dump d = {.type = RTM_GETLINK,
				  .put = put_links,
				  .on_entry = note,
				  .restart = list_forget,
				  .arg = &l};
	int r = nl_dump_run(nl, &d);

	for (size_t i = 0; i < l.n && !r; i++) {
		struct nl_host_link one;

		memcpy(&one, l.v + l.size * i, sizeof(one));
		r = f(arg, &one);
	}
	free(l.v);
	return r;
}

int nl_host_link_each(struct nl *nl, int (*f)(void *arg, const struct nl_host_link *link),
		      void *arg)
{
	return link_each(nl, note_link, f, arg);
}

int nl_outer_link_each(struct nl *nl, int (*f)(void *arg, const struct nl_host_link *link),
		       void *arg)
{
	return link_each(nl, note_outer, f, arg);
}

/* --- filters --- */

struct filters {
	unsigned ifindex;
	uint32_t parent;
	bool any;
};

static void put_filters(struct nlmsghdr *nlh, void *arg)
{
	const struct filters *f = arg;
	struct tcmsg *tc = mnl_nlmsg_put_extra_header(nlh, sizeof(*tc));

	tc->tcm_family = AF_UNSPEC;
	tc->tcm_ifindex = (int)f->ifindex;
	tc->tcm_parent = f->parent;
}

static int note_filter(void *arg, const struct nlmsghdr *nlh)
{
	((struct filters *)arg)->any |= nlh->nlmsg_type == RTM_NEWTFILTER;
	return 0;
}

static void filters_forget(void *arg)
{
	((struct filters *)arg)->any = false;
}

bool nl_link_has_filters(struct nl *nl, unsigned ifindex)
{
	static const uint32_t minors[] = {TC_H_MIN_INGRESS, TC_H_MIN_EGRESS};

	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct filters f = {.ifindex = ifindex,
				    .parent = TC_H_MAKE(TC_H_CLSACT, minors[i])};
		const struct nl_dump d = {.type = RTM_GETTFILTER,
					  .put = put_filters,
					  .on_entry = note_filter,
					  .restart = filters_forget,
					  .arg = &f};

		/* (an error says nothing of what is there) */
		if (nl_dump_run(nl, &d) || f.any)
			return true;
	}
	return false;
}

/* --- addresses --- */

static void put_addrs(struct nlmsghdr *nlh, void *arg)
{
	struct ifaddrmsg *ifa = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifa));

	(void)arg;
	ifa->ifa_family = AF_UNSPEC;
}

/* IPv4's own is IFA_LOCAL (IFA_ADDRESS is the peer's, on point-to-point links); IPv6 has that only
 * there, too. */
static int note_addr(void *arg, const struct nlmsghdr *nlh)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(nlh);
	struct ax_addr local = {0}, addr = {0}, *to;
	struct nlattr *attr;

	if (nlh->nlmsg_type != RTM_NEWADDR)
		return 0;
	mnl_attr_for_each (attr, nlh, sizeof(*ifa)) {
		uint16_t type = mnl_attr_get_type(attr), len = mnl_attr_get_payload_len(attr);

		to = type == IFA_LOCAL ? &local : type == IFA_ADDRESS ? &addr : NULL;
		if (to && ifa->ifa_family == AF_INET && len == 4)
			*to = addr_from_v4(*(const __be32 *)mnl_attr_get_payload(attr));
		else if (to && ifa->ifa_family == AF_INET6 && len == 16)
			memcpy(to, mnl_attr_get_payload(attr), 16);
	}
	if (addr_is_zero(&local))
		local = addr;
	return addr_is_zero(&local) ? 0 : list_add(arg, &local);
}

#define LOOPBACK_IFINDEX 1 /* in every network namespace */

/* One that stays, is in use, and is seen from elsewhere. (A link's own is not, and neither are
 * those of apps, which are on lo.) */
static int note_addr6(void *arg, const struct nlmsghdr *nlh)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(nlh);
	const uint8_t unfit =
		IFA_F_TEMPORARY | IFA_F_DEPRECATED | IFA_F_TENTATIVE | IFA_F_DADFAILED;

	if (nlh->nlmsg_type != RTM_NEWADDR || ifa->ifa_family != AF_INET6 ||
	    ifa->ifa_index == LOOPBACK_IFINDEX || ifa->ifa_scope != RT_SCOPE_UNIVERSE ||
	    ifa->ifa_flags & unfit)
		return 0;
	return note_addr(arg, nlh);
}

static int addr_each(struct nl *nl, int (*note)(void *arg, const struct nlmsghdr *nlh),
		     int (*f)(void *arg, const struct ax_addr *addr), void *arg)
{
	struct list l = {.size = sizeof(struct ax_addr)};
	const struct nl_dump d = {.type = RTM_GETADDR,
				  .put = put_addrs,
				  .on_entry = note,
				  .restart = list_forget,
				  .arg = &l};
	int r = nl_dump_run(nl, &d);

	for (size_t i = 0; i < l.n && !r; i++) {
		struct ax_addr addr;

		memcpy(&addr, l.v + l.size * i, sizeof(addr));
		r = f(arg, &addr);
	}
	free(l.v);
	return r;
}

int nl_host_addr_each(struct nl *nl, int (*f)(void *arg, const struct ax_addr *addr), void *arg)
{
	return addr_each(nl, note_addr, f, arg);
}

int nl_host_addr6_each(struct nl *nl, int (*f)(void *arg, const struct ax_addr *addr), void *arg)
{
	return addr_each(nl, note_addr6, f, arg);
}

int nl_host_watch(void)
{
	const struct sockaddr_nl addr = {.nl_family = AF_NETLINK,
					 .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR |
						      RTMGRP_IPV6_IFADDR};
	autoclose int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	return take_fd(&fd);
}

bool nl_host_watch_read(int fd)
{
	char buf[16384] __attribute__((aligned(NLMSG_ALIGNTO)));
	bool changed = false;

	for (int i = 0; i < 64; i++) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);
		int left = (int)n;

		if (n < 0)
			return changed || errno == ENOBUFS;
		for (const struct nlmsghdr *nlh = (void *)buf; mnl_nlmsg_ok(nlh, left);
		     nlh = mnl_nlmsg_next(nlh, &left))
			changed |= link_of(nlh).group != NL_LINK_GROUP;
	}
	return true;
}
