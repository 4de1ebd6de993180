// SPDX-License-Identifier: GPL-2.0-or-later
/* Marks in rules: what is one, how it is written back, and in which lists they may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "rules/list.h"

static int parse_line(const char *line, struct rule *r, struct error *e)
{
	autofree char *copy = strdup(line);
	const char *words[32];
	char *save = NULL;
	size_t n = 0;

	assert_non_null(copy);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
		words[n++] = w;
	*e = (struct error){0};
	return rule_parse(words, n, r, e);
}

static void a_line_is_written_back(void **state)
{
	static const struct {
		const char *line, *back;
	} cases[] = {
		{"mark 16 action drop", "mark 0x10 action drop"},
		{"mark 0 action drop", "mark 0x0 action drop"},
		{"mark 0xABCDEF01 action drop", "mark 0xabcdef01 action drop"},
		{"action pass mark 0x0000000F/255,0xFFFFFFFF,0/0,4294967295/0xffffffff mac "
		 "02:00:00:00:00:01",
		 "mac 02:00:00:00:00:01 mark 0xf/0xff,0xffffffff,0x0/0x0,0xffffffff action pass"},
		{"payload quic-long mark 0x80000000/0x80000000 state new action drop",
		 "state new mark 0x80000000/0x80000000 payload quic-long action drop"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *back = NULL;
		struct rule r, again;
		struct error e;

		if (parse_line(cases[i].line, &r, &e) < 0)
			fail_msg("%s: %s", cases[i].line, e.text);
		back = rule_format(&r);
		assert_string_equal(back, cases[i].back);
		assert_int_equal(parse_line(back, &again, &e), 0);
		assert_true(rule_eq(&r, &again));
		rule_free(&r);
		rule_free(&again);
	}
}

static void what_is_no_mark_is_refused(void **state)
{
#define WANTED "marks of 32 bits such as 0x10 or 16, with a mask if wanted: 0x10/0xff"
	static const struct {
		const char *value, *quoted, *want;
	} cases[] = {
		{"0x", "0x", WANTED},
		{"010", "010", WANTED},
		{"0x123456789", "0x123456789", WANTED},
		{"4294967296", "4294967296", WANTED},
		{"-1", "-1", WANTED},
		{"0xg", "0xg", WANTED},
		{"0X10", "0X10", WANTED},
		{"0x10/", "0x10/", WANTED},
		{"/0xff", "/0xff", WANTED},
		{"0x10/0xff/0xff", "0x10/0xff/0xff", WANTED},
		{"1-5", "1-5", WANTED},
		{"@x", "@x", WANTED},
		{"none", "none", WANTED},
		{"1,2,x", "x", WANTED},
		{"0x1,0x110/0xff", "0x110/0xff", "a mark within its mask: 0x10/0xff"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *words[] = {"mark", cases[i].value, "action", "drop"};
		char want[256];
		struct error e = {0};
		struct rule r;

		assert_int_equal(rule_parse(words, ARRAY_SIZE(words), &r, &e), -EINVAL);
		snprintf(want, sizeof(want), "mark \"%s\" is not valid: use %s", cases[i].quoted,
			 cases[i].want);
		assert_string_equal(e.text, want);
	}
}

static void equal_means_the_same(void **state)
{
	static const char *const lines[] = {"mark 1 action drop",   "mark 1/1 action drop",
					    "mark 0/1 action drop", "mark 1,2 action drop",
					    "mark 2 action drop",   "action drop"};
	struct rule r[ARRAY_SIZE(lines)], copy;
	struct error e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_int_equal(parse_line(lines[i], &r[i], &e), 0);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(lines); j++)
			assert_int_equal(rule_eq(&r[i], &r[j]), i == j);
		assert_int_equal(rule_copy(&r[i], &copy), 0);
		assert_true(rule_eq(&r[i], &copy));
		rule_free(&copy);
	}
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		rule_free(&r[i]);
}

/* A list for what leaves is saved, restored and compared with its marks; one for what comes in is
 * none. */
static void they_are_in_lists_for_what_leaves(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	CLEANUP(rule_list_free) struct rule_list again;
	autofree void *data = NULL;
	struct error e = {0};
	struct rule r;
	size_t len;

	(void)state;
	rule_list_init(&l);
	rule_list_init(&again);
	assert_int_equal(parse_line("name m mark 0x10/0xff,5 action drop", &r, &e), 0);
	assert_int_equal(rule_list_insert(&l, 0, &r), 0);
	assert_int_equal(rule_list_check(&l, &e), -EINVAL);
	assert_non_null(strstr(e.text, "rule 1 (m) with mark and direction: ingress"));
	l.direction = DIRECTION_EGRESS;
	assert_int_equal(rule_list_check(&l, &e), 0);
	assert_int_equal(rule_list_save(&l, &data, &len), 0);
	assert_int_equal(rule_list_restore(data, len, &again), 0);
	assert_true(rule_list_eq(&l, &again));
	again.rules[0].in[AX_FIELD_MARK].marks[1].mask = 0xff;
	assert_false(rule_list_eq(&l, &again));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_written_back),
		cmocka_unit_test(what_is_no_mark_is_refused),
		cmocka_unit_test(equal_means_the_same),
		cmocka_unit_test(they_are_in_lists_for_what_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
