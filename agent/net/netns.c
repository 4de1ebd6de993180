/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Work inside other network namespaces. */
#include "net/netlink_request.h"

#include <fcntl.h>
#include <linux/if_link.h>
#include <sched.h>
#include <sys/socket.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71 /* Linux 5.14; the C library's headers may be older */
#endif

int netns_call(int netns_fd, int (*f)(void *arg), void *arg)
{
	/* Opened at every call (2 us): a kept one would be wrong after a setns() or unshare() of
	 * this thread, and in a child that a launcher moves elsewhere. */
	autoclose int back = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int r;

	if (back < 0)
		return -errno;
	if (setns(netns_fd, CLONE_NEWNET) < 0)
		return -errno;
	r = f(arg);
	if (setns(back, CLONE_NEWNET) < 0)
		abort();
	return r;
}

static int read_cookie(void *arg)
{
	autoclose int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(uint64_t);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, arg, &len) < 0)
		return -errno;
	return 0;
}

int netns_cookie(int netns_fd, uint64_t *ret)
{
	return netns_call(netns_fd, read_cookie, ret);
}

static int open_there(void *arg)
{
	return nl_open(arg);
}

static void on_link(void *arg, const struct nlmsghdr *nlh)
{
	if (nlh->nlmsg_type == RTM_NEWLINK)
		nl_link_parse(nlh, arg);
}

static void put_family(struct nl_request *rq, unsigned ifindex, const struct ax_addr *ip, bool v4)
{
	struct nl_route route = {.v4_default = v4, .v6_default = !v4, .ifindex = ifindex};

	if (addr_is_zero(ip))
		return;
	nl_put_addr(rq, ifindex, ip, v4 ? 32 : 128);
	nl_put_route(rq, &route, false);
	if (v4)
		return;
	/* Even without duplicate address detection the kernel leaves the local route of an IPv6
	 * address to a worker, so that the first answer could find nobody at home. */
	route = (struct nl_route){
		.dst = {.addr = *ip, .len = 128}, .local = true, .ifindex = ifindex};
	nl_put_route(rq, &route, false);
}

int netns_configure(int netns_fd, const char *ifname, const struct ax_addr *ip4,
		    const struct ax_addr *ip6)
{
	CLEANUP(nl_closep) struct nl *nl = NULL;
	struct nl_link link = {0};
	struct nl_request rq;
	unsigned first_v6;
	int errs[NL_REQUEST_MAX], r;

	if ((!addr_is_zero(ip4) && !addr_is_v4(ip4)) || (!addr_is_zero(ip6) && addr_is_v4(ip6)))
		return -EINVAL;
	r = netns_call(netns_fd, open_there, &nl);
	if (r)
		return r;
	nl_request_init(&rq, nl);
	nl_put_link_up(&rq, 1); /* lo is 1 in every network namespace */
	nl_put_getlink(&rq, ifname, 0);
	r = nl_request_send(&rq, NULL, on_link, &link);
	if (r)
		return r;

	nl_request_init(&rq, nl);
	/* Before it goes up, and in a message of its own: in one message the kernel would bring it
	 * up first, and make a link-local address. */
	if (link.has_inet6 && link.addr_gen_mode != IN6_ADDR_GEN_MODE_NONE)
		nl_put_no_addr_gen(&rq, link.ifindex);
	nl_put_link_up(&rq, link.ifindex);
	put_family(&rq, link.ifindex, ip4, true);
	first_v6 = rq.n;
	put_family(&rq, link.ifindex, ip6, false);
	/* Its answer is of no interest: asking makes kernels from 6.8 on notice the carrier now. */
	nl_put_getlink(&rq, NULL, link.ifindex);
	memset(errs, 0, sizeof(errs));
	r = nl_request_send(&rq, errs, NULL, NULL);
	for (unsigned i = 0; r && i < rq.n; i++) {
		if (errs[i] == -EEXIST)
			errs[i] = 0;
		if (errs[i])
			return nl_family_error(errs[i], i >= first_v6);
	}
	return 0;
}
