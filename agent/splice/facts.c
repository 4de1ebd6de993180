// SPDX-License-Identifier: GPL-2.0-or-later
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "splice/facts.h"
#include "probes/elf/image.h"

#define CACHE_MAX     512
#define FILES_MAX     512 /* mapped by one process; more: unknown */
#define PROCESSES_MAX 256 /* of one app; more: unknown */
#define DEPTH_MAX     16  /* of cgroups below an app's */
#define MAPS_MAX      (4u << 20)

/* --- one file --- */

static bool is_splice(const char *name)
{
	static const char *const calls[] = {"splice", "tee", "vmsplice"};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (streq(name, calls[i]))
			return true;
	return false;
}

/* Functions that the dynamic linker is to find elsewhere. The C library has them itself. */
static enum splice_fact imports_of(const struct image *im)
{
	const Elf64_Shdr *table = image_section(im, ".dynsym");
	const Elf64_Shdr *text = image_section(im, ".dynstr");
	autofree Elf64_Sym *symbols = NULL;
	autofree char *names = NULL;
	size_t len, names_len;

	if (!table || !text || image_section_load(im, table, (void **)&symbols, &len) ||
	    image_section_load(im, text, (void **)&names, &names_len))
		return FACT_UNKNOWN;
	for (size_t i = 0; i < len / sizeof(*symbols); i++)
		if (symbols[i].st_shndx == SHN_UNDEF && symbols[i].st_name < names_len &&
		    is_splice(names + symbols[i].st_name))
			return FACT_USES;
	return FACT_NONE;
}

static bool has_segment(const struct image *im, uint32_t type)
{
	for (size_t i = 0; i < im->n_segments; i++)
		if (im->segments[i].p_type == type)
			return true;
	return false;
}

static const Elf64_Shdr *go_table(const struct image *im)
{
	const Elf64_Shdr *s = image_section(im, ".gopclntab");

	return s ? s : image_section(im, ".data.rel.ro.gopclntab");
}

static bool is_go(const struct image *im)
{
	return image_section(im, ".go.buildinfo") || image_section(im, ".note.go.buildid") ||
	       go_table(im);
}

/* Go's own table of functions stays when a program is stripped, and has those that were inlined. */
static enum splice_fact go_functions_of(const struct image *im)
{
	static const char *const functions[] = {"internal/poll.Splice", "syscall.Splice",
						"sys/unix.Splice", "sys/unix.Tee",
						"sys/unix.Vmsplice"};
	const Elf64_Shdr *s = go_table(im);
	autofree void *names = NULL;
	size_t len;

	if (!s || image_section_load(im, s, &names, &len))
		return FACT_UNKNOWN;
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if (memmem(names, len, functions[i], strlen(functions[i]) + 1))
			return FACT_USES;
	return FACT_NONE;
}

enum splice_fact facts_of_image(const struct image *im, bool program)
{
	enum splice_fact go = is_go(im) ? go_functions_of(im) : FACT_NONE;
	enum splice_fact imports = FACT_NONE;

	if (has_segment(im, PT_DYNAMIC) && (!program || has_segment(im, PT_INTERP)))
		imports = imports_of(im);
	else if (program && !is_go(im))
		return FACT_UNKNOWN; /* static: everything is inside */
	return go > imports ? go : imports;
}

enum splice_fact facts_of_fd(int fd, bool program)
{
	enum splice_fact fact = FACT_UNKNOWN;
	struct error e = {0};
	struct image im;

	if (image_open(&im, fd, "a program", &e) == 0)
		fact = facts_of_image(&im, program);
	image_close(&im);
	return fact;
}

/* --- what is mounted --- */

struct mounted {
	dev_t dev;
	bool served; /* by a process that may keep a reader waiting */
};

struct known {
	dev_t dev;
	ino_t ino;
	struct timespec changed;
	bool program;
	enum splice_fact fact;
};

struct facts {
	struct mounted *mounts;
	size_t n_mounts;
	struct known known[CACHE_MAX];
	size_t n_known, next;
};

int facts_open(struct facts **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void facts_close(struct facts *f)
{
	if (f)
		free(f->mounts);
	free(f);
}

/* "36 35 98:0 /root /mnt options - ext4 /dev/sda1 options" */
static bool read_mount(const char *line, struct mounted *ret)
{
	const char *type = strstr(line, " - ");
	unsigned major, minor;

	if (!type || sscanf(line, "%*d %*d %u:%u", &major, &minor) != 2)
		return false;
	*ret = (struct mounted){.dev = makedev(major, minor),
				.served = starts_with(type + 3, "fuse")};
	return true;
}

void facts_refresh(struct facts *f)
{
	autofree char *text = NULL;
	char *line, *rest;
	size_t n = 0;

	free(f->mounts);
	f->mounts = NULL;
	f->n_mounts = 0;
	if (file_read("/proc/self/mountinfo", MAPS_MAX, &text))
		return;
	for (const char *p = text; *p; p++)
		n += *p == '\n';
	f->mounts = calloc(n + 1, sizeof(*f->mounts));
	rest = text;
	while (f->mounts && (line = strsep(&rest, "\n")) && f->n_mounts <= n)
		f->n_mounts += read_mount(line, &f->mounts[f->n_mounts]);
}

static bool may_be_read(const struct facts *f, dev_t dev)
{
	for (size_t i = 0; i < f->n_mounts; i++)
		if (f->mounts[i].dev == dev)
			return !f->mounts[i].served;
	return false;
}

/* --- a process --- */

static const struct known *known_find(const struct facts *f, const struct stat *st, bool program)
{
	for (size_t i = 0; i < f->n_known; i++) {
		const struct known *k = &f->known[i];

		if (k->dev == st->st_dev && k->ino == st->st_ino && k->program == program &&
		    k->changed.tv_sec == st->st_ctim.tv_sec &&
		    k->changed.tv_nsec == st->st_ctim.tv_nsec)
			return k;
	}
	return NULL;
}

/* A file that is open, which it takes over. */
static enum splice_fact fact_of_file(struct facts *f, int fd, const struct stat *st, bool program)
{
	const struct known *k = known_find(f, st, program);
	size_t at;

	if (k) {
		close(fd);
		return k->fact;
	}
	at = f->n_known < CACHE_MAX ? f->n_known++ : f->next++ % CACHE_MAX;
	f->known[at] = (struct known){.dev = st->st_dev,
				      .ino = st->st_ino,
				      .changed = st->st_ctim,
				      .program = program,
				      .fact = facts_of_fd(fd, program)};
	return f->known[at].fact;
}

static enum splice_fact worst(enum splice_fact a, enum splice_fact b)
{
	return a > b ? a : b;
}

struct mapping {
	unsigned long start, end, inode;
	unsigned major, minor;
	char permissions[5];
};

static bool read_mapping(const char *line, struct mapping *m)
{
	return sscanf(line, "%lx-%lx %4s %*x %x:%x %lu", &m->start, &m->end, m->permissions,
		      &m->major, &m->minor, &m->inode) == 6;
}

/* What a process has executed: known without asking the filesystem that it stands on. */
struct executed {
	dev_t dev;
	ino_t ino;
	bool met; /* among the mappings */
};

static int executed_by(int pid, struct executed *ret)
{
	char path[64];
	autoclose int fd = -1;
	struct statx st;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st) < 0)
		return -errno;
	*ret = (struct executed){.dev = makedev(st.stx_dev_major, st.stx_dev_minor),
				 .ino = st.stx_ino};
	return 0;
}

/* The file behind a mapping, also when it has no name any more. */
static enum splice_fact fact_of_mapping(struct facts *f, int pid, const struct mapping *m,
					struct executed *exe)
{
	char path[96];
	struct stat st;
	bool program;
	int fd;

	if (!may_be_read(f, makedev(m->major, m->minor)))
		return FACT_UNKNOWN;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", pid, m->start, m->end);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return FACT_UNKNOWN;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return FACT_UNKNOWN;
	}
	program = st.st_dev == exe->dev && st.st_ino == exe->ino;
	exe->met |= program;
	return fact_of_file(f, fd, &st, program);
}

static enum splice_fact fact_of_mappings(struct facts *f, int pid, char *text, struct executed *exe)
{
	enum splice_fact fact = FACT_NONE;
	struct mapping m, last = {0};
	unsigned files = 0;
	char *line;

	while (fact != FACT_USES && (line = strsep(&text, "\n"))) {
		if (!read_mapping(line, &m) || !m.inode || m.permissions[2] != 'x')
			continue;
		if (m.inode == last.inode && m.major == last.major && m.minor == last.minor)
			continue;
		last = m;
		if (++files > FILES_MAX)
			return FACT_UNKNOWN;
		fact = worst(fact, fact_of_mapping(f, pid, &m, exe));
	}
	return fact;
}

enum splice_fact facts_of_process(struct facts *f, int pid)
{
	autofree char *text = NULL;
	struct executed exe = {0};
	enum splice_fact fact;
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	r = file_read(path, MAPS_MAX, &text);
	r = r ? r : executed_by(pid, &exe);
	if (r)
		return r == -ENOENT || r == -ESRCH ? FACT_NONE : FACT_UNKNOWN;
	fact = fact_of_mappings(f, pid, text, &exe);
	/* (a program can unmap itself) */
	return exe.met ? fact : worst(fact, FACT_UNKNOWN);
}

/* --- a cgroup --- */

/* Whoever was moved into an app's cgroup from elsewhere does not have the filter of its first
 * process, which all have that it started. */
static bool is_filtered(int pid)
{
	autofree char *text = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return file_read(path, MAPS_MAX, &text) == 0 && strstr(text, "\nSeccomp:\t2\n");
}

/* A walk through a cgroup. */
struct tree {
	bool (*each)(struct tree *t, int pid); /* false: that is enough */
	unsigned left;			       /* processes that may still be looked at */
	bool whole;			       /* all were looked at, so far */
	struct facts *facts;
	bool emulated;
	enum splice_fact fact;
	uint64_t print;
	bool edges;
};

static bool walk_processes(struct tree *t, const char *path)
{
	autofree char *pids = NULL;
	char file[PATH_MAX], *line, *rest;

	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	if (file_read(file, MAPS_MAX, &pids))
		return true; /* gone */
	rest = pids;
	while ((line = strsep(&rest, "\n")) && *line) {
		t->whole &= t->left > 0;
		if (!t->left-- || !t->each(t, atoi(line))) {
			t->left = 0;
			return false;
		}
	}
	return true;
}

static bool walk(struct tree *t, const char *path, int depth)
{
	bool on = walk_processes(t, path);
	char file[PATH_MAX];
	struct dirent *d;
	DIR *dir;

	if (!on || depth == DEPTH_MAX) {
		t->whole &= !on;
		return on;
	}
	dir = opendir(path);
	while (dir && on && (d = readdir(dir))) {
		if (d->d_type != DT_DIR || d->d_name[0] == '.')
			continue;
		if ((size_t)snprintf(file, sizeof(file), "%s/%s", path, d->d_name) < sizeof(file))
			on = walk(t, file, depth + 1);
	}
	if (dir)
		closedir(dir);
	return on;
}

static bool add_fact(struct tree *t, int pid)
{
	if (!t->emulated || !is_filtered(pid))
		t->fact = worst(t->fact, facts_of_process(t->facts, pid));
	return t->fact != FACT_USES;
}

enum splice_fact facts_of_cgroup(struct facts *f, const char *path, bool emulated)
{
	struct tree t = {.each = add_fact,
			 .left = PROCESSES_MAX,
			 .whole = true,
			 .facts = f,
			 .emulated = emulated};

	walk(&t, path, 0);
	return t.whole ? t.fact : worst(t.fact, FACT_UNKNOWN);
}

/* --- what may have changed --- */

static uint64_t number_of(const char *status, const char *key)
{
	const char *at = strstr(status, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static bool add_print(struct tree *t, int pid)
{
	autofree char *status = NULL;
	struct executed exe = {0};
	uint64_t seen[5] = {(uint64_t)pid};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (executed_by(pid, &exe) || file_read(path, MAPS_MAX, &status))
		return true; /* it ended */
	seen[1] = exe.dev;
	seen[2] = exe.ino;
	seen[3] = number_of(status, "\nVmExe:");
	seen[4] = number_of(status, "\nVmLib:");
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++)
		t->print = (t->print ^ seen[i]) * 0x100000001b3u + (t->print >> 29);
	return true;
}

uint64_t facts_print(const char *path)
{
	struct tree t = {.each = add_print, .left = PROCESSES_MAX, .whole = true, .print = 1};

	walk(&t, path, 0);
	return t.print;
}

/* --- how they wait --- */

/* "tfd: 5 events: 80000019 data: ..." */
static bool has_edges(const char *fdinfo)
{
	const char *at = fdinfo;
	unsigned events;

	while ((at = strstr(at, "tfd:"))) {
		if (sscanf(at, "tfd: %*d events: %x", &events) == 1 && events & EPOLLET)
			return true;
		at++;
	}
	return false;
}

/* An epoll set that cannot be read may have edges. */
static bool set_has_edges(int pid, const char *fd)
{
	autofree char *text = NULL;
	char path[96], link[32];
	ssize_t n;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/fd/%.16s", pid, fd);
	n = readlink(path, link, sizeof(link) - 1);
	link[n < 0 ? 0 : n] = 0;
	if (!streq(link, "anon_inode:[eventpoll]"))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.16s", pid, fd);
	r = file_read(path, MAPS_MAX, &text);
	return r ? r != -ENOENT : has_edges(text);
}

static bool add_edges(struct tree *t, int pid)
{
	char path[64];
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return true; /* it ended */
	while (!t->edges && (d = readdir(dir)))
		t->edges = d->d_name[0] != '.' && set_has_edges(pid, d->d_name);
	closedir(dir);
	return !t->edges;
}

bool facts_wait_for_edges(const char *path)
{
	struct tree t = {.each = add_edges, .left = PROCESSES_MAX, .whole = true};

	walk(&t, path, 0);
	return t.edges || !t.whole;
}
