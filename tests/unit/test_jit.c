// SPDX-License-Identifier: GPL-2.0-or-later
/* Code that was made at run time: its file, and which versions of pages are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "probes/jit/capture.h"
#include "tests/lib/perf_writer.h"

struct seen {
	struct jitdump_code c;
	uint64_t seen_ns;
	unsigned n;
};

struct kept {
	int fd;
	struct jitdump_writer writer;
	struct jit_capture *capture;
	struct seen last;
};

static void on_written(void *arg, const struct jitdump_code *c, uint64_t seen_ns)
{
	struct seen *s = arg;

	s->c = *c;
	s->seen_ns = seen_ns;
	s->n++;
}

static void begin(struct kept *k, uint64_t max_bytes)
{
	struct jit_capture_options o = {.max_bytes = max_bytes, .written = on_written};
	struct error e = {0};

	*k = (struct kept){.fd = memfd_create("dump", MFD_CLOEXEC)};
	assert_true(k->fd >= 0);
	assert_int_equal(jitdump_begin(&k->writer, k->fd, 1, 5), 0);
	o.writer = &k->writer;
	o.arg = &k->last;
	assert_int_equal(jit_capture_new(&o, &k->capture, &e), 0);
}

static struct jitdump *read_back(const struct kept *k)
{
	struct jitdump *d = NULL;
	struct error e = {0};

	jit_capture_flush(k->capture);
	assert_int_equal(jitdump_open(fcntl(k->fd, F_DUPFD_CLOEXEC, 3), "dump", &d, &e), 0);
	return d;
}

static void end(struct kept *k)
{
	jit_capture_free(k->capture);
	close(k->fd);
}

static const uint8_t *page(uint8_t fill)
{
	static uint8_t p[JIT_PAGE];

	memset(p, fill, sizeof(p));
	return p;
}

static uint8_t byte_at(const struct jitdump *d, uint32_t pid, uint64_t address, uint64_t time)
{
	const struct jitdump_code *c = jitdump_find(d, pid, address, time);
	uint8_t b = 0;

	if (c)
		assert_int_equal(jitdump_read(d, c, address, &b, 1), 1);
	return b;
}

static void versions_are_found_by_time(void **state)
{
	struct kept k;
	struct jitdump *d;
	char name[32];

	(void)state;
	begin(&k, 1 << 20);
	jit_capture_page(k.capture, 7, 7, 100, 0x10000, page(1));
	jit_capture_page(k.capture, 7, 8, 200, 0x10000, page(2));
	jit_capture_page(k.capture, 9, 9, 150, 0x10000, page(3));
	d = read_back(&k);
	assert_int_equal(byte_at(d, 7, 0x10000, 100), 1);
	assert_int_equal(byte_at(d, 7, 0x10fff, 199), 1);
	assert_int_equal(byte_at(d, 7, 0x10000, 200), 2);
	assert_int_equal(byte_at(d, 7, 0x10000, UINT64_MAX), 2);
	assert_int_equal(byte_at(d, 7, 0x10000, 1), 1); /* the first one later */
	assert_int_equal(byte_at(d, 9, 0x10000, 1000), 3);
	assert_null(jitdump_find(d, 7, 0x11000, 300));
	assert_null(jitdump_find(d, 7, 0xffff, 300));
	assert_null(jitdump_find(d, 8, 0x10000, 300));
	assert_int_equal(jitdump_nth(d, 1)->time_ns, 150);
	assert_null(jitdump_nth(d, 3));
	jitdump_name(d, jitdump_nth(d, 0), name, sizeof(name));
	assert_string_equal(name, "jit 0x10000");
	jitdump_name(d, jitdump_nth(d, 0), name, 4);
	assert_string_equal(name, "jit");
	jitdump_close(d);
	end(&k);
}

static void pages_side_by_side_are_one_piece(void **state)
{
	struct kept k;

	(void)state;
	begin(&k, 1 << 20);
	for (unsigned i = 0; i < 3; i++)
		jit_capture_page(k.capture, 7, 7, 100, 0x10000 + i * JIT_PAGE, page((uint8_t)i));
	jit_capture_page(k.capture, 7, 7, 100, 0x20000, page(9));
	assert_int_equal(k.last.n, 1);
	assert_int_equal(k.last.c.size, 3 * JIT_PAGE);
	jit_capture_flush(k.capture);
	assert_int_equal(k.last.n, 2);
	assert_int_equal(k.last.c.address, 0x20000);
	end(&k);
}

static void only_what_differs_is_kept(void **state)
{
	struct kept k;
	const struct jit_counts *n;

	(void)state;
	begin(&k, 1 << 20);
	n = jit_capture_counts(k.capture);
	jit_capture_page(k.capture, 7, 7, 100, 0x10000, page(1));
	jit_capture_page(k.capture, 7, 7, 101, 0x10000, page(1));
	assert_int_equal(n->same, 1);
	/* a child knows its parent's pages, and goes its own way */
	jit_capture_fork(k.capture, 7, 8, 110);
	jit_capture_page(k.capture, 8, 8, 120, 0x10000, page(1));
	assert_int_equal(n->same, 2);
	jit_capture_page(k.capture, 8, 8, 130, 0x10000, page(2));
	jit_capture_page(k.capture, 7, 7, 140, 0x10000, page(1));
	assert_int_equal(n->same, 3);
	/* another program knows nothing */
	jit_capture_forget(k.capture, 7);
	jit_capture_page(k.capture, 7, 7, 150, 0x10000, page(1));
	jit_capture_flush(k.capture);
	assert_int_equal(n->pages, 3);
	end(&k);
}

/* Many pages, so that the table of them grows. */
static void each_page_is_told_apart(void **state)
{
	struct kept k;

	(void)state;
	begin(&k, 64 << 20);
	for (int round = 0; round < 2; round++)
		for (uint64_t i = 1; i <= 3000; i++)
			jit_capture_page(k.capture, 7, 7, 100, i * JIT_PAGE,
					 page((uint8_t)(i % 251)));
	jit_capture_flush(k.capture);
	assert_int_equal(jit_capture_counts(k.capture)->pages, 3000);
	assert_int_equal(jit_capture_counts(k.capture)->same, 3000);
	end(&k);
}

static void no_more_than_was_allowed(void **state)
{
	struct kept k;

	(void)state;
	begin(&k, 3 * JIT_PAGE + 1000);
	for (unsigned i = 0; i < 9; i++)
		jit_capture_page(k.capture, 7, 7, i, 0x10000, page((uint8_t)i));
	jit_capture_flush(k.capture);
	assert_int_equal(jit_capture_counts(k.capture)->pages, 3);
	assert_int_equal(jit_capture_counts(k.capture)->left_out, 6);
	end(&k);
}

/* Who forks a lot makes nobody hold a table for each child. */
static void no_more_pages_are_told_apart_than_was_allowed(void **state)
{
	struct jit_capture_options o = {.max_bytes = 1 << 20, .max_pages = 8};
	const struct jit_counts *n;
	struct error e = {0};
	struct kept k;

	(void)state;
	begin(&k, 1 << 20);
	jit_capture_free(k.capture);
	o.writer = &k.writer;
	assert_int_equal(jit_capture_new(&o, &k.capture, &e), 0);
	n = jit_capture_counts(k.capture);
	for (unsigned i = 1; i <= 3; i++)
		jit_capture_page(k.capture, 7, 7, 1, i * JIT_PAGE, page(1));
	jit_capture_fork(k.capture, 7, 8, 2);
	jit_capture_page(k.capture, 8, 8, 3, JIT_PAGE, page(1));
	assert_int_equal(n->same, 1);
	/* a third one does not fit: its pages are new, as far as they do */
	jit_capture_fork(k.capture, 7, 9, 4);
	for (unsigned i = 1; i <= 3; i++)
		jit_capture_page(k.capture, 9, 9, 5, i * JIT_PAGE, page(1));
	jit_capture_flush(k.capture);
	assert_int_equal(n->same, 1);
	assert_int_equal(n->pages, 5);
	assert_int_equal(n->too_many, 1);
	/* and who ends makes room */
	jit_capture_forget(k.capture, 8);
	jit_capture_page(k.capture, 9, 9, 6, 3 * JIT_PAGE, page(1));
	jit_capture_flush(k.capture);
	assert_int_equal(n->pages, 6);
	end(&k);
}

static void watched_memory_is_looked_at_again(void **state)
{
	size_t size = 16 * 65536; /* some pages of any system's */
	uint8_t *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t address = (uint64_t)(uintptr_t)at;
	uint32_t self = (uint32_t)getpid();
	const struct jit_counts *n;
	struct kept k;

	(void)state;
	assert_ptr_not_equal(at, MAP_FAILED);
	begin(&k, 16 << 20);
	n = jit_capture_counts(k.capture);
	jit_capture_watch(k.capture, self, address, address + size / 2, 1234);
	jit_capture_watch(k.capture, self, address + size / 2, address + size, 1234);
	jit_capture_look(k.capture, 0);
	assert_int_equal(n->pages, 0); /* nothing is there, and nothing comes by looking */
	memset(at + 3 * JIT_PAGE, 5, 1);
	jit_capture_look(k.capture, self);
	assert_true(n->pages > 0);
	assert_int_equal(n->looks, 2);
	assert_true(k.last.c.time_ns > 1234 && k.last.c.time_ns < k.last.seen_ns);
	jit_capture_look(k.capture, self + 1);
	assert_int_equal(n->looks, 2);
	jit_capture_unwatch(k.capture, self, address, address + size);
	memset(at + 3 * JIT_PAGE, 6, 1);
	k.last.n = 0;
	jit_capture_look(k.capture, self);
	assert_int_equal(k.last.n, 0);
	jit_capture_range(k.capture, self, address, address + size);
	assert_int_equal(k.last.n, 1);
	assert_int_equal(k.last.c.time_ns, k.last.seen_ns);
	end(&k);
	munmap(at, size);
}

/* What may only be executed is read as a debugger does; what is gone is counted, unless it is
 * known. */
static void hidden_memory_is_read_or_counted(void **state)
{
	size_t size = 65536;
	uint8_t *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t address = (uint64_t)(uintptr_t)at;
	uint32_t self = (uint32_t)getpid();
	const struct jit_counts *n;
	struct kept k;

	(void)state;
	assert_ptr_not_equal(at, MAP_FAILED);
	memset(at, 3, size);
	assert_int_equal(mprotect(at, size, PROT_EXEC), 0);
	begin(&k, 16 << 20);
	n = jit_capture_counts(k.capture);
	jit_capture_hidden(k.capture, self, address, address + size, 1234);
	assert_int_equal(n->pages, size / JIT_PAGE);
	assert_int_equal(k.last.c.time_ns, 1234);
	assert_int_equal(n->unread, 0);
	munmap(at, size);
	jit_capture_hidden(k.capture, self, address, address + size, 1235);
	assert_int_equal(n->unread, 0);
	jit_capture_hidden(k.capture, INT32_MAX, address, address + size, 1236);
	jit_capture_hidden(k.capture, INT32_MAX, 0, UINT64_MAX - JIT_PAGE, 1237);
	assert_int_equal(n->unread, 2);
	end(&k);
}

/* The record of what the kernel copied can come after a look that was later. */
static void what_is_told_late_keeps_its_time(void **state)
{
	size_t size = 65536;
	uint8_t *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t address = (uint64_t)(uintptr_t)at, seen;
	uint32_t self = (uint32_t)getpid();
	struct kept k;

	(void)state;
	assert_ptr_not_equal(at, MAP_FAILED);
	memset(at, 2, JIT_PAGE);
	begin(&k, 1 << 20);
	jit_capture_watch(k.capture, self, address, address + size, 1234);
	seen = time_mono_ns();
	jit_capture_look(k.capture, self);
	jit_capture_page(k.capture, self, self, seen, address, page(1));
	jit_capture_flush(k.capture);
	assert_int_equal(k.last.c.time_ns, seen);
	jit_capture_page(k.capture, self, self, time_mono_ns(), address, page(3));
	jit_capture_flush(k.capture);
	assert_true(k.last.c.time_ns > seen && k.last.c.time_ns < k.last.seen_ns);
	end(&k);
	munmap(at, size);
}

/* A short piece among long ones, and each byte is that of the newest one. */
static void pieces_that_overlap_are_found(void **state)
{
	struct kept k;
	struct jitdump *d;

	(void)state;
	begin(&k, 1 << 20);
	for (unsigned i = 0; i < 8; i++)
		jit_capture_page(k.capture, 7, 7, 100, 0x10000 + i * JIT_PAGE, page(1));
	jit_capture_page(k.capture, 7, 7, 200, 0x13000, page(2));
	jit_capture_page(k.capture, 7, 7, 300, 0x12000, page(3));
	jit_capture_page(k.capture, 7, 7, 300, 0x13000, page(3));
	jit_capture_page(k.capture, 6, 6, 400, 0x12000, page(4));
	jit_capture_page(k.capture, 8, 8, 50, 0x11000, page(5));
	d = read_back(&k);
	assert_int_equal(byte_at(d, 7, 0x11fff, 1000), 1);
	assert_int_equal(byte_at(d, 7, 0x13000, 199), 1);
	assert_int_equal(byte_at(d, 7, 0x13000, 299), 2);
	assert_int_equal(byte_at(d, 7, 0x12fff, 299), 1);
	assert_int_equal(byte_at(d, 7, 0x13fff, 300), 3);
	assert_int_equal(byte_at(d, 7, 0x17fff, 1000), 1);
	assert_null(jitdump_find(d, 7, 0x18000, 1000));
	assert_null(jitdump_find(d, 6, 0x11fff, 1000));
	jitdump_close(d);
	end(&k);
}

static int open_bytes(const void *b, size_t n, struct error *e)
{
	struct jitdump *d = NULL;
	int r = jitdump_open(perf_memory_file(b, n), "x", &d, e);

	if (r == 0)
		jitdump_close(d);
	return r;
}

static void what_is_no_dump_is_refused(void **state)
{
	uint32_t h[10] = {0x4a695444, 1, 40, 62}, bad[14] = {0};
	struct error e = {0};

	(void)state;
	assert_int_equal(open_bytes(h, sizeof(h), &e), 0);
	assert_int_equal(open_bytes(h, 39, &e), -EINVAL);
	memcpy(bad, h, sizeof(h));
	bad[11] = 8; /* a record that is shorter than its head */
	assert_int_equal(open_bytes(bad, sizeof(bad), &e), -EINVAL);
	assert_non_null(strstr(e.text, "broken at byte 40"));
	bad[11] = 4000; /* one that was not written whole */
	assert_int_equal(open_bytes(bad, sizeof(bad), &e), 0);
	h[1] = 2;
	assert_int_equal(open_bytes(h, sizeof(h), &e), -EINVAL);
	assert_non_null(strstr(e.text, "version 2"));
	h[0] = 0x4454694a; /* of the other byte order */
	assert_int_equal(open_bytes(h, sizeof(h), &e), -EINVAL);
}

static void moved_code_is_found_where_it_went(void **state)
{
	struct kept k;
	struct jitdump *d;
	struct {
		uint32_t id, size;
		uint64_t time;
		uint32_t pid, tid;
		uint64_t vma, from, to, n, index;
	} move = {1, sizeof(move), 300, 7, 7, 0x50000, 0x10000, 0x50000, JIT_PAGE, 0};

	(void)state;
	begin(&k, 1 << 20);
	jit_capture_page(k.capture, 7, 7, 100, 0x10000, page(1));
	jit_capture_flush(k.capture);
	assert_int_equal(write(k.fd, &move, sizeof(move)), sizeof(move));
	d = read_back(&k);
	assert_int_equal(byte_at(d, 7, 0x50010, 300), 1);
	assert_int_equal(byte_at(d, 7, 0x10010, 300), 1);
	jitdump_close(d);
	end(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_are_found_by_time),
		cmocka_unit_test(pages_side_by_side_are_one_piece),
		cmocka_unit_test(only_what_differs_is_kept),
		cmocka_unit_test(each_page_is_told_apart),
		cmocka_unit_test(no_more_than_was_allowed),
		cmocka_unit_test(no_more_pages_are_told_apart_than_was_allowed),
		cmocka_unit_test(watched_memory_is_looked_at_again),
		cmocka_unit_test(hidden_memory_is_read_or_counted),
		cmocka_unit_test(what_is_told_late_keeps_its_time),
		cmocka_unit_test(pieces_that_overlap_are_found),
		cmocka_unit_test(what_is_no_dump_is_refused),
		cmocka_unit_test(moved_code_is_found_where_it_went),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
