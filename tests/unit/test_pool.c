// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "allot/pool.h"

static struct pool pool_of(const char *text)
{
	struct prefix prefix;
	struct pool p;

	assert_int_equal(prefix_parse(text, &prefix), 0);
	assert_int_equal(pool_init(&p, &prefix), 0);
	return p;
}

static struct ax_addr addr(const char *text)
{
	struct ax_addr a;

	assert_int_equal(addr_parse(text, &a), 0);
	return a;
}

static void assert_takes(struct pool *p, const char *text)
{
	struct ax_addr a, want = addr(text);
	char got[ADDR_STRLEN];

	assert_int_equal(pool_take(p, &a), 0);
	if (!addr_eq(&a, &want))
		fail_msg("%s instead of %s", addr_format(&a, got), text);
}

static void no_pool_gives_nothing(void **state)
{
	struct ax_addr a = addr("10.0.0.5");
	struct pool p;

	(void)state;
	assert_int_equal(pool_init(&p, &(struct prefix){0}), 0);
	a = pool_host(&p);
	assert_true(addr_is_zero(&a));
	assert_int_equal(pool_take(&p, &a), -ENOSPC);
	pool_mark(&p, &a, true);
	assert_int_equal(p.in_use, 0);
	pool_free(&p);
}

static void every_address_is_given_once(void **state)
{
	static const struct {
		const char *prefix, *first, *last;
		uint32_t n;
	} cases[] = {
		{"10.0.0.8/29", "10.0.0.10", "10.0.0.14", 5},
		{"10.1.0.0/16", "10.1.0.2", "10.1.255.254", 65536 - 3},
		{"10.0.0.0/8", "10.0.0.2", "10.15.255.254", (1 << 20) - 3},
		{"fd00::/120", "fd00::2", "fd00::ff", 256 - 2},
		{"fd00:1::/64", "fd00:1::2", "fd00:1::f:ffff", (1 << 20) - 2},
	};

	(void)state;
	for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
		struct pool p = pool_of(cases[c].prefix);
		struct ax_addr host = pool_host(&p), last = {0}, a;

		assert_int_equal(host.b[15] & 7, 1);
		assert_true(prefix_contains(&p.prefix, &host));
		assert_takes(&p, cases[c].first);
		last = addr(cases[c].first);
		for (uint32_t i = 1; i < cases[c].n; i++) {
			assert_int_equal(pool_take(&p, &a), 0);
			assert_true(addr_cmp(&a, &last) > 0 && prefix_contains(&p.prefix, &a));
			last = a;
		}
		a = addr(cases[c].last);
		assert_true(addr_eq(&last, &a));
		assert_int_equal(p.in_use, cases[c].n);
		assert_int_equal(pool_take(&p, &a), -ENOSPC);
		pool_mark(&p, &last, false);
		assert_takes(&p, cases[c].last);
		assert_int_equal(pool_take(&p, &a), -ENOSPC);
		pool_free(&p);
		assert_int_equal(p.size, 0);
	}
}

static void tiny_prefixes_have_nothing_to_give(void **state)
{
	static const char *const prefixes[] = {"10.0.0.0/32", "10.0.0.0/31", "fd00::/128",
					       "fd00::/127"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		struct pool p = pool_of(prefixes[i]);
		struct ax_addr a;

		assert_int_equal(pool_take(&p, &a), -ENOSPC);
		pool_free(&p);
	}
}

static void an_address_rests_before_it_comes_back(void **state)
{
	struct pool p = pool_of("10.0.0.0/29");
	struct ax_addr a = addr("10.0.0.2");

	(void)state;
	assert_takes(&p, "10.0.0.2");
	pool_mark(&p, &a, false);
	assert_takes(&p, "10.0.0.3");
	assert_takes(&p, "10.0.0.4");
	assert_takes(&p, "10.0.0.5");
	assert_takes(&p, "10.0.0.6");
	assert_takes(&p, "10.0.0.2");
	pool_free(&p);
}

static void marked_addresses_are_passed_over(void **state)
{
	struct pool p = pool_of("10.0.0.0/29");
	struct ax_addr a = addr("10.0.0.2"), b = addr("10.0.0.4");

	(void)state;
	for (int i = 0; i < 2; i++) {
		pool_mark(&p, &a, true);
		pool_mark(&p, &b, true);
		assert_int_equal(p.in_use, 2);
	}
	assert_takes(&p, "10.0.0.3");
	assert_takes(&p, "10.0.0.5");
	for (int i = 0; i < 2; i++) {
		pool_mark(&p, &a, false);
		assert_int_equal(p.in_use, 3);
	}
	assert_takes(&p, "10.0.0.6");
	assert_takes(&p, "10.0.0.2");
	assert_int_equal(pool_take(&p, &a), -ENOSPC);
	pool_free(&p);
}

static void jumps_stay_in_the_pool(void **state)
{
	struct pool p = pool_of("10.0.0.8/29");

	(void)state;
	pool_jump(&p, 2);
	assert_takes(&p, "10.0.0.12");
	pool_jump(&p, 2);
	assert_takes(&p, "10.0.0.10"); /* the broadcast address is none */
	pool_jump(&p, 0xffffffff);
	assert_int_equal(p.in_use, 2);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pool_take(&p, &(struct ax_addr){0}), 0);
	assert_int_equal(pool_take(&p, &(struct ax_addr){0}), -ENOSPC);
	pool_free(&p);
	p = pool_of("10.0.0.8/31");
	pool_jump(&p, 7);
	assert_int_equal(pool_take(&p, &(struct ax_addr){0}), -ENOSPC);
	pool_free(&p);
}

static void jumps_leave_the_first_quarter_to_others(void **state)
{
	struct pool p = pool_of("10.0.0.0/16");
	unsigned quarters[4] = {0};

	(void)state;
	for (uint32_t i = 0; i < 4000; i++) {
		struct ax_addr a;

		pool_jump(&p, i * 2654435761u);
		assert_int_equal(pool_take(&p, &a), 0);
		quarters[ntohl(a.w[3]) >> 14 & 3]++;
	}
	assert_int_equal(quarters[0], 0);
	for (int i = 1; i < 4; i++)
		assert_in_range(quarters[i], 1000, 1700);
	pool_free(&p);
}

/* Whatever is shut, and wherever it goes on: each of those that are open once, and no others. */
static void parts_of_a_large_pool(void **state)
{
	enum { OPEN = 3 * 256 + 8 };
	static const char *const parts[] = {"fd61::100/120", "fd61::f:ff00/120", "fd61::/120",
					    "fd61::4:1238/125"};
	struct pool p = pool_of("fd61::/48");
	struct prefix part[ARRAY_SIZE(parts)];
	struct ax_addr a;

	(void)state;
	assert_int_equal(pool_shut(&p), 0);
	assert_int_equal(pool_take(&p, &a), -ENOSPC);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		assert_int_equal(prefix_parse(parts[i], &part[i]), 0);
		pool_open(&p, &part[i], true);
	}
	assert_int_equal(pool_left(&p), OPEN - 2);
	for (unsigned i = 0; i < OPEN - 2; i++) {
		bool inside = false;

		pool_jump(&p, i * 7919);
		assert_int_equal(pool_take(&p, &a), 0);
		for (size_t k = 0; k < ARRAY_SIZE(parts); k++)
			inside |= prefix_contains(&part[k], &a);
		assert_true(inside);
	}
	assert_int_equal(pool_left(&p), 0);
	assert_int_equal(pool_take(&p, &a), -ENOSPC);
	assert_int_equal(p.in_use, OPEN - 2);
	pool_free(&p);
}

static void addresses_outside_are_ignored(void **state)
{
	static const char *const outside[] = {"10.0.0.7",	"10.0.0.16",	  "11.0.0.9",
					      "fd00::9",	"::ffff:9.0.0.9", "0.0.0.0",
					      "255.255.255.255"};
	struct pool p = pool_of("10.0.0.8/29"), six = pool_of("fd00::/64");
	struct ax_addr beyond = addr("fd00::10:0"); /* in the prefix, behind what is managed */
	struct ax_addr far = addr("fd00::1:0:0:5");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(outside); i++) {
		struct ax_addr a = addr(outside[i]);

		pool_mark(&p, &a, true);
		pool_mark(&p, &a, false);
	}
	assert_int_equal(p.in_use, 0);
	pool_mark(&six, &beyond, true);
	assert_int_equal(six.in_use, 0);
	pool_mark(&six, &far, true);
	assert_int_equal(six.in_use, 0);
	assert_takes(&six, "fd00::2");
	assert_takes(&six, "fd00::3");
	assert_takes(&six, "fd00::4");
	assert_takes(&six, "fd00::5");
	pool_free(&p);
	pool_free(&six);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_pool_gives_nothing),
		cmocka_unit_test(every_address_is_given_once),
		cmocka_unit_test(tiny_prefixes_have_nothing_to_give),
		cmocka_unit_test(an_address_rests_before_it_comes_back),
		cmocka_unit_test(marked_addresses_are_passed_over),
		cmocka_unit_test(jumps_stay_in_the_pool),
		cmocka_unit_test(jumps_leave_the_first_quarter_to_others),
		cmocka_unit_test(parts_of_a_large_pool),
		cmocka_unit_test(addresses_outside_are_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
