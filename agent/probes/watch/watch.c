// SPDX-License-Identifier: GPL-2.0-or-later
/* Loading the programs of ready commands, and reading what they tell. */
#include "probes/follow/follow.h"
#include "probes/watch/priv.h"

struct watch {
	struct watch_parts parts;
	struct follow *follow; /* NULL: all processes */
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

libbpf_print_fn_t watch_quiet(void)
{
	return libbpf_set_print(quiet);
}

struct bpf_object *watch_object(const struct watch *w)
{
	return *w->parts.skeleton->obj;
}

void *watch_skeleton(struct watch *w)
{
	return w->parts.skel;
}

/* --- loading --- */

int watch_not_opened(const char *command, struct error *e)
{
	return error_set(e, -errno, "the programs of ax trace %s cannot be opened: %s", command,
			 strerror(errno));
}

void watch_parts_destroy(const struct watch_parts *p)
{
	if (p->destroy) {
		p->destroy(p->skel);
		return;
	}
	bpf_object__destroy_skeleton(p->skeleton);
	free(p->skel);
}

static void configure(struct watch *w, const struct watch_options *o)
{
	*w->parts.config = (struct ax_watch_config){
		.scope = o->scope,
		.app_level = o->apps ? o->apps_level + 1 : 0,
		.apps = o->apps,
		.tree = o->n_pids != 0,
	};
}

/* Whom it is about is known to others' programs. */
static int follow(struct watch *w, const struct watch_options *o, struct error *e)
{
	struct follow_options f = {.pids = o->pids, .n_pids = o->n_pids, .children = !o->alone};
	int r = o->n_pids ? follow_open(&f, &w->follow, e) : 0;

	if (r == 0 && w->follow)
		r = bpf_map__reuse_fd(bpf_object__find_map_by_name(watch_object(w), "tree"),
				      follow_tree(w->follow));
	return r;
}

static int load(struct watch *w)
{
	libbpf_print_fn_t print = watch_quiet();
	int r = bpf_object__load_skeleton(w->parts.skeleton);

	libbpf_set_print(print);
	if (r < 0)
		return r;
	w->counters = bpf_object__find_map_fd_by_name(watch_object(w), "watch_counters");
	return bpf_object__find_map_fd_by_name(watch_object(w), "records");
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
		watch_parts_destroy(p);
		return error_set(e, -ENOMEM, "out of memory");
	}
	w->parts = *p;
	configure(w, o);
	r = follow(w, o, e);
	if (r < 0) {
		watch_free(w);
		return r;
	}
	r = load(w);
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
	libbpf_print_fn_t print = watch_quiet();
	int r = bpf_object__attach_skeleton(w->parts.skeleton);

	libbpf_set_print(print);
	if (r < 0)
		return error_set(e, r, "the tracing programs cannot be attached: %s", strerror(-r));
	w->attached = true;
	r = w->parts.attach ? w->parts.attach(w->parts.skel, e) : 0;
	if (r < 0)
		return r;
	/* behind the others, who are to know at the end of a process that it was followed */
	return w->follow ? follow_attach(w->follow, e) : 0;
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
	if (w->attached && w->parts.detach)
		w->parts.detach(w->parts.skel);
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
	if (w->attached && w->parts.detach)
		w->parts.detach(w->parts.skel);
	watch_parts_destroy(&w->parts);
	if (w->follow)
		follow_close(w->follow);
	free(w);
}

/* --- tables --- */

int watch_map(const struct watch *w, const char *name)
{
	return bpf_object__find_map_fd_by_name(watch_object(w), name);
}

/* A key that goes while it is the last one seen would have the kernel begin again, so this is for
 * tables in which nothing is deleted meanwhile. */
int watch_each(const struct watch *w, const char *map,
	       int (*f)(void *arg, const void *key, const void *value), void *arg)
{
	struct bpf_map *m = bpf_object__find_map_by_name(watch_object(w), map);
	autofree uint8_t *v = NULL;
	uint32_t key_size, value_size;
	const void *last = NULL;
	int fd, r = 0;

	if (!m)
		return -ENOENT;
	fd = bpf_map__fd(m);
	key_size = bpf_map__key_size(m);
	value_size = bpf_map__value_size(m);
	v = malloc(2 * (((size_t)key_size + 7) & ~(size_t)7) + value_size);
	if (!v)
		return -ENOMEM;
	while (r >= 0 && bpf_map_get_next_key(fd, last, v) == 0) {
		uint8_t *value = v + 2 * ((key_size + 7) & ~7u);

		if (bpf_map_lookup_elem(fd, v, value) == 0)
			r = f(arg, v, value);
		memcpy(v + key_size, v, key_size);
		last = v + key_size;
	}
	return r;
}

/* --- totals --- */

uint64_t watch_counter(const struct watch *w, enum ax_watch_counter counter)
{
	uint32_t which = counter;
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

	bpf_object__for_each_program (p, watch_object(w)) {
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
		.emitted = watch_counter(w, AX_WATCH_EMITTED),
		.dropped = watch_counter(w, AX_WATCH_DROPPED),
		.cut = watch_counter(w, AX_WATCH_CUT),
		.missed = missed(w),
		.unfollowed = watch_counter(w, AX_WATCH_UNFOLLOWED),
	};
	if (w->follow)
		ret->unfollowed += follow_counter(w->follow, AX_FOLLOW_LOST);
}
