// SPDX-License-Identifier: GPL-2.0-or-later
/* How many spliced sockets an app may have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "splice/shares.h"

#define CONNS_MAX (AX_SPLICE_MEMBERS_MAX + 100)

static struct ax_splice_conn *conns;
static size_t n;

/* So many records more. */
static void has(uint32_t app, size_t records, uint32_t flags)
{
	for (size_t i = 0; i < records; i++)
		conns[n++] = (struct ax_splice_conn){.app = app, .flags = flags};
}

static size_t taken(struct shares *s, uint32_t app, uint32_t other)
{
	size_t i = 0;

	while (shares_take(s, app, other))
		i++;
	return i;
}

static int setup(void **state)
{
	(void)state;
	n = 0;
	conns = calloc(CONNS_MAX, sizeof(*conns));
	return conns ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	free(conns);
	return 0;
}

static void test_bound(void **state)
{
	struct shares s;

	(void)state;
	has(2, 1, 0);
	has(1, 100, AX_SPLICE_MEMBER);
	has(3, 7, AX_SPLICE_MEMBER | AX_SPLICE_PARTED);
	has(2, 50, AX_SPLICE_MEMBER);
	assert_int_equal(shares_open(conns, n, &s), 0);
	assert_int_equal(s.total, 157);
	assert_int_equal(taken(&s, 1, 2), SHARES_APP_MAX - 100);
	assert_int_equal(s.total, 157 + 2 * (SHARES_APP_MAX - 100));
	/* the other one keeps what is its */
	assert_int_equal(taken(&s, 2, 3), 50);
	assert_int_equal(taken(&s, 3, 3), (SHARES_APP_MAX - 57) / 2);
	assert_false(shares_take(&s, 4, 3)); /* nobody knows it */
	shares_close(&s);
}

static void test_sure(void **state)
{
	struct shares s;

	(void)state;
	for (uint32_t app = 10; app < 14; app++)
		has(app, SHARES_APP_MAX, AX_SPLICE_MEMBER);
	has(1, 1, 0);
	has(2, SHARES_APP_SURE - 3, AX_SPLICE_MEMBER);
	assert_int_equal(shares_open(conns, n, &s), 0);
	assert_true(s.total >= AX_SPLICE_MEMBERS_MAX / 2);
	assert_int_equal(taken(&s, 1, 2), 3);
	assert_int_equal(taken(&s, 1, 1), (SHARES_APP_SURE - 3) / 2);
	shares_close(&s);
}

static void test_full(void **state)
{
	struct shares s;

	(void)state;
	has(1, AX_SPLICE_MEMBERS_MAX - 3, AX_SPLICE_MEMBER);
	has(2, 1, 0);
	has(3, 1, 0);
	assert_int_equal(shares_open(conns, n, &s), 0);
	assert_int_equal(taken(&s, 2, 3), 1);
	assert_int_equal(s.total, AX_SPLICE_MEMBERS_MAX - 1);
	shares_close(&s);
	assert_int_equal(shares_open(conns, 0, &s), 0);
	assert_false(shares_take(&s, 1, 2));
	shares_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bound, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sure, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
