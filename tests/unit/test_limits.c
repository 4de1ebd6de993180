/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an app may use, as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "config/limits.h"

static void sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t max, is;
	} cases[] = {
		{"0", 10, 0},
		{"10", 10, 10},
		{"11", 10, 0},
		{"1K", 1024, 1024},
		{"1k", 1023, 0},
		{"64m", CONFIG_MEMORY_MAX, 64ull << 20},
		{"1024G", CONFIG_MEMORY_MAX, 1ull << 40},
		{"1025G", CONFIG_MEMORY_MAX, 0},
		{"18446744073709551617", UINT64_MAX / 16, 0},
		{"1KB", 1 << 20, 0},
		{"K", 1 << 20, 0},
		{"", 1, 0},
		{"-1", 1, 0},
		{"1.5G", CONFIG_MEMORY_MAX, 0},
		{" 1", 10, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(size_parse(cases[i].text, cases[i].max), cases[i].is);
}

static void processors(void **state)
{
	static const char *const wrong[] = {"",	  "0",	  "0.009", "1.",  ".5",	    "1.5x",
					    "-1", "4097", "1e3",   "1,5", "1.2345", "99999999999"};
	static const struct {
		const char *text;
		uint32_t is;
	} right[] = {{"1", 1000},    {"1.5", 1500},	{"0.01", 10},
		     {"0.999", 999}, {"4096", 4096000}, {"2.050", 2050}};
	uint32_t v;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		assert_null(want_cpus(right[i].text, &v));
		assert_int_equal(v, right[i].is);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_non_null(want_cpus(wrong[i], &v));
}

static void processes(void **state)
{
	uint32_t v = 0;

	(void)state;
	assert_null(want_pids("4194304", &v));
	assert_int_equal(v, 4194304);
	assert_non_null(want_pids("4194305", &v));
	assert_non_null(want_pids("0", &v));
	assert_non_null(want_pids("", &v));
	assert_non_null(want_pids("1 ", &v));
	assert_non_null(want_pids("99999999999999999999", &v));
}

static void volumes(void **state)
{
	static const char *const wrong[] = {
		"",	"/a",	  ":/a",    "/a:",     "a:/b",	     "/a:b",
		"/a:/", "/a:///", "/a:/b:", "/a:/b:x", "/a:/b:ro:ro"};
	static char longest[2 * VOLUME_PATH_MAX + 8];
	struct volume v;

	(void)state;
	assert_null(want_volume("/a b:/c", &v));
	assert_string_equal(v.source, "/a b");
	assert_string_equal(v.target, "/c");
	assert_false(v.read_only);
	assert_null(want_volume("/:/c:ro", &v));
	assert_string_equal(v.source, "/");
	assert_true(v.read_only);
	assert_null(want_volume("/a:/c:rw", &v));
	assert_false(v.read_only);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_non_null(want_volume(wrong[i], &v));
	memset(longest, 'x', VOLUME_PATH_MAX);
	longest[0] = '/';
	strcpy(longest + VOLUME_PATH_MAX, ":/c");
	assert_non_null(want_volume(longest, &v));
	strcpy(longest + VOLUME_PATH_MAX - 1, ":/c");
	assert_null(want_volume(longest, &v));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(processors),
		cmocka_unit_test(processes),
		cmocka_unit_test(volumes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
