/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Environment variables of the command line: --env and --env-file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tools/lib/assignments.c"

static int parse(const char *text, struct strv *ret, struct error *e)
{
	autofree char *copy = strdup(text);

	*ret = (struct strv){0};
	*e = (struct error){0};
	return assignments_parse(copy, "file", ret, e);
}

static void a_line_is_taken_as_it_stands(void **state)
{
	struct strv v;
	struct error e;

	(void)state;
	assert_int_equal(parse("A=1\n  B=two words \r\n# no\n\n\t#no\nC=\nD='x' # y", &v, &e), 0);
	assert_int_equal(v.n, 4);
	assert_string_equal(v.v[0], "A=1");
	assert_string_equal(v.v[1], "B=two words ");
	assert_string_equal(v.v[2], "C=");
	assert_string_equal(v.v[3], "D='x' # y");
	strv_free(&v);
}

static void a_name_alone_is_the_callers(void **state)
{
	struct strv v;
	struct error e;

	(void)state;
	setenv("AX_TEST_HAS", "x=y", 1);
	unsetenv("AX_TEST_HAS_NOT");
	assert_int_equal(parse("AX_TEST_HAS_NOT\nAX_TEST_HAS\n", &v, &e), 0);
	assert_int_equal(v.n, 1);
	assert_string_equal(v.v[0], "AX_TEST_HAS=x=y");
	strv_free(&v);
}

static void what_is_wrong_is_told_with_its_line(void **state)
{
	static const char *const wrong[] = {"A=1\n=2", "A=1\nA B=2", "\nnot a name"};
	struct strv v;
	struct error e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(parse(wrong[i], &v, &e), -EINVAL);
		assert_non_null(strstr(e.text, "file:2:"));
		strv_free(&v);
	}
}

static void files_come_first(void **state)
{
	char path[] = "/tmp/test_assignments.XXXXXX";
	struct strv files = {0}, given = {0}, v = {0};
	int fd = mkstemp(path);
	struct error e = {0};

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write_whole(fd, "A=file\n", 7), 0);
	assert_int_equal(strv_add(&files, path), 0);
	assert_int_equal(strv_add(&given, "A=given"), 0);
	assert_int_equal(assignments_collect(&files, &given, &v, &e), 0);
	assert_int_equal(v.n, 2);
	assert_string_equal(v.v[0], "A=file");
	assert_string_equal(v.v[1], "A=given");
	unlink(path);
	close(fd);
	strv_free(&v);
	assert_int_equal(assignments_collect(&files, &given, &v, &e), -ENOENT);
	strv_free(&v);
	strv_free(&files);
	strv_free(&given);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_taken_as_it_stands),
		cmocka_unit_test(a_name_alone_is_the_callers),
		cmocka_unit_test(what_is_wrong_is_told_with_its_line),
		cmocka_unit_test(files_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
