/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table printer and the text functions under it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tools/lib/text.c"
#include "tools/lib/table.c"

/* --- text --- */

static void test_escape(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"", ""},
		{"plain text \\ stays", "plain text \\ stays"},
		{"a\033[31mred\n\r\t", "a\\e[31mred\\n\\r\\t"},
		{"\001\177", "\\x01\\x7f"},
		{"caf\xc3\xa9 \xe6\x95\xb0 \xf0\x9f\x98\x80",
		 "caf\xc3\xa9 \xe6\x95\xb0 \xf0\x9f\x98\x80"},
		{"\xc2\x9b"
		 "2J",
		 "\\u{9b}2J"}, /* CSI as one character */
		{"\xe2\x80\xae"
		 "abc",
		 "\\u{202e}abc"}, /* right-to-left override */
		{"a\xe2\x80\x8b"
		 "b",
		 "a\\u{200b}b"},
		{"\xff\xfe", "\\xff\\xfe"},
		{"\xc3", "\\xc3"},	    /* cut short */
		{"\xc0\xaf", "\\xc0\\xaf"}, /* overlong */
		{"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},
		{"\xed\xa0\x80", "\\xed\\xa0\\x80"},	      /* surrogate */
		{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* beyond Unicode */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *got = text_escape(cases[i].in);

		assert_non_null(got);
		assert_string_equal(got, cases[i].out);
	}
}

/* However it is cut, a stream says what it would say whole. */
static void test_escape_stream(void **state)
{
	static const char in[] = "a\xc3\xa4\n\t\033[0m\xe2\x82\xac\xe2\x82"
				 "b\xf0\x9f\x98\x80\xf0\x9f\0\xff\xc3";
	static const char out[] = "a\xc3\xa4\n\t\\e[0m\xe2\x82\xac\\xe2\\x82"
				  "b\xf0\x9f\x98\x80\\xf0\\x9f\\x00\\xff\\xc3";

	(void)state;
	for (size_t piece = 1; piece < sizeof(in); piece++) {
		struct text_stream t = {0};
		autofree char *got = NULL;
		size_t size, len;
		FILE *f = open_memstream(&got, &size);

		assert_non_null(f);
		for (size_t at = 0; at < sizeof(in) - 1; at += len) {
			len = piece < sizeof(in) - 1 - at ? piece : sizeof(in) - 1 - at;
			text_stream_put(&t, in + at, len, f);
		}
		text_stream_end(&t, f);
		fclose(f);
		assert_string_equal(got, out);
	}
}

static void test_escape_every_byte(void **state)
{
	(void)state;
	for (int i = 1; i < 256; i++) {
		char in[2] = {(char)i};
		autofree char *got = text_escape(in);

		for (const char *p = got; *p; p++)
			assert_in_range((unsigned char)*p, 0x20, 0x7e);
	}
}

static void test_width(void **state)
{
	(void)state;
	assert_int_equal(text_width(""), 0);
	assert_int_equal(text_width("abc"), 3);
	assert_int_equal(text_width("caf\xc3\xa9"), 4);
	assert_int_equal(text_width("e\xcc\x81"), 1); /* combining accent */
	assert_int_equal(text_width("\xe6\x95\xb0\xe6\x8d\xae"), 4);
	assert_int_equal(text_width("\xf0\x9f\x98\x80"), 2);
	assert_int_equal(text_fit("abc", 2), 2);
	assert_int_equal(text_fit("abc", 9), 3);
	assert_int_equal(text_fit("\xe6\x95\xb0\xe6\x8d\xae", 3), 3);
	assert_int_equal(text_fit("\xe6\x95\xb0", 1), 0);
	assert_int_equal(text_fit("e\xcc\x81x", 1), 3); /* the accent stays with its letter */
}

static void test_units(void **state)
{
	char b[TEXT_SHORT];

	(void)state;
	assert_string_equal(text_age(-5, b), "0s");
	assert_string_equal(text_age(119.9, b), "119s");
	assert_string_equal(text_age(120, b), "2m");
	assert_string_equal(text_age(7199, b), "119m");
	assert_string_equal(text_age(7200, b), "2h");
	assert_string_equal(text_age(172800, b), "2d");
	assert_string_equal(text_bytes(0, b), "0");
	assert_string_equal(text_bytes(1023, b), "1023");
	assert_string_equal(text_bytes(1024, b), "1.0K");
	assert_string_equal(text_bytes(10240, b), "10K");
	assert_string_equal(text_bytes(1048575, b), "1.0M");
	assert_string_equal(text_bytes(UINT64_MAX, b), "16E");
	assert_string_equal(text_usec(999, b), "999us");
	assert_string_equal(text_usec(1200, b), "1.2ms");
	assert_string_equal(text_usec(3400000, b), "3.4s");
}

/* --- tables --- */

static const struct table_column columns[] = {
	{.title = "NAME", .keep = 9, .min = 4},
	{.title = "ID", .keep = 5, .right = true},
	{.title = "MORE", .keep = 2, .wide = true},
	{.title = "COMMAND", .keep = 3, .min = 8},
};

static void fill(struct table *t)
{
	table_init(t, columns, ARRAY_SIZE(columns));
	table_add(t, "web");
	table_addf(t, "%d", 7);
	table_add(t, NULL);
	table_add(t, "nginx -g daemon");
	table_add(t, "database");
	table_addf(t, "%d", 1234);
	table_add(t, "x");
	table_add(t, "");
}

static char *print(const struct table *t, struct table_style style)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	assert_int_equal(table_print(t, &style, f), 0);
	fclose(f);
	return text;
}

static void check(struct table_style style, const char *expected)
{
	CLEANUP(table_free) struct table t;
	autofree char *text = NULL;

	fill(&t);
	text = print(&t, style);
	assert_string_equal(text, expected);
}

static void test_unlimited(void **state)
{
	(void)state;
	check((struct table_style){.headers = true}, "NAME        ID  COMMAND\n"
						     "web          7  nginx -g daemon\n"
						     "database  1234  -\n");
	check((struct table_style){.headers = true, .wide = true},
	      "NAME        ID  MORE  COMMAND\n"
	      "web          7  -     nginx -g daemon\n"
	      "database  1234  x     -\n");
	check((struct table_style){0}, "web          7  nginx -g daemon\n"
				       "database  1234  -\n");
}

static void test_cut_and_drop(void **state)
{
	(void)state;
	check((struct table_style){.headers = true, .width = 31}, /* just fits */
	      "NAME        ID  COMMAND\n"
	      "web          7  nginx -g daemon\n"
	      "database  1234  -\n");
	check((struct table_style){.headers = true, .width = 26}, "NAME        ID  COMMAND\n"
								  "web          7  nginx -g …\n"
								  "database  1234  -\n");
	check((struct table_style){.headers = true, .width = 21}, /* COMMAND is at its least */
	      "NAME     ID  COMMAND\n"
	      "web       7  nginx -…\n"
	      "data…  1234  -\n");
	check((struct table_style){.headers = true,
				   .width = 19}, /* and goes; NAME is whole again */
	      "NAME        ID\n"
	      "web          7\n"
	      "database  1234\n");
	check((struct table_style){.headers = true, .width = 8}, "NAME\nweb\ndatabase\n");
	check((struct table_style){.headers = true, .width = 3}, "NA…\nweb\nda…\n");
	check((struct table_style){.headers = true, .width = 1}, "…\n…\n…\n");
}

static void test_wide_drops_nothing(void **state)
{
	(void)state;
	check((struct table_style){.headers = true, .width = 20, .wide = true},
	      "NAME    ID  MORE  COMMAND\n"
	      "web      7  -     nginx -…\n"
	      "dat…  1234  x     -\n");
}

static void test_never_too_wide(void **state)
{
	CLEANUP(table_free) struct table t;

	(void)state;
	fill(&t);
	table_add(&t, "\xe6\x95\xb0\xe6\x8d\xae\xe5\xba\x93\xe6\x95\xb0");
	table_add(&t, "5");
	table_add(&t, NULL);
	table_add(&t, "\xe6\x95\xb0\xe6\x8d\xae\xe5\xba\x93\xe6\x95\xb0\xe6\x8d\xae\xe5\xba\x93");
	for (unsigned width = 1; width < 60; width++) {
		autofree char *text =
			print(&t, (struct table_style){.headers = true, .width = width});
		char *save = NULL;
		int lines = 0;

		for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
			assert_true(text_width(l) <= width);
			lines++;
		}
		assert_int_equal(lines, 4);
	}
}

static void test_alignment_with_wide_characters(void **state)
{
	static const struct table_column two[] = {{.title = "A", .keep = 1, .min = 4},
						  {.title = "B", .keep = 2}};
	CLEANUP(table_free) struct table t;
	autofree char *text = NULL;

	(void)state;
	table_init(&t, two, ARRAY_SIZE(two));
	table_add(&t, "\xe6\x95\xb0\xe6\x8d\xae\xe5\xba\x93");
	table_add(&t, "1");
	table_add(&t, "abcdefgh");
	table_add(&t, "2");
	text = print(&t, (struct table_style){.headers = true, .width = 7});
	/* of the first, one double-width character and the dots: three of four columns */
	assert_string_equal(text, "A     B\n"
				  "\xe6\x95\xb0…   1\n"
				  "abc…  2\n");
}

static void test_colour(void **state)
{
	static const struct table_column two[] = {{.title = "A"}, {.title = "B"}};
	CLEANUP(table_free) struct table t;
	autofree char *coloured = NULL, *plain = NULL;

	(void)state;
	table_init(&t, two, ARRAY_SIZE(two));
	table_add(&t, "up");
	table_colour(&t, COLOUR_GREEN);
	table_add(&t, "x\033[2J");
	coloured = print(&t, (struct table_style){.headers = true, .colour = true});
	assert_string_equal(coloured, "\033[1mA\033[0m   \033[1mB\033[0m\n"
				      "\033[32mup\033[0m  x\\e[2J\n");
	plain = print(&t, (struct table_style){.headers = true});
	assert_null(strchr(plain, '\033'));
}

static void test_empty(void **state)
{
	CLEANUP(table_free) struct table t;
	autofree char *text = NULL;

	(void)state;
	table_init(&t, columns, ARRAY_SIZE(columns));
	text = print(&t, (struct table_style){.headers = true});
	assert_string_equal(text, "NAME  ID  COMMAND\n");
}

static void test_style_for_a_file(void **state)
{
	FILE *f = tmpfile();
	struct table_style s;

	(void)state;
	assert_non_null(f);
	s = table_style_for(f);
	fclose(f);
	assert_int_equal(s.width, 0);
	assert_false(s.colour);
	assert_true(s.headers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_escape_stream),
		cmocka_unit_test(test_escape_every_byte),
		cmocka_unit_test(test_width),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_unlimited),
		cmocka_unit_test(test_cut_and_drop),
		cmocka_unit_test(test_wide_drops_nothing),
		cmocka_unit_test(test_never_too_wide),
		cmocka_unit_test(test_alignment_with_wide_characters),
		cmocka_unit_test(test_colour),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_style_for_a_file),
	};

	return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
