// SPDX-License-Identifier: GPL-2.0-or-later
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <signal.h>
#include <sys/stat.h>

#include "probes/follow/defaults.h"
#include "probes/follow/follow.h"
#include "probes/btf/few_types.h"
#include "follow_programs.skel.h"

#define PID_NS_FIRST 0xeffffffcu /* PROC_PID_INIT_INO of the kernel */

struct follow {
	struct follow_programs *skel;
	struct ring_buffer *ring;
	size_t n_pids;
	int (*fn)(void *arg, const struct ax_follow_file *file);
	void *arg;
};

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

/* --- loading --- */

static int find_namespace(uint32_t *ret, struct error *e)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st))
		return error_set(e, -errno,
				 "/proc/self/ns/pid, which tells processes apart, cannot be "
				 "looked at: %s; mount /proc",
				 strerror(errno));
	*ret = (uint32_t)st.st_ino;
	return 0;
}

static void configure(struct follow *f, const struct follow_options *o, uint32_t pidns)
{
	struct follow_programs *s = f->skel;

	*(struct ax_follow_config *)&s->rodata->follow = (struct ax_follow_config){
		.scope = o->scope,
		.pidns = pidns,
		.children = o->children,
		.all = !o->n_pids,
	};
	bpf_program__set_autoload(s->progs.ax_follow_fork, o->n_pids && o->children);
	bpf_program__set_autoload(s->progs.ax_follow_exit, o->n_pids);
	bpf_program__set_autoload(s->progs.ax_follow_seed, o->n_pids);
	bpf_program__set_autoattach(s->progs.ax_follow_seed, false);
	bpf_program__set_autoload(s->progs.ax_follow_exec, o->files);
	bpf_program__set_autoload(s->progs.ax_follow_mapped, o->files);
	if (o->n_pids)
		bpf_map__set_max_entries(s->maps.named, (uint32_t)o->n_pids);
	if (o->files)
		bpf_map__set_max_entries(s->maps.files, FOLLOW_FILES);
}

static int on_told(void *ctx, void *data, size_t size)
{
	struct follow *f = ctx;

	return size < sizeof(struct ax_follow_file) ? 0 : f->fn(f->arg, data);
}

static int name_processes(struct follow *f, const struct follow_options *o)
{
	uint32_t one = 1;
	int r = 0;

	for (size_t i = 0; r == 0 && i < o->n_pids; i++)
		r = bpf_map_update_elem(bpf_map__fd(f->skel->maps.named), &o->pids[i], &one,
					BPF_ANY);
	return r;
}

static int load(struct follow *f, const struct follow_options *o)
{
	libbpf_print_fn_t print = libbpf_set_print(quiet);
	int r = follow_programs__load(f->skel);

	libbpf_set_print(print);
	if (r == 0)
		r = name_processes(f, o);
	if (r == 0 && o->files) {
		f->ring = ring_buffer__new(bpf_map__fd(f->skel->maps.told), on_told, f, NULL);
		r = f->ring ? 0 : -errno;
	}
	return r;
}

int follow_open(const struct follow_options *o, struct follow **ret, struct error *e)
{
	CLEANUP(follow_closep) struct follow *f = calloc(1, sizeof(*f));
	CLEANUP(few_types_close) struct few_types types = FEW_TYPES_NONE;
	LIBBPF_OPTS(bpf_object_open_opts, opts);
	uint32_t pidns = 0;
	int r = find_namespace(&pidns, e);

	if (r < 0)
		return r;
	if (!f)
		return error_set(e, -ENOMEM, "out of memory");
	f->n_pids = o->n_pids;
	opts.btf_custom_path = few_types_path(follow_programs__elf_bytes, &types);
	f->skel = follow_programs__open_opts(&opts);
	if (!f->skel)
		return error_set(e, -errno,
				 "the programs that follow processes cannot be opened: %s",
				 strerror(errno));
	configure(f, o, pidns);
	r = load(f, o);
	if (r == -EPERM)
		return error_set(e, r,
				 "loading the programs that follow processes is not permitted: "
				 "run ax as root (or with CAP_BPF and CAP_PERFMON)");
	if (r < 0)
		return error_set(e, r,
				 "the kernel refused the programs that follow processes: %s (they "
				 "need Linux 6.1 with its type information, "
				 "CONFIG_DEBUG_INFO_BTF)",
				 strerror(-r));
	*ret = take_ptr(&f);
	return 0;
}

void follow_close(struct follow *f)
{
	ring_buffer__free(f->ring);
	if (f->skel)
		follow_programs__destroy(f->skel);
	free(f);
}

/* --- attaching --- */

static int read_to_end(int fd)
{
	char buf[64];
	ssize_t n;

	do
		n = read(fd, buf, sizeof(buf));
	while (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
	return n < 0 ? -errno : 0;
}

/* In the first pid namespace the numbers are those of the map; and a kernel may keep a process from
 * its iterators, such as the first one of a sandbox. */
static int seed_named(struct follow *f)
{
	int named = bpf_map__fd(f->skel->maps.named), tree = bpf_map__fd(f->skel->maps.tree);
	uint32_t pid, *last = NULL;
	int r = 0;

	if (f->skel->rodata->follow.pidns != PID_NS_FIRST)
		return 0;
	for (size_t i = 0; r == 0 && i < f->n_pids; i++) {
		if (bpf_map_get_next_key(named, last, &pid))
			return 0;
		last = &pid;
		r = bpf_map_update_elem(tree, &pid, &pid, BPF_ANY);
		/* whose end has been told before */
		if (r == 0 && kill((pid_t)pid, 0) && errno == ESRCH)
			bpf_map_delete_elem(tree, &pid);
	}
	return r;
}

/* A child may have a lower number than its parent, so that one look does not find it. */
static int seed(struct follow *f)
{
	struct bpf_link *link = bpf_program__attach_iter(f->skel->progs.ax_follow_seed, NULL);
	int r = link ? 0 : -errno;

	do {
		autoclose int fd = r == 0 ? bpf_iter_create(bpf_link__fd(link)) : -1;

		f->skel->bss->added = 0;
		if (r == 0)
			r = fd < 0 ? -errno : read_to_end(fd);
	} while (r == 0 && f->skel->bss->added);
	bpf_link__destroy(link);
	return r;
}

static int count_named(void *arg, int pid)
{
	const struct follow *f = arg;
	uint32_t key = (uint32_t)pid, one;

	return bpf_map_lookup_elem(bpf_map__fd(f->skel->maps.named), &key, &one) ? 0 : 1;
}

int follow_attach(struct follow *f, struct error *e)
{
	libbpf_print_fn_t print = libbpf_set_print(quiet);
	int r = follow_programs__attach(f->skel);

	/* after new ones are seen, so that none is left out */
	if (r == 0)
		r = seed_named(f);
	if (r == 0 && f->n_pids)
		r = seed(f);
	libbpf_set_print(print);
	if (r < 0)
		return error_set(e, r, "processes cannot be followed: %s", strerror(-r));
	if (f->n_pids && !follow_each(f, count_named, f))
		return error_set(e, -ESRCH, "none of the processes to follow is there any more");
	return 0;
}

int follow_tree(const struct follow *f)
{
	return f->n_pids ? bpf_map__fd(f->skel->maps.tree) : -1;
}

int follow_each(const struct follow *f, int (*fn)(void *arg, int pid), void *arg)
{
	int fd = bpf_map__fd(f->skel->maps.tree), r = 0;
	uint32_t key, number, *last = NULL;

	for (size_t i = 0; r == 0 && i < FOLLOW_PROCESSES; i++) {
		if (bpf_map_get_next_key(fd, last, &key))
			return 0;
		last = &key;
		if (bpf_map_lookup_elem(fd, &key, &number) == 0 && number)
			r = fn(arg, (int)number);
	}
	return r;
}

/* --- files --- */

int follow_fd(const struct follow *f)
{
	return f->ring ? ring_buffer__epoll_fd(f->ring) : -1;
}

int follow_files(struct follow *f, int (*fn)(void *arg, const struct ax_follow_file *file),
		 void *arg)
{
	if (!f->ring)
		return 0;
	f->fn = fn;
	f->arg = arg;
	return ring_buffer__consume(f->ring);
}

void follow_forget(const struct follow *f, const struct ax_follow_file *file)
{
	bpf_map_delete_elem(bpf_map__fd(f->skel->maps.files), &file->key);
}

uint64_t follow_counter(const struct follow *f, enum ax_follow_counter which)
{
	uint32_t key = which;
	uint64_t n = 0;

	return bpf_map_lookup_elem(bpf_map__fd(f->skel->maps.follow_counters), &key, &n) ? 0 : n;
}
