/* SPDX-License-Identifier: GPL-2.0-or-later */
/* IPv6 addresses on lo: what AnyIP needs besides its route. */
#include "net/netlink_request.h"

static int del_kernel_route(struct nl *nl, unsigned lo, const struct ax_addr *addr)
{
	struct nl_request rq;
	struct rtmsg *rtm;

	nl_request_init(&rq, nl);
	rtm = mnl_nlmsg_put_extra_header(nl_request_add(&rq, RTM_DELROUTE, 0), sizeof(*rtm));
	rtm->rtm_family = AF_INET6;
	rtm->rtm_dst_len = 128;
	rtm->rtm_table = RT_TABLE_LOCAL;
	rtm->rtm_protocol = RTPROT_KERNEL;
	rtm->rtm_type = RTN_LOCAL;
	mnl_attr_put(rq.last, RTA_DST, sizeof(addr->b), addr->b);
	mnl_attr_put_u32(rq.last, RTA_OIF, lo);
	return nl_request_send(&rq, NULL, NULL, NULL);
}

int nl_addr_add_bindable(struct nl *nl, unsigned lo, const struct ax_addr *addr)
{
	int r = nl_addr_add(nl, lo, addr, 128);

	if (r)
		return r;
	r = del_kernel_route(nl, lo, addr);
	return r == -ESRCH ? 0 : r;
}

static void on_route_type(void *arg, const struct nlmsghdr *nlh)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);

	if (nlh->nlmsg_type == RTM_NEWROUTE)
		*(uint8_t *)arg = rtm->rtm_type;
}

int nl_addr_is_local(struct nl *nl, const struct ax_addr *addr, bool *ret)
{
	bool v4 = addr_is_v4(addr);
	uint8_t type = RTN_UNSPEC;
	struct nl_request rq;
	struct rtmsg *rtm;
	int r;

	nl_request_init(&rq, nl);
	rtm = mnl_nlmsg_put_extra_header(nl_request_add(&rq, RTM_GETROUTE, 0), sizeof(*rtm));
	rtm->rtm_family = v4 ? AF_INET : AF_INET6;
	rtm->rtm_dst_len = v4 ? 32 : 128;
	mnl_attr_put(rq.last, RTA_DST, v4 ? 4 : 16, v4 ? (const void *)&addr->w[3] : addr->b);
	r = nl_request_send(&rq, NULL, on_route_type, &type);
	*ret = type == RTN_LOCAL;
	/* no route at all is an answer too */
	return type != RTN_UNSPEC || r == -ENETUNREACH || r == -EHOSTUNREACH ? 0 : r;
}

struct addr_list {
	unsigned ifindex;
	struct ax_addr *v;
	size_t n, size;
};

static void put_addr_dump(struct nlmsghdr *nlh, void *arg)
{
	struct ifaddrmsg *ifa = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifa));

	ifa->ifa_family = AF_INET6;
	ifa->ifa_index = ((const struct addr_list *)arg)->ifindex; /* heeded since Linux 4.20 */
}

static int collect_addr(void *arg, const struct nlmsghdr *nlh)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(nlh);
	struct addr_list *l = arg;
	struct nlattr *attr;

	if (nlh->nlmsg_type != RTM_NEWADDR || ifa->ifa_index != l->ifindex)
		return 0;
	mnl_attr_for_each (attr, nlh, sizeof(*ifa)) {
		if (mnl_attr_get_type(attr) != IFA_ADDRESS ||
		    mnl_attr_get_payload_len(attr) != sizeof(struct ax_addr))
			continue;
		if (l->n == l->size) {
			size_t size = l->size ? 2 * l->size : 64;
			struct ax_addr *v = reallocarray(l->v, size, sizeof(*v));

			if (!v)
				return -ENOMEM;
			l->v = v;
			l->size = size;
		}
		memcpy(&l->v[l->n++], mnl_attr_get_payload(attr), sizeof(*l->v));
	}
	return 0;
}

static void forget_addrs(void *arg)
{
	((struct addr_list *)arg)->n = 0;
}

int nl_addr6_each(struct nl *nl, unsigned ifindex, int (*f)(void *arg, const struct ax_addr *addr),
		  void *arg)
{
	struct addr_list l = {.ifindex = ifindex};
	const struct nl_dump d = {.type = RTM_GETADDR,
				  .put = put_addr_dump,
				  .on_entry = collect_addr,
				  .restart = forget_addrs,
				  .arg = &l};
	int r = nl_dump_run(nl, &d);

	for (size_t i = 0; i < l.n && !r; i++)
		r = f(arg, &l.v[i]);
	free(l.v);
	return r;
}
