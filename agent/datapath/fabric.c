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
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath/priv.h"

static int attach(unsigned ifindex, enum bpf_tc_attach_point point, int prog_fd)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = point);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = 1, .priority = 1, .prog_fd = prog_fd,
		    .flags = BPF_TC_F_REPLACE);

	return bpf_tc_attach(&hook, &opts);
}

/* It serves both directions. */
static int make_clsact(unsigned ifindex)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = BPF_TC_INGRESS);
	int r = bpf_tc_hook_create(&hook);

	return r == -EEXIST ? 0 : r;
}

#define OUTSIDE_PRIORITY 0x6178 /* "ax": nobody has that by chance */

static int outside(unsigned ifindex, enum bpf_tc_attach_point point, uint32_t handle, int prog_fd)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = point);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = handle, .priority = OUTSIDE_PRIORITY,
		    .prog_fd = prog_fd, .flags = BPF_TC_F_REPLACE);

	if (prog_fd >= 0)
		return bpf_tc_attach(&hook, &opts);
	opts.prog_fd = 0;
	opts.flags = 0;
	return bpf_tc_detach(&hook, &opts);
}

int datapath_outside_attach(struct datapath *dp, unsigned ifindex, uint32_t handle, bool answers,
			    bool *made)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = BPF_TC_INGRESS);
	int r = dp->from_outside < 0 || (answers && dp->to_outside < 0) ? -EOPNOTSUPP
									: bpf_tc_hook_create(&hook);

	*made = r == 0;
	r = r == -EEXIST ? 0 : r;
	r = r ? r : outside(ifindex, BPF_TC_INGRESS, handle, dp->from_outside);
	return r || !answers ? r : outside(ifindex, BPF_TC_EGRESS, handle, dp->to_outside);
}

void datapath_outside_detach(unsigned ifindex, uint32_t handle)
{
	datapath_log_libbpf();
	outside(ifindex, BPF_TC_INGRESS, handle, -1);
	outside(ifindex, BPF_TC_EGRESS, handle, -1);
}

void datapath_outside_unmake(unsigned ifindex)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex,
		    .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);

	datapath_log_libbpf();
	bpf_tc_hook_destroy(&hook);
}

int datapath_service_attach(struct datapath *dp, unsigned ifindex)
{
	int r = dp->to_service < 0 ? -EOPNOTSUPP : make_clsact(ifindex);

	return r ? r : attach(ifindex, BPF_TC_EGRESS, dp->to_service);
}

int datapath_balancer_attach(struct datapath *dp, unsigned ifindex, unsigned peer)
{
	int r = dp->from_balancer < 0 || dp->from_backends < 0 ? -EOPNOTSUPP : 0;

	r = r ? r : make_clsact(ifindex);
	r = r ? r : attach(ifindex, BPF_TC_INGRESS, dp->from_balancer);
	r = r ? r : make_clsact(peer);
	return r ? r : attach(peer, BPF_TC_INGRESS, dp->from_backends);
}

int datapath_fabric_attach(struct datapath *dp, unsigned ifindex)
{
	int r = make_clsact(ifindex);

	r = r ? r : attach(ifindex, BPF_TC_INGRESS, dp->from_app);
	return r ? r : attach(ifindex, BPF_TC_EGRESS, dp->to_app);
}
