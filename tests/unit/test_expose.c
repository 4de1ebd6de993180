// SPDX-License-Identifier: GPL-2.0-or-later
/* Exposed ports as text: what is understood, what is said back, and what clashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "config/expose.h"

static void is_text(const char *from, const char *to)
{
	CLEANUP(expose_list_free) struct expose_list l = {0};
	char text[EXPOSE_STRLEN];
	int r;

	assert_null(want_expose(from, &l, &r));
	assert_int_equal(l.n, 1);
	assert_string_equal(expose_format(&l.v[0], text), to);
}

static void test_text(void **state)
{
	(void)state;
	is_text("8080:80", "8080:80/tcp");
	is_text("8080:80/tcp", "8080:80/tcp");
	is_text("8080:80/udp", "8080:80/udp");
	is_text("127.0.0.1:8080:80", "127.0.0.1:8080:80/tcp");
	is_text("0.0.0.0:8080:80", "0.0.0.0:8080:80/tcp");
	is_text("[::]:8080:80", "[::]:8080:80/tcp");
	is_text("[::1]:8080:80/udp", "[::1]:8080:80/udp");
	is_text("[2001:db8::1]:1:65535", "[2001:db8::1]:1:65535/tcp");
	is_text("eth0:8080:80", "eth0:8080:80/tcp");
	is_text("eth0.100:8080:80", "eth0.100:8080:80/tcp");
}

static void test_ranges(void **state)
{
	CLEANUP(expose_list_free) struct expose_list l = {0};
	int r;

	(void)state;
	assert_null(want_expose("8080-8089:80-89", &l, &r));
	assert_int_equal(l.n, 10);
	assert_int_equal(l.v[9].host_port, 8089);
	assert_int_equal(l.v[9].port, 89);
	/* what it has already is refused, and nothing of it stays */
	assert_non_null(want_expose("8070-8080:70-80", &l, &r));
	assert_int_equal(l.n, 10);
	assert_non_null(want_expose("10000-10300:10000-10300", &l, &r));
	assert_int_equal(l.n, 10);
}

static void test_errors(void **state)
{
	static const char *const bad[] = {"",
					  "80",
					  ":80",
					  "80:",
					  "80:80:",
					  "80:80/",
					  "80:80/sctp",
					  "80:80/udp/tcp",
					  "0:80",
					  "80:0",
					  "65536:80",
					  "80:65536",
					  "1.2.3:80:80",
					  "1.2.3.4.5:1:1",
					  "::1:80:80",
					  "[::1:80:80",
					  "::1]:80:80",
					  "[1.2.3.4]:1:1",
					  ":80:80",
					  "a b:80:80",
					  "80-81:80",
					  "80:80-81",
					  "81-80:81-80",
					  "80-:80",
					  "-80:80",
					  "eth/0:1:1",
					  "1234567890123456:1:1",
					  "abcdefghijklmnop:80:80",
					  "[]:80:80"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CLEANUP(expose_list_free) struct expose_list l = {0};
		int r;

		if (!want_expose(bad[i], &l, &r))
			fail_msg("'%s' is understood", bad[i]);
		assert_int_equal(l.n, 0);
	}
}

static bool clash(const char *x, const char *y)
{
	CLEANUP(expose_list_free) struct expose_list a = {0}, b = {0};
	int r;

	assert_null(want_expose(x, &a, &r));
	assert_null(want_expose(y, &b, &r));
	assert_int_equal(expose_clashes(&a.v[0], &b.v[0]), expose_clashes(&b.v[0], &a.v[0]));
	return expose_clashes(&a.v[0], &b.v[0]);
}

static void test_clashes(void **state)
{
	(void)state;
	assert_true(clash("80:80", "80:81"));
	assert_false(clash("80:80", "80:80/udp"));
	assert_false(clash("80:80", "81:80"));
	assert_true(clash("80:80", "127.0.0.1:80:80"));
	assert_true(clash("80:80", "[::1]:80:80"));
	assert_false(clash("0.0.0.0:80:80", "[::1]:80:80"));
	assert_false(clash("127.0.0.1:80:80", "127.0.0.2:80:80"));
	assert_true(clash("eth0:80:80", "eth0:80:81"));
	assert_false(clash("eth0:80:80", "eth1:80:80"));
	assert_true(clash("eth0:80:80", "127.0.0.1:80:80"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_clashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
