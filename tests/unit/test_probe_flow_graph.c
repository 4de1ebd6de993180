// SPDX-License-Identifier: GPL-2.0-or-later
/* What is made of a tree of calls: numbers that add up, and names that cannot break the format. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "probes/flow/graph.h"

/* Functions are numbers; entered and left at these times. Each call is 0x100 below the one around
 * it. */
struct recorder {
	struct flow *flow;
	uint64_t sp;
};

static void begin(struct recorder *r)
{
	struct flow_options o = {.n_functions = 4, .under = FLOW_NONE, .tree = true};

	*r = (struct recorder){.sp = 0x100000};
	r->flow = flow_new(&o, NULL, NULL);
	assert_non_null(r->flow);
}

static void add(struct recorder *r, uint32_t function, bool is_return, uint64_t us)
{
	struct flow_event ev = {.is_return = is_return,
				.function = function,
				.pid = 1,
				.thread = 1,
				.time_ns = us * 1000};

	if (!is_return)
		r->sp -= 0x100;
	ev.sp = r->sp;
	ev.back = 0x401234 + r->sp;
	if (is_return)
		r->sp += 0x100;
	assert_int_equal(flow_add(r->flow, &ev), 0);
}

/* 0 calls 1, which calls itself and then 2; 0 calls 2 */
static void record(struct recorder *r)
{
	begin(r);
	add(r, 0, false, 10);
	add(r, 1, false, 20);
	add(r, 1, false, 30);
	add(r, 2, false, 40);
	add(r, 2, true, 45);
	add(r, 1, true, 60);
	add(r, 1, true, 80);
	add(r, 2, false, 90);
	add(r, 2, true, 92);
	add(r, 0, true, 100);
}

static const struct flow_edge *edge(const struct flow_graph *g, uint32_t from, uint32_t to)
{
	for (size_t i = 0; i < g->n_edges; i++)
		if (g->edges[i].from == from && g->edges[i].to == to)
			return &g->edges[i];
	fail_msg("there is no edge from %u to %u", from, to);
	return NULL;
}

static void assert_node(const struct flow_graph *g, size_t i, uint64_t calls, uint64_t total,
			uint64_t self)
{
	assert_int_equal(g->v[i].calls, calls);
	assert_int_equal(g->v[i].total_ns, total * 1000);
	assert_int_equal(g->v[i].self_ns, self * 1000);
}

static void test_graph(void **state)
{
	struct recorder r;
	struct flow_graph g;

	(void)state;
	record(&r);
	assert_int_equal(flow_graph_make(flow_tree(r.flow), 4, &g), 0);
	assert_node(&g, 0, 1, 90, 28);
	assert_node(&g, 1, 2, 60, 55); /* recursion counts once */
	assert_node(&g, 2, 2, 7, 7);
	assert_node(&g, 3, 0, 0, 0);
	assert_int_equal(g.n_edges, 5);
	assert_int_equal(edge(&g, FLOW_NONE, 0)->calls, 1);
	assert_int_equal(edge(&g, 0, 1)->total_ns, 60000);
	assert_int_equal(edge(&g, 1, 1)->calls, 1);
	assert_int_equal(edge(&g, 1, 1)->total_ns, 30000);
	assert_int_equal(edge(&g, 1, 2)->total_ns, 5000);
	assert_int_equal(edge(&g, 0, 2)->total_ns, 2000);
	flow_graph_free(&g);
	flow_free(r.flow);
}

static char *written(struct recorder *r, const struct flow_names *names,
		     int (*write)(const struct flow_tree *t, const struct flow_names *n, FILE *f))
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	assert_int_equal(write(flow_tree(r->flow), names, f), 0);
	fclose(f);
	return text;
}

static int folded_us(const struct flow_tree *t, const struct flow_names *n, FILE *f)
{
	return flow_write_folded(t, n, false, f);
}

static int folded_calls(const struct flow_tree *t, const struct flow_names *n, FILE *f)
{
	return flow_write_folded(t, n, true, f);
}

static int svg(const struct flow_tree *t, const struct flow_names *n, FILE *f)
{
	return flow_write_svg(t, n, &(struct flow_picture){.title = "calls in <a> & \"b\""}, f);
}

static const char *const plain[] = {"zero", "one", "two", "three"};
static const struct flow_names plain_names = {.v = plain, .n = 4};

static void test_folded(void **state)
{
	struct recorder r;
	char *text;

	(void)state;
	record(&r);
	text = written(&r, &plain_names, folded_us);
	assert_string_equal(text, "zero 28\nzero;one 30\nzero;one;one 25\nzero;one;one;two "
				  "5\nzero;two 2\n");
	free(text);
	text = written(&r, &plain_names, folded_calls);
	assert_string_equal(text, "zero 1\nzero;one 1\nzero;one;one 1\nzero;one;one;two "
				  "1\nzero;two 1\n");
	free(text);
	flow_free(r.flow);
}

/* Nothing that a name has ends a text, begins a tag, or is no UTF-8. */
static void test_names(void **state)
{
	static const char *const names[] = {"a\"b\\c;d", "f<int>(a & b)", "\xe4\x01\x1b[31m\x9b",
					    "\xef\xbf\xbf\xf0\x9f\x98\x80"};
	static const struct flow_names hostile = {.v = names, .n = 4};
	struct recorder r;
	char *text;

	(void)state;
	record(&r);
	text = written(&r, &hostile, folded_us);
	assert_non_null(strstr(text, "a\"b\\c:d;f<int>(a & b) 30\n"));
	assert_non_null(strstr(text, ";\xc3\xa4??[31m? 2\n"));
	free(text);
	text = written(&r, &hostile, flow_write_dot);
	assert_non_null(strstr(text, "label=\"a\\\"b\\\\c;d\\n"));
	assert_null(strchr(text, '\x1b'));
	free(text);
	text = written(&r, &hostile, svg);
	assert_non_null(strstr(text, "<title>f&lt;int&gt;(a &amp; b) (1 call, total 60.0 us"));
	assert_non_null(strstr(text, "calls in &lt;a&gt; &amp; &quot;b&quot;"));
	assert_null(strchr(text, '\x1b'));
	free(text);
	flow_free(r.flow);
}

static void test_dot(void **state)
{
	struct recorder r;
	char *text;

	(void)state;
	record(&r);
	text = written(&r, &plain_names, flow_write_dot);
	assert_true(starts_with(text, "digraph calls {\n"));
	assert_non_null(strstr(text, "f1 [label=\"one\\n2 calls\\ntotal 60.0 us\\nself 55.0 us\""));
	assert_non_null(strstr(text, "f0 -> f1 [label=\"1 x\\n60.0 us\""));
	assert_null(strstr(text, "three")); /* was not called */
	assert_string_equal(text + strlen(text) - 2, "}\n");
	free(text);
	flow_free(r.flow);
}

/* Without any call, and with more depth than is told apart. */
static void test_extremes(void **state)
{
	struct recorder r;
	char *text;

	(void)state;
	begin(&r);
	text = written(&r, &plain_names, svg);
	assert_non_null(strstr(text, "</svg>"));
	free(text);
	text = written(&r, &plain_names, folded_us);
	assert_string_equal(text, "");
	free(text);
	for (uint64_t i = 0; i < 3000; i++)
		add(&r, (uint32_t)i % 3, false, i);
	for (uint64_t i = 0; i < 3000; i++)
		add(&r, (uint32_t)(2999 - i) % 3, true, 3000 + i);
	text = written(&r, &plain_names, flow_write_dot);
	assert_non_null(strstr(text, "[deeper]"));
	assert_non_null(strstr(text, "zero\\n341 calls\\ntotal 5999.0 us"));
	free(text);
	text = written(&r, &plain_names, svg);
	assert_non_null(strstr(text, "</svg>"));
	free(text);
	flow_free(r.flow);
}

/* Stacks that were sampled: what was innermost has the samples, callers are below it. */
static void test_sampled(void **state)
{
	static const uint32_t one[] = {0, 1, 2}, two[] = {0, 1}, deep[] = {3};
	struct flow_picture picture = {.title = "t", .amount = FLOW_SAMPLES};
	struct flow_stacks *s = flow_stacks_new();
	char *text = NULL, *at, *below;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_non_null(f);
	assert_int_equal(flow_stacks_add(s, one, 3, 5, 5), 0);
	assert_int_equal(flow_stacks_add(s, two, 2, 2, 2), 0);
	assert_int_equal(flow_stacks_add(s, one, 3, 1, 1), 0);
	assert_int_equal(flow_stacks_add(s, deep, 1, 1, 1), 0);
	assert_int_equal(flow_write_folded(flow_stacks_tree(s), &plain_names, true, f), 0);
	fflush(f);
	assert_string_equal(text, "zero;one 2\nzero;one;two 6\nthree 1\n");
	assert_int_equal(flow_write_svg(flow_stacks_tree(s), &plain_names, &picture, f), 0);
	fclose(f);
	assert_non_null(
		strstr(text, "<title>one (total 8 samples, self 2 samples, 88.89% of all)"));
	assert_non_null(
		strstr(text, "<title>three (total 1 sample, self 1 sample, 11.11% of all)"));
	at = strstr(text, "<title>two ");
	below = strstr(text, "<title>zero ");
	assert_non_null(at);
	assert_non_null(below);
	at = strstr(at, " y=\"");
	below = strstr(below, " y=\"");
	assert_true(at && below && atof(at + 4) < atof(below + 4));
	free(text);
	flow_stacks_free(s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_graph),	 cmocka_unit_test(test_folded),
		cmocka_unit_test(test_names),	 cmocka_unit_test(test_dot),
		cmocka_unit_test(test_extremes), cmocka_unit_test(test_sampled),
	};

	return cmocka_run_group_tests_name("flow_graph", tests, NULL, NULL);
}
