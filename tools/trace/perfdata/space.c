// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory of processes as perf's events tell of it. */
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "probes/elf/binary.h"
#include "probes/jit/jitdump.h"
#include "tools/trace/perfdata/space.h"

#define BLOCK	   65536u
#define EVENTS_MAX (1u << 20) /* maps and switches that are kept */
#define FILES_MAX  4096
#define DUMPS_MAX  256
#define NOBODY	   UINT32_MAX
#define PAGE	   4096u /* no smaller ones are known */

struct file {
	char *path; /* as the event names it */
	bool tried;
	int fd; /* -1: it cannot be read */
	struct binary *binary;
	bool named; /* whether there is one was tried */
	uint64_t block_at;
	size_t block_n;
	uint8_t *block;
};
struct map {
	uint64_t time, start, end, offset;
	uint32_t pid;
	uint32_t file;
};
struct turn { /* who runs from then on, or whose child it is */
	uint64_t time;
	uint32_t cpu, pid, tid;
};
struct list {
	struct turn *v;
	size_t n, max;
};
struct space {
	const char *root;
	int root_fd;
	struct file *files;
	size_t n_files;
	struct map *maps;
	size_t n_maps, max_maps;
	struct list turns, forks; /* of forks, cpu is the parent's process */
	uint32_t pid, tid;
	uint64_t time;
	const struct map *last; /* that was found, for this pid and time */
	struct symbol symbol;	/* that was found last */
	const struct map *symbol_map;
	struct jitdump *dumps[DUMPS_MAX];
	size_t n_dumps;
	char code_name[256];
};

int space_new(const char *root, struct space **ret, struct error *e)
{
	struct space *s = calloc(1, sizeof(*s));

	if (!s)
		return error_set(e, -ENOMEM, "out of memory");
	s->root = root ? root : "";
	s->root_fd = open(root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->root_fd < 0) {
		error_set(e, -errno, "cannot open '%.200s': %s", root ? root : "/",
			  strerror(errno));
		free(s);
		return e->code;
	}
	s->pid = NOBODY;
	*ret = s;
	return 0;
}

void space_free(struct space *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_files; i++) {
		struct file *f = &s->files[i];

		close_fd(&f->fd);
		if (f->binary)
			binary_close(f->binary);
		free(f->block);
		free(f->path);
	}
	for (size_t i = 0; i < s->n_dumps; i++)
		jitdump_close(s->dumps[i]);
	close_fd(&s->root_fd);
	free(s->files);
	free(s->maps);
	free(s->turns.v);
	free(s->forks.v);
	free(s);
}

/* --- collecting --- */

static int add_turn(struct list *l, const struct turn *t)
{
	if (l->n == l->max) {
		size_t max = l->max ? 2 * l->max : 256;
		struct turn *v;

		if (max > EVENTS_MAX)
			return -E2BIG;
		v = realloc(l->v, max * sizeof(*v));
		if (!v)
			return -ENOMEM;
		l->v = v;
		l->max = max;
	}
	l->v[l->n++] = *t;
	return 0;
}

static int find_file(struct space *s, const char *path, size_t len, uint32_t *ret)
{
	struct file *v;

	for (size_t i = 0; i < s->n_files; i++) {
		if (strlen(s->files[i].path) == len && !memcmp(s->files[i].path, path, len)) {
			*ret = (uint32_t)i;
			return 0;
		}
	}
	if (s->n_files >= FILES_MAX)
		return -E2BIG;
	v = realloc(s->files, (s->n_files + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	s->files = v;
	v += s->n_files;
	*v = (struct file){.fd = -1, .path = strndup(path, len)};
	if (!v->path)
		return -ENOMEM;
	*ret = (uint32_t)s->n_files++;
	return 0;
}

static int add_map(struct space *s, const struct map *m, const char *path, size_t len)
{
	if (s->n_maps == s->max_maps) {
		size_t max = s->max_maps ? 2 * s->max_maps : 256;
		struct map *v;

		if (max > EVENTS_MAX)
			return -E2BIG;
		v = realloc(s->maps, max * sizeof(*v));
		if (!v)
			return -ENOMEM;
		s->maps = v;
		s->max_maps = max;
	}
	s->maps[s->n_maps] = *m;
	return find_file(s, path, len, &s->maps[s->n_maps++].file);
}

/* MMAP and MMAP2 are the same up to the file's name. */
static int see_map(struct space *s, const struct perfdata *p, const struct perfdata_event *ev,
		   uint64_t time)
{
	size_t name = ev->type == PERF_RECORD_MMAP2 ? 72 : 40;
	struct map m = {.time = time};

	if (ev->size <= name)
		return 0;
	m.pid = perfdata_u32(p, ev->data + 8);
	m.start = perfdata_u64(p, ev->data + 16);
	m.end = m.start + perfdata_u64(p, ev->data + 24);
	m.offset = perfdata_u64(p, ev->data + 32);
	if (m.end <= m.start)
		return 0;
	return add_map(s, &m, (const char *)ev->data + name,
		       strnlen((const char *)ev->data + name, ev->size - name));
}

static int see_switch(struct space *s, const struct perfdata *p, const struct perfdata_event *ev,
		      const struct perfdata_when *w)
{
	struct turn t = {w->time, w->cpu, w->pid, w->tid};

	if (ev->misc & PERF_RECORD_MISC_SWITCH_OUT) {
		if (ev->type == PERF_RECORD_SWITCH || ev->size < 16)
			return 0;
		t.pid = perfdata_u32(p, ev->data + 8);
		t.tid = perfdata_u32(p, ev->data + 12);
	}
	return add_turn(&s->turns, &t);
}

int space_see(struct space *s, const struct perfdata *p, const struct perfdata_event *ev)
{
	struct perfdata_when w;
	struct turn t;

	perfdata_when(p, ev, &w);
	switch (ev->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return see_map(s, p, ev, w.time == UINT64_MAX ? 0 : w.time);
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return see_switch(s, p, ev, &w);
	case PERF_RECORD_ITRACE_START:
		if (ev->size < 16)
			return 0;
		t = (struct turn){w.time == UINT64_MAX ? 0 : w.time, w.cpu,
				  perfdata_u32(p, ev->data + 8), perfdata_u32(p, ev->data + 12)};
		return add_turn(&s->turns, &t);
	case PERF_RECORD_FORK:
		if (ev->size < 32)
			return 0;
		t = (struct turn){perfdata_u64(p, ev->data + 24), perfdata_u32(p, ev->data + 12),
				  perfdata_u32(p, ev->data + 8), perfdata_u32(p, ev->data + 16)};
		return add_turn(&s->forks, &t);
	default:
		return 0;
	}
}

/* By CPU, and those of one by time. */
static int by_turn(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->time < y->time ? -1 : x->time > y->time;
}

static int maps_by_time(const void *a, const void *b)
{
	const struct map *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

void space_ready(struct space *s)
{
	if (s->turns.n)
		qsort(s->turns.v, s->turns.n, sizeof(*s->turns.v), by_turn);
	if (s->n_maps)
		qsort(s->maps, s->n_maps, sizeof(*s->maps), maps_by_time);
}

/* --- who --- */

/* Without a word about it: the only process that has files mapped. */
static uint32_t only_process(const struct space *s)
{
	uint32_t pid = NOBODY;

	for (size_t i = 0; i < s->n_maps; i++) {
		if (s->maps[i].pid == NOBODY || s->maps[i].pid == pid)
			continue;
		if (pid != NOBODY)
			return NOBODY;
		pid = s->maps[i].pid;
	}
	return pid;
}

/* The last turn until then on that CPU, or its first one. */
static const struct turn *turn_on(const struct space *s, uint32_t cpu, uint64_t time)
{
	const struct turn key = {.cpu = cpu, .time = time};
	size_t from = 0, to = s->turns.n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (by_turn(&s->turns.v[middle], &key) <= 0)
			from = middle + 1;
		else
			to = middle;
	}
	if (from && s->turns.v[from - 1].cpu == cpu)
		return &s->turns.v[from - 1];
	return from < s->turns.n && s->turns.v[from].cpu == cpu ? &s->turns.v[from] : NULL;
}

static const struct turn *turn_of(const struct space *s, uint32_t tid)
{
	for (size_t i = 0; i < s->turns.n; i++)
		if (s->turns.v[i].tid == tid)
			return &s->turns.v[i];
	return NULL;
}

void space_at(struct space *s, uint32_t cpu, uint32_t tid, uint64_t time)
{
	/* a thread stays in its process */
	if (cpu != NOBODY || s->tid != tid || s->pid == NOBODY) {
		const struct turn *t = cpu != NOBODY ? turn_on(s, cpu, time) : turn_of(s, tid);

		s->pid = t ? t->pid : only_process(s);
	}
	s->tid = cpu == NOBODY ? tid : NOBODY;
	s->time = time;
	s->last = NULL;
	s->symbol_map = NULL;
}

uint32_t space_pid(const struct space *s)
{
	return s->pid;
}

/* --- what --- */

/* The newest one until then; clocks are not that exact, so without one the first one later. */
static const struct map *find_map(const struct space *s, uint32_t pid, uint64_t address)
{
	const struct map *found = NULL;

	for (size_t i = 0; i < s->n_maps; i++) {
		const struct map *m = &s->maps[i];

		if (m->pid != pid || address < m->start || address >= m->end)
			continue;
		if (found && m->time > s->time)
			break;
		found = m;
	}
	return found;
}

static const struct turn *fork_of(const struct space *s, uint32_t pid)
{
	for (size_t i = 0; i < s->forks.n; i++)
		if (s->forks.v[i].pid == pid && s->forks.v[i].cpu != pid)
			return &s->forks.v[i];
	return NULL;
}

static uint32_t parent_of(const struct space *s, uint32_t pid)
{
	const struct turn *t = fork_of(s, pid);

	return t ? t->cpu : NOBODY;
}

static const struct map *map_at(struct space *s, uint64_t address)
{
	const struct map *m = s->last;
	uint32_t pid = s->pid;

	if (m && address >= m->start && address < m->end)
		return m;
	m = NULL;
	/* a child has what its parents had mapped */
	for (unsigned depth = 0; !m && pid != NOBODY && depth < 8; depth++) {
		m = find_map(s, pid, address);
		pid = parent_of(s, pid);
	}
	if (!m)
		m = find_map(s, NOBODY, address);
	if (m)
		s->last = m;
	return m;
}

/* --- code that was made at run time --- */

static int add_dump(struct space *s, int dir, const char *name, struct error *e)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int r;

	if (fd < 0)
		return error_set(e, -errno, "cannot open '%.200s': %s", name, strerror(errno));
	if (s->n_dumps == DUMPS_MAX) {
		close(fd);
		return error_set(e, -E2BIG, "there are more than %d files jit-*.dump", DUMPS_MAX);
	}
	r = jitdump_open(fd, name, &s->dumps[s->n_dumps], e);
	s->n_dumps += r == 0;
	return r;
}

int space_add_jit(struct space *s, const char *path, struct error *e)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	size_t before = s->n_dumps;
	int r = 0;

	if (!d && errno == ENOTDIR)
		return add_dump(s, AT_FDCWD, path, e);
	if (!d)
		return error_set(e, -errno, "cannot open '%.200s': %s", path, strerror(errno));
	while (r == 0 && (entry = readdir(d)))
		if (fnmatch("jit-*.dump", entry->d_name, 0) == 0)
			r = add_dump(s, dirfd(d), entry->d_name, e);
	closedir(d);
	if (r == 0 && s->n_dumps == before)
		return error_set(e, -ENOENT, "'%.200s' has no files jit-*.dump", path);
	return r;
}

/* --- files --- */

/* Links, also absolute ones, and ".." stay below the root. */
static int open_below(const struct space *s, const char *path)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
			       .resolve = RESOLVE_IN_ROOT};

	return (int)syscall(SYS_openat2, s->root_fd, path, &how, sizeof(how));
}

/* Any name may stand in a perf.data: only regular files are read. */
static void open_file(const struct space *s, struct file *f)
{
	struct stat st;

	f->tried = true;
	if (*f->path != '/')
		return;
	f->fd = open_below(s, f->path);
	if (f->fd >= 0 && (fstat(f->fd, &st) || !S_ISREG(st.st_mode)))
		close_fd(&f->fd);
	if (f->fd >= 0)
		f->block = malloc(BLOCK);
	if (!f->block)
		close_fd(&f->fd);
}

static struct file *file_of(struct space *s, const struct map *m)
{
	struct file *f = &s->files[m->file];

	if (!f->tried)
		open_file(s, f);
	return f;
}

static size_t read_file(struct file *f, uint64_t at, uint8_t *buf, size_t len)
{
	if (at < f->block_at || at + len > f->block_at + f->block_n || !f->block_n) {
		uint64_t from = at - at % (BLOCK / 2); /* loops go back */
		ssize_t n = pread(f->fd, f->block, BLOCK, (off_t)from);

		f->block_at = from;
		f->block_n = n > 0 ? (size_t)n : 0;
	}
	if (f->block_n < at - f->block_at)
		return 0;
	if (len > f->block_n - (at - f->block_at))
		len = f->block_n - (at - f->block_at);
	memcpy(buf, f->block + (at - f->block_at), len);
	return len;
}

/* --- what is read --- */

/* What is at an address: code that was kept, or else a file's. */
struct place {
	const struct jitdump *dump;
	const struct jitdump_code *code; /* NULL: of the file */
	const struct map *map;
	struct file *file; /* NULL: it is not known which */
};

static bool is_better(const struct jitdump_code *c, const struct jitdump_code *than, uint64_t time)
{
	if (!than || (c->time_ns <= time) != (than->time_ns <= time))
		return !than || c->time_ns <= time;
	return c->time_ns <= time ? c->time_ns > than->time_ns : c->time_ns < than->time_ns;
}

/* The newest one of all dumps until then, else the first one later. */
static void find_code(const struct space *s, uint32_t pid, uint64_t address, uint64_t time,
		      struct place *at)
{
	for (size_t i = 0; i < s->n_dumps; i++) {
		const struct jitdump_code *c = jitdump_find(s->dumps[i], pid, address, time);

		if (!c || !is_better(c, at->code, time))
			continue;
		at->code = c;
		at->dump = s->dumps[i];
	}
}

/* A child has what its parents had when it began, until it makes its own. */
static void code_at(const struct space *s, uint64_t address, struct place *at)
{
	uint64_t time = s->time;
	uint32_t pid = s->pid;
	struct place later = {0};

	for (unsigned depth = 0; s->n_dumps && pid != NOBODY && depth < 8; depth++) {
		const struct turn *born;

		find_code(s, pid, address, time, at);
		if (at->code && at->code->time_ns <= time)
			return;
		if (!later.code)
			later = *at;
		*at = (struct place){0};
		born = fork_of(s, pid);
		pid = born ? born->cpu : NOBODY;
		time = born && born->time < time ? born->time : time;
	}
	*at = later;
}

/* A file that was mapped later is there instead of the code. */
static void place_at(struct space *s, uint64_t address, struct place *at)
{
	*at = (struct place){0};
	code_at(s, address, at);
	at->map = map_at(s, address);
	at->file = at->map ? file_of(s, at->map) : NULL;
	if (at->code && at->file && at->file->fd >= 0 && at->map->time <= s->time &&
	    (at->code->time_ns > s->time || at->code->time_ns < at->map->time))
		at->code = NULL;
}

static size_t read_place(struct space *s, uint64_t address, uint8_t *buf, size_t len)
{
	const struct map *m;
	struct place p;
	uint64_t at;

	place_at(s, address, &p);
	if (p.code)
		return jitdump_read(p.dump, p.code, address, buf, len);
	if (!p.file || p.file->fd < 0)
		return 0;
	m = p.map;
	if (len > m->end - address)
		len = m->end - address;
	at = m->offset + (address - m->start);
	return at > INT64_MAX - BLOCK ? 0 : read_file(p.file, at, buf, len);
}

/* Each page may be of another version, and an instruction may lie in two. */
size_t space_read(struct space *s, uint64_t address, uint8_t *buf, size_t len)
{
	size_t done = 0, n;

	do {
		n = PAGE - (address + done) % PAGE;
		if (n > len - done)
			n = len - done;
		n = read_place(s, address + done, buf + done, n);
		done += n;
	} while (n && done < len);
	return done;
}

/* --- names --- */

static struct binary *binary_of(const struct space *s, struct file *f)
{
	struct error ignored;

	if (f->named || f->fd < 0)
		return f->binary;
	f->named = true;
	if (binary_open_fd(fcntl(f->fd, F_DUPFD_CLOEXEC, 3), f->path, s->root, &f->binary,
			   &ignored) < 0)
		f->binary = NULL;
	return f->binary;
}

void space_name(struct space *s, uint64_t address, struct space_name *ret)
{
	const struct map *m;
	struct binary *b;
	struct place p;
	uint64_t at;

	place_at(s, address, &p);
	if (p.code) {
		jitdump_name(p.dump, p.code, s->code_name, sizeof(s->code_name));
		*ret = (struct space_name){.offset = address - p.code->address,
					   .function = s->code_name};
		return;
	}
	m = p.map;
	b = p.file ? binary_of(s, p.file) : NULL;
	*ret = (struct space_name){.offset = address, .file = p.file ? p.file->path : NULL};
	if (!b)
		return;
	at = m->offset + (address - m->start);
	if (s->symbol_map != m || at < s->symbol.offset ||
	    at - s->symbol.offset >= s->symbol.size) {
		s->symbol_map = NULL;
		if (binary_symbolise(b, at, &s->symbol) < 0)
			return;
		s->symbol_map = m;
	}
	ret->function = s->symbol.demangled ? s->symbol.demangled : s->symbol.name;
	ret->offset = at - s->symbol.offset;
}
