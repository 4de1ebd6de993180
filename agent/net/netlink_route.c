/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Routes. */
#include "net/netlink_request.h"

#define LOOPBACK_IFINDEX 1 /* in every network namespace */

static bool route_is_v4(const struct nl_route *r)
{
	return r->v4_default || (!r->v6_default && addr_is_v4(&r->dst.addr));
}

static unsigned route_dst_len(const struct nl_route *r)
{
	if (r->v4_default || r->v6_default)
		return 0;
	return route_is_v4(r) ? r->dst.len - 96 : r->dst.len;
}

static bool route_is_valid(const struct nl_route *r)
{
	if (r->v4_default && r->v6_default)
		return false;
	if (!r->v4_default && !r->v6_default &&
	    (r->dst.len > 128 || (route_is_v4(r) && r->dst.len < 96)))
		return false;
	if (!addr_is_zero(&r->gateway) && addr_is_v4(&r->gateway) != route_is_v4(r))
		return false;
	return addr_is_zero(&r->prefsrc) || addr_is_v4(&r->prefsrc) == route_is_v4(r);
}

static void put_addr(struct nlmsghdr *nlh, uint16_t type, const struct ax_addr *a, bool v4)
{
	if (v4)
		mnl_attr_put(nlh, type, 4, &a->w[3]);
	else
		mnl_attr_put(nlh, type, 16, a->b);
}

/*
 * With a metric, a route of the same destination and metric is ours and is to be replaced, because
 * it may carry another source or device. Without one it may be the kernel's own or an
 * administrator's: then the one that is there has to do.
 */
static uint16_t add_flags(const struct nl_route *r)
{
	return NLM_F_CREATE | (r->metric ? NLM_F_REPLACE : NLM_F_EXCL);
}

void nl_put_route(struct nl_request *rq, const struct nl_route *r, bool del)
{
	struct nlmsghdr *nlh =
		nl_request_add(rq, del ? RTM_DELROUTE : RTM_NEWROUTE, del ? 0 : add_flags(r));
	struct rtmsg *rtm = mnl_nlmsg_put_extra_header(nlh, sizeof(*rtm));
	bool v4 = route_is_v4(r);

	rtm->rtm_family = v4 ? AF_INET : AF_INET6;
	rtm->rtm_dst_len = (uint8_t)route_dst_len(r);
	rtm->rtm_table = r->local ? RT_TABLE_LOCAL : RT_TABLE_MAIN;
	rtm->rtm_protocol = AX_ROUTE_PROTOCOL;
	rtm->rtm_scope = r->local		     ? RT_SCOPE_HOST
			 : addr_is_zero(&r->gateway) ? RT_SCOPE_LINK
						     : RT_SCOPE_UNIVERSE;
	rtm->rtm_type = r->local ? RTN_LOCAL : RTN_UNICAST;
	if (rtm->rtm_dst_len)
		put_addr(nlh, RTA_DST, &r->dst.addr, v4);
	mnl_attr_put_u32(nlh, RTA_OIF, !r->ifindex && r->local ? LOOPBACK_IFINDEX : r->ifindex);
	if (!addr_is_zero(&r->gateway))
		put_addr(nlh, RTA_GATEWAY, &r->gateway, v4);
	if (r->metric)
		mnl_attr_put_u32(nlh, RTA_PRIORITY, r->metric);
	/* Deleting matches on the source too where it is given; destination and metric tell enough,
	 * and a v6 route may have been made without its source (see nl_route_add()). */
	if (!del && !addr_is_zero(&r->prefsrc))
		put_addr(nlh, RTA_PREFSRC, &r->prefsrc, v4);
}

static int request_one(struct nl *nl, const struct nl_route *r, bool del)
{
	struct nl_request rq;

	nl_request_init(&rq, nl);
	nl_put_route(&rq, r, del);
	return nl_request_send(&rq, NULL, NULL, NULL);
}

/* The final result of adding r, given the kernel's answer to the first attempt. */
static int add_result(struct nl *nl, const struct nl_route *r, int err)
{
	/* For IPv6 the kernel demands that the source be an address of an interface (a local route
	 * is enough for IPv4). The route matters more than the source that it prefers. */
	if (err == -EINVAL && !route_is_v4(r) && !addr_is_zero(&r->prefsrc)) {
		struct nl_route plain = *r;

		plain.prefsrc = (struct ax_addr){0};
		err = request_one(nl, &plain, false);
	}
	return err == -EEXIST ? 0 : nl_family_error(err, !route_is_v4(r));
}

static int routes_chunk(struct nl *nl, const struct nl_route *r, size_t n, bool del, int *errs)
{
	struct nl_request rq;
	int err, first = 0;

	nl_request_init(&rq, nl);
	for (size_t i = 0; i < n; i++) {
		if (!route_is_valid(&r[i]))
			return -EINVAL;
		nl_put_route(&rq, &r[i], del);
	}
	err = nl_request_send(&rq, errs, NULL, NULL);
	for (size_t i = 0; err && i < n; i++) {
		if (errs[i])
			errs[i] = del ? nl_family_error(errs[i], !route_is_v4(&r[i]))
				      : add_result(nl, &r[i], errs[i]);
		if (errs[i] && !first)
			first = errs[i];
	}
	return first;
}

static int routes_change(struct nl *nl, const struct nl_route *r, size_t n, bool del, int *errs)
{
	int first = 0;

	for (size_t i = 0; i < n; i += NL_REQUEST_MAX) {
		size_t k = n - i < NL_REQUEST_MAX ? n - i : NL_REQUEST_MAX;
		int chunk_errs[NL_REQUEST_MAX] = {0};
		int err = routes_chunk(nl, r + i, k, del, chunk_errs);

		if (errs)
			memcpy(errs + i, chunk_errs, k * sizeof(*errs));
		if (err && !first)
			first = err;
	}
	return first;
}

int nl_route_add(struct nl *nl, const struct nl_route *r)
{
	return routes_change(nl, r, 1, false, NULL);
}

int nl_route_del(struct nl *nl, const struct nl_route *r)
{
	return routes_change(nl, r, 1, true, NULL);
}

int nl_route_add_many(struct nl *nl, const struct nl_route *r, size_t n, int *errs)
{
	return routes_change(nl, r, n, false, errs);
}

int nl_route_del_many(struct nl *nl, const struct nl_route *r, size_t n, int *errs)
{
	return routes_change(nl, r, n, true, errs);
}

struct route_list {
	uint8_t family;
	bool foreign; /* those of others, of table main */
	uint32_t metric;
	struct nl_route *v;
	size_t n, size;
	size_t n_before; /* of the families that are done */
};

static void put_route_dump(struct nlmsghdr *nlh, void *arg)
{
	struct rtmsg *rtm = mnl_nlmsg_put_extra_header(nlh, sizeof(*rtm));

	rtm->rtm_family = ((struct route_list *)arg)->family;
	if (((struct route_list *)arg)->foreign)
		rtm->rtm_table = RT_TABLE_MAIN;
	else
		rtm->rtm_protocol = AX_ROUTE_PROTOCOL;
}

static struct ax_addr get_addr(const struct nlattr *a, bool v4)
{
	struct ax_addr addr = {0};

	if (v4) {
		__be32 word = mnl_attr_get_u32(a);

		return addr_from_v4(word);
	}
	memcpy(addr.b, mnl_attr_get_payload(a), sizeof(addr.b));
	return addr;
}

static void parse_route(const struct nlmsghdr *nlh, struct nl_route *r)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	bool v4 = rtm->rtm_family == AF_INET;
	size_t len = v4 ? 4 : 16;
	const struct nlattr *a;

	*r = (struct nl_route){.local = rtm->rtm_type == RTN_LOCAL,
			       .v4_default = v4 && !rtm->rtm_dst_len,
			       .v6_default = !v4 && !rtm->rtm_dst_len};
	if (rtm->rtm_dst_len)
		r->dst.len = rtm->rtm_dst_len + (v4 ? 96 : 0);
	mnl_attr_for_each (a, nlh, sizeof(*rtm)) {
		switch (mnl_attr_get_type(a)) {
		case RTA_DST:
			if (mnl_attr_get_payload_len(a) == len)
				r->dst.addr = get_addr(a, v4);
			break;
		case RTA_PREFSRC:
			if (mnl_attr_get_payload_len(a) == len)
				r->prefsrc = get_addr(a, v4);
			break;
		case RTA_GATEWAY:
			if (mnl_attr_get_payload_len(a) == len)
				r->gateway = get_addr(a, v4);
			break;
		case RTA_OIF:
			r->ifindex = mnl_attr_get_u32(a);
			break;
		case RTA_PRIORITY:
			r->metric = mnl_attr_get_u32(a);
			break;
		}
	}
}

static int collect_route(void *arg, const struct nlmsghdr *nlh)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	struct route_list *l = arg;
	struct nl_route r;

	/* The family too: a kernel without it answers with those that it has. */
	if (nlh->nlmsg_type != RTM_NEWROUTE || rtm->rtm_family != l->family ||
	    (rtm->rtm_protocol == AX_ROUTE_PROTOCOL) == l->foreign || rtm->rtm_flags & RTM_F_CLONED)
		return 0;
	if (l->foreign && rtm->rtm_table != RT_TABLE_MAIN)
		return 0;
	parse_route(nlh, &r);
	if (!l->foreign && r.metric != l->metric)
		return 0;
	if (l->n == l->size) {
		size_t size = l->size ? 2 * l->size : 64;
		struct nl_route *v = reallocarray(l->v, size, sizeof(*v));

		if (!v)
			return -ENOMEM;
		l->v = v;
		l->size = size;
	}
	l->v[l->n++] = r;
	return 0;
}

static void forget_routes(void *arg)
{
	struct route_list *l = arg;

	l->n = l->n_before;
}

/* Of both families, as far as the kernel has them. Only then f is called, so that it may use nl. */
static int each_route(struct nl *nl, struct route_list *l,
		      int (*f)(void *arg, const struct nl_route *r), void *arg)
{
	struct nl_dump d = {.type = RTM_GETROUTE,
			    .put = put_route_dump,
			    .on_entry = collect_route,
			    .restart = forget_routes,
			    .arg = l};
	int r;

	l->family = AF_INET;
	r = nl_dump_run(nl, &d);
	if (!r) {
		l->family = AF_INET6;
		l->n_before = l->n;
		r = nl_dump_run(nl, &d);
		if (r == -EOPNOTSUPP || r == -EAFNOSUPPORT)
			r = 0;
	}
	for (size_t i = 0; i < l->n && !r; i++)
		r = f(arg, &l->v[i]);
	free(l->v);
	return r;
}

int nl_route_each(struct nl *nl, uint32_t metric, int (*f)(void *arg, const struct nl_route *r),
		  void *arg)
{
	struct route_list l = {.metric = metric};

	return each_route(nl, &l, f, arg);
}

int nl_route_each_foreign(struct nl *nl, int (*f)(void *arg, const struct nl_route *r), void *arg)
{
	struct route_list l = {.foreign = true};

	return each_route(nl, &l, f, arg);
}
