// SPDX-License-Identifier: GPL-2.0-or-later
/* Loading foreign.bpf.c, which watches programs of others. */
#include <linux/perf_event.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "datapath/priv.h"
#include "datapath/xdp_datapath.h"
#include "datapath/xdp_priv.h"
#include "foreign.skel.h"

/* Of what the kernel calls a record of perf's. */
struct sample {
	struct perf_event_header header;
	uint32_t size;
	uint8_t data[];
};

static enum bpf_perf_event_ret on_event(void *arg, int cpu, struct perf_event_header *header)
{
	const struct datapath_foreign *t = arg;
	struct sample *s = (struct sample *)header;

	(void)cpu;
	/* those that found no room are counted by who wrote them */
	if (header->type != PERF_RECORD_SAMPLE || header->size < sizeof(*s))
		return LIBBPF_PERF_EVENT_CONT;
	return t->f(t->arg, s->data, s->size) < 0 ? LIBBPF_PERF_EVENT_ERROR
						  : LIBBPF_PERF_EVENT_CONT;
}

/* No reader is woken: it looks often enough. */
static int open_ring(struct datapath_foreign *t, uint32_t bytes)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_type = PERF_SAMPLE_RAW,
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX,
	};
	size_t pages = 64, each = bytes / t->cpus / (size_t)getpagesize();

	while (pages * 2 <= each)
		pages *= 2;
	t->packets = perf_buffer__new_raw(bpf_map__fd(t->maps->maps.foreign_packets), pages, &attr,
					  on_event, t, NULL);
	return t->packets ? 0 : -errno;
}

/* --- which function --- */

/* The name of a program's first function, as its types have it. */
static int function_of(int prog, char *ret, size_t size)
{
	struct bpf_func_info first = {0};
	struct bpf_prog_info info = {.nr_func_info = 1,
				     .func_info_rec_size = sizeof(first),
				     .func_info = (uintptr_t)&first};
	uint32_t len = sizeof(info);
	const struct btf_type *type;
	const char *name = NULL;
	struct btf *btf;

	if (bpf_obj_get_info_by_fd(prog, &info, &len) < 0)
		return -errno;
	if (!info.btf_id || !info.nr_func_info || !first.type_id)
		return -ENODATA;
	btf = btf__load_from_kernel_by_id(info.btf_id);
	if (!btf)
		return -errno;
	type = btf__type_by_id(btf, first.type_id);
	if (type)
		name = btf__name_by_offset(btf, type->name_off);
	snprintf(ret, size, "%s", name ? name : "");
	btf__free(btf);
	return ret[0] ? 0 : -ENODATA;
}

/* --- watching --- */

/* These alone are to be loaded, on that program. */
static int aim(struct foreign *skel, struct bpf_program *const *wanted, size_t n, int prog)
{
	char function[512];
	struct bpf_program *p;
	int r = function_of(prog, function, sizeof(function));

	bpf_object__for_each_program (p, skel->obj)
		bpf_program__set_autoload(p, false);
	for (size_t i = 0; i < n && !r; i++) {
		bpf_program__set_autoload(wanted[i], true);
		r = bpf_program__set_attach_target(wanted[i], prog, function);
	}
	return r;
}

static int share(struct foreign *skel, const struct foreign *maps)
{
	int r = bpf_map__reuse_fd(skel->maps.foreign_packets,
				  bpf_map__fd(maps->maps.foreign_packets));

	if (!r)
		r = bpf_map__reuse_fd(skel->maps.foreign_counts,
				      bpf_map__fd(maps->maps.foreign_counts));
	if (!r)
		r = bpf_map__reuse_fd(skel->maps.foreign_inside,
				      bpf_map__fd(maps->maps.foreign_inside));
	if (!r)
		r = bpf_map__reuse_fd(skel->maps.foreign_sample,
				      bpf_map__fd(maps->maps.foreign_sample));
	return r;
}

static int attach(struct bpf_program *p, struct bpf_link **link)
{
	*link = bpf_program__attach(p);
	return *link ? 0 : -errno;
}

static int watch_main(const struct datapath_foreign *t, struct foreign *skel, int prog)
{
	struct bpf_program *const both[] = {skel->progs.ax_came, skel->progs.ax_went};
	int r = aim(skel, both, ARRAY_SIZE(both), prog);

	if (!r)
		r = share(skel, t->maps);
	if (!r)
		r = foreign__load(skel);
	/* what ends without having begun is not told of, what begins would wait for its end */
	if (!r)
		r = attach(skel->progs.ax_went, &skel->links.ax_went);
	if (!r)
		r = attach(skel->progs.ax_came, &skel->links.ax_came);
	return r;
}

static int watch_part(const struct datapath_foreign *t, struct foreign *skel, uint32_t id)
{
	autoclose int prog = bpf_prog_get_fd_by_id(id);
	int r = prog < 0 ? -errno : aim(skel, &skel->progs.ax_ran, 1, prog);

	if (!r)
		r = share(skel, t->maps);
	if (!r)
		r = foreign__load(skel);
	return r ? r : attach(skel->progs.ax_ran, &skel->links.ax_ran);
}

static struct foreign *open_skeleton(const struct ax_foreign_options *o)
{
	struct foreign *skel = foreign__open();

	if (skel)
		memcpy((void *)(uintptr_t)&skel->rodata->foreign, o, sizeof(*o));
	return skel;
}

static void watch_parts(struct datapath_foreign *t, const struct ax_foreign_options *all,
			const uint32_t *ids, size_t n)
{
	for (size_t i = 0; i < n && t->n_parts < PARTS_MAX; i++) {
		struct ax_foreign_options o = *all;
		struct foreign *skel;

		o.place = (uint8_t)(i + 1);
		skel = open_skeleton(&o);
		if (skel && !watch_part(t, skel, ids[i]))
			t->parts[t->n_parts++] = take_ptr(&skel);
		if (skel)
			foreign__destroy(skel);
	}
}

static void leave_parts(struct datapath_foreign *t)
{
	while (t->n_parts)
		foreign__destroy(t->parts[--t->n_parts]);
}

int datapath_foreign_watch(struct datapath_foreign *t, int prog, const uint32_t *parts, size_t n)
{
	struct ax_foreign_options o = t->options;
	struct foreign *skel;
	int r;

	o.target++;
	skel = open_skeleton(&o);
	if (!skel)
		return -errno;
	r = watch_main(t, skel, prog);
	if (r) {
		foreign__destroy(skel);
		return r;
	}
	leave_parts(t);
	if (t->on)
		foreign__destroy(t->on);
	t->on = skel;
	t->options = o;
	watch_parts(t, &o, parts, n);
	return 0;
}

/* --- from the first to the last packet --- */

static int make_maps(struct datapath_foreign *t)
{
	struct bpf_program *p;
	int r;

	t->maps = foreign__open();
	if (!t->maps)
		return -errno;
	bpf_object__for_each_program (p, t->maps->obj)
		bpf_program__set_autoload(p, false);
	r = bpf_map__set_max_entries(t->maps->maps.foreign_packets, (uint32_t)t->cpus);
	return r ? r : foreign__load(t->maps);
}

int datapath_foreign_open(const struct ax_foreign_options *o, uint32_t ring,
			  int (*f)(void *arg, void *record, size_t size), void *arg,
			  struct datapath_foreign *t, struct error *e)
{
	int cpus = libbpf_num_possible_cpus(), r = cpus < 0 ? cpus : 0;

	datapath_log_libbpf();
	*t = (struct datapath_foreign){.options = *o, .cpus = (size_t)cpus, .f = f, .arg = arg};
	if (!r)
		r = make_maps(t);
	if (!r)
		r = open_ring(t, ring);
	if (!r)
		return 0;
	datapath_foreign_close(t);
	return error_set(e, r, "the kernel gives no room for packets: %s%s", strerror(-r),
			 r == -EPERM ? "; run as root" : "");
}

void datapath_foreign_close(struct datapath_foreign *t)
{
	leave_parts(t);
	if (t->on)
		foreign__destroy(t->on);
	perf_buffer__free(t->packets);
	if (t->maps)
		foreign__destroy(t->maps);
	*t = (struct datapath_foreign){0};
}

int datapath_foreign_read(const struct datapath_foreign *t)
{
	return perf_buffer__consume(t->packets);
}

int datapath_foreign_sample(const struct datapath_foreign *t, uint32_t n)
{
	uint32_t key = 0;

	return bpf_map_update_elem(bpf_map__fd(t->maps->maps.foreign_sample), &key, &n, BPF_ANY)
		       ? -errno
		       : 0;
}

int datapath_foreign_count(const struct datapath_foreign *t, struct ax_tap_count *ret)
{
	return tap_count(bpf_map__fd(t->maps->maps.foreign_counts), t->cpus, ret);
}
