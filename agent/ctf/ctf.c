// SPDX-License-Identifier: GPL-2.0-or-later
/* Events, which wait in memory until no earlier one is to be expected. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "ctf/priv.h"

/* --- the directory --- */

static int check_empty(int fd)
{
	DIR *d = fdopendir(dup(fd));
	struct dirent *de;
	bool empty = true;

	if (!d)
		return -errno;
	while ((de = readdir(d)))
		empty &= streq(de->d_name, ".") || streq(de->d_name, "..");
	closedir(d);
	return empty ? 0 : -ENOTEMPTY;
}

static int open_directory(const char *path, struct error *e)
{
	autoclose int fd = -1;
	int r;

	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return error_set(e, -errno, "the directory '%.200s' cannot be made: %s", path,
				 strerror(errno));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return error_set(e, -errno, "'%.200s' cannot be written to: %s", path,
				 strerror(errno));
	r = check_empty(fd);
	if (r == -ENOTEMPTY)
		return error_set(e, r,
				 "the directory '%.200s' is not empty: a trace in CTF is a "
				 "directory of its own",
				 path);
	return r < 0 ? error_set(e, r, "the directory '%.200s' cannot be read: %s", path,
				 strerror(-r))
		     : take_fd(&fd);
}

void ctf_free(struct ctf *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_streams; i++) {
		close_fd(&c->streams[i].fd);
		free(c->streams[i].packet.v);
	}
	close_fd(&c->directory);
	free(c->metadata.v);
	free(c->arena.v);
	free(c->v);
	free(c);
}

int ctf_open(const char *directory, int64_t offset_ns, struct ctf **ret, struct error *e)
{
	struct ctf *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return error_set(e, -ENOMEM, "out of memory");
	c->directory = open_directory(directory, e);
	if (c->directory < 0) {
		r = c->directory;
		ctf_free(c);
		return r;
	}
	if (getrandom(c->uuid, sizeof(c->uuid), 0) != sizeof(c->uuid))
		memset(c->uuid, 0, sizeof(c->uuid));
	c->uuid[6] = (uint8_t)((c->uuid[6] & 0x0f) | 0x40); /* a random one */
	c->uuid[8] = (uint8_t)((c->uuid[8] & 0x3f) | 0x80);
	r = metadata_begin(c, offset_ns);
	if (r == 0) {
		*ret = c;
		return 0;
	}
	ctf_free(c);
	return error_set(e, r, "the trace in '%.200s' cannot be written: %s", directory,
			 strerror(-r));
}

int ctf_add_event(struct ctf *c, const char *name, const struct ctf_field *fields, size_t n)
{
	int r;

	if (n > CTF_FIELDS_MAX)
		return -E2BIG;
	r = metadata_add(c, name, fields, n);
	return r < 0 ? r : c->events++;
}

/* --- events --- */

static void put(struct ctf *c, const void *bytes, size_t n)
{
	char *at = bytes_add(&c->arena, n);

	if (at)
		memcpy(at, bytes, n);
	else
		c->error = ENOMEM;
}

static void put_u32(struct ctf *c, uint32_t v)
{
	put(c, &v, sizeof(v));
}

void ctf_number(struct ctf *c, uint64_t v)
{
	put(c, &v, sizeof(v));
}

void ctf_float(struct ctf *c, double v)
{
	put(c, &v, sizeof(v));
}

/* The length of the character at s, 0: it begins none. */
static size_t utf8_length(const unsigned char *s, size_t len)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	if (s[0] > 0xf4 || n > len)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

void ctf_string(struct ctf *c, const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;

	len = strnlen(s, len);
	while (len) {
		size_t n = utf8_length(p, len);
		const unsigned char latin[] = {0xc0 | p[0] >> 6, 0x80 | (p[0] & 0x3f)};

		if (n)
			put(c, p, n);
		else
			put(c, latin, sizeof(latin));
		n = n ? n : 1;
		p += n;
		len -= n;
	}
	put(c, "", 1);
}

void ctf_strings(struct ctf *c, uint32_t n)
{
	put_u32(c, n);
}

void ctf_bytes(struct ctf *c, const char *bytes, size_t len)
{
	put_u32(c, (uint32_t)len);
	put(c, bytes, len);
}

static struct waiting *add_waiting(struct ctf *c)
{
	size_t size = c->size ? 2 * c->size : 1024;
	struct waiting *v;

	if (c->n < c->size)
		return &c->v[c->n];
	v = realloc(c->v, size * sizeof(*v));
	if (!v)
		return NULL;
	c->v = v;
	c->size = size;
	return &v[c->n];
}

void ctf_begin(struct ctf *c, int event, const struct ctf_context *x)
{
	struct waiting *w = add_waiting(c);

	if (!w) {
		c->error = ENOMEM;
		return;
	}
	*w = (struct waiting){.time_ns = x->time_ns, .number = c->number++, .at = c->arena.n};
	put_u32(c, (uint32_t)event);
	ctf_number(c, x->time_ns);
	put_u32(c, x->pid);
	put_u32(c, x->tid);
	put_u32(c, x->cpu);
	ctf_string(c, x->comm, x->comm_len);
	ctf_string(c, x->unread, strlen(x->unread));
}

void ctf_end(struct ctf *c)
{
	if (c->error)
		return;
	c->v[c->n].len = c->arena.n - c->v[c->n].at;
	c->n++;
}

/* --- their order --- */

static int by_time(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

/* What goes on waiting moves to the beginning, in the order in which it stands. */
static int keep_rest(struct ctf *c, size_t given)
{
	struct bytes rest = {0};

	for (size_t i = given; i < c->n; i++) {
		struct waiting *w = &c->v[i];
		char *at = bytes_add(&rest, w->len);

		if (!at) {
			free(rest.v);
			return -ENOMEM;
		}
		memcpy(at, c->arena.v + w->at, w->len);
		w->at = rest.n - w->len;
		c->v[i - given] = *w;
	}
	c->n -= given;
	free(c->arena.v);
	c->arena = rest;
	return 0;
}

/* When a trace begins: with its first event, or, if there is none yet, with what may still come. */
static uint64_t first_time(const struct ctf *c, uint64_t until_ns)
{
	uint64_t first = until_ns == UINT64_MAX ? time_mono_ns() : until_ns;

	return c->n && c->v[0].time_ns < first ? c->v[0].time_ns : first;
}

static int give(struct ctf *c, uint64_t until_ns)
{
	size_t given = 0;
	int r = 0;

	if (c->n)
		qsort(c->v, c->n, sizeof(*c->v), by_time);
	if (!c->n_streams)
		r = stream_begin(c, first_time(c, until_ns));
	while (r == 0 && given < c->n && c->v[given].time_ns <= until_ns)
		r = stream_put(c, &c->v[given++]);
	return r < 0 || !given ? r : keep_rest(c, given);
}

static int write_all(struct ctf *c)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n_streams; i++)
		if (stream_has_news(c, &c->streams[i]))
			r = stream_write(c, &c->streams[i]);
	return r;
}

int ctf_flush(struct ctf *c, uint64_t until_ns, uint64_t discarded, bool all)
{
	int r;

	if (c->error)
		return -c->error;
	c->discarded = discarded;
	r = give(c, c->arena.n > CTF_WAITING_BYTES ? UINT64_MAX : until_ns);
	if (r == 0 && all)
		r = write_all(c);
	if (r < 0)
		c->error = -r;
	return r;
}

uint64_t ctf_late(const struct ctf *c)
{
	return c->late;
}
