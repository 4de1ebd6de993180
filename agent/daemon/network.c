/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <fcntl.h>

#include "daemon/network.h"
#include "allot/pool.h"
#include "base/address.h"
#include "datapath/datapath.h"
#include "net/netlink.h"
#include "registry/instance_ctl.h"
#include "registry/state.h"
#include "registry/vips.h"

static int own_address(struct agent *a, const struct ax_addr *addr, struct error *e)
{
	struct vip *v;

	if (addr_is_zero(addr))
		return 0;
	v = vip_get(a, addr);
	if (!v)
		return error_set(e, -ENOMEM, "out of memory");
	v->host = true;
	return vip_sync(a, v, e);
}

/* The anchor for v6-only wildcard binds of apps without IPv6 (ctl.h): a /96 of its own. */
static int open_anchor(struct agent *a)
{
	struct nl_route r = {.local = true, .ifindex = a->lo, .metric = a->inst->route_metric};

	r.dst.len = 96;
	agent_anchor_prefix(a->inst, &r.dst.addr);
	a->ctl.anchor6 = r.dst.addr;
	return nl_route_add(a->nl, &r);
}

/* Nobody binds there but those whom ax gives an address. */
static int reserve(struct agent *a)
{
	const struct prefix prefixes[] = {
		a->pool4.prefix, a->pool6.prefix, {.addr = a->ctl.anchor6, .len = 96}};
	struct ax_prefix list[ARRAY_SIZE(prefixes)];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (!addr_is_zero(&prefixes[i].addr))
			list[n++] = (struct ax_prefix){prefixes[i].len, prefixes[i].addr};
	return datapath_reserve(a->dp, list, n);
}

/* Where the ports begin that the kernel gives to clients. */
static uint32_t ephemeral_first(void)
{
	autofree char *text = NULL;
	long n = 0;

	if (file_read("/proc/sys/net/ipv4/ip_local_port_range", 64, &text) == 0)
		n = strtol(text, NULL, 10);
	return n > 0 && n < 65536 ? (uint32_t)n : 32768;
}

int network_open(struct agent *a, struct error *e)
{
	autoclose int netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int r = netns < 0 ? -errno : netns_cookie(netns, &a->netns_cookie);

	r = r ? r : nl_open(&a->nl);

	if (!r)
		r = nl_link_index(a->nl, "lo", &a->lo);
	if (!r)
		r = nl_link_set_up(a->nl, a->lo);
	if (r)
		return error_set(e, r, "cannot talk to the kernel's routing: %s (run as root)",
				 strerror(-r));
	a->host4 = pool_host(&a->pool4);
	if (open_anchor(a) == 0) {
		a->has_ipv6 = true;
		a->host6 = a->pool6.size ? pool_host(&a->pool6) : a->ctl.anchor6;
		if (!a->pool6.size)
			a->host6.w[2] = htonl(1); /* beside the anchor's /96 */
	} else {
		memset(&a->ctl.anchor6, 0, sizeof(a->ctl.anchor6));
	}
	r = reserve(a);
	if (r)
		return error_set(e, r, "the kernel refuses the pools as reserved: %s",
				 strerror(-r));
	a->ctl.ephemeral_first = ephemeral_first();
	a->ctl.host4 = a->host4;
	a->ctl.host6 = a->host6;
	a->ctl.host_access = a->config.host_access;
	r = own_address(a, &a->host4, e);
	return r ? r : own_address(a, &a->host6, e);
}
