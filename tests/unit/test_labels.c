// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/labels.h"

#define A63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static struct labels parse(const char *s)
{
	struct labels l;

	assert_int_equal(labels_parse(s, &l, NULL), 0);
	return l;
}

static void labels_are_parsed_sorted_and_formatted(void **state)
{
	static const struct {
		const char *text, *formatted;
	} cases[] = {
		{"", ""},
		{"a=b", "a=b"},
		{"a=", "a="},
		{"zone=eu,app=web", "app=web,zone=eu"},
		{"a=1,a-b=2,a.b=3,a_b=4,a/b=5,ab=6,a0=7,aB=8",
		 "a-b=2,a.b=3,a/b=5,a0=7,a=1,aB=8,a_b=4,ab=6"},
		{"example.com/role=db_1", "example.com/role=db_1"},
		{A63 "=" A63, A63 "=" A63},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct labels l = parse(cases[i].text);
		autofree char *s = labels_format(&l);

		assert_string_equal(s, cases[i].formatted);
		labels_free(&l);
		assert_int_equal(l.n, 0);
	}
}

static void what_is_no_label_is_refused(void **state)
{
	static const struct {
		const char *text, *sentence;
	} cases[] = {
		{"a", "label \"a\" must have the form key=value"},
		{"a=b,", "a label must follow the comma at the end"},
		{",a=b", "label \"\" must have the form key=value"},
		{"a=b,,c=d", "label \"\" must have the form key=value"},
		{",", "label \"\" must have the form key=value"},
		{"=b", "label key \"\" must be 1 to 63 letters, digits or . _ / -"},
		{"a b=c", "label key \"a b\" must be 1 to 63 letters, digits or . _ / -"},
		{"a=b=c",
		 "value \"b=c\" of label \"a\" must be 0 to 63 letters, digits or . _ / -"},
		{"a=b, c=d", "label key \" c\" must be 1 to 63 letters, digits or . _ / -"},
		{"a=\303\244",
		 "value \"\303\244\" of label \"a\" must be 0 to 63 letters, digits or . _ / -"},
		{"a" A63 "=b", "label key \"a" A63 "\" must be 1 to 63 letters, digits or . _ / -"},
		{"a=a" A63,
		 "value \"a" A63 "\" of label \"a\" must be 0 to 63 letters, digits or . _ / -"},
		{"a=b,c=d,a=e", "label \"a\" is given twice, give it one value"},
		{"a=b,a=b", "label \"a\" is given twice, give it one value"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct labels l = {.n = 77};
		struct error e = {0};

		assert_int_equal(labels_parse(cases[i].text, &l, &e), -EINVAL);
		assert_string_equal(e.text, cases[i].sentence);
		assert_int_equal(e.code, -EINVAL);
		assert_int_equal(l.n, 77);
	}
}

static void a_key_has_one_value(void **state)
{
	struct labels l = {0};
	struct error e;

	(void)state;
	assert_int_equal(labels_add(&l, "b", "1", &e), 0);
	assert_int_equal(labels_add(&l, "a", "2", &e), 0);
	assert_int_equal(labels_add(&l, "b-c", "3", &e), 0);
	assert_int_equal(labels_add(&l, "b", "1", &e), -EEXIST);
	assert_int_equal(labels_add(&l, "b", "9", &e), -EEXIST);
	assert_int_equal(labels_add(&l, "b", "x y", &e), -EINVAL);
	assert_int_equal(l.n, 3);
	assert_string_equal(l.items[0], "a=2");
	assert_string_equal(l.items[1], "b-c=3");
	assert_string_equal(l.items[2], "b=1");
	labels_free(&l);
}

static void there_is_a_limit(void **state)
{
	struct labels l = {0};
	struct error e;
	char key[16];

	(void)state;
	for (int i = 0; i < 256; i++) {
		snprintf(key, sizeof(key), "k%d", (i * 37) % 256);
		assert_int_equal(labels_add(&l, key, "v", &e), 0);
	}
	for (size_t i = 1; i < l.n; i++)
		assert_true(strcmp(l.items[i - 1], l.items[i]) < 0);
	assert_int_equal(labels_add(&l, "more", "v", &e), -E2BIG);
	assert_int_equal(l.n, 256);
	labels_free(&l);
}

static void sets_are_compared(void **state)
{
	struct labels none = parse(""), part = parse("b=2"), all = parse("a=1,b=2,c=3"),
		      same = parse("c=3,b=2,a=1"), other = parse("b=3"), copy;

	(void)state;
	assert_true(labels_has(&all, "b=2"));
	assert_false(labels_has(&all, "b=3"));
	assert_false(labels_has(&all, "b="));
	assert_false(labels_has(&all, "b"));
	assert_false(labels_has(&all, "b=22"));
	assert_false(labels_has(&none, "b=2"));

	assert_true(labels_subset(&none, &all));
	assert_true(labels_subset(&none, &none));
	assert_true(labels_subset(&part, &all));
	assert_false(labels_subset(&all, &part));
	assert_false(labels_subset(&other, &all));

	assert_true(labels_eq(&all, &same));
	assert_false(labels_eq(&all, &part));
	assert_false(labels_eq(&part, &other));

	assert_int_equal(labels_copy(&all, &copy), 0);
	assert_true(labels_eq(&all, &copy));
	assert_ptr_not_equal(all.items, copy.items);
	labels_free(&copy);
	assert_int_equal(labels_copy(&none, &copy), 0);
	assert_int_equal(copy.n, 0);
	labels_free(&copy);
	labels_free(&none);
	labels_free(&part);
	labels_free(&all);
	labels_free(&same);
	labels_free(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_are_parsed_sorted_and_formatted),
		cmocka_unit_test(what_is_no_label_is_refused),
		cmocka_unit_test(a_key_has_one_value),
		cmocka_unit_test(there_is_a_limit),
		cmocka_unit_test(sets_are_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
