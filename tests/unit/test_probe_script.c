// SPDX-License-Identifier: GPL-2.0-or-later
/* Scripts of ax trace run: what their clauses become, and mistakes with line and column. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "probes/script/script.h"

static void parse(const char *text, struct script *s)
{
	struct error e = {0};

	if (script_parse("a.ax", text, s, &e) < 0)
		fail_msg("%s: %s", text, e.text);
}

static void clauses_have_events_and_actions(void **state)
{
	struct script s;

	(void)state;
	parse("#!/usr/bin/ax\n"
	      "BEGIN { print \"start\" } # a comment; with { what } means nothing\n"
	      "uprobe:/bin/a:f{count by comm as calls;}every 1.5s { show calls; clear }\n"
	      "END{exit}",
	      &s);
	assert_int_equal(s.n_clauses, 4);
	assert_int_equal(s.clauses[0].event, SCRIPT_BEGIN);
	assert_int_equal(s.clauses[1].event, SCRIPT_PROBE);
	assert_int_equal(s.clauses[2].event, SCRIPT_EVERY);
	assert_int_equal(s.clauses[2].every_ms, 1500);
	assert_int_equal(s.clauses[2].n, 2);
	assert_int_equal(s.clauses[3].event, SCRIPT_END);
	assert_int_equal(s.n_steps, 5);
	assert_int_equal(s.steps[1].verb, SCRIPT_COUNT);
	assert_int_equal(s.steps[1].table, 1);
	assert_int_equal(s.steps[1].spec.n_by, 1);
	assert_string_equal(s.steps[1].spec.symbol, "f");
	assert_int_equal(s.steps[2].tables, 2);
	assert_int_equal(s.steps[3].tables, 0);
	assert_int_equal(s.steps[0].spec.kind, PROBE_SELF);
	script_free(&s);
}

static void conditions_are_of_one_action_or_of_several(void **state)
{
	struct script s;

	(void)state;
	parse("uprobe:/a:f if arg0 > 1 { count }"
	      "uprobe:/a:f if arg0 > 1 { watch arg0:s32 if arg1 == 2; }"
	      "uprobe:/a:f if arg0 > 1 { watch arg0:s32; count }",
	      &s);
	assert_int_equal(s.n_steps, 5);
	assert_true(s.steps[0].spec.condition.n > 0);
	assert_false(s.steps[0].follows);
	assert_int_equal(s.steps[1].verb, SCRIPT_GATE);
	assert_true(s.steps[2].follows);
	assert_true(s.steps[2].spec.condition.n > 0);
	/* the first of several decides for the others, if it can */
	assert_int_equal(s.steps[3].verb, SCRIPT_WATCH);
	assert_true(s.steps[3].spec.condition.n > 0 && !s.steps[3].follows);
	assert_int_equal(s.steps[3].n_likes, 1);
	assert_ptr_equal(s.steps[3].likes[0], &s.steps[4].spec);
	assert_true(s.steps[4].follows);
	assert_int_equal(s.steps[4].spec.condition.n, 0);
	script_free(&s);
}

static void variables_states_and_timers_have_numbers(void **state)
{
	struct script s;

	(void)state;
	parse("uprobe:/a:f { set thread.since = nsecs; set global.n += 2; arm busy per-thread;"
	      "  start wait on arg0 }"
	      "uprobe:/a:g when busy if thread.since && global.n < 3 { hist nsecs-thread.since as "
	      "t;"
	      "  latency since wait on arg1 by comm as t2; disarm busy }",
	      &s);
	assert_int_equal(s.scope.names[VARIABLE_GLOBAL].n, 1);
	assert_int_equal(s.scope.names[VARIABLE_THREAD].n, 1);
	assert_int_equal(s.steps[0].variable, 1);
	assert_true(s.steps[0].kind == VARIABLE_THREAD && !s.steps[0].adds);
	assert_true(s.steps[1].kind == VARIABLE_GLOBAL && s.steps[1].adds);
	assert_int_equal(s.steps[2].state, 1);
	assert_true(s.states[0].per_thread);
	assert_int_equal(s.steps[3].timer, 1);
	assert_int_equal(s.steps[3].on.n_args, 1);
	assert_int_equal(s.steps[4].verb, SCRIPT_HIST);
	assert_int_equal(s.steps[4].when, 1);
	assert_true(s.steps[5].follows);
	assert_int_equal(s.steps[5].when, 0);
	assert_int_equal(s.steps[5].timer, 1);
	assert_int_equal(s.steps[5].spec.n_by, 1);
	assert_int_equal(s.tables[1].step, 5);
	assert_int_equal(s.n_tables, 2);
	assert_string_equal(s.tables[1].name, "t2");
	script_free(&s);
}

static void variables_are_texts_if_one_value_says_so(void **state)
{
	struct script s;

	(void)state;
	parse("t:a:b { set thread.a = name:string; set global.b = thread.a; set map.c[1] = "
	      "global.b;"
	      "  set map.d[arg1 + x[2]] = 5; set map.d[x[1]] += map.d[3]; set global.e = \"x\";"
	      "  set thread.f = comm; set thread.g = nsecs }"
	      "t:a:c anywhere if map.d[pid] { count by map.c[2] as n }",
	      &s);
	assert_int_equal(s.texts.of[VARIABLE_GLOBAL], 1 << 1 | 1 << 2);
	assert_int_equal(s.texts.of[VARIABLE_THREAD], 1 << 1 | 1 << 2);
	assert_int_equal(s.texts.of[VARIABLE_MAP], 1 << 1);
	assert_int_equal(s.steps[2].kind, VARIABLE_MAP);
	assert_int_equal(s.steps[2].on.n_args, 1);
	assert_true(s.steps[4].adds && s.steps[4].variable == 2);
	assert_true(!s.steps[0].anywhere && s.steps[8].anywhere);
	script_free(&s);
}

static void texts_have_values(void **state)
{
	const struct script_format *f;
	struct script s;

	(void)state;
	parse("uprobe:/a:f { print \"a;}\\t%-16s|%05d 100%% %lx\" comm arg0 , arg1 if arg2 }", &s);
	f = &s.steps[0].format;
	assert_int_equal(f->n_values, 3);
	assert_string_equal(f->v[0].text, "a;}\t");
	assert_string_equal(f->v[0].how, "-16");
	assert_int_equal(f->v[0].type, 's');
	assert_string_equal(f->v[1].how, "05");
	assert_string_equal(f->v[2].text, " 100% ");
	assert_int_equal(f->v[2].type, 'x');
	assert_string_equal(f->v[3].text, "");
	assert_int_equal(f->v[3].type, 0);
	assert_int_equal(s.steps[0].spec.n_args, 3);
	script_free(&s);
}

static void tables_are_named_and_shared(void **state)
{
	struct script s;

	(void)state;
	parse("uprobe:/a:f { count; count by pid; hist arg0 linear 0,100,10 as sizes }"
	      "uprobe:/a:g { hist arg1 linear 0,100,10 as sizes }",
	      &s);
	assert_int_equal(s.n_tables, 3);
	assert_string_equal(s.tables[0].name, "count");
	assert_string_equal(s.tables[1].name, "count2");
	assert_int_equal(s.steps[2].buckets.n, 10);
	assert_int_equal(s.steps[3].table, 3);
	script_free(&s);
}

struct wrong {
	const char *text, *place, *says;
};

static void mistakes_have_their_place(void **state)
{
	static const struct wrong cases[] = {
		{"", "1:1", "expected a clause"},
		{"# only this\n", "2:1", "expected a clause"},
		{"uprobe:/a:f", "1:1", "expected { ACTION"},
		{"uprobe:/a:f }", "1:13", "expected { ACTION"},
		{"{ count }", "1:1", "expected a probe, BEGIN"},
		{"uprobe:/a:f {}", "1:14", "expected an action"},
		{"uprobe:/a:f { ; }", "1:14", "expected an action"},
		{"uprobe:/a:f { count", "1:13", "not closed"},
		{"uprobe:/a:f { count { } }", "1:21", "no braces"},
		{"\n  uprob:/a:f { count }", "2:3", "did you mean 'uprobe:'"},
		{"uprobe:/a:f {\n\tcuont\n}", "2:2", "did you mean 'count'"},
		{"uprobe:/a:f arg0 { count }", "1:1", "values belong to"},
		{"uprobe:/a:f if { count }", "1:13", "behind 'if'"},
		{"uprobe:/a:f if arg0 >\n arg77 { count; count }", "2:2", "arg0 to arg9"},
		{"uprobe:/a:f if arg0 == = { count; exit }", "1:24", "expected a value"},
		{"uprobe:/a:f { count by }", "1:21", "expected keys"},
		{"uprobe:/a:f { count arg77 }", "1:21", "arg0 to arg9"},
		{"uprobe:/a:f { hist }", "1:19", "one value"},
		{"uprobe:/a:f { hist arg0 arg1 }", "1:19", "one value"},
		{"uprobe:/a:f { hist arg0 linear 3,2,1 }", "1:32", "no linear buckets"},
		{"uprobe:/a:f { count as 3x }", "1:24", "a name behind 'as'"},
		{"uprobe:/a:f { count as }", "1:21", "a word behind 'as'"},
		{"uprobe:/a:f { watch by comm }", "1:20", "divide 'by'"},
		{"uprobe:/a:f { latency }", "1:22", "since TIMER"},
		{"uprobe:/a:f { latency since t }", "1:15", "nothing starts 't'"},
		{"uprobe:/a:f { start t on arg0 } uprobe:/a:g { latency since t }", "1:47",
		 "only one side"},
		{"uprobe:/a:f { start }", "1:20", "name of a timer"},
		{"uprobe:/a:f { print }", "1:20", "text in quotes"},
		{"uprobe:/a:f { print \"a }", "1:21", "the text is not closed"},
		{"uprobe:/a:f { print \"\\q\" }", "1:22", "expected \\\""},
		{"uprobe:/a:f { print \"%q\" arg0 }", "1:21", "%d, %u"},
		{"uprobe:/a:f { print \"%300d\" arg0 }", "1:21", "at most 256"},
		{"uprobe:/a:f { print \"%d\" }", "1:21", "has 1 value and 0 follow:"},
		{"uprobe:/a:f { set x = 1 }", "1:19", "expected a variable"},
		{"uprobe:/a:f { set global.x == 1 }", "1:29", "expected a value"},
		{"uprobe:/a:f { set global.x 1 }", "1:28", "= or +="},
		{"uprobe:/a:f { set global.x = 1 2 }", "1:18", "one value"},
		{"uprobe:/a:f { count if global.x > 1 }", "1:21", "global.x is never set"},
		{"uprobe:/a:f { watch thread.x }", "1:21", "thread.x is never set"},
		{"uprobe:/a:f if global.x { count }", "1:16", "global.x is never set"},
		{"uprobe:/a:f when x { count }", "1:18", "nothing arms 'x'"},
		{"uprobe:/a:f { arm }", "1:18", "name of a state"},
		{"uprobe:/a:f { arm a arg0 }", "1:21", "of no values"},
		{"uprobe:/a:f { exit arg0 }", "1:20", "of no values"},
		{"uprobe:/a:f { show x }", "1:15", "nothing is counted as 'x'"},
		{"uprobe:/a:f { show 1 }", "1:20", "expected names"},
		{"every 1 hour { count }", "1:7", "a duration"},
		{"every 1ms { count }", "1:7", "at least 10ms"},
		{"BEGIN { watch %ax }", "1:15", "neither registers"},
		{"uprobe:/a:f { count as a; hist arg0 as a }", "1:27", "already made by 'count'"},
		{"uprobe:/a:f { count }\x01", "1:22", "control characters"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *start = NULL;
		struct error e = {0};
		struct script s;

		assert_true(asprintf(&start, "a.ax:%s: ", cases[i].place) > 0);
		if (script_parse("a.ax", cases[i].text, &s, &e) == 0)
			fail_msg("%s is taken", cases[i].text);
		if (!starts_with(e.text, start) || !strstr(e.text, cases[i].says))
			fail_msg("%s: \"%s\", not \"%s...%s\"", cases[i].text, e.text, start,
				 cases[i].says);
	}
}

/* As many clauses as there are, each with a variable or a table of its own. */
static char *many(size_t n, const char *fmt)
{
	char *text = NULL, *line;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	for (size_t i = 0; i < n; i++) {
		assert_true(asprintf(&line, "%s%zu }\n", fmt, i) > 0);
		fputs(line, f);
		free(line);
	}
	fclose(f);
	return text;
}

static void what_is_too_much_is_refused(void **state)
{
	static const struct {
		const char *fmt;
		size_t most;
	} cases[] = {
		{"uprobe:/a:f { count as t", SCRIPT_TABLES_MAX},
		{"uprobe:/a:f { arm s", SCRIPT_STATES_MAX},
		{"uprobe:/a:f { set global.g += v", SCRIPT_STEPS_MAX},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *enough = many(cases[i].most, cases[i].fmt);
		autofree char *more = many(cases[i].most + 1, cases[i].fmt);
		struct error e = {0};
		struct script s;

		parse(enough, &s);
		script_free(&s);
		assert_true(script_parse("a.ax", more, &s, &e) < 0);
		assert_non_null(strstr(e.text, "too many"));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(clauses_have_events_and_actions),
		cmocka_unit_test(conditions_are_of_one_action_or_of_several),
		cmocka_unit_test(variables_states_and_timers_have_numbers),
		cmocka_unit_test(variables_are_texts_if_one_value_says_so),
		cmocka_unit_test(texts_have_values),
		cmocka_unit_test(tables_are_named_and_shared),
		cmocka_unit_test(mistakes_have_their_place),
		cmocka_unit_test(what_is_too_much_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
