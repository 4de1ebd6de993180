/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the programs of `ax trace exec|open|tcp|build` have in common: who is watched, and where
 * records go. The kernel's structures are CO-RE subsets, as libbpf finds their members in its BTF.
 */
#ifndef AX_PROBES_WATCH_WATCH_BPF_H
#define AX_PROBES_WATCH_WATCH_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "defaults.h"
#include "scope.bpf.h"
#include "trace_event.h"

#define SIGNAL_GROUP_EXIT 4

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	const char *name;
	__u64 id;
};
struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup *ancestors[]; /* Linux 6.1 */
};
struct css_set {
	struct cgroup *dfl_cgrp;
};
typedef struct {
	int counter;
} atomic_t;
struct signal_struct {
	atomic_t live;
	unsigned int flags;
	int group_exit_code;
};
struct mm_struct {
	unsigned long arg_start, arg_end, env_start, env_end;
};
struct qstr {
	const unsigned char *name;
};
struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
};
struct vfsmount {
	struct dentry *mnt_root;
};
struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};
struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};
struct fs_struct {
	struct path root, pwd;
};
struct thread_info {
	unsigned long flags;
	__u32 status;
};
struct task_struct {
	struct thread_info thread_info;
	int pid;
	int tgid;
	int exit_code;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct mm_struct *mm;
	struct fs_struct *fs;
	struct css_set *cgroups;
	struct signal_struct *signal;
	char comm[16];
};

#pragma clang attribute pop

const volatile struct ax_watch_config watch;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, WATCH_RING_BYTES);
} records SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AX_WATCH_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} watch_counters SEC(".maps");
/* Processes that are watched: of ax trace build its own, else those of probes/follow. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WATCH_TREE_ENTRIES);
	__type(key, __u32);
	__type(value, __u32);
} tree SEC(".maps");

static __always_inline void watch_count(__u32 which)
{
	__u64 *n = bpf_map_lookup_elem(&watch_counters, &which);

	if (n)
		__sync_fetch_and_add(n, 1);
}

/* Nobody waits for a record. */
static __always_inline void *watch_reserve(__u64 size)
{
	void *r = bpf_ringbuf_reserve(&records, size, 0);

	watch_count(AX_WATCH_EMITTED);
	if (!r)
		watch_count(AX_WATCH_DROPPED);
	return r;
}

static __always_inline bool watch_current(void)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	if (watch.tree && !bpf_map_lookup_elem(&tree, &tgid))
		return false;
	return scope_has_current(&watch.scope);
}

static __always_inline struct cgroup *cgroup_above(struct cgroup *c, __u32 level)
{
	__u64 at = bpf_core_field_offset(struct cgroup, ancestors) + (__u64)level * sizeof(c);
	struct cgroup *above = NULL;

	if (!c || BPF_CORE_READ(c, level) < (int)level)
		return NULL;
	bpf_probe_read_kernel(&above, sizeof(above), (char *)c + at);
	return above;
}

/* An app is the ancestor just below the cgroup of all apps. Its name is kept, since it may be gone
 * when the record is read. */
static __always_inline void watch_app(struct cgroup *c, char *app)
{
	struct cgroup *all, *own;

	app[0] = 0;
	if (!watch.app_level)
		return;
	all = cgroup_above(c, watch.app_level - 1);
	own = cgroup_above(c, watch.app_level);
	if (all && own && BPF_CORE_READ(all, kn, id) == watch.apps)
		bpf_probe_read_kernel_str(app, AX_EVENT_APP, BPF_CORE_READ(own, kn, name));
}

static __always_inline void watch_head(struct ax_watch_head *h, __u32 type)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u64 id = bpf_get_current_pid_tgid();

	h->time_ns = bpf_ktime_get_ns();
	h->type = type;
	h->pid = id >> 32;
	h->tid = (__u32)id;
	h->ppid = BPF_CORE_READ(task, real_parent, tgid);
	h->uid = (__u32)bpf_get_current_uid_gid();
	h->pad = 0;
	bpf_get_current_comm(h->comm, sizeof(h->comm));
	watch_app(BPF_CORE_READ(task, cgroups, dfl_cgrp), h->app);
}

#endif
