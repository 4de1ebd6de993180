// SPDX-License-Identifier: GPL-2.0-or-later
#include <fcntl.h>

#include "probes/jit/capture.h"
#include "probes/jit/defaults.h"
#include "probes/jit/pages.h"

#define PRESENT (1ull << 63) /* of an entry of /proc/PID/pagemap */
#define ENTRIES 512	     /* of it that are read at once */

struct range {
	uint64_t start, end;
	uint64_t looked_ns; /* the last time; before, when it became so */
};
struct process {
	uint32_t pid;
	int mem, pagemap; /* -1: not open; they stay with this process when its number is another's
			   */
	struct range *ranges;
	size_t n_ranges;
	struct jit_pages pages;
};
struct jit_capture {
	struct jit_capture_options o;
	struct process *v;
	size_t n, max;
	size_t n_pages; /* that are told apart, of all processes */
	struct jit_counts counts;
	/* pages side by side that wait for the next one */
	struct jitdump_code run;
	uint64_t seen_ns;
	uint8_t *bytes;
	uint8_t *buf; /* as much, of looks */
};

int jit_capture_new(const struct jit_capture_options *o, struct jit_capture **ret, struct error *e)
{
	struct jit_capture *c = calloc(1, sizeof(*c));

	if (c) {
		c->o = *o;
		if (!o->max_pages)
			c->o.max_pages = JIT_PAGES_ALL;
		c->bytes = malloc(JIT_RUN_PAGES * JIT_PAGE);
		c->buf = malloc(JIT_RUN_PAGES * JIT_PAGE);
	}
	if (!c || !c->bytes || !c->buf) {
		jit_capture_free(c);
		return error_set(e, -ENOMEM, "out of memory");
	}
	*ret = c;
	return 0;
}

static void end_process(struct process *p)
{
	close_fd(&p->mem);
	close_fd(&p->pagemap);
	free(p->ranges);
	jit_pages_free(&p->pages);
}

void jit_capture_free(struct jit_capture *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		end_process(&c->v[i]);
	free(c->v);
	free(c->bytes);
	free(c->buf);
	free(c);
}

const struct jit_counts *jit_capture_counts(const struct jit_capture *c)
{
	return &c->counts;
}

/* --- processes --- */

static struct process *find_process(const struct jit_capture *c, uint32_t pid)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].pid == pid)
			return &c->v[i];
	return NULL;
}

static struct process *process_of(struct jit_capture *c, uint32_t pid)
{
	struct process *p = find_process(c, pid), *v;

	if (p)
		return p;
	if (c->n == c->max) {
		size_t max = c->max ? 2 * c->max : 16;

		v = realloc(c->v, max * sizeof(*v));
		if (!v)
			return NULL;
		c->v = v;
		c->max = max;
	}
	p = &c->v[c->n++];
	*p = (struct process){.pid = pid, .mem = -1, .pagemap = -1};
	return p;
}

void jit_capture_forget(struct jit_capture *c, uint32_t pid)
{
	struct process *p = find_process(c, pid);

	if (!p)
		return;
	c->n_pages -= p->pages.n;
	end_process(p);
	*p = c->v[--c->n];
}

void jit_capture_fork(struct jit_capture *c, uint32_t parent, uint32_t child, uint64_t time_ns)
{
	struct process *p = find_process(c, parent), *q;

	jit_capture_forget(c, child);
	q = p ? process_of(c, child) : NULL;
	p = find_process(c, parent); /* it may have moved */
	if (!q)
		return;
	/* else all is new in it */
	if (c->n_pages + p->pages.n <= c->o.max_pages && jit_pages_copy(&q->pages, &p->pages) == 0)
		c->n_pages += q->pages.n;
	for (size_t i = 0; i < p->n_ranges; i++)
		jit_capture_watch(c, child, p->ranges[i].start, p->ranges[i].end, time_ns);
}

/* --- pages --- */

void jit_capture_flush(struct jit_capture *c)
{
	char name[64];
	int r;

	if (!c->run.size)
		return;
	snprintf(name, sizeof(name), "jit 0x%llx", (unsigned long long)c->run.address);
	r = jitdump_put(c->o.writer, &c->run, name, c->bytes);
	if (r < 0) {
		c->counts.error = r;
	} else {
		c->counts.pieces++;
		c->counts.pages += c->run.size / JIT_PAGE;
		if (c->o.written)
			c->o.written(c->o.arg, &c->run, c->seen_ns);
	}
	c->run.size = 0;
}

static bool goes_on(const struct jit_capture *c, const struct jitdump_code *next, uint64_t seen_ns)
{
	const struct jitdump_code *run = &c->run;

	return run->size && run->size < JIT_RUN_PAGES * JIT_PAGE && run->pid == next->pid &&
	       run->tid == next->tid && run->time_ns == next->time_ns && c->seen_ns == seen_ns &&
	       run->address + run->size == next->address;
}

/* What the kernel copied may be older than a look that was faster than its record. */
static uint64_t since(const struct process *p, uint64_t address, uint64_t seen_ns)
{
	for (size_t i = 0; i < p->n_ranges; i++)
		if (address >= p->ranges[i].start && address < p->ranges[i].end &&
		    p->ranges[i].looked_ns < seen_ns)
			return p->ranges[i].looked_ns;
	return seen_ns;
}

/* A page that is told apart from then on; false: it is known as it is. */
static bool is_new(struct jit_capture *c, struct process *p, uint64_t address, const uint8_t *data)
{
	size_t n = p->pages.n;
	bool is = jit_pages_see(&p->pages, address, data);

	c->n_pages += p->pages.n - n;
	return is;
}

void jit_capture_page(struct jit_capture *c, uint32_t pid, uint32_t tid, uint64_t seen_ns,
		      uint64_t address, const uint8_t *data)
{
	struct process *p = process_of(c, pid);
	struct jitdump_code next = {.time_ns = seen_ns, .address = address, .pid = pid, .tid = tid};

	if (c->counts.error)
		return;
	if (c->n_pages >= c->o.max_pages) {
		c->counts.too_many++;
		return;
	}
	if (p && !is_new(c, p, address, data)) {
		c->counts.same++;
		return;
	}
	if (p)
		next.time_ns = since(p, address, seen_ns);
	if (c->o.writer->size + c->run.size + JIT_PAGE > c->o.max_bytes) {
		c->counts.left_out++;
		return;
	}
	if (!goes_on(c, &next, seen_ns)) {
		jit_capture_flush(c);
		c->run = next;
		c->seen_ns = seen_ns;
	}
	memcpy(c->bytes + c->run.size, data, JIT_PAGE);
	c->run.size += JIT_PAGE;
}

/* --- looks --- */

/* Those that touch are one. */
void jit_capture_watch(struct jit_capture *c, uint32_t pid, uint64_t start, uint64_t end,
		       uint64_t since_ns)
{
	struct process *p = process_of(c, pid);
	struct range *v;

	if (!p || end <= start)
		return;
	for (size_t i = 0; i < p->n_ranges; i++) {
		v = &p->ranges[i];
		if (start > v->end || end < v->start)
			continue;
		v->start = start < v->start ? start : v->start;
		v->end = end > v->end ? end : v->end;
		return;
	}
	v = realloc(p->ranges, (p->n_ranges + 1) * sizeof(*v));
	if (!v)
		return;
	p->ranges = v;
	v[p->n_ranges++] = (struct range){start, end, since_ns};
}

void jit_capture_unwatch(struct jit_capture *c, uint32_t pid, uint64_t start, uint64_t end)
{
	struct process *p = find_process(c, pid);
	size_t n = p ? p->n_ranges : 0;

	for (size_t i = n; i--;) {
		struct range *v = &p->ranges[i], old = *v;

		if (start >= old.end || end <= old.start)
			continue;
		*v = p->ranges[--p->n_ranges];
		if (start > old.start)
			jit_capture_watch(c, pid, old.start, start, old.looked_ns);
		if (end < old.end)
			jit_capture_watch(c, pid, end, old.end, old.looked_ns);
	}
}

static bool open_memory(struct process *p)
{
	char path[64];

	if (p->mem < 0) {
		snprintf(path, sizeof(path), "/proc/%u/mem", p->pid);
		p->mem = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (p->pagemap < 0) {
		snprintf(path, sizeof(path), "/proc/%u/pagemap", p->pid);
		p->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	}
	return p->mem >= 0 && p->pagemap >= 0;
}

static void read_pages(struct jit_capture *c, struct process *p, uint64_t address, size_t n,
		       uint64_t now)
{
	/* also what the process itself may not read: as a debugger does */
	ssize_t got = pread(p->mem, c->buf, n * JIT_PAGE, (off_t)address);

	for (ssize_t i = 0; i < got / (ssize_t)JIT_PAGE; i++)
		jit_capture_page(c, p->pid, p->pid, now, address + (uint64_t)i * JIT_PAGE,
				 c->buf + (size_t)i * JIT_PAGE);
}

/* Only pages that are there: to ask for others would make them. Entries are of pages of the
 * system's size. */
static void look_at(struct jit_capture *c, struct process *p, const struct range *range,
		    uint64_t now)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), entries[ENTRIES];
	uint64_t at = range->start / page, end = (range->end + page - 1) / page;
	size_t most = JIT_RUN_PAGES * JIT_PAGE / page;

	if (end - at > JIT_LOOK_PAGES)
		end = at + JIT_LOOK_PAGES;
	while (at < end) {
		size_t n = end - at < ENTRIES ? end - at : ENTRIES, run;
		ssize_t got = pread(p->pagemap, entries, n * sizeof(*entries),
				    (off_t)(at * sizeof(*entries)));

		if (got <= 0)
			return;
		n = (size_t)got / sizeof(*entries);
		for (size_t i = 0; i < n; i += run ? run : 1) {
			for (run = 0; run < most && i + run < n && entries[i + run] & PRESENT;)
				run++;
			if (run)
				read_pages(c, p, (at + i) * page, run * (page / JIT_PAGE), now);
		}
		at += n;
	}
}

void jit_capture_look(struct jit_capture *c, uint32_t pid)
{
	for (size_t i = 0; i < c->n; i++) {
		struct process *p = &c->v[i];

		if ((pid && p->pid != pid) || !p->n_ranges || !open_memory(p))
			continue;
		c->counts.looks++;
		for (size_t k = 0; k < p->n_ranges; k++) {
			uint64_t now = time_mono_ns();

			look_at(c, p, &p->ranges[k], now);
			p->ranges[k].looked_ns = now;
		}
	}
	jit_capture_flush(c);
}

void jit_capture_range(struct jit_capture *c, uint32_t pid, uint64_t start, uint64_t end)
{
	struct process *p = process_of(c, pid);

	if (p && open_memory(p))
		look_at(c, p, &(struct range){start, end, 0}, time_mono_ns());
	jit_capture_flush(c);
}

/* What was there when it became executable: it cannot be written there, but by those who make it
 * another one again. Where the kernel has copied it before, that is it: what is read now may be a
 * later version already, whose copy is still to come. */
void jit_capture_hidden(struct jit_capture *c, uint32_t pid, uint64_t start, uint64_t end,
			uint64_t since_ns)
{
	struct process *p = process_of(c, pid);

	if (!p || end <= start || jit_pages_know(&p->pages, start, end))
		return;
	jit_capture_watch(c, pid, start, end, since_ns);
	if (open_memory(p))
		look_at(c, p, &(struct range){start, end, 0}, time_mono_ns());
	jit_capture_unwatch(c, pid, start, end);
	jit_capture_flush(c);
	if (!c->counts.error && !jit_pages_know(&p->pages, start, end))
		c->counts.unread++;
}
