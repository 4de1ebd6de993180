// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of the heaviest: exact while it is not full, and not to be hidden from by many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tools/xdp/heavy.c"

static void add(struct heavy *h, uint32_t who, double packets, double bytes)
{
	uint8_t key[HEAVY_KEY] = {0};

	memcpy(key + 12, &who, sizeof(who));
	heavy_add(h, key, packets, bytes);
}

static uint32_t who(const struct heavy_entry *e)
{
	uint32_t ret;

	memcpy(&ret, e->key + 12, sizeof(ret));
	return ret;
}

static void few_are_counted_exactly(void **state)
{
	struct heavy_entry top[4];
	struct heavy h;

	(void)state;
	assert_int_equal(heavy_init(&h, 7), 0);
	for (uint32_t round = 0; round < 3; round++)
		for (uint32_t i = 1; i <= HEAVY_ENTRIES; i++)
			add(&h, i, i, 2.0 * i);
	assert_int_equal(h.n, HEAVY_ENTRIES);
	assert_int_equal(heavy_top(&h, top, 4), 4);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(who(&top[i]), HEAVY_ENTRIES - i);
		assert_true(top[i].packets == 3.0 * (HEAVY_ENTRIES - i));
		assert_true(top[i].bytes == 6.0 * (HEAVY_ENTRIES - i));
	}
	heavy_clear(&h);
	assert_int_equal(heavy_top(&h, top, 4), 0);
	heavy_free(&h);
}

/* A million packets, each from an address of its own, and three that send some among them. */
static void a_flood_from_anywhere_hides_nobody(void **state)
{
	const uint32_t n = 1000000;
	struct heavy_entry top[3];
	struct heavy h;
	uint32_t sent[4] = {0}, lost;

	(void)state;
	assert_int_equal(heavy_init(&h, 0x123456789), 0);
	for (uint32_t i = 0; i < n; i++) {
		add(&h, 1000 + i, 1, 60);
		for (uint32_t heavy = 1; heavy <= 3; heavy++) {
			if (i % (heavy * 100) == 0) {
				add(&h, heavy, 1, 1000);
				sent[heavy]++;
			}
		}
	}
	assert_true(h.n <= HEAVY_ENTRIES);
	assert_int_equal(heavy_top(&h, top, 3), 3);
	lost = n / 100 * 102 / HEAVY_KEEP + 1; /* a 50th more than the bound */
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t e = i + 1;

		assert_int_equal(who(&top[i]), e);
		assert_true(top[i].packets <= sent[e]);
		assert_true(top[i].packets + lost >= sent[e]);
	}
	heavy_free(&h);
}

/* What comes and goes leaves room, also where keys met others. */
static void the_table_never_fills(void **state)
{
	struct heavy_entry top[1];
	struct heavy h;

	(void)state;
	assert_int_equal(heavy_init(&h, 1), 0);
	for (uint32_t i = 0; i < 20 * HEAVY_ENTRIES; i++) {
		add(&h, i, 1, 1); /* all alike: all go at once */
		assert_true(h.n <= HEAVY_ENTRIES);
	}
	add(&h, 5, 100, 100);
	assert_int_equal(heavy_top(&h, top, 1), 1);
	assert_int_equal(who(&top[0]), 5);
	heavy_free(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_are_counted_exactly),
		cmocka_unit_test(a_flood_from_anywhere_hides_nobody),
		cmocka_unit_test(the_table_never_fills),
	};

	return cmocka_run_group_tests_name("heavy", tests, NULL, NULL);
}
