/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The device of services with private backends (xdp/service.bpf.c). */
#include <fcntl.h>

#include "registry/service_device.h"
#include "datapath/datapath.h"
#include "net/netlink.h"
#include "registry/instance_ctl.h"
#include "registry/state.h"

static void device_names(const struct agent *a, char device[16], char peer[16])
{
	snprintf(device, 16, "%ssvc", a->inst->device_prefix);
	snprintf(peer, 16, "%ssvp", a->inst->device_prefix);
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
	if (datapath_service_attach(a->dp, ifindex) == 0)
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
	r = r ? r : datapath_service_attach(a->dp, ifindex);
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
