/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose socket it is, for programs that may not ask for the current cgroup: the app in whose cgroup
 * it was made, which is also why the program runs. BPF only. */
#ifndef AX_MAKER_BPF_H
#define AX_MAKER_BPF_H

#include "kernel.bpf.h"
#include "switch.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
	int level;
	struct cgroup *ancestors[]; /* Linux 6.1 */
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

/* (sockops/splice_kernel.bpf.h has other members of it) */
struct sock___made {
	struct sock_cgroup_data sk_cgrp_data;
};

#pragma clang attribute pop

static __always_inline struct ax_app *app_of_cgroup(const struct cgroup *cg)
{
	__u64 id = BPF_CORE_READ(cg, kn, id);

	return bpf_map_lookup_elem(&apps, &id);
}

struct levels {
	const void *all;
	__u64 id; /* of the app's cgroup, 0: none */
};

/* (a callback has no pointer to an element of a map to give back) */
static long look_at_level(__u32 i, struct levels *l)
{
	const struct cgroup *above = NULL;
	__u64 id;

	if (bpf_probe_read_kernel(&above, sizeof(above), l->all + (i + 1) * sizeof(above)) ||
	    !above)
		return 1;
	id = BPF_CORE_READ(above, kn, id);
	if (!bpf_map_lookup_elem(&apps, &id))
		return 0;
	l->id = id;
	return 1;
}

/* It may have been made in a cgroup below the app's. By bpf_loop(): Linux 6.1 would judge each turn
 * of a loop. */
static __noinline struct ax_app *app_above(const struct cgroup *cg)
{
	struct levels l = {.all = (const void *)cg + bpf_core_field_offset(cg->ancestors)};
	int levels = BPF_CORE_READ(cg, level);
	__u64 id;

	if (levels > CGROUP_DEPTH_MAX)
		levels = CGROUP_DEPTH_MAX;
	if (levels > 1)
		bpf_loop((__u32)levels - 1, look_at_level, &l, 0);
	id = l.id;
	return id ? bpf_map_lookup_elem(&apps, &id) : NULL;
}

/* sk: the kernel's struct sock. */
static __always_inline struct ax_app *app_that_made(const void *sk)
{
	const struct sock___made *s = sk;
	const struct cgroup *cg = BPF_CORE_READ(s, sk_cgrp_data.cgroup);
	struct ax_app *app;

	if (!cg)
		return NULL;
	app = app_of_cgroup(cg);
	return app || !bpf_core_field_exists(cg->ancestors) ? app : app_above(cg);
}

static __always_inline struct ax_app *app_of_maker(struct bpf_sock *sk)
{
	const struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

	return tp ? app_that_made(tp) : NULL;
}

#endif
