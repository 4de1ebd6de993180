/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The device of services with private backends (xdp/service.bpf.c). */
#include <arpa/inet.h>
#include <fcntl.h>

#include "registry/service_device.h"
#include "allot/pool.h"
#include "base/address.h"
#include "datapath/datapath.h"
#include "net/ethtool.h"
#include "net/netlink.h"
#include "registry/instance_ctl.h"
#include "registry/state.h"
#include "registry/vips.h"

static void device_names(const struct agent *a, char device[16], char peer[16])
{
	snprintf(device, 16, "%ssvc", a->inst->device_prefix);
	snprintf(peer, 16, "%ssvp", a->inst->device_prefix);
}

void service_device_peer(const struct agent *a, char ret[16])
{
	char device[16];

	device_names(a, device, ret);
}

bool service_device_is(const struct agent *a, const char *name)
{
	char device[16], peer[16];

	device_names(a, device, peer);
	return streq(name, device) || streq(name, peer);
}

void service_device_adopt(struct agent *a)
{
	char device[16], peer[16];
	unsigned ifindex;

	device_names(a, device, peer);
	if (nl_link_index(a->nl, device, &ifindex))
		return;
	nl_link_set_group(a->nl, ifindex); /* older agents did not */
	if (datapath_service_attach(a->dp, a->nl, ifindex) == 0)
		a->ctl.service_ifindex = ifindex;
}

int service_device_open(struct agent *a)
{
	autoclose int netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	char device[16], peer[16];
	unsigned ifindex, peer_ifindex;
	uint8_t mac[6];
	int r;

	if (a->ctl.service_ifindex)
		return 0;
	device_names(a, device, peer);
	r = nl_link_index(a->nl, device, &ifindex);
	if (r == -ENODEV) {
		agent_mac(a, mac);
		r = netns < 0 ? -errno
			      : nl_link_add_veth(a->nl, device, peer, netns, mac, 0, &ifindex);
		if (!r)
			r = nl_link_index(a->nl, peer, &peer_ifindex);
		/* the other end takes part in nothing, but must be up for this one to be */
		if (!r)
			r = nl_link_set_up(a->nl, peer_ifindex);
	}
	r = r ? r : datapath_service_attach(a->dp, a->nl, ifindex);
	if (r)
		return r;
	a->ctl.service_ifindex = ifindex;
	return agent_tell_ctl(a);
}

static void service_device_close(struct agent *a)
{
	unsigned ifindex = a->ctl.service_ifindex;

	a->ctl.service_ifindex = 0;
	agent_tell_ctl(a);
	nl_link_del(a->nl, ifindex);
}

void service_device_routed(struct agent *a, unsigned was, unsigned now)
{
	unsigned ifindex = a->ctl.service_ifindex;

	if (ifindex && now == ifindex)
		a->service_device.routes++;
	if (ifindex && was == ifindex && --a->service_device.routes == 0)
		service_device_close(a);
}

void service_device_settle(struct agent *a)
{
	if (a->ctl.service_ifindex && !a->service_device.routes)
		service_device_close(a);
}

/* --- balancers --- */

/* An address is for one family: IPv6 apps may be there without a pool of theirs. */
static void balancer_addresses(const struct agent *a, struct ax_addr *v4, struct ax_addr *v6)
{
	*v4 = pool_last(&a->pool4);
	memset(v6, 0, sizeof(*v6));
	if (!a->has_ipv6)
		return;
	agent_anchor_prefix(a->inst, v6);
	v6->w[2] = htonl(1); /* beside the anchor's /96, and network_open()'s address */
	v6->w[3] = htonl(2);
}

static int set_address(struct agent *a, const struct ax_addr *addr, bool balancer, struct error *e)
{
	struct vip *v;

	if (addr_is_zero(addr))
		return 0;
	v = balancer ? vip_get(a, addr) : vip_find(a, addr);
	if (!v)
		return balancer ? error_set(e, -ENOMEM, "out of memory") : 0;
	v->balancer = balancer;
	return vip_sync(a, v, e);
}

/*
 * What is redirected to the other end is taken by this one's NAPI poll, which it has with GRO. What
 * leaves by this one is judged at the other end by an XDP program, which knows nothing of checksums
 * and segments that are to be made later.
 */
static int set_features(unsigned ifindex)
{
	static const struct {
		enum ethtool_feature f;
		bool on;
	} wanted[] = {
		{ETHTOOL_FEATURE_GRO, true},
		{ETHTOOL_FEATURE_TX_CHECKSUM, false},
		{ETHTOOL_FEATURE_TSO, false},
		{ETHTOOL_FEATURE_GSO, false},
	};
	CLEANUP(ethtool_closep) struct ethtool *et = NULL;
	int r = ethtool_open(&et);

	for (size_t i = 0; i < ARRAY_SIZE(wanted) && !r; i++)
		r = ethtool_set_feature(et, ifindex, wanted[i].f, wanted[i].on);
	return r;
}

int service_device_take_balancers(struct agent *a, struct error *e)
{
	struct ax_addr v4, v6;
	char peer[16];
	unsigned ifindex;
	int r;

	balancer_addresses(a, &v4, &v6);
	r = set_address(a, &v4, true, e);
	r = r ? r : set_address(a, &v6, true, e);
	if (r)
		return r;
	service_device_peer(a, peer);
	r = nl_link_index(a->nl, peer, &ifindex);
	r = r ? r : set_features(a->ctl.service_ifindex);
	r = r ? r : datapath_balancer_attach(a->dp, a->nl, a->ctl.service_ifindex, ifindex);
	if (!r) {
		a->ctl.balancer4 = v4;
		a->ctl.balancer6 = v6;
		a->ctl.balancer_ifindex = ifindex;
		r = agent_tell_ctl(a);
	}
	return r ? error_set(e, r, "balancers cannot be led to apps by %s: %s", peer, strerror(-r))
		 : 0;
}

int service_device_drop_balancers(struct agent *a, struct error *e)
{
	struct ax_addr v4, v6;
	int r;

	memset(&a->ctl.balancer4, 0, sizeof(a->ctl.balancer4));
	memset(&a->ctl.balancer6, 0, sizeof(a->ctl.balancer6));
	a->ctl.balancer_ifindex = 0;
	r = agent_tell_ctl(a);
	if (r)
		return error_set(e, r, "the kernel refuses the instance's state: %s", strerror(-r));
	balancer_addresses(a, &v4, &v6);
	r = set_address(a, &v4, false, e);
	return r ? r : set_address(a, &v6, false, e);
}
