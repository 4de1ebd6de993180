/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers of processes as who traces knows them, who may be in a container. */
#ifndef AX_BPF_PID_NUMBER_H
#define AX_BPF_PID_NUMBER_H

#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define PID_NS_LEVELS 33	  /* MAX_PID_NS_LEVEL of the kernel, and the first one */
#define PID_NS_FIRST  0xeffffffcu /* PROC_PID_INIT_INO */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct ns_common___number {
	unsigned int inum;
};
struct pid_namespace___number {
	struct ns_common___number ns;
};
struct upid___number {
	int nr;
	struct pid_namespace___number *ns;
};
struct pid___number {
	unsigned int level;
	struct upid___number numbers[];
};
struct task_struct___number {
	int tgid;
	struct task_struct___number *group_leader;
	struct pid___number *thread_pid;
};
#pragma clang attribute pop

/* The process's number in a pid namespace (by its inode), from where it is seen only if it is in
 * that one or in one below: else 0. */
static __always_inline __u32 pid_number(struct task_struct___number *task, __u32 pidns)
{
	struct pid___number *pid;
	__u32 level, numbers;

	if (!task)
		return 0;
	if (pidns == PID_NS_FIRST)
		return (__u32)BPF_CORE_READ(task, tgid);
	pid = BPF_CORE_READ(task, group_leader, thread_pid);
	level = BPF_CORE_READ(pid, level);
	numbers = bpf_core_field_offset(struct pid___number, numbers);
	for (__u32 i = 0; i < PID_NS_LEVELS; i++) {
		struct upid___number n;

		if (i > level ||
		    bpf_probe_read_kernel(&n, sizeof(n), (char *)pid + numbers + i * sizeof(n)))
			return 0;
		if (BPF_CORE_READ(n.ns, ns.inum) == pidns)
			return (__u32)n.nr;
	}
	return 0;
}

#endif
