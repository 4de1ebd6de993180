/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which features of the packet dataplane this kernel has. */
#include <bpf/libbpf.h>

#include "datapath/kernel.h"
#include "datapath/priv.h"
#include "datapath/xdp_datapath.h"
#include "failures.skel.h"
#include "filter.skel.h"
#include "foreign.skel.h"
#include "root.skel.h"

static const struct xdp_feature {
	const char *name;
	enum { OF_ROOT, OF_FILTER, OF_FAILURES } of;
	const char *program;
	const char *cost;
	const char *needs;
} features[] = {
	{"xdp_root", OF_ROOT, "ax_root", "no rules on interfaces", "Linux 5.10"},
	{"xdp_filter", OF_FILTER, "ax_filter", "no rules on interfaces", "Linux 5.17"},
	{"xdp_balance", OF_FILTER, "ax_balance", "no balancers on interfaces", "Linux 5.17"},
	{"xdp_reverse", OF_FILTER, "ax_reverse", "no balancers on interfaces that translate",
	 "Linux 5.17"},
	{"xdp_failures", OF_FAILURES, "ax_devmap_xmit",
	 "packets that are redirected but not sent are not counted", "Linux 5.17, BTF"},
};

static int try_filter(const struct xdp_feature *x, struct feature_report *f)
{
	struct filter *skel = filter__open();
	struct bpf_program *p;
	int r;

	if (!skel)
		return -errno;
	bpf_object__for_each_program (p, skel->obj) /* as they are loaded below the root */
		bpf_program__set_expected_attach_type(p, 0);
	r = datapath_try(skel->obj, x->program, f);
	filter__destroy(skel);
	return r;
}

static int try_root(const struct xdp_feature *x, struct feature_report *f)
{
	struct root *skel = root__open();
	int r = skel ? datapath_try(skel->obj, x->program, f) : -errno;

	root__destroy(skel);
	return r;
}

static int try_failures(const struct xdp_feature *x, struct feature_report *f)
{
	struct failures *skel = failures__open();
	int r = skel ? datapath_try(skel->obj, x->program, f) : -errno;

	failures__destroy(skel);
	return r;
}

static void try_feature(const struct xdp_feature *x, struct feature_report *f)
{
	int r;

	*f = (struct feature_report){.name = x->name, .cost = x->cost, .needs = x->needs};
	switch (x->of) {
	case OF_ROOT:
		r = try_root(x, f);
		break;
	case OF_FILTER:
		r = try_filter(x, f);
		break;
	default:
		r = try_failures(x, f);
	}
	if (r && !f->why[0])
		snprintf(f->why, sizeof(f->why), "%s", strerror(-r));
}

/* What was tried, with the result r; `refused` says of what the error is. */
static int report_tried(int r, struct feature_report *f, const char *refused,
			int (*report)(void *arg, const struct feature_report *f), void *arg)
{
	f->on = r == 0;
	if (r)
		snprintf(f->why, sizeof(f->why), "the kernel %s: %s", refused, strerror(-r));
	return report(arg, f);
}

static int report_freplace(int (*report)(void *arg, const struct feature_report *f), void *arg)
{
	struct feature_report f = {
		.name = "freplace",
		.cost = "an interface that has rules has no XDP program of others besides",
		.needs = "Linux 5.10, BTF, CONFIG_BPF_TRAMPOLINE",
	};

	return report_tried(kernel_has_freplace(), &f, "refuses to replace programs' functions",
			    report, arg);
}

static int try_foreign(void)
{
	struct foreign *skel = foreign__open();
	autoclose int prog = -1;
	struct bpf_program *p;
	const char *function;
	int r;

	if (!skel)
		return -errno;
	prog = kernel_typed_program(&function);
	r = prog < 0 ? prog : bpf_map__set_max_entries(skel->maps.foreign_packets, 1);
	bpf_object__for_each_program (p, skel->obj)
		if (!r)
			r = bpf_program__set_attach_target(p, prog, function);
	if (!r)
		r = foreign__load(skel);
	if (!r) /* the trampoline is made now */
		r = foreign__attach(skel);
	foreign__destroy(skel);
	return r;
}

static int report_foreign(int (*report)(void *arg, const struct feature_report *f), void *arg)
{
	struct feature_report f = {
		.name = "fexit",
		.cost = "ax xdp dump shows nothing of interfaces whose XDP program is not ax's",
		.needs = "Linux 5.18, BTF, CONFIG_BPF_TRAMPOLINE",
	};

	return report_tried(try_foreign(), &f, "lets nobody watch programs of others", report, arg);
}

static int report_conntrack(int (*report)(void *arg, const struct feature_report *f), void *arg)
{
	struct feature_report f = {
		.name = "conntrack",
		.cost = "rules with state know of what is forwarded by what lists see: ax keeps "
			"the "
			"flows",
		.needs = "Linux 5.18, BTF, nf_conntrack",
	};

	f.on = datapath_xdp_can_ask_conntrack();
	if (!f.on)
		snprintf(f.why, sizeof(f.why),
			 datapath_xdp_has_conntrack()
				 ? "programs cannot ask the kernel's connection tracking"
				 : "the kernel's connection tracking (nf_conntrack) is not there");
	return report(arg, &f);
}

int datapath_xdp_doctor(int (*report)(void *arg, const struct feature_report *f), void *arg)
{
	int r = 0;

	datapath_log_libbpf();
	for (size_t i = 0; i < ARRAY_SIZE(features) && !r; i++) {
		struct feature_report f;

		try_feature(&features[i], &f);
		r = report(arg, &f);
	}
	if (!r)
		r = report_freplace(report, arg);
	if (!r)
		r = report_conntrack(report, arg);
	return r ? r : report_foreign(report, arg);
}
