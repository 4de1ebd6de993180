/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interfaces that do not exist yet, or not any more, are waited for. */
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "machine/instance.h"
#include "base/log.h"
#include "base/work.h"
#include "base/loop.h"
#include "datapath/xdp_datapath.h"
#include "iface/iface.h"
#include "net/netlink.h"
#include "registry/state.h"
#include "sections/managed.h"
#include "sections/xdp_section.h"

#define SETTLE_MS 50 /* a link that has come is still being set up */

int managed_watch(struct agent *a, struct error *e)
{
	struct sockaddr_nl addr = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
	int r;

	if (a->xdp->links.fd >= 0)
		return 0;
	a->xdp->timer.kind = LOOP_XDP_TIMER;
	a->xdp->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	r = a->xdp->timer.fd < 0 ? -errno : loop_add(a->epoll, &a->xdp->timer, EPOLLIN);
	if (r)
		return error_set(e, r, "cannot make a timer: %s", strerror(-r));
	a->xdp->links.kind = LOOP_LINK;
	a->xdp->links.fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (a->xdp->links.fd < 0 ||
	    bind(a->xdp->links.fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		r = -errno;
	r = r ? r : loop_add(a->epoll, &a->xdp->links, EPOLLIN);
	return r ? error_set(e, r, "cannot watch interfaces: %s", strerror(-r)) : 0;
}

void managed_unwatch(struct agent *a)
{
	loop_del(a->epoll, &a->xdp->links);
	close_fd(&a->xdp->links.fd);
	loop_del(a->epoll, &a->xdp->timer);
	close_fd(&a->xdp->timer.fd);
}

void managed_unpin(const struct instance *inst, const char *name)
{
	char dir[256];
	struct error e;

	if (!place_ifindex(name) && !datapath_xdp_dir(inst, name, false, dir, sizeof(dir), &e))
		datapath_xdp_remove(dir);
}

static void gone(struct agent *a, struct xdp_managed *m)
{
	log_info("the interface %s is gone: its list waits for it", m->name);
	managed_ring_close(a, m);
	m->ifindex = 0;
	m->failed = false;
	m->due_ns = 0;
	managed_unpin(a->inst, m->name);
}

static bool any_routes(const struct agent *a)
{
	for (const struct xdp_managed *m = a->xdp->managed; m; m = m->next)
		if (m->routes)
			return true;
	return false;
}

/* Between which interfaces lists route. (There are requests for each of them.) */
static void find_ways(void *arg)
{
	int r = xdp_ways(arg);

	if (r)
		log_warn("the host's interfaces cannot be read: lists may leave what they route to "
			 "the kernel: %s",
			 strerror(-r));
}

/* Links are told of for many reasons: what counts is which index a name has. */
static void look_at_links(void *arg)
{
	struct agent *a = arg;

	a->xdp->looks = false;
	for (struct xdp_managed *m = a->xdp->managed; m; m = m->next) {
		unsigned ifindex = place_ifindex(m->name);

		if (!ifindex && m->ifindex)
			gone(a, m);
		else if (ifindex &&
			 (ifindex != m->ifindex || managed_target_state(m) != m->target_state))
			managed_due_in(a, m, SETTLE_MS, true);
		else if (ifindex && managed_group(m) != m->group)
			managed_due_soon(a, m);
	}
	if (any_routes(a)) {
		struct instance inst = *a->inst;

		work_offload(a->work, find_ways, &inst);
	}
}

static bool is_named(const struct agent *a, const char *link)
{
	for (const struct xdp_managed *m = a->xdp->managed; m; m = m->next)
		if (place_is_at(m->name, link) || managed_leads_to(m, link))
			return true;
	return false;
}

static bool concerns(const struct agent *a, const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *ifi = NLMSG_DATA(nlh);
	int left = (int)IFLA_PAYLOAD(nlh);
	bool ours = false;

	for (const struct xdp_managed *m = a->xdp->managed; m; m = m->next)
		if (m->ifindex && m->ifindex == (unsigned)ifi->ifi_index)
			return true;
	/* (ax's own are never routed to) */
	for (const struct rtattr *ra = IFLA_RTA(ifi); RTA_OK(ra, left); ra = RTA_NEXT(ra, left)) {
		if (ra->rta_type == IFLA_IFNAME && is_named(a, RTA_DATA(ra)))
			return true;
		if (ra->rta_type == IFLA_GROUP)
			ours = *(const uint32_t *)RTA_DATA(ra) == NL_LINK_GROUP;
	}
	return !ours && any_routes(a);
}

void xdp_section_on_link(struct agent *a)
{
	char buf[16384] __attribute__((aligned(NLMSG_ALIGNTO)));
	bool look = false;
	ssize_t n;

	for (int i = 0; i < 64; i++) {
		n = recv(a->xdp->links.fd, buf, sizeof(buf), 0);
		if (n < 0)
			break;
		for (const struct nlmsghdr *nlh = (void *)buf; NLMSG_OK(nlh, n);
		     nlh = NLMSG_NEXT(nlh, n))
			look |= concerns(a, nlh);
	}
	if (a->xdp->looks || !(look || (n < 0 && errno == ENOBUFS)))
		return;
	/* not while a list is put there */
	a->xdp->looks = true;
	if (work_start(a->work, 0, look_at_links, a))
		look_at_links(a);
}
