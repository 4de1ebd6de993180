/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "net/neighbour.h"

#include <linux/neighbour.h>

#include "net/netlink_request.h"

static void put_addr(struct nlmsghdr *nlh, uint16_t type, const struct ax_addr *a)
{
	if (addr_is_v4(a))
		mnl_attr_put(nlh, type, 4, &a->w[3]);
	else
		mnl_attr_put(nlh, type, 16, a->b);
}

static void take_addr(const void *bytes, size_t len, struct ax_addr *ret)
{
	struct in6_addr v6;
	__be32 v4;

	if (len == sizeof(v4)) {
		memcpy(&v4, bytes, sizeof(v4));
		*ret = addr_from_v4(v4);
	} else if (len == sizeof(v6)) {
		memcpy(&v6, bytes, sizeof(v6));
		*ret = addr_from_v6(&v6);
	}
}

struct lookup {
	uint8_t type; /* RTN_* */
	struct next_hop hop;
};

static void on_route(void *arg, const struct nlmsghdr *nlh)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	struct lookup *l = arg;
	const struct nlattr *a;

	if (nlh->nlmsg_type != RTM_NEWROUTE)
		return;
	l->type = rtm->rtm_type;
	mnl_attr_for_each (a, nlh, sizeof(*rtm)) {
		const uint8_t *payload = mnl_attr_get_payload(a);
		size_t len = mnl_attr_get_payload_len(a);

		switch (mnl_attr_get_type(a)) {
		case RTA_OIF:
			l->hop.ifindex = mnl_attr_get_u32(a);
			break;
		case RTA_GATEWAY:
			take_addr(payload, len, &l->hop.addr);
			break;
		case RTA_VIA: /* an IPv6 gateway for IPv4: struct rtvia is the family, then it */
			if (len > sizeof(uint16_t))
				take_addr(payload + sizeof(uint16_t), len - sizeof(uint16_t),
					  &l->hop.addr);
			break;
		}
	}
}

int next_hop_find(struct nl *nl, const struct ax_addr *to, struct next_hop *ret)
{
	struct lookup l = {.hop.addr = *to};
	bool v4 = addr_is_v4(to);
	struct nl_request rq;
	struct rtmsg *rtm;
	int r;

	nl_request_init(&rq, nl);
	rtm = mnl_nlmsg_put_extra_header(nl_request_add(&rq, RTM_GETROUTE, 0), sizeof(*rtm));
	rtm->rtm_family = v4 ? AF_INET : AF_INET6;
	rtm->rtm_dst_len = v4 ? 32 : 128;
	put_addr(rq.last, RTA_DST, to);
	r = nl_request_send(&rq, NULL, on_route, &l);
	/* No route, or one that says so: unreachable, prohibited, a black hole. */
	if (r == -ENETUNREACH || r == -EACCES || r == -EINVAL)
		return -EHOSTUNREACH;
	if (r)
		return nl_family_error(r, !v4);
	if (l.type == RTN_LOCAL)
		return -EADDRINUSE;
	if (l.type != RTN_UNICAST || !l.hop.ifindex)
		return -EHOSTUNREACH;
	*ret = l.hop;
	return 0;
}

static void on_neighbour(void *arg, const struct nlmsghdr *nlh)
{
	const struct ndmsg *ndm = mnl_nlmsg_get_payload(nlh);

	if (nlh->nlmsg_type == RTM_NEWNEIGH)
		*(uint16_t *)arg = ndm->ndm_state;
}

/* Whether somebody has written the entry down for good: it needs nothing, and using it as below
 * would make the kernel forget what was written (__neigh_update() takes NUD_PERMANENT away). */
static bool is_static(struct nl *nl, const struct next_hop *hop)
{
	struct nl_request rq;
	struct ndmsg *ndm;
	uint16_t state = 0;

	nl_request_init(&rq, nl);
	ndm = mnl_nlmsg_put_extra_header(nl_request_add(&rq, RTM_GETNEIGH, 0), sizeof(*ndm));
	ndm->ndm_family = addr_is_v4(&hop->addr) ? AF_INET : AF_INET6;
	ndm->ndm_ifindex = (int)hop->ifindex;
	put_addr(rq.last, NDA_DST, &hop->addr);
	return !nl_request_send(&rq, NULL, on_neighbour, &state) &&
	       state & (NUD_PERMANENT | NUD_NOARP);
}

int next_hop_keep(struct nl *nl, const struct next_hop *hop, bool on)
{
	struct nl_request rq;
	struct ndmsg *ndm;
	int r;

	if (is_static(nl, hop))
		return 0;
	nl_request_init(&rq, nl);
	ndm = mnl_nlmsg_put_extra_header(
		nl_request_add(&rq, RTM_NEWNEIGH, NLM_F_REPLACE | (on ? NLM_F_CREATE : 0)),
		sizeof(*ndm));
	ndm->ndm_family = addr_is_v4(&hop->addr) ? AF_INET : AF_INET6;
	ndm->ndm_ifindex = (int)hop->ifindex;
	ndm->ndm_state = NUD_NONE;
	/* Also to take the flag away: without it, the state above would be made the entry's. */
	ndm->ndm_flags = NTF_USE;
	put_addr(rq.last, NDA_DST, &hop->addr);
	mnl_attr_put_u32(rq.last, NDA_FLAGS_EXT, on ? NTF_EXT_MANAGED : 0);
	r = nl_request_send(&rq, NULL, NULL, NULL);
	/* The entry, or its device, is gone and its flag with it. */
	if (!on && (r == -ENOENT || r == -ENODEV))
		return 0;
	return nl_family_error(r, !addr_is_v4(&hop->addr));
}

int neighbour_manage(struct nl *nl, const struct ax_addr *to, bool on, struct next_hop *ret)
{
	struct next_hop hop = {0};
	int r = next_hop_find(nl, to, &hop);

	if (!r)
		r = next_hop_keep(nl, &hop, on);
	if (!r && ret)
		*ret = hop;
	return r;
}
