/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Attaching the fabric to a device. The attachment lives with the device, not with a link: it
 * needs no pin for each app, survives the agent, and goes when the device goes.
 *
 * By clsact and a direct-action filter, although kernels from 6.6 on have tcx: attaching a program
 * by tcx waits for an RCU grace period while it holds the RTNL lock (tcx_entry_sync()). That takes
 * 10 to 50 ms for the two programs of an app, measured on Linux 6.18 with two CPUs, against 0.3 ms
 * for this, and every launch would pay for it; what tcx saves on a packet are some nanoseconds.
 */
#include "datapath/priv.h"
#include "net/traffic_control.h"

#define OUTSIDE_PRIORITY 0x6178 /* "ax": nobody has that by chance */
#define NODES_PRIORITY	 0x6177 /* before that */

/* At a device of ours, where nobody else has programs. */
static struct tc_program at_ours(unsigned ifindex, bool egress, int fd, const char *name)
{
	return (struct tc_program){.ifindex = ifindex,
				   .egress = egress,
				   .priority = 1,
				   .handle = 1,
				   .fd = fd,
				   .name = name};
}

/* At a device of the machine: in and, second, out. */
struct outside {
	struct tc_program v[2];
};

static struct outside at_outside(unsigned ifindex, uint32_t handle)
{
	struct outside o = {.v = {{.name = "ax_from_outside"}, {.name = "ax_to_outside"}}};

	for (size_t i = 0; i < ARRAY_SIZE(o.v); i++) {
		o.v[i].ifindex = ifindex;
		o.v[i].egress = i;
		o.v[i].priority = OUTSIDE_PRIORITY;
		o.v[i].handle = handle;
	}
	return o;
}

int datapath_outside_attach(struct datapath *dp, struct nl *nl, unsigned ifindex, uint32_t handle,
			    bool answers, bool *made)
{
	struct outside o = at_outside(ifindex, handle);

	*made = false;
	if (dp->from_outside < 0 || (answers && dp->to_outside < 0))
		return -EOPNOTSUPP;
	o.v[0].fd = dp->from_outside;
	o.v[1].fd = dp->to_outside;
	return tc_attach(nl, o.v, answers ? 2 : 1, made);
}

void datapath_outside_detach(struct nl *nl, unsigned ifindex, uint32_t handle)
{
	struct outside o = at_outside(ifindex, handle);

	tc_detach(nl, o.v, ARRAY_SIZE(o.v));
}

static struct tc_program at_nodes(unsigned ifindex, uint32_t handle, int fd)
{
	return (struct tc_program){.ifindex = ifindex,
				   .priority = NODES_PRIORITY,
				   .handle = handle,
				   .fd = fd,
				   .name = "ax_from_nodes"};
}

int datapath_nodes_attach(struct datapath *dp, struct nl *nl, unsigned ifindex, uint32_t handle,
			  bool *made)
{
	const struct tc_program program = at_nodes(ifindex, handle, dp->from_nodes);

	*made = false;
	return dp->from_nodes < 0 ? -EOPNOTSUPP : tc_attach(nl, &program, 1, made);
}

int datapath_tunnel_attach(struct datapath *dp, struct nl *nl, unsigned ifindex, uint32_t handle)
{
	struct tc_program program = at_nodes(ifindex, handle, dp->from_tunnel);

	program.name = "ax_from_tunnel";
	return dp->from_tunnel < 0 ? -EOPNOTSUPP : tc_attach(nl, &program, 1, NULL);
}

int datapath_across_attach(struct datapath *dp, struct nl *nl, unsigned ifindex, uint32_t handle,
			   bool *made)
{
	struct tc_program program = at_nodes(ifindex, handle, dp->across);

	program.name = "ax_across";
	*made = false;
	return dp->across < 0 ? -EOPNOTSUPP : tc_attach(nl, &program, 1, made);
}

void datapath_nodes_detach(struct nl *nl, unsigned ifindex, uint32_t handle)
{
	const struct tc_program program = at_nodes(ifindex, handle, -1);

	tc_detach(nl, &program, 1);
}

int datapath_service_attach(struct datapath *dp, struct nl *nl, unsigned ifindex)
{
	const struct tc_program program = at_ours(ifindex, true, dp->to_service, "ax_to_service");

	return dp->to_service < 0 ? -EOPNOTSUPP : tc_attach(nl, &program, 1, NULL);
}

int datapath_balancer_attach(struct datapath *dp, struct nl *nl, unsigned ifindex, unsigned peer)
{
	const struct tc_program programs[] = {
		at_ours(ifindex, false, dp->from_balancer, "ax_from_balancer"),
		at_ours(peer, false, dp->from_backends, "ax_from_backends"),
	};

	if (dp->from_balancer < 0 || dp->from_backends < 0)
		return -EOPNOTSUPP;
	return tc_attach(nl, programs, ARRAY_SIZE(programs), NULL);
}

int datapath_fabric_attach(struct datapath *dp, struct nl *nl, unsigned ifindex)
{
	const struct tc_program programs[] = {
		at_ours(ifindex, false, dp->from_app, "ax_from_app"),
		at_ours(ifindex, true, dp->to_app, "ax_to_app"),
	};

	return tc_attach(nl, programs, ARRAY_SIZE(programs), NULL);
}
