/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Attaching the fabric to a device. The attachment lives with the device, not with a link: it
 * needs no pin for each app, survives the agent, and goes when the device goes.
 *
 * tcx where the kernel has it (6.6): no qdisc, no lock on the path. libbpf 1.1 knows nothing of it,
 * so the system call is made here. Else clsact and a direct-action filter.
 */
#include <linux/bpf.h>
#include <sys/syscall.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath_priv.h"

/* enum bpf_attach_type since Linux 6.6; Debian 12's headers are older */
#define TCX_INGRESS 46
#define TCX_EGRESS  47

static int sys_bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(__NR_bpf, cmd, attr, sizeof(*attr));
}

/* The ids of the programs on a tcx hook; how many, or a negative errno. */
static int tcx_query(unsigned ifindex, uint32_t type, uint32_t *ids, uint32_t max)
{
	union bpf_attr attr = {0};

	attr.query.target_fd = ifindex;
	attr.query.attach_type = type;
	attr.query.prog_ids = (uint64_t)(uintptr_t)ids;
	attr.query.prog_cnt = max;
	return sys_bpf(BPF_PROG_QUERY, &attr) < 0 ? -errno : (int)attr.query.prog_cnt;
}

/* Detaches what an earlier agent put there: programs of our name but not our own. */
static void tcx_detach_old(unsigned ifindex, uint32_t type, const uint32_t *ids, int n,
			   const char *name)
{
	for (int i = 0; i < n; i++) {
		struct bpf_prog_info info = {0};
		uint32_t len = sizeof(info);
		union bpf_attr attr = {0};
		autoclose int fd = bpf_prog_get_fd_by_id(ids[i]);

		if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len) || !streq(info.name, name))
			continue;
		attr.target_fd = ifindex;
		attr.attach_bpf_fd = (uint32_t)fd;
		attr.attach_type = type;
		sys_bpf(BPF_PROG_DETACH, &attr);
	}
}

static int tcx_attach(unsigned ifindex, uint32_t type, int prog_fd, const char *name)
{
	union bpf_attr attr = {0};
	uint32_t ids[16];
	int n = tcx_query(ifindex, type, ids, ARRAY_SIZE(ids));

	if (n < 0)
		return n;
	attr.target_fd = ifindex;
	attr.attach_bpf_fd = (uint32_t)prog_fd;
	attr.attach_type = type;
	if (sys_bpf(BPF_PROG_ATTACH, &attr) < 0)
		return -errno;
	/* only now: there is no moment without the source check */
	tcx_detach_old(ifindex, type, ids, n, name);
	return 0;
}

static int clsact_attach(unsigned ifindex, enum bpf_tc_attach_point point, int prog_fd)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = point);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = 1, .priority = 1, .prog_fd = prog_fd,
		    .flags = BPF_TC_F_REPLACE);
	int r = bpf_tc_hook_create(&hook);

	if (r && r != -EEXIST)
		return r;
	return bpf_tc_attach(&hook, &opts);
}

int datapath_fabric_attach(struct datapath *dp, unsigned ifindex)
{
	int r = tcx_attach(ifindex, TCX_INGRESS, dp->from_app, "ax_from_app");

	if (!r)
		return tcx_attach(ifindex, TCX_EGRESS, dp->to_app, "ax_to_app");
	if (r != -EINVAL && r != -EOPNOTSUPP)
		return r;
	r = clsact_attach(ifindex, BPF_TC_INGRESS, dp->from_app);
	return r ? r : clsact_attach(ifindex, BPF_TC_EGRESS, dp->to_app);
}
