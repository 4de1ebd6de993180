// SPDX-License-Identifier: GPL-2.0-or-later
/* The flow of calls from made-up events: which call an event ends, and what becomes of the others.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "probes/flow/flow.h"

#define TRAMPOLINE UINT64_C(0x7fffffffe000)

/* Functions have one letter. */
static const char letters[] = "abcdefgh";
#define N_FUNCTIONS (sizeof(letters) - 1)

struct watched {
	struct flow *flow;
	FILE *f;
	char *text;
	size_t size;
	uint64_t now;
	uint64_t thread;
	uint64_t image;
};

static void put_name(FILE *f, uint32_t function)
{
	if (function < N_FUNCTIONS)
		putc(letters[function], f);
	else
		putc('-', f);
}

/* "0>a 1>b 1<b 0<a": depth, what happened, function; of entries that were jumped to "j>". */
static int on_step(void *arg, const struct flow_step *s)
{
	static const char *const signs[] = {
		[FLOW_ENTRY] = ">",   [FLOW_RETURN] = "<",   [FLOW_ORPHAN] = "?",
		[FLOW_JUMPED] = "^",  [FLOW_LEFT] = "x",     [FLOW_LOST] = "~",
		[FLOW_DEEP] = "deep", [FLOW_UNPROBED] = ".", [FLOW_OPEN] = "o",
	};
	struct watched *w = arg;

	fprintf(w->f, "%s%u%s%s", ftell(w->f) ? " " : "", s->depth, s->jumped ? "j" : "",
		signs[s->what]);
	put_name(w->f, s->function);
	return 0;
}

static void begin(struct watched *w, const struct flow_options *o)
{
	struct flow_options all = {.n_functions = N_FUNCTIONS, .under = FLOW_NONE, .tree = true};

	if (o) {
		all = *o;
		all.n_functions = N_FUNCTIONS;
		all.tree = true;
	}
	*w = (struct watched){.thread = 1};
	w->f = open_memstream(&w->text, &w->size);
	assert_non_null(w->f);
	w->flow = flow_new(&all, on_step, w);
	assert_non_null(w->flow);
}

static void end(struct watched *w, const char *expected)
{
	assert_int_equal(flow_end(w->flow), 0);
	fclose(w->f);
	assert_string_equal(w->text, expected);
	flow_free(w->flow);
	free(w->text);
}

static void add(struct watched *w, char name, bool is_return, uint64_t sp, uint64_t back)
{
	struct flow_event ev = {.is_return = is_return,
				.function = (uint32_t)(strchr(letters, name) - letters),
				.pid = 100,
				.thread = w->thread,
				.time_ns = w->now += 10,
				.sp = sp,
				.back = back,
				.image = w->image};

	assert_int_equal(flow_add(w->flow, &ev), 0);
}

static void enter(struct watched *w, char name, uint64_t sp)
{
	add(w, name, false, sp, 0x401234 + sp);
}

static void leave(struct watched *w, char name, uint64_t sp)
{
	add(w, name, true, sp, 0);
}

static void test_nesting(void **state)
{
	struct watched w;

	(void)state;
	begin(&w, NULL);
	enter(&w, 'a', 0x900);
	enter(&w, 'b', 0x800);
	enter(&w, 'c', 0x700);
	leave(&w, 'c', 0x700);
	enter(&w, 'c', 0x700);
	leave(&w, 'c', 0x700);
	leave(&w, 'b', 0x800);
	leave(&w, 'a', 0x900);
	assert_int_equal(flow_totals(w.flow)->entries, 4);
	assert_int_equal(flow_totals(w.flow)->returns, 4);
	end(&w, "0>a 1>b 2>c 2<c 2>c 2<c 1<b 0<a");
}

static void test_recursion(void **state)
{
	struct watched w;

	(void)state;
	begin(&w, NULL);
	enter(&w, 'a', 0x900);
	enter(&w, 'a', 0x8a0);
	enter(&w, 'a', 0x840);
	leave(&w, 'a', 0x840);
	leave(&w, 'a', 0x8a0);
	enter(&w, 'a', 0x8a0);
	leave(&w, 'a', 0x8a0);
	leave(&w, 'a', 0x900);
	end(&w, "0>a 1>a 2>a 2<a 1<a 1>a 1<a 0<a");
}

static void test_threads(void **state)
{
	struct watched w;

	(void)state;
	begin(&w, NULL);
	enter(&w, 'a', 0x900);
	w.thread = UINT64_C(0xc000012345678); /* a goroutine is a pointer */
	enter(&w, 'b', 0x900);
	w.thread = 1;
	enter(&w, 'c', 0x800);
	w.thread = UINT64_C(0xc000012345678);
	leave(&w, 'b', 0x900);
	w.thread = 1;
	leave(&w, 'c', 0x800);
	leave(&w, 'a', 0x900);
	end(&w, "0>a 0>b 1>c 0<b 1<c 0<a");
}

/* Threads that come and go, more than keep their memory. */
static void test_many_threads(void **state)
{
	struct flow_options o = {.n_functions = 1, .under = FLOW_NONE};
	struct flow *f = flow_new(&o, NULL, NULL);
	struct flow_event ev = {.pid = 1, .sp = 0x900};

	(void)state;
	assert_non_null(f);
	for (uint64_t thread = 1; thread <= 5000; thread++) {
		ev.thread = thread;
		ev.is_return = false;
		assert_int_equal(flow_add(f, &ev), 0);
	}
	for (uint64_t thread = 1; thread <= 5000; thread++) {
		ev.thread = thread;
		ev.is_return = true;
		assert_int_equal(flow_add(f, &ev), 0);
	}
	assert_int_equal(flow_totals(f)->returns, 5000);
	assert_int_equal(flow_totals(f)->orphans, 0);
	flow_free(f);
}

/* longjmp from c, over b, back into a, which then calls d. */
static void test_longjmp(void **state)
{
	struct watched w;

	(void)state;
	begin(&w, NULL);
	enter(&w, 'a', 0x900);
	enter(&w, 'b', 0x800);
	enter(&w, 'c', 0x700);
	enter(&w, 'd', 0x7f0);
	leave(&w, 'd', 0x7f0);
	leave(&w, 'a', 0x900);
	end(&w, "0>a 1>b 2>c 2xc 2>d 2<d 1xb 0<a");
}

/* The place calls again at the same depth: a new call, not one inside the old one. */
static void test_longjmp_same_depth(void **state)
{
	struct watched w;

	(void)state;
	begin(&w, NULL);
	enter(&w, 'a', 0x900);
	enter(&w, 'b', 0x800);
	enter(&w, 'b', 0x800);
	enter(&w, 'c', 0x800);
	leave(&w, 'c', 0x800);
	leave(&w, 'a', 0x900);
	end(&w, "0>a 1>b 1xb 1>b 1xb 1>c 1<c 0<a");
}

/* With a trampoline, both return: first the one that was jumped to. */
static void test_tail_call(void **state)
{
	struct watched w;

	(void)state;
	begin(&w, NULL);
	enter(&w, 'a', 0x900);
	enter(&w, 'b', 0x800);
	add(&w, 'c', false, 0x800, TRAMPOLINE);
	leave(&w, 'c', 0x800);
	leave(&w, 'b', 0x800);
	leave(&w, 'a', 0x900);
	end(&w, "0>a 1>b 2j>c 2<c 1<b 0<a");
}

/* Jumps between two functions, over and over: a state machine. */
static void test_tail_calls(void **state)
{
	struct watched w;

	(void)state;
	begin(&w, NULL);
	enter(&w, 'a', 0x900);
	add(&w, 'b', false, 0x900, TRAMPOLINE);
	add(&w, 'a', false, 0x900, TRAMPOLINE);
	leave(&w, 'a', 0x900);
	leave(&w, 'b', 0x900);
	leave(&w, 'a', 0x900);
	end(&w, "0>a 1j>b 2j>a 2<a 1<b 0<a");
}

/* Without one, only the last returns, and the others with it. */
static void test_tail_call_at_ret(void **state)
{
	static const uint8_t returns[N_FUNCTIONS] = {FLOW_AT_RET, FLOW_AT_RET, FLOW_AT_RET,
						     FLOW_AT_RET};
	struct flow_options o = {.returns = returns, .under = FLOW_NONE};
	struct watched w;

	(void)state;
	begin(&w, &o);
	enter(&w, 'a', 0x900);
	add(&w, 'b', false, 0x800, 0x5010);
	add(&w, 'c', false, 0x800, 0x5010);
	leave(&w, 'c', 0x800);
	add(&w, 'b', false, 0x800, 0x5010); /* left by a jump to what is not probed */
	add(&w, 'b', false, 0x800, 0x5010);
	leave(&w, 'b', 0x800);
	leave(&w, 'a', 0x900);
	enter(&w, 'a', 0x900); /* another tracer has a trampoline there */
	add(&w, 'b', false, 0x900, TRAMPOLINE);
	leave(&w, 'b', 0x900);
	end(&w, "0>a 1>b 2j>c 2<c 1^b 1>b 1xb 1>b 1<b 0<a 0>a 1j>b 1<b 0^a");
}

/* A function whose returns are not probed, such as setjmp, has no message of its own. */
static void test_unprobed(void **state)
{
	static const uint8_t returns[N_FUNCTIONS] = {[1] = FLOW_NEVER};
	struct flow_options o = {.returns = returns, .under = FLOW_NONE};
	struct watched w;

	(void)state;
	begin(&w, &o);
	enter(&w, 'a', 0x900);
	enter(&w, 'b', 0x800);
	enter(&w, 'c', 0x7f0);
	leave(&w, 'c', 0x7f0);
	add(&w, 'd', false, 0x800, 0x401111);
	leave(&w, 'd', 0x800);
	leave(&w, 'a', 0x900);
	end(&w, "0>a 1>b 2>c 2<c 1.b 1>d 1<d 0<a");
}

/* Go: a function that found too little stack begins again when it has more. */
static void test_restart(void **state)
{
	static const uint8_t returns[N_FUNCTIONS] = {FLOW_AT_RET, FLOW_AT_RET};
	struct flow_options o = {.returns = returns, .under = FLOW_NONE, .restarts = true};
	struct watched w;

	(void)state;
	begin(&w, &o);
	enter(&w, 'a', 0x900);
	enter(&w, 'b', 0x800);
	enter(&w, 'b', 0x800);
	leave(&w, 'b', 0x800);
	enter(&w, 'b', 0x800);
	leave(&w, 'b', 0x800);
	leave(&w, 'a', 0x900);
	assert_int_equal(flow_totals(w.flow)->restarts, 1);
	end(&w, "0>a 1>b 1<b 1>b 1<b 0<a");
}

static void test_entry_before_start(void **state)
{
	struct watched w;

	(void)state;
	begin(&w, NULL);
	leave(&w, 'c', 0x700);
	enter(&w, 'd', 0x700);
	leave(&w, 'd', 0x700);
	leave(&w, 'b', 0x800);
	leave(&w, 'a', 0x900);
	assert_int_equal(flow_totals(w.flow)->orphans, 3);
	end(&w, "0?c 0>d 0<d 0?b 0?a");
}

/* Both a return and an entry are among the lost. */
static void test_gap(void **state)
{
	struct watched w;

	(void)state;
	begin(&w, NULL);
	enter(&w, 'a', 0x900);
	enter(&w, 'b', 0x800);
	flow_gap(w.flow, w.now + 1, w.now + 5);
	leave(&w, 'd', 0x7f0);
	enter(&w, 'c', 0x7e0);
	leave(&w, 'c', 0x7e0);
	leave(&w, 'a', 0x900);
	assert_int_equal(flow_totals(w.flow)->lost, 1);
	/* of what begins after it nothing was lost, nor of what ended before the next */
	for (uint64_t i = 0; i < 10; i++)
		flow_gap(w.flow, w.now + 1000 + 10 * i, w.now + 1005 + 10 * i);
	enter(&w, 'a', 0x900);
	enter(&w, 'b', 0x800);
	leave(&w, 'a', 0x900);
	w.now += 990;
	enter(&w, 'a', 0x900);
	enter(&w, 'b', 0x800);
	leave(&w, 'a', 0x900);
	end(&w, "0>a 1>b 2?d 2>c 2<c 1~b 0<a 0>a 1>b 1xb 0<a 0>a 1>b 1~b 0<a");
}

/* The kernel follows 64 returns at a time. */
static void test_deep(void **state)
{
	struct flow_options o = {.n_functions = 1, .under = FLOW_NONE};
	struct flow *f = flow_new(&o, NULL, NULL);
	struct flow_event ev = {.pid = 1, .thread = 1, .back = 0x401234};

	(void)state;
	assert_non_null(f);
	for (int i = 0; i < 100; i++) {
		ev.sp = 0x10000 - 0x20 * (uint64_t)i;
		assert_int_equal(flow_add(f, &ev), 0);
	}
	ev.is_return = true;
	for (int i = 63; i >= 0; i--) {
		ev.sp = 0x10000 - 0x20 * (uint64_t)i;
		assert_int_equal(flow_add(f, &ev), 0);
	}
	assert_int_equal(flow_totals(f)->entries, 100);
	assert_int_equal(flow_totals(f)->deep, 36);
	assert_int_equal(flow_totals(f)->returns, 64);
	assert_int_equal(flow_totals(f)->left, 0);
	flow_free(f);
}

static void test_open_at_end(void **state)
{
	struct watched w;

	(void)state;
	begin(&w, NULL);
	enter(&w, 'a', 0x900);
	enter(&w, 'b', 0x800);
	enter(&w, 'c', 0x700);
	end(&w, "0>a 1>b 2>c 2oc 1ob 0oa");
}

/* After execve, the stack is another one, although the thread is the same. */
static void test_execve(void **state)
{
	struct watched w;

	(void)state;
	begin(&w, NULL);
	w.image = 0x555555554000;
	enter(&w, 'a', 0x900);
	enter(&w, 'b', 0x800);
	w.image = 0x555555666000;
	enter(&w, 'a', 0x300);
	w.image = 0;
	leave(&w, 'a', 0x300);
	end(&w, "0>a 1>b 1xb 0xa 0>a 0<a");
}

static void test_under(void **state)
{
	struct flow_options o = {.under = 1};
	struct watched w;

	(void)state;
	begin(&w, &o);
	enter(&w, 'a', 0x900);
	enter(&w, 'c', 0x800);
	leave(&w, 'c', 0x800);
	enter(&w, 'b', 0x800);
	enter(&w, 'c', 0x700);
	enter(&w, 'b', 0x600);
	leave(&w, 'b', 0x600);
	enter(&w, 'd', 0x600);
	leave(&w, 'd', 0x600);
	leave(&w, 'c', 0x700);
	leave(&w, 'b', 0x800);
	enter(&w, 'c', 0x800);
	leave(&w, 'c', 0x800);
	leave(&w, 'a', 0x900);
	assert_int_equal(flow_totals(w.flow)->outside, 6);
	end(&w, "0>b 1>c 2>b 2<b 2>d 2<d 1<c 0<b");
}

/* Who leaves by longjmp is no longer inside, whatever the kernel still believes. */
static void test_under_longjmp(void **state)
{
	struct flow_options o = {.under = 1};
	struct watched w;

	(void)state;
	begin(&w, &o);
	enter(&w, 'b', 0x800);
	enter(&w, 'c', 0x700);
	enter(&w, 'd', 0x880);
	leave(&w, 'd', 0x880);
	end(&w, "0>b 1>c 1xc 0xb");
}

static void test_times(void **state)
{
	const struct flow_tree *t;
	struct watched w;

	(void)state;
	begin(&w, NULL);
	enter(&w, 'a', 0x900); /* 10 */
	enter(&w, 'b', 0x800); /* 20 */
	enter(&w, 'c', 0x700); /* 30 */
	leave(&w, 'c', 0x700); /* 40 */
	leave(&w, 'b', 0x800); /* 50 */
	enter(&w, 'b', 0x800); /* 60 */
	leave(&w, 'b', 0x800); /* 70 */
	leave(&w, 'a', 0x900); /* 80 */
	t = flow_tree(w.flow);
	assert_int_equal(t->n, 4);
	for (size_t i = 1; i < t->n; i++) {
		static const uint64_t expected[][3] = {{1, 70, 30}, {2, 40, 30}, {1, 10, 10}};
		const struct flow_node *n = &t->v[i];

		assert_in_range(n->function, 0, 2);
		assert_int_equal(n->depth, n->function + 1);
		assert_int_equal(n->calls, expected[n->function][0]);
		assert_int_equal(n->total_ns, expected[n->function][1]);
		assert_int_equal(n->self_ns, expected[n->function][2]);
	}
	end(&w, "0>a 1>b 2>c 2<c 1<b 1>b 1<b 0<a");
}

/* Recursion that has no end makes no tree without one. */
static void test_deep_tree(void **state)
{
	struct flow_options o = {.n_functions = 1, .under = FLOW_NONE, .tree = true};
	struct flow *f = flow_new(&o, NULL, NULL);
	struct flow_event ev = {.pid = 1, .thread = 1};
	uint64_t calls = 0;

	(void)state;
	assert_non_null(f);
	for (uint64_t i = 0; i < 100000; i++) {
		ev.sp = 0x10000000 - 0x20 * i;
		assert_int_equal(flow_add(f, &ev), 0);
	}
	assert_true(flow_tree(f)->cut);
	assert_in_range(flow_tree(f)->n, 1000, 1100);
	for (size_t i = 1; i < flow_tree(f)->n; i++)
		calls += flow_tree(f)->v[i].calls;
	assert_int_equal(calls, 100000);
	assert_int_equal(flow_end(f), 0);
	flow_free(f);
}

static void test_unknown_function(void **state)
{
	struct flow_options o = {.n_functions = 1, .under = FLOW_NONE};
	struct flow *f = flow_new(&o, NULL, NULL);
	struct flow_event ev = {.function = 1};

	(void)state;
	assert_non_null(f);
	assert_int_equal(flow_add(f, &ev), -EINVAL);
	flow_free(f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_longjmp),
		cmocka_unit_test(test_longjmp_same_depth),
		cmocka_unit_test(test_tail_call),
		cmocka_unit_test(test_tail_calls),
		cmocka_unit_test(test_tail_call_at_ret),
		cmocka_unit_test(test_unprobed),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_entry_before_start),
		cmocka_unit_test(test_gap),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_open_at_end),
		cmocka_unit_test(test_execve),
		cmocka_unit_test(test_under),
		cmocka_unit_test(test_under_longjmp),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_deep_tree),
		cmocka_unit_test(test_unknown_function),
	};

	return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
