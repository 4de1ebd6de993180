// SPDX-License-Identifier: GPL-2.0-or-later
/* Capture files: both byte orders, both units of time, broken ones, and our own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "packet/pcap.h"

#define MICROS 0xa1b2c3d4u
#define NANOS  0xa1b23c4du

/* A file that is put together by hand, in either byte order. */
struct file {
	uint8_t b[512];
	size_t len;
	bool big;
};

static void put(struct file *f, uint32_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		f->b[f->len++] = (uint8_t)(v >> 8 * (f->big ? bytes - 1 - i : i));
}

static struct file begin(uint32_t magic, bool big, uint32_t link_type)
{
	struct file f = {.big = big};

	put(&f, magic, 4);
	put(&f, 2, 2);
	put(&f, 4, 2);
	put(&f, 0, 4);
	put(&f, 0, 4);
	put(&f, 65535, 4);
	put(&f, link_type, 4);
	return f;
}

static void add(struct file *f, uint32_t sec, uint32_t part, const char *data, uint32_t original)
{
	put(f, sec, 4);
	put(f, part, 4);
	put(f, (uint32_t)strlen(data), 4);
	put(f, original, 4);
	memcpy(f->b + f->len, data, strlen(data));
	f->len += strlen(data);
}

static void every_form_is_read(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		bool nanos = i & 1, big = i & 2;
		struct file f = begin(nanos ? NANOS : MICROS, big, PCAP_ETHERNET);
		struct pcap_packet p;
		struct error e;
		struct pcap r;

		add(&f, 1700000000, 999999, "first", 60);
		add(&f, 4294967295u, 0, "", 0);
		assert_int_equal(pcap_begin(&r, f.b, f.len, &e), 0);
		assert_int_equal(r.snap_len, 65535);
		assert_int_equal(pcap_next(&r, &p, &e), 1);
		assert_int_equal(p.len, 5);
		assert_int_equal(p.original_len, 60);
		assert_memory_equal(p.data, "first", 5);
		assert_int_equal(p.time_ns,
				 1700000000000000000ull + (nanos ? 999999ull : 999999000ull));
		assert_int_equal(pcap_next(&r, &p, &e), 1);
		assert_int_equal(p.len, 0);
		assert_int_equal(p.time_ns, 4294967295000000000ull);
		assert_int_equal(pcap_next(&r, &p, &e), 0);
		assert_int_equal(r.count, 2);
	}
}

static void others_are_refused(void **state)
{
	static const struct {
		uint32_t magic, link_type;
		const char *part;
	} cases[] = {
		{0x0a0d0d0a, PCAP_ETHERNET, "pcapng"},
		{0x12345678, PCAP_ETHERNET, "no pcap file"},
		{MICROS, 101, "not Ethernet frames (link type 101)"},
		{NANOS, 113, "not Ethernet frames (link type 113)"},
	};
	struct error e;
	struct pcap r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct file f = begin(cases[i].magic, false, cases[i].link_type);

		assert_int_equal(pcap_begin(&r, f.b, f.len, &e), -EINVAL);
		assert_non_null(strstr(e.text, cases[i].part));
	}
	assert_int_equal(pcap_begin(&r, "", 0, &e), -EINVAL);
	assert_non_null(strstr(e.text, "too short"));
}

/* Wherever a file is cut off, that is said, and what is whole is read. */
static void cut_files_are_read_up_to_there(void **state)
{
	struct file f = begin(MICROS, false, PCAP_ETHERNET);
	struct pcap_packet p;
	struct error e;
	struct pcap r;

	(void)state;
	add(&f, 1, 2, "one", 3);
	add(&f, 1, 2, "two", 3);
	for (size_t len = 24; len < f.len; len++) {
		int n = 0, got;

		assert_int_equal(pcap_begin(&r, f.b, len, &e), 0);
		while ((got = pcap_next(&r, &p, &e)) == 1)
			n++;
		assert_int_equal(n, (len - 24) / 19);
		assert_int_equal(got, (len - 24) % 19 ? -EINVAL : 0);
	}
	memset(f.b + 24 + 8, 0xff, 4); /* the first one's length */
	assert_int_equal(pcap_begin(&r, f.b, f.len, &e), 0);
	assert_int_equal(pcap_next(&r, &p, &e), -EINVAL);
	assert_non_null(strstr(e.text, "broken"));
}

static void what_is_written_is_read(void **state)
{
	const struct pcap_packet in[] = {
		{1700000000123456789ull, (const uint8_t *)"frame", 5, 1500},
		{0, (const uint8_t *)"", 0, 0},
	};
	struct pcap_packet p;
	struct error e;
	struct pcap r;
	char *buf;
	size_t len;
	FILE *f = open_memstream(&buf, &len);

	(void)state;
	pcap_put_header(f);
	for (size_t i = 0; i < ARRAY_SIZE(in); i++)
		pcap_put_packet(f, &in[i]);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(pcap_begin(&r, buf, len, &e), 0);
	for (size_t i = 0; i < ARRAY_SIZE(in); i++) {
		assert_int_equal(pcap_next(&r, &p, &e), 1);
		assert_int_equal(p.time_ns, in[i].time_ns);
		assert_int_equal(p.len, in[i].len);
		assert_int_equal(p.original_len, in[i].original_len);
		assert_memory_equal(p.data, in[i].data, p.len);
	}
	assert_int_equal(pcap_next(&r, &p, &e), 0);
	free(buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_is_read),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(cut_files_are_read_up_to_there),
		cmocka_unit_test(what_is_written_is_read),
	};

	return cmocka_run_group_tests_name("pcap", tests, NULL, NULL);
}
