// SPDX-License-Identifier: GPL-2.0-or-later
/* When connections are looked at again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "splice/pause.h"
#include "splice/streams.h"

static void nothing_asks_for_a_look(void **state)
{
	struct pauses p = {0};

	(void)state;
	assert_int_equal(pause_after_look(&p, &(struct look_seen){0}), 0);
	assert_int_equal(pause_after_look(&p, &(struct look_seen){.joined = true}), 0);
}

static void open_ones_are_looked_at_more_and_more_seldom(void **state)
{
	const struct look_seen seen = {.open = true};
	const unsigned ms[] = {300, 600, 1200, 2400, 4800, 5000, 5000};
	struct pauses p = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ms); i++)
		assert_int_equal(pause_after_look(&p, &seen), ms[i]);
	/* a new one is as good as the first */
	assert_int_equal(pause_after_look(&p, &(struct look_seen){.open = true, .told_new = true}),
			 PAUSE_FIRST_MS);
	assert_int_equal(pause_after_look(&p, &seen), 2 * PAUSE_FIRST_MS);
}

static void churn_is_looked_at_seldom(void **state)
{
	const struct look_seen vain = {.told_new = true},
			       joined = {.told_new = true, .joined = true};
	const unsigned ms[] = {300, 600, 1200, 1200, 1200, 1200, 1200, 1200, 1200, 1200, 1200};
	struct pauses p = {0};

	(void)state;
	assert_int_equal(pause_when_new(&p, true), PAUSE_FIRST_MS);
	for (size_t i = 0; i < ARRAY_SIZE(ms); i++) {
		assert_int_equal(pause_after_look(&p, &vain), 0); /* until it is told again */
		assert_int_equal(pause_when_new(&p, true), ms[i]);
	}
	/* one that joins ends it, and so does a while without any */
	pause_after_look(&p, &joined);
	assert_int_equal(pause_when_new(&p, true), PAUSE_FIRST_MS);
	for (size_t i = 0; i < ARRAY_SIZE(ms); i++)
		pause_after_look(&p, &vain);
	assert_int_equal(pause_when_new(&p, false), PAUSE_FIRST_MS);
}

static void sleepers_are_woken_soon(void **state)
{
	const struct look_seen told = {.unread = true, .told_unread = true},
			       quiet = {.unread = true};
	const unsigned ms[] = {20, 40, 80, 160, 320, 320}, after[] = {640, 1000, 1000};
	struct pauses p = {0};

	(void)state;
	assert_int_equal(pause_when_unread(&p), ms[0]);
	for (size_t i = 1; i < ARRAY_SIZE(ms); i++)
		assert_int_equal(pause_after_look(&p, &told), ms[i]);
	for (size_t i = 0; i < ARRAY_SIZE(after); i++)
		assert_int_equal(pause_after_look(&p, &quiet), after[i]);
	/* what was told and is no more leaves the pause; what is not even told does not */
	assert_int_equal(pause_after_look(&p, &(struct look_seen){.told_unread = true}), 0);
	assert_int_equal(pause_when_unread(&p), WAKE_LAST_MS);
	assert_int_equal(pause_after_look(&p, &(struct look_seen){0}), 0);
	assert_int_equal(pause_when_unread(&p), WAKE_FIRST_MS);
}

static void the_earliest_counts(void **state)
{
	struct pauses p = {.open_ms = PAUSE_LAST_MS};
	struct look_seen seen = {.open = true};

	(void)state;
	assert_int_equal(pause_after_look(&p, &seen), PAUSE_LAST_MS);
	seen.young = true;
	assert_int_equal(pause_after_look(&p, &seen), PAUSE_FIRST_MS);
	seen.streams = true;
	assert_int_equal(pause_after_look(&p, &seen), STREAMS_COUNT_MS);
	seen.unread = true;
	assert_int_equal(pause_after_look(&p, &seen), WAKE_FIRST_MS);
}

static void leaving_waits_longer_and_longer(void **state)
{
	struct pauses p = {0};
	unsigned last = 0;

	(void)state;
	assert_int_equal(pause_when_leaving(&p), WAKE_FIRST_MS);
	for (int i = 0; i < 12; i++) {
		unsigned ms = pause_when_leaving(&p);

		assert_true(ms > last || ms == PAUSE_LAST_MS);
		last = ms;
	}
	assert_int_equal(last, PAUSE_LAST_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_asks_for_a_look),
		cmocka_unit_test(open_ones_are_looked_at_more_and_more_seldom),
		cmocka_unit_test(churn_is_looked_at_seldom),
		cmocka_unit_test(sleepers_are_woken_soon),
		cmocka_unit_test(the_earliest_counts),
		cmocka_unit_test(leaving_waits_longer_and_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
