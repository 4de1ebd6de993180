/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Splicing's programs with maps of their own, for the gate: nothing is pinned. */
#include <sys/socket.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath/splice_priv.h"
#include "splicing.skel.h"

#define MEMBERS_MAX 4096

struct splice_gate {
	struct splice *s;
	struct bpf_link *members; /* the iterator */
	struct bpf_link *ops;	  /* NULL: no cgroup */
};

static int load(struct splice *s, struct error *e)
{
	int r = splice_object_open(s, e);

	if (r)
		return r;
	s->skel->rodata->gate = true;
	bpf_map__set_max_entries(s->skel->maps.splice_members, MEMBERS_MAX);
	return splice_object_load(s, e);
}

int datapath_splice_gate_cgroup(struct splice_gate *g, int cgroup_fd)
{
	bpf_link__destroy(g->ops);
	g->ops = NULL;
	if (cgroup_fd < 0)
		return 0;
	g->ops = bpf_program__attach_cgroup(g->s->skel->progs.ax_splice_ops, cgroup_fd);
	return g->ops ? 0 : -errno;
}

static int attach(struct splice_gate *g, int cgroup_fd)
{
	union bpf_iter_link_info info = {
		.map.map_fd = (uint32_t)bpf_map__fd(g->s->skel->maps.splice_members)};
	LIBBPF_OPTS(bpf_iter_attach_opts, o, .link_info = &info, .link_info_len = sizeof(info));

	g->members = bpf_program__attach_iter(g->s->skel->progs.ax_splice_members, &o);
	return g->members ? datapath_splice_gate_cgroup(g, cgroup_fd) : -errno;
}

int datapath_splice_gate_open(int cgroup_fd, bool redirect, struct splice_gate **ret,
			      struct error *e)
{
	struct splice_gate *g = calloc(1, sizeof(*g));
	int r;

	if (g)
		g->s = calloc(1, sizeof(*g->s));
	if (!g || !g->s) {
		free(g);
		return error_set(e, -ENOMEM, "out of memory");
	}
	r = load(g->s, e);
	r = r ? r : splice_attach(g->s, e);
	if (!r) {
		r = splice_ctl_set(g->s, redirect);
		r = r ? r : attach(g, cgroup_fd);
		if (r)
			error_set(e, r, "splicing cannot be attached: %s", strerror(-r));
	}
	if (r)
		datapath_splice_gate_close(g);
	else
		*ret = g;
	return r;
}

static int add_member(struct splice_gate *g, int fd)
{
	struct ax_splice_end end = {0};
	uint64_t cookie, value = (uint64_t)fd;
	socklen_t len = sizeof(cookie);

	if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) ||
	    bpf_map_update_elem(bpf_map__fd(g->s->skel->maps.splice_ends), &fd, &end,
				BPF_NOEXIST) ||
	    bpf_map_update_elem(bpf_map__fd(g->s->skel->maps.splice_members), &cookie, &value,
				BPF_NOEXIST))
		return -errno;
	return 0;
}

int datapath_splice_gate_join(struct splice_gate *g, int a, int b)
{
	int r = add_member(g, a);

	r = r ? r : add_member(g, b);
	return r ? r : datapath_iter_each(g->members, -1, 1, NULL, NULL); /* it writes nothing */
}

int datapath_splice_gate_redirect(struct splice_gate *g, bool on)
{
	return splice_ctl_set(g->s, on);
}

int datapath_splice_gate_counted(struct splice_gate *g,
				 struct ax_splice_counted ret[AX_SPLICE_COUNTS])
{
	return datapath_splice_counters(g->s, ret);
}

void datapath_splice_gate_close(struct splice_gate *g)
{
	if (!g)
		return;
	bpf_link__destroy(g->members);
	bpf_link__destroy(g->ops);
	datapath_splice_close(g->s);
	free(g);
}
