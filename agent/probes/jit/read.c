// SPDX-License-Identifier: GPL-2.0-or-later
#include <sys/stat.h>

#include "probes/jit/priv.h"

#define NAME_MAX_LEN 512

struct code {
	struct jitdump_code c;
	uint64_t name_at; /* in the file */
};
struct jitdump {
	int fd;
	const char *path; /* while it is opened */
	uint64_t size;
	struct code *v;	  /* by time */
	uint32_t *places; /* of v, by process and address */
	uint64_t longest; /* bytes of a piece */
	size_t n, max;
	uint64_t steps; /* that were made to find what was moved */
};

static bool read_at(const struct jitdump *d, uint64_t at, void *buf, size_t len)
{
	return at <= d->size && len <= d->size - at &&
	       pread(d->fd, buf, len, (off_t)at) == (ssize_t)len;
}

static int add(struct jitdump *d, const struct code *c, struct error *e)
{
	if (d->n == d->max) {
		size_t max = d->max ? 2 * d->max : 64;
		struct code *v;

		if (max > JIT_CODES_MAX)
			return error_set(e, -E2BIG, "'%.200s' has more than %u pieces of code",
					 d->path, JIT_CODES_MAX);
		v = realloc(d->v, max * sizeof(*v));
		if (!v)
			return error_set(e, -ENOMEM, "out of memory");
		d->v = v;
		d->max = max;
	}
	d->v[d->n++] = *c;
	return 0;
}

static bool is_sound(const struct jitdump_code *c)
{
	return c->size && c->size <= JIT_CODE_MAX && c->address <= UINT64_MAX - c->size;
}

static int broken(const struct jitdump *d, uint64_t at, struct error *e)
{
	return error_set(e, -EINVAL,
			 "'%.200s' is broken at byte %llu: expected a record of jitdump", d->path,
			 (unsigned long long)at);
}

/* The name's end is where the bytes begin: they are the rest of the record. */
static int see_load(struct jitdump *d, uint64_t at, uint32_t size, struct error *e)
{
	struct jitdump_load l;
	struct code c;

	if (size < sizeof(l) || !read_at(d, at, &l, sizeof(l)) || l.size > size - sizeof(l))
		return broken(d, at, e);
	c = (struct code){
		.c = {.time_ns = l.p.time_ns,
		      .address = l.address,
		      .size = l.size,
		      .index = l.index,
		      .offset = at + size - l.size,
		      .pid = l.pid,
		      .tid = l.tid},
		.name_at = at + sizeof(l),
	};
	return is_sound(&c.c) ? add(d, &c, e) : 0;
}

/* What was moved is the same code at another address. */
static int see_move(struct jitdump *d, uint64_t at, uint32_t size, struct error *e)
{
	struct jitdump_move m;
	struct code c;

	if (size < sizeof(m) || !read_at(d, at, &m, sizeof(m)))
		return broken(d, at, e);
	for (size_t i = d->n; i--;) {
		if (d->steps++ > JIT_MOVE_STEPS)
			return error_set(e, -E2BIG, "'%.200s' moves code too often", d->path);
		if (d->v[i].c.index != m.index || d->v[i].c.pid != m.pid)
			continue;
		c = d->v[i];
		c.c.time_ns = m.p.time_ns;
		c.c.address = m.to;
		return is_sound(&c.c) ? add(d, &c, e) : 0;
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct code *x = a, *y = b;

	if (x->c.time_ns != y->c.time_ns)
		return x->c.time_ns < y->c.time_ns ? -1 : 1;
	return x->c.index < y->c.index ? -1 : x->c.index > y->c.index;
}

static int by_place(const void *a, const void *b, void *arg)
{
	const struct code *v = arg;
	const struct jitdump_code *x = &v[*(const uint32_t *)a].c, *y = &v[*(const uint32_t *)b].c;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static int sort(struct jitdump *d, struct error *e)
{
	if (!d->n)
		return 0;
	qsort(d->v, d->n, sizeof(*d->v), by_time);
	d->places = malloc(d->n * sizeof(*d->places));
	if (!d->places)
		return error_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < d->n; i++) {
		d->places[i] = (uint32_t)i;
		if (d->v[i].c.size > d->longest)
			d->longest = d->v[i].c.size;
	}
	qsort_r(d->places, d->n, sizeof(*d->places), by_place, d->v);
	return 0;
}

static int read_all(struct jitdump *d, struct error *e)
{
	struct jitdump_header h;
	struct jitdump_prefix p;
	uint64_t at;
	int r = 0;

	if (!read_at(d, 0, &h, sizeof(h)) || h.magic != JITDUMP_MAGIC)
		return error_set(e, -EINVAL,
				 "'%.200s' is no jitdump of a machine with this byte order",
				 d->path);
	if (h.version != JITDUMP_VERSION || h.total_size < sizeof(h))
		return error_set(e, -EINVAL,
				 "'%.200s' is a jitdump of version %u, which is not known", d->path,
				 h.version);
	for (at = h.total_size; r == 0 && read_at(d, at, &p, sizeof(p)); at += p.total_size) {
		if (p.total_size < sizeof(p))
			return broken(d, at, e);
		/* its writer was interrupted */
		if (p.total_size > d->size - at)
			break;
		if (p.id == JITDUMP_LOAD)
			r = see_load(d, at, p.total_size, e);
		else if (p.id == JITDUMP_MOVE)
			r = see_move(d, at, p.total_size, e);
	}
	return r == 0 ? sort(d, e) : r;
}

int jitdump_open(int fd, const char *path, struct jitdump **ret, struct error *e)
{
	CLEANUP(jitdump_closep) struct jitdump *d = calloc(1, sizeof(*d));
	struct stat st;
	int r;

	if (!d) {
		close(fd);
		return error_set(e, -ENOMEM, "out of memory");
	}
	d->fd = fd;
	d->path = path;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return error_set(e, -EINVAL, "'%.200s' is no regular file", path);
	d->size = (uint64_t)st.st_size;
	r = read_all(d, e);
	d->path = NULL;
	if (r == 0)
		*ret = take_ptr(&d);
	return r;
}

void jitdump_close(struct jitdump *d)
{
	close_fd(&d->fd);
	free(d->places);
	free(d->v);
	free(d);
}

const struct jitdump_code *jitdump_nth(const struct jitdump *d, size_t i)
{
	return i < d->n ? &d->v[i].c : NULL;
}

/* How many of `places` come until then, of processes and addresses up to these. */
static size_t places_until(const struct jitdump *d, uint32_t pid, uint64_t address)
{
	size_t from = 0, to = d->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		const struct jitdump_code *c = &d->v[d->places[middle]].c;

		if (c->pid < pid || (c->pid == pid && c->address <= address))
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

const struct jitdump_code *jitdump_find(const struct jitdump *d, uint32_t pid, uint64_t address,
					uint64_t time_ns)
{
	const struct code *until = NULL, *later = NULL;

	for (size_t i = places_until(d, pid, address); i--;) {
		const struct code *v = &d->v[d->places[i]];

		if (v->c.pid != pid || address - v->c.address >= d->longest)
			break;
		if (address - v->c.address >= v->c.size)
			continue;
		if (v->c.time_ns > time_ns)
			later = !later || v < later ? v : later;
		else
			until = !until || v > until ? v : until;
	}
	return until ? &until->c : later ? &later->c : NULL;
}

size_t jitdump_read(const struct jitdump *d, const struct jitdump_code *c, uint64_t address,
		    void *buf, size_t len)
{
	uint64_t skip = address - c->address;
	ssize_t n;

	if (address < c->address || skip >= c->size)
		return 0;
	if (len > c->size - skip)
		len = c->size - skip;
	n = pread(d->fd, buf, len, (off_t)(c->offset + skip));
	return n > 0 ? (size_t)n : 0;
}

void jitdump_name(const struct jitdump *d, const struct jitdump_code *c, char *buf, size_t size)
{
	const struct code *code = (const struct code *)(const void *)c;
	uint64_t n = c->offset - code->name_at;
	ssize_t got;

	buf[0] = '\0';
	if (c->offset <= code->name_at || !size)
		return;
	if (n > size - 1)
		n = size - 1;
	if (n > NAME_MAX_LEN)
		n = NAME_MAX_LEN;
	got = pread(d->fd, buf, n, (off_t)code->name_at);
	buf[got > 0 ? got : 0] = '\0';
}
