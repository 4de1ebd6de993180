/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Splicing's programs with maps of their own, for the gate: nothing is pinned. */
#include <sys/socket.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath/splice_priv.h"
#include "splicing.skel.h"

struct splice_gate {
	struct splice *s;
	struct bpf_link *ops; /* NULL: no cgroup */
};

static int load(struct splice *s, struct error *e)
{
	int r;

	datapath_log_libbpf();
	s->skel = splicing__open();
	if (!s->skel)
		return error_set(e, -errno, "libbpf cannot open splicing's programs: %s",
				 strerror(errno));
	s->skel->rodata->gate = true;
	r = splicing__load(s->skel);
	return r ? error_set(e, r, "the kernel refuses to splice (%s)",
			     datapath_last_word()[0] ? datapath_last_word() : strerror(-r))
		 : 0;
}

int datapath_splice_gate_open(int cgroup_fd, bool redirect, struct splice_gate **ret,
			      struct error *e)
{
	struct splice_gate *g = calloc(1, sizeof(*g));
	struct error unused;
	int r;

	if (g)
		g->s = calloc(1, sizeof(*g->s));
	if (!g || !g->s) {
		free(g);
		return error_set(e, -ENOMEM, "out of memory");
	}
	g->s->supported = datapath_splice_supported(&unused) == 0;
	r = load(g->s, e);
	r = r ? r : splice_attach(g->s, e);
	if (!r) {
		r = splice_ctl_set(g->s, redirect);
		if (!r && cgroup_fd >= 0) {
			g->ops = bpf_program__attach_cgroup(g->s->skel->progs.ax_splice_ops,
							    cgroup_fd);
			r = g->ops ? 0 : -errno;
		}
		if (r)
			error_set(e, r, "splicing cannot be attached: %s", strerror(-r));
	}
	if (r)
		datapath_splice_gate_close(g);
	else
		*ret = g;
	return r;
}

static int find(void *arg, const struct ax_splice_conn *c)
{
	struct splice_pair *p = arg;

	if (c->cookie == p->a.cookie)
		p->a.sk = c->sk;
	if (c->cookie == p->b.cookie)
		p->b.sk = c->sk;
	return 0;
}

static int cookie_of(int fd, uint64_t *ret)
{
	socklen_t len = sizeof(*ret);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, ret, &len) ? -errno : 0;
}

int datapath_splice_gate_join(struct splice_gate *g, int a, int b)
{
	struct splice_pair p = {.a.netns_fd = -1, .b.netns_fd = -1};
	int r = cookie_of(a, &p.a.cookie);

	r = r ? r : cookie_of(b, &p.b.cookie);
	r = r ? r : datapath_splice_conns_each(g->s, -1, find, &p);
	if (!r && (!p.a.sk || !p.b.sk))
		r = -ENOTCONN;
	r = r ? r : datapath_splice_join(g->s, &p, 1);
	r = r ? r : p.a.result;
	return r ? r : p.b.result;
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
	bpf_link__destroy(g->ops);
	datapath_splice_close(g->s);
	free(g);
}
