// SPDX-License-Identifier: GPL-2.0-or-later
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "probes/elf/binary.h"
#include "probes/process/mappings.h"

#define RING_PAGES   64		  /* of each CPU; a power of two */
#define MAPPINGS_MAX (1u << 16)	  /* a power of two */
#define RECORD_MAX   (64u + 4096) /* a mapping with its path, and more */

struct file {
	char *path;
	dev_t dev;
	ino_t ino;
	bool tried;
	struct binary *binary;
};
struct mapping {
	int pid;
	uint32_t file;
	uint64_t from, to, offset;
};
struct ring {
	int fd;
	struct perf_event_mmap_page *page;
};

struct mappings {
	struct ring *rings;
	size_t n_rings, page;
	struct mapping *v; /* in the order in which they came */
	size_t n, max;
	struct file *files;
	size_t n_files, max_files;
};

/* PERF_RECORD_MMAP2, without an id of the build. */
struct record {
	struct perf_event_header head;
	uint32_t pid, tid;
	uint64_t address, len, offset;
	uint32_t major, minor;
	uint64_t ino, generation;
	uint32_t prot, flags;
	char path[];
};

/* --- what the kernel tells --- */

static int open_ring(const struct mappings *m, int cpu, struct ring *r)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1,
		.mmap2 = 1,
		.watermark = 1,
		.wakeup_watermark = RING_PAGES / 2 * 4096,
	};
	void *p;

	r->fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (r->fd < 0)
		return -errno;
	p = mmap(NULL, (RING_PAGES + 1) * m->page, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (p == MAP_FAILED) {
		close_fd(&r->fd);
		return -errno;
	}
	r->page = p;
	return 0;
}

int mappings_open(struct mappings **ret)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct mappings *m = calloc(1, sizeof(*m));
	int r = -ENODEV;

	if (m)
		m->rings = calloc(cpus > 0 ? (size_t)cpus : 1, sizeof(*m->rings));
	if (!m || !m->rings) {
		free(m);
		return -ENOMEM;
	}
	m->page = (size_t)sysconf(_SC_PAGESIZE);
	/* a processor that is switched off has none */
	for (int cpu = 0; cpu < cpus; cpu++) {
		r = open_ring(m, cpu, &m->rings[m->n_rings]);
		m->n_rings += r == 0;
	}
	if (!m->n_rings) {
		mappings_close(m);
		return r;
	}
	*ret = m;
	return 0;
}

void mappings_close(struct mappings *m)
{
	for (size_t i = 0; i < m->n_rings; i++) {
		munmap(m->rings[i].page, (RING_PAGES + 1) * m->page);
		close(m->rings[i].fd);
	}
	for (size_t i = 0; i < m->n_files; i++) {
		if (m->files[i].binary)
			binary_close(m->files[i].binary);
		free(m->files[i].path);
	}
	free(m->files);
	free(m->rings);
	free(m->v);
	free(m);
}

/* --- what is kept of it --- */

/* UINT32_MAX: out of memory. */
static uint32_t file_of(struct mappings *m, const struct record *r)
{
	dev_t dev = makedev(r->major, r->minor);
	char *path;

	for (size_t i = m->n_files; i-- > 0;)
		if (m->files[i].ino == r->ino && m->files[i].dev == dev &&
		    streq(m->files[i].path, r->path))
			return (uint32_t)i;
	if (m->n_files == m->max_files) {
		size_t max = m->max_files ? 2 * m->max_files : 32;
		struct file *v = realloc(m->files, max * sizeof(*v));

		if (!v)
			return UINT32_MAX;
		m->files = v;
		m->max_files = max;
	}
	path = strdup(r->path);
	if (!path)
		return UINT32_MAX;
	m->files[m->n_files] = (struct file){.path = path, .dev = dev, .ino = r->ino};
	return (uint32_t)m->n_files++;
}

static void add(struct mappings *m, const struct record *r)
{
	uint32_t file = file_of(m, r);

	if (file == UINT32_MAX)
		return;
	if (m->n == MAPPINGS_MAX) { /* those of processes that were first */
		m->n /= 2;
		memmove(m->v, m->v + m->n, m->n * sizeof(*m->v));
	}
	if (m->n == m->max) {
		size_t max = m->max ? 2 * m->max : 256;
		struct mapping *v = realloc(m->v, max * sizeof(*v));

		if (!v)
			return;
		m->v = v;
		m->max = max;
	}
	m->v[m->n++] = (struct mapping){.pid = (int)r->pid,
					.file = file,
					.from = r->address,
					.to = r->address + r->len,
					.offset = r->offset};
}

/* A record may go over the ring's end. */
static void copy(const struct mappings *m, const struct ring *r, uint64_t at, void *to, size_t len)
{
	const char *data = (const char *)r->page + m->page;
	size_t size = RING_PAGES * m->page, begin = at & (size - 1);
	size_t first = len < size - begin ? len : size - begin;

	memcpy(to, data + begin, first);
	memcpy((char *)to + first, data, len - first);
}

static void read_ring(struct mappings *m, struct ring *r)
{
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = r->page->data_tail;
	union {
		struct record is;
		char bytes[RECORD_MAX + 1];
	} record;

	while (tail < head) {
		struct perf_event_header h;

		copy(m, r, tail, &h, sizeof(h));
		if (h.size < sizeof(h) || h.size > head - tail)
			break;
		if (h.type == PERF_RECORD_MMAP2 && h.size > sizeof(struct record) &&
		    h.size <= RECORD_MAX) {
			copy(m, r, tail, record.bytes, h.size);
			record.bytes[h.size] = '\0';
			if (record.is.path[0] == '/')
				add(m, &record.is);
		}
		tail += h.size;
	}
	__atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
}

void mappings_read(struct mappings *m)
{
	for (size_t i = 0; i < m->n_rings; i++)
		read_ring(m, &m->rings[i]);
}

/* --- names --- */

/* What is at its path now may be another file, or that of another root directory. */
static void open_file(struct file *f)
{
	struct error ignored = {0};
	autoclose int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	f->tried = true;
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_ino == f->ino &&
	    st.st_dev == f->dev)
		binary_open_fd(take_fd(&fd), f->path, "", &f->binary, &ignored);
}

int mappings_symbolise(struct mappings *m, int pid, uint64_t address, struct place_name *ret)
{
	*ret = (struct place_name){.offset = address};
	for (size_t i = m->n; i-- > 0;) {
		const struct mapping *v = &m->v[i];
		struct file *f = &m->files[v->file];
		struct symbol s;

		if (v->pid != pid || address < v->from || address >= v->to)
			continue;
		ret->file = f->path;
		ret->offset = address - v->from + v->offset;
		if (!f->tried)
			open_file(f);
		if (f->binary && binary_symbolise(f->binary, ret->offset, &s) == 0) {
			ret->function = s.demangled ? s.demangled : s.name;
			ret->offset -= s.offset;
		}
		return 0;
	}
	return -ENOENT;
}
