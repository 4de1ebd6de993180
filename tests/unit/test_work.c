// SPDX-License-Identifier: GPL-2.0-or-later
// build: unsanitized
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sys/epoll.h>

#include "base/work.h"

struct state {
	int epoll;
	struct work *w;
	char seen[256];
	pthread_t loop;
};

static struct state *st;

static int setup(void **state)
{
	st = calloc(1, sizeof(*st));
	st->epoll = loop_open();
	st->loop = pthread_self();
	*state = st;
	return work_open(st->epoll, &st->w);
}

static int teardown(void **state)
{
	(void)state;
	work_close(st->w);
	close(st->epoll);
	free(st);
	return 0;
}

static void note(const char *text)
{
	strcat(st->seen, text);
}

/* The loop goes round once. */
static void turn(void)
{
	struct loop_item *item;
	uint32_t events;

	assert_int_equal(loop_wait(st->epoll, &item, &events), 0);
	assert_int_equal(item->kind, LOOP_WORK);
	work_on_loop(item);
}

static void spend(unsigned ms)
{
	uint64_t end = time_mono_ns() + ms * 1000000ull;

	while (time_mono_ns() < end)
		;
}

static void in_three_slices(void *arg)
{
	for (int i = 0; i < 3; i++) {
		note(arg);
		spend(15);
		work_pause(st->w);
	}
	note(".");
}

static void a_short_work_is_done_at_once(void **state)
{
	(void)state;
	assert_int_equal(work_start(st->w, 0, (void (*)(void *))note, "done"), 0);
	assert_string_equal(st->seen, "done");
	assert_true(work_is_idle(st->w));
}

static void a_long_work_lets_others_in(void **state)
{
	(void)state;
	assert_int_equal(work_start(st->w, 0, in_three_slices, "a"), 0);
	assert_string_equal(st->seen, "a");
	assert_false(work_is_idle(st->w));
	note("|");
	turn();
	note("|");
	turn();
	note("|");
	turn();
	assert_string_equal(st->seen, "a|a|a|.");
	assert_true(work_is_idle(st->w));
}

static void works_come_one_after_the_other(void **state)
{
	(void)state;
	work_start(st->w, 0, in_three_slices, "a");
	work_start(st->w, 0, in_three_slices, "b");
	work_start(st->w, 0, (void (*)(void *))note, "c");
	while (!work_is_idle(st->w))
		turn();
	assert_string_equal(st->seen, "aaa.bbb.c");
}

static void add(unsigned uid, const char *text)
{
	assert_int_equal(work_start(st->w, uid, (void (*)(void *))note, (void *)text), 0);
}

static void works_of_root_come_first_and_users_take_turns(void **state)
{
	(void)state;
	assert_int_equal(work_start(st->w, 7, in_three_slices, "7"), 0);
	add(7, "b");
	add(7, "c");
	add(8, "x");
	add(0, "r");
	add(8, "y");
	add(0, "s");
	while (!strchr(st->seen, 's')) {
		assert_false(work_is_idle(st->w));
		turn();
	}
	assert_true(work_is_idle(st->w)); /* nobody else's keeps the agent from ending */
	turn();
	add(0, "t"); /* (at the next turn: one waits for its) */
	add(7, "d");
	for (int i = 0; i < 5; i++)
		turn();
	assert_string_equal(st->seen, "777.rsxtbycd");
}

static void a_pause_outside_of_a_work_is_none(void **state)
{
	(void)state;
	work_pause(st->w);
	work_pause(NULL);
	in_three_slices("a");
	assert_string_equal(st->seen, "aaa.");
}

static void *volatile place; /* of a local, to see which stack it is */

static void in_thread(void *arg)
{
	assert_false(pthread_equal(pthread_self(), st->loop));
	spend(5);
	note(arg);
}

static void in_loop(void *arg)
{
	assert_true(pthread_equal(pthread_self(), st->loop));
	note(arg);
}

static void asks_back(void *arg)
{
	note(arg);
	work_in_loop(st->w, in_loop, "back");
	note(arg);
}

static void offloads(void *arg)
{
	char here;

	place = &here;
	note(arg);
	work_offload(st->w, in_thread, "t");
	work_offload(st->w, asks_back, "-");
	note(arg);
}

static void a_thread_does_what_cannot_be_cut(void **state)
{
	char here;

	(void)state;
	work_start(st->w, 0, offloads, "w");
	assert_false(work_is_idle(st->w));
	while (!work_is_idle(st->w))
		turn();
	assert_string_equal(st->seen, "wt-back-w");
	assert_true(labs((char *)place - &here) > 1 << 20);
}

static void same_thread(void *arg)
{
	assert_true(pthread_equal(pthread_self(), st->loop));
	work_in_loop(st->w, in_loop, arg);
}

static void outside_of_a_work_it_is_done_here(void **state)
{
	(void)state;
	work_offload(st->w, same_thread, "x");
	work_offload(NULL, same_thread, "y");
	assert_string_equal(st->seen, "xy");
}

static void uses_stack(void *arg)
{
	volatile char much[4 << 20];

	memset((char *)much, 1, sizeof(much));
	note(arg);
}

static void a_work_has_as_much_stack_as_a_process(void **state)
{
	(void)state;
	work_start(st->w, 0, uses_stack, "deep");
	assert_string_equal(st->seen, "deep");
}

int main(void)
{
#define EACH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		EACH(a_short_work_is_done_at_once),
		EACH(a_long_work_lets_others_in),
		EACH(works_come_one_after_the_other),
		EACH(works_of_root_come_first_and_users_take_turns),
		EACH(a_pause_outside_of_a_work_is_none),
		EACH(a_thread_does_what_cannot_be_cut),
		EACH(outside_of_a_work_it_is_done_here),
		EACH(a_work_has_as_much_stack_as_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
