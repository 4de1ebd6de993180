// SPDX-License-Identifier: GPL-2.0-or-later
/* `action route` as text: what goes with it, and what is said when something does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rules/rule.h"

static int parse(const char *line, struct rule *r, struct error *e)
{
	const char *words[16];
	char *copy = strdup(line), *save = NULL;
	size_t n = 0;
	int code;

	assert_non_null(copy);
	for (char *w = strtok_r(copy, " ", &save); w && n < 16; w = strtok_r(NULL, " ", &save))
		words[n++] = w;
	*e = (struct error){0};
	*r = (struct rule){0};
	code = rule_parse(words, n, r, e);
	free(copy);
	return code;
}

static void what_is_written_is_read(void **state)
{
	static const char *const lines[] = {
		"action route",
		"action route checksum recompute",
		"name fast dst 10.0.0.0/8 state established action route capture 64",
		"dport 80 action route rate 1mbit,per=src log yes",
	};
	struct error e;
	struct rule r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		autofree char *line = NULL;

		assert_int_equal(parse(lines[i], &r, &e), 0);
		assert_int_equal(r.verdict, AX_VERDICT_ROUTE);
		assert_null(r.target);
		line = rule_format(&r);
		assert_string_equal(line, lines[i]);
		rule_free(&r);
	}
	assert_false(rule_verdict_has_target(AX_VERDICT_ROUTE));
	assert_true(rule_verdict_has_target(AX_VERDICT_BALANCE));
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *line, *error;
		int code;
	} mistakes[] = {
		{"action route eth1", "\"eth1\" is no key of a rule: ", -ENOENT},
		{"action rout", "action \"rout\" is not valid: use pass, drop, reflect, ", -EINVAL},
		{"checksum recompute action pass",
		 "checksum with action pass is not valid: use it with action redirect or route "
		 "only",
		 -EINVAL},
		{"to 10.0.0.1 action route",
		 "to with action route is not valid: use it with action redirect only", -EINVAL},
		{"smac 02:00:00:00:00:01 action route",
		 "smac with action route is not valid: use it with action redirect only", -EINVAL},
	};
	struct error e;
	struct rule r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
		assert_int_equal(parse(mistakes[i].line, &r, &e), mistakes[i].code);
		assert_memory_equal(e.text, mistakes[i].error, strlen(mistakes[i].error));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(mistakes_are_named),
	};

	return cmocka_run_group_tests_name("rule_route", tests, NULL, NULL);
}
