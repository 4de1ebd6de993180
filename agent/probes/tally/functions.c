// SPDX-License-Identifier: GPL-2.0-or-later
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "probes/engine/link.h"
#include "probes/place/place.h"
#include "probes/tally/functions.h"

#define OUT_OF_MEMORY "out of memory"

struct site {
	char *path;
	dev_t dev; /* several paths may lead to one file */
	ino_t ino;
	uint64_t offset;
	uint32_t cookie;
	bool only_entry;
};

struct functions {
	struct watch_parts watch;
	struct bpf_program *enter, *leave;
	int pid; /* only this process, whatever it starts; 0: all */
	struct site *v;
	size_t n, max;
	/* of what is attached */
	int *fds;
	size_t n_fds;
	struct bpf_link **links;
	size_t n_links;
};

/* --- finding --- */

struct finding {
	struct functions *f;
	struct binary *b;
	const struct function_wanted *wanted;
	int found;
};

static bool is_there(const struct functions *f, const struct stat *st, uint64_t offset)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].offset == offset && f->v[i].ino == st->st_ino &&
		    f->v[i].dev == st->st_dev)
			return true;
	return false;
}

static int add_site(struct functions *f, const char *path, uint64_t offset,
		    const struct function_wanted *w)
{
	struct stat st;
	char *copy;

	if (stat(path, &st) < 0 || is_there(f, &st, offset))
		return 0;
	if (f->n == f->max) {
		size_t max = f->max ? 2 * f->max : 16;
		struct site *v = realloc(f->v, max * sizeof(*v));

		if (!v)
			return -ENOMEM;
		f->v = v;
		f->max = max;
	}
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	f->v[f->n++] = (struct site){.path = copy,
				     .dev = st.st_dev,
				     .ino = st.st_ino,
				     .offset = offset,
				     .cookie = w->cookie,
				     .only_entry = w->only_entry};
	return 0;
}

/* Two names may be of one function. */
static int on_symbol(void *arg, const struct symbol *s)
{
	struct finding *find = arg;
	const char *path = binary_path(find->b);
	struct error ignored = {0};
	struct place place;

	if (binary_place(find->b, s, s->offset, false, &place, &ignored) < 0 ||
	    place.cost == PLACE_REFUSED)
		return 0;
	find->found++;
	return add_site(find->f, path, place.offset, find->wanted);
}

/* Adds those that a file has. Their number, 0: it has none of them; below 0: it cannot be read. */
static int add_file(struct functions *f, const char *file, int pid,
		    const struct function_wanted *wanted, struct error *e)
{
	struct finding find = {.f = f};
	struct binary *b CLEANUP(binary_closep) = NULL;
	int r = binary_open(file, pid, &b, e);

	find.b = b;
	for (; r >= 0 && wanted->name; wanted++) {
		struct error ignored = {0};

		find.wanted = wanted;
		if (binary_functions(b, wanted->name, on_symbol, &find, &ignored) == -ENOMEM)
			r = error_set(e, -ENOMEM, OUT_OF_MEMORY);
	}
	return r < 0 ? r : find.found;
}

/* As one process sees them; 0: as a program that is started does. */
static int find_of(struct functions *f, const struct functions_parts *p, int pid, struct error *e)
{
	struct error ignored = {0};

	for (size_t i = 0; i < p->files->n; i++) {
		int n = add_file(f, p->files->v[i], pid, p->wanted, e);

		if (n < 0)
			return n;
		if (!n)
			return error_set(e, -ENOENT, "%.200s has none of the functions that %s",
					 p->files->v[i], p->what);
	}
	for (const char *const *l = p->libraries; !p->files->n && *l; l++)
		if (**l || pid)
			add_file(f, *l, pid, p->wanted, &ignored);
	return 0;
}

static int find(struct functions *f, const struct functions_parts *p, const struct watch_options *o,
		struct error *e)
{
	int r = p->of_pids ? 0 : find_of(f, p, 0, e);

	for (size_t i = 0; r == 0 && p->of_pids && i < o->n_pids; i++)
		r = find_of(f, p, (int)o->pids[i], e);
	if (r < 0)
		return r;
	return f->n ? 0
		    : error_set(e, -ENOENT,
				"no functions that %s are found: name the file that has them by "
				"--library",
				p->what);
}

/* --- attaching --- */

/* Before it is loaded. */
static void prepare(struct bpf_program *program)
{
	bpf_program__set_autoattach(program, false);
	if (link_has_uprobe_multi())
		bpf_program__set_expected_attach_type(program,
						      (enum bpf_attach_type)LINK_UPROBE_MULTI);
}

/* While the file is mapped executable, the kernel refuses instructions that it cannot probe, and
 * does not only leave them out. */
struct mapped {
	void *at;
	size_t len;
};

static struct mapped map_file(const char *path)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct mapped m = {.at = MAP_FAILED};
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0)
		return m;
	m.len = (size_t)st.st_size;
	m.at = mmap(NULL, m.len, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	return m;
}

static void unmap_file(struct mapped *m)
{
	if (m->at != MAP_FAILED)
		munmap(m->at, m->len);
}

static int failed(const char *path, int r, struct error *e)
{
	return error_set(e, r, "attaching to functions of %.200s failed: %s", path, strerror(-r));
}

/* All of one file that are to be seen there. */
static int attach_multi(struct functions *f, const char *path, int prog, bool returns, int pid,
			struct error *e)
{
	autofree uint64_t *v = calloc(2 * f->n, sizeof(*v));
	struct link_uprobes u = {.path = path, .offsets = v, .is_return = returns, .pid = pid};
	int fd;

	if (!v)
		return error_set(e, -ENOMEM, OUT_OF_MEMORY);
	u.cookies = v + f->n;
	for (size_t i = 0; i < f->n; i++) {
		if (!streq(f->v[i].path, path) || (returns && f->v[i].only_entry))
			continue;
		v[u.n] = f->v[i].offset;
		v[f->n + u.n++] = f->v[i].cookie;
	}
	if (!u.n)
		return 0;
	fd = link_uprobes(prog, &u);
	if (fd < 0)
		return failed(path, fd, e);
	f->fds[f->n_fds++] = fd;
	return 0;
}

static int attach_single(struct functions *f, const char *path, const struct bpf_program *prog,
			 bool returns, struct error *e)
{
	for (size_t i = 0; i < f->n; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = f->v[i].cookie,
			    .retprobe = returns);
		struct bpf_link *link;

		if (!streq(f->v[i].path, path) || (returns && f->v[i].only_entry))
			continue;
		link = bpf_program__attach_uprobe_opts(prog, -1, path, f->v[i].offset, &opts);
		if (!link)
			return failed(path, -errno, e);
		f->links[f->n_links++] = link;
	}
	return 0;
}

static bool is_first_of_path(const struct functions *f, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (streq(f->v[j].path, f->v[i].path))
			return false;
	return true;
}

static int attach_all(struct functions *f, const struct bpf_program *prog, bool returns, int pid,
		      struct error *e)
{
	bool multi = link_has_uprobe_multi();
	int r = 0;

	for (size_t i = 0; r == 0 && i < f->n; i++) {
		struct mapped m;

		if (!is_first_of_path(f, i))
			continue;
		m = map_file(f->v[i].path);
		r = multi ? attach_multi(f, f->v[i].path, bpf_program__fd(prog), returns, pid, e)
			  : attach_single(f, f->v[i].path, prog, returns, e);
		unmap_file(&m);
	}
	return r;
}

/* Returns first: so no entry is seen whose return is not. */
static int attach(void *arg, struct error *e)
{
	struct functions *f = arg;
	int pid = link_has_uprobe_pid() ? f->pid : 0, r;

	f->fds = calloc(2 * f->n + 1, sizeof(*f->fds));
	f->links = calloc(2 * f->n + 1, sizeof(struct bpf_link *));
	if (!f->fds || !f->links)
		return error_set(e, -ENOMEM, OUT_OF_MEMORY);
	r = attach_all(f, f->leave, true, pid, e);
	return r < 0 ? r : attach_all(f, f->enter, false, pid, e);
}

/* The last ones, on entries, first. */
static void close_all(void *arg)
{
	struct functions *f = arg;

	while (f->n_fds)
		close(f->fds[--f->n_fds]);
	while (f->n_links)
		bpf_link__destroy(f->links[--f->n_links]);
}

static void detach(void *arg)
{
	struct functions *f = arg;

	if (f->n_fds || f->n_links)
		link_close_apart(close_all, f);
}

/* --- the whole --- */

static void destroy(void *arg)
{
	struct functions *f = arg;

	detach(f);
	for (size_t i = 0; i < f->n; i++)
		free(f->v[i].path);
	free(f->v);
	free(f->fds);
	free(f->links);
	watch_parts_destroy(&f->watch);
	free(f);
}

int functions_load(const struct functions_parts *p, const struct watch_options *o,
		   struct watch **ret, struct error *e)
{
	struct functions *f = calloc(1, sizeof(*f));
	struct watch_parts parts = p->watch;
	int r;

	if (!f) {
		watch_parts_destroy(&p->watch);
		return error_set(e, -ENOMEM, OUT_OF_MEMORY);
	}
	f->watch = p->watch;
	f->enter = p->enter;
	f->leave = p->leave;
	f->pid = o->alone && o->n_pids == 1 ? (int)o->pids[0] : 0;
	r = find(f, p, o, e);
	if (r < 0) {
		destroy(f);
		return r;
	}
	prepare(f->enter);
	prepare(f->leave);
	parts.skel = f;
	parts.destroy = destroy;
	parts.attach = attach;
	parts.detach = detach;
	return watch_load(&parts, o, ret, e);
}
