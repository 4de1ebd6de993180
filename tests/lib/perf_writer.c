// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "tests/lib/perf_writer.h"

enum { HEADER_ATTR = 64, HEADER_FEATURE = 80, COMPRESSED = 81, HOSTNAME = 3, EVENT_DESC = 12 };
#define ATTR_SIZE   112u
#define FILE_HEADER 104u

static void check(bool good)
{
	if (!good)
		abort();
}

void perf_writer_free(struct perf_writer *w)
{
	free(w->b);
	*w = (struct perf_writer){0};
}

static uint8_t *room(struct perf_writer *w, size_t n)
{
	if (w->max - w->n < n) {
		w->max = 2 * w->max + n;
		w->b = realloc(w->b, w->max);
		check(w->b != NULL);
	}
	w->n += n;
	return w->b + w->n - n;
}

static void set(const struct perf_writer *w, uint8_t *at, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		at[i] = (uint8_t)(v >> 8 * (w->big ? bytes - 1 - i : i));
}

void perf_put(struct perf_writer *w, uint64_t v, unsigned bytes)
{
	set(w, room(w, bytes), v, bytes);
}

void perf_put_bytes(struct perf_writer *w, const void *b, size_t n)
{
	if (n)
		memcpy(room(w, n), b, n);
}

void perf_put_text(struct perf_writer *w, const char *s, size_t size)
{
	uint8_t *at = room(w, size);

	memset(at, 0, size);
	memcpy(at, s, strnlen(s, size));
}

size_t perf_begin_event(struct perf_writer *w, uint32_t type, uint16_t misc)
{
	size_t begin = w->n;

	perf_put(w, type, 4);
	perf_put(w, misc, 2);
	perf_put(w, 0, 2);
	return begin;
}

void perf_end_event(struct perf_writer *w, size_t begin)
{
	check(w->n - begin <= UINT16_MAX);
	set(w, w->b + begin + 6, w->n - begin, 2);
}

void perf_put_sample_id(struct perf_writer *w, uint32_t pid, uint64_t time, uint32_t cpu)
{
	perf_put(w, pid, 4);
	perf_put(w, pid + 1, 4);
	perf_put(w, time, 8);
	perf_put(w, cpu, 4);
	perf_put(w, 0, 4);
	perf_put(w, PERF_WRITER_ID, 8);
}

/* sample_id_all and disabled; bit fields are numbered from the other end there */
static uint64_t flags_of(const struct perf_writer *w)
{
	return w->big ? 1ull << 63 | 1ull << (63 - 18) : 1 | 1 << 18;
}

static void put_attr(struct perf_writer *w)
{
	size_t begin = w->n;

	perf_put(w, 1, 4); /* software */
	perf_put(w, ATTR_SIZE, 4);
	perf_put(w, 0, 8); /* cpu-clock */
	perf_put(w, 250000, 8);
	perf_put(w, PERF_WRITER_SAMPLE, 8);
	perf_put(w, 4, 8); /* ID */
	perf_put(w, flags_of(w), 8);
	perf_put_text(w, "", ATTR_SIZE - (w->n - begin));
}

static void put_ids(struct perf_writer *w)
{
	perf_put(w, PERF_WRITER_ID, 8);
	perf_put(w, PERF_WRITER_ID + 1, 8);
}

static void put_hostname(struct perf_writer *w)
{
	perf_put(w, 8, 4);
	perf_put_text(w, "box", 8);
}

static void put_desc(struct perf_writer *w)
{
	perf_put(w, 1, 4);
	perf_put(w, ATTR_SIZE, 4);
	put_attr(w);
	perf_put(w, 2, 4);
	perf_put(w, 8, 4);
	perf_put_text(w, "clock", 8);
	put_ids(w);
}

void perf_write_file(struct perf_writer *to, const struct perf_writer *events)
{
	size_t attr = FILE_HEADER, ids = attr + ATTR_SIZE + 16, data = ids + 16, tables, at;

	to->big = events->big;
	perf_put(to, 0x32454c4946524550ull, 8);
	perf_put(to, FILE_HEADER, 8);
	perf_put(to, ATTR_SIZE + 16, 8);
	perf_put(to, attr, 8);
	perf_put(to, ATTR_SIZE + 16, 8);
	perf_put(to, data, 8);
	perf_put(to, events->n, 8);
	perf_put(to, 0, 8);
	perf_put(to, 0, 8);
	perf_put(to, 1 << HOSTNAME | 1 << EVENT_DESC, 8);
	perf_put_text(to, "", 24);
	put_attr(to);
	perf_put(to, ids, 8);
	perf_put(to, 16, 8);
	put_ids(to);
	perf_put_bytes(to, events->b, events->n);
	tables = to->n;
	perf_put_text(to, "", 32);
	at = to->n;
	put_hostname(to);
	set(to, to->b + tables, at, 8);
	set(to, to->b + tables + 8, to->n - at, 8);
	at = to->n;
	put_desc(to);
	set(to, to->b + tables + 16, at, 8);
	set(to, to->b + tables + 24, to->n - at, 8);
}

void perf_write_pipe(struct perf_writer *to, const struct perf_writer *events)
{
	size_t begin;

	to->big = events->big;
	perf_put(to, 0x32454c4946524550ull, 8);
	perf_put(to, 16, 8);
	begin = perf_begin_event(to, HEADER_ATTR, 0);
	put_attr(to);
	put_ids(to);
	perf_end_event(to, begin);
	begin = perf_begin_event(to, HEADER_FEATURE, 0);
	perf_put(to, HOSTNAME, 8);
	put_hostname(to);
	perf_end_event(to, begin);
	begin = perf_begin_event(to, HEADER_FEATURE, 0);
	perf_put(to, EVENT_DESC, 8);
	put_desc(to);
	perf_end_event(to, begin);
	perf_put_bytes(to, events->b, events->n);
}

void perf_write_packed(struct perf_writer *to, const struct perf_writer *events, size_t piece,
		       uint32_t type)
{
	ZSTD_CStream *z = ZSTD_createCStream();
	static char buf[60000];

	check(z != NULL);
	to->big = events->big;
	for (size_t at = 0; at < events->n;) {
		size_t n = events->n - at < piece ? events->n - at : piece, begin, left;
		ZSTD_inBuffer in = {events->b + at, n, 0};
		ZSTD_outBuffer out = {buf, sizeof(buf), 0};

		left = ZSTD_compressStream2(z, &out, &in, ZSTD_e_flush);
		check(left == 0 && in.pos == n);
		begin = perf_begin_event(to, type, 0);
		if (type != COMPRESSED)
			perf_put(to, out.pos, 8);
		perf_put_bytes(to, buf, out.pos);
		if (type != COMPRESSED)
			perf_put_text(to, "", (8 - out.pos % 8) % 8);
		perf_end_event(to, begin);
		at += n;
	}
	ZSTD_freeCStream(z);
}

int perf_memory_file(const void *b, size_t n)
{
	int fd = memfd_create("perf.data", MFD_CLOEXEC);

	check(fd >= 0 && write(fd, b, n) == (ssize_t)n && lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}
