// SPDX-License-Identifier: GPL-2.0-or-later
/* A library that is opened when it is needed is there with all its functions, or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/library.h"

struct math {
	double (*cos)(double x);
	double (*pow)(double x, double y);
};

static const struct library libm = {
	.file = "libm.so.6",
	.name = "libm",
	.package = "libc6",
	.does = "angles are reckoned",
};

static void all_functions_are_found(void **state)
{
	static const struct library_function functions[] = {
		{"pow", offsetof(struct math, pow)},
		{"cos", offsetof(struct math, cos)},
	};
	struct math math = {0};
	struct error e = {0};

	(void)state;
	assert_int_equal(library_open(&libm, functions, ARRAY_SIZE(functions), &math, &e), 0);
	assert_true(math.cos(0) == 1);
	assert_true(math.pow(3, 2) == 9);
}

static void a_function_that_is_not_there_is_named(void **state)
{
	static const struct library_function functions[] = {
		{"cos", offsetof(struct math, cos)},
		{"ax_no_such_function", offsetof(struct math, pow)},
	};
	struct math math = {0};
	struct error e = {0};

	(void)state;
	assert_int_equal(library_open(&libm, functions, ARRAY_SIZE(functions), &math, &e),
			 -ENOTSUP);
	assert_non_null(strstr(e.text, "libm has no function ax_no_such_function"));
	assert_null(math.pow);
}

static void a_library_that_is_not_there_names_its_package(void **state)
{
	static const struct library none = {
		.file = "libax-no-such-library.so.1",
		.name = "libnone",
		.package = "libnone1",
		.does = "nothing is done",
	};
	struct math math = {0};
	struct error e = {0};

	(void)state;
	assert_int_equal(library_open(&none, NULL, 0, &math, &e), -ENOTSUP);
	assert_string_equal(e.text, "nothing is done by the library libnone, which is missing: "
				    "install Debian's package libnone1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_functions_are_found),
		cmocka_unit_test(a_function_that_is_not_there_is_named),
		cmocka_unit_test(a_library_that_is_not_there_names_its_package),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
