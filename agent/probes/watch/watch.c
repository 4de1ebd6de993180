// SPDX-License-Identifier: GPL-2.0-or-later
/* Loading the programs of ready commands, and reading what they tell. */
#include <dirent.h>

#include "probes/watch/priv.h"

struct watch {
	struct watch_parts parts;
	struct ring_buffer *ring;
	int counters;
	int (*f)(void *arg, const void *record, size_t len);
	void *arg;
	bool attached;
};

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

struct bpf_object *watch_object(struct watch *w)
{
	return w->parts.obj;
}

/* --- the process and those that it has started already --- */

struct family {
	uint32_t *pids, *parents;
	size_t n, size;
};

static int family_add(struct family *f, uint32_t pid, uint32_t parent)
{
	if (f->n == f->size) {
		size_t size = f->size ? 2 * f->size : 256;
		uint32_t *pids = realloc(f->pids, size * sizeof(*pids)), *parents;

		if (!pids)
			return -ENOMEM;
		f->pids = pids;
		parents = realloc(f->parents, size * sizeof(*parents));
		if (!parents)
			return -ENOMEM;
		f->parents = parents;
		f->size = size;
	}
	f->pids[f->n] = pid;
	f->parents[f->n++] = parent;
	return 0;
}

/* 0: the process has gone. */
static uint32_t parent_of(const char *pid)
{
	autofree char *text = NULL;
	char path[64];
	const char *end;
	unsigned parent = 0;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	if (file_read(path, 4096, &text) < 0)
		return 0;
	end = strrchr(text, ')'); /* the name before it may have anything in it */
	return end && sscanf(end, ") %*c %u", &parent) == 1 ? parent : 0;
}

static int read_family(struct family *f)
{
	DIR *d = opendir("/proc");
	struct dirent *de;
	int r = 0;

	if (!d)
		return -errno;
	while (r == 0 && (de = readdir(d)))
		if (de->d_name[0] >= '1' && de->d_name[0] <= '9')
			r = family_add(f, (uint32_t)strtoul(de->d_name, NULL, 10),
				       parent_of(de->d_name));
	closedir(d);
	return r;
}

static int add_descendants(int map, uint32_t pid, uint32_t one)
{
	struct family f = {0};
	bool more = true;
	int r = read_family(&f);

	while (r == 0 && more) {
		more = false;
		for (size_t i = 0; r == 0 && i < f.n; i++) {
			uint32_t value;

			if (f.pids[i] == pid || bpf_map_lookup_elem(map, &f.pids[i], &value) == 0 ||
			    bpf_map_lookup_elem(map, &f.parents[i], &value) < 0)
				continue;
			r = bpf_map_update_elem(map, &f.pids[i], &one, BPF_ANY);
			more = true;
		}
	}
	free(f.pids);
	free(f.parents);
	return r;
}

static struct bpf_program *find_program(struct watch *w, const char *name)
{
	return bpf_object__find_program_by_name(w->parts.obj, name);
}

/* --- loading --- */

static void configure(struct watch *w, const struct watch_options *o)
{
	*w->parts.config = (struct ax_watch_config){
		.cgroup = o->cgroup,
		.cgroup_level = o->cgroup_level,
		.app_level = o->apps ? o->apps_level + 1 : 0,
		.apps = o->apps,
		.tree = o->pid != 0,
	};
	bpf_program__set_autoload(find_program(w, "ax_watch_fork"), o->pid && !o->alone);
	bpf_program__set_autoload(find_program(w, "ax_watch_gone"), o->pid != 0);
}

static int load(struct watch *w, const struct watch_options *o)
{
	libbpf_print_fn_t print = libbpf_set_print(quiet);
	int r = bpf_object__load_skeleton(w->parts.skeleton), records;
	uint32_t pid = (uint32_t)o->pid, one = 1;

	libbpf_set_print(print);
	if (r < 0)
		return r;
	w->counters = bpf_object__find_map_fd_by_name(w->parts.obj, "watch_counters");
	records = bpf_object__find_map_fd_by_name(w->parts.obj, "records");
	if (pid)
		r = bpf_map_update_elem(bpf_object__find_map_fd_by_name(w->parts.obj, "tree"), &pid,
					&one, BPF_ANY);
	return r < 0 ? r : records;
}

static int on_record(void *ctx, void *data, size_t size)
{
	struct watch *w = ctx;

	return w->f(w->arg, data, size);
}

int watch_load(const struct watch_parts *p, const struct watch_options *o, struct watch **ret,
	       struct error *e)
{
	struct watch *w = calloc(1, sizeof(*w));
	int r;

	if (!w) {
		p->destroy(p->skel);
		return error_set(e, -ENOMEM, "out of memory");
	}
	w->parts = *p;
	configure(w, o);
	r = load(w, o);
	if (r >= 0) {
		w->ring = ring_buffer__new(r, on_record, w, NULL);
		r = w->ring ? 0 : -errno;
	}
	if (r == 0) {
		*ret = w;
		return 0;
	}
	watch_free(w);
	if (r == -EPERM)
		return error_set(e, r,
				 "loading the tracing programs is not permitted: run ax as root "
				 "(or with CAP_BPF and CAP_PERFMON)");
	return error_set(e, r,
			 "the kernel refused the tracing programs: %s (they need Linux 6.1 with "
			 "its type information, CONFIG_DEBUG_INFO_BTF)",
			 strerror(-r));
}

int watch_attach(struct watch *w, struct error *e)
{
	libbpf_print_fn_t print = libbpf_set_print(quiet);
	struct bpf_program *fork = find_program(w, "ax_watch_fork");
	uint32_t one = 1, pid = 0;
	int r = bpf_object__attach_skeleton(w->parts.skeleton), map;

	libbpf_set_print(print);
	if (r < 0)
		return error_set(e, r, "the tracing programs cannot be attached: %s", strerror(-r));
	w->attached = true;
	/* after new ones are seen, so that none is left out */
	map = bpf_object__find_map_fd_by_name(w->parts.obj, "tree");
	if (bpf_program__autoload(fork) && bpf_map_get_next_key(map, NULL, &pid) == 0)
		r = add_descendants(map, pid, one);
	return r < 0 ? error_set(e, r, "the processes cannot be listed: %s", strerror(-r)) : 0;
}

int watch_fd(const struct watch *w)
{
	return ring_buffer__epoll_fd(w->ring);
}

int watch_records(struct watch *w, int (*f)(void *arg, const void *record, size_t len), void *arg)
{
	w->f = f;
	w->arg = arg;
	return ring_buffer__consume(w->ring);
}

void watch_detach(struct watch *w)
{
	if (w->attached)
		bpf_object__detach_skeleton(w->parts.skeleton);
	w->attached = false;
	usleep(1000); /* a program that is running now has the time to end */
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	ring_buffer__free(w->ring);
	w->parts.destroy(w->parts.skel);
	free(w);
}

/* --- totals --- */

static uint64_t counter(const struct watch *w, uint32_t which)
{
	int n = libbpf_num_possible_cpus();
	autofree uint64_t *v = n > 0 ? calloc((size_t)n, sizeof(*v)) : NULL;
	uint64_t sum = 0;

	if (!v || bpf_map_lookup_elem(w->counters, &which, v) < 0)
		return 0;
	for (int i = 0; i < n; i++)
		sum += v[i];
	return sum;
}

static uint64_t missed(const struct watch *w)
{
	struct bpf_program *p;
	uint64_t sum = 0;

	bpf_object__for_each_program (p, w->parts.obj) {
		struct bpf_prog_info info = {0};
		uint32_t len = sizeof(info);

		if (bpf_program__fd(p) >= 0 &&
		    bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &len) == 0)
			sum += info.recursion_misses;
	}
	return sum;
}

void watch_totals(struct watch *w, struct watch_totals *ret)
{
	*ret = (struct watch_totals){
		.emitted = counter(w, AX_WATCH_EMITTED),
		.dropped = counter(w, AX_WATCH_DROPPED),
		.cut = counter(w, AX_WATCH_CUT),
		.missed = missed(w),
	};
}
