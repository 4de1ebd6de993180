// SPDX-License-Identifier: GPL-2.0-or-later
/* A config for all nodes of a cluster: services and rules alone, no commands, and its rules stand
 * behind a node's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "config/parse.h"
#include "config/shared.h"

static void what_it_may_have(void **state)
{
	static const char text[] =
		"services:\n"
		"  front: {ports: [\"80\"], backends: [{app: web}], check: http}\n"
		"policy:\n"
		"  rules: [{deny: {from: guest, to: front}}]\n";
	CLEANUP(config_errors_free) struct config_errors errs = {0};
	struct config c;

	(void)state;
	assert_int_equal(config_shared_parse(text, strlen(text), &c, &errs), 0);
	assert_int_equal(c.n_services, 1);
	assert_int_equal(c.n_rules, 1);
	config_free(&c);
	assert_int_equal(config_shared_parse("", 0, &c, &errs), 0);
	assert_int_equal(c.n_services + c.n_rules, 0);
	config_free(&c);
}

static void what_is_refused(void **state)
{
	static const struct {
		const char *text, *path, *expected;
		unsigned line;
	} cases[] = {
		{"services: {}\napps: {web: {command: x}}\n", "apps", "services or policy", 2},
		{"agent: {zone: a}\n", "agent", "services or policy", 1},
		{"cluster: {name: a}\n", "cluster", "services or policy", 1},
		{"xdp: {}\n", "xdp", "services or policy", 1},
		{"policy:\n  audit: true\n", "policy.audit", "rules", 2},
		{"policy:\n  egress: []\n", "policy.egress", "rules", 2},
		{"services:\n  a:\n    backends: [web]\n    ports: [\"80\"]\n"
		 "    check: {type: exec, command: \"true\"}\n",
		 "services.a", "commands are for a node's own config", 2},
		{"services:\n  a: {ports: [http]}\n", "services.a.ports[0]", "", 2},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(config_errors_free) struct config_errors errs = {0};
		struct config c;

		assert_int_equal(
			config_shared_parse(cases[i].text, strlen(cases[i].text), &c, &errs),
			-EINVAL);
		assert_true(errs.n > 0);
		assert_int_equal(errs.e[0].line, cases[i].line);
		assert_string_equal(errs.e[0].path, cases[i].path);
		assert_non_null(strstr(errs.e[0].expected, cases[i].expected));
	}
}

/* Whether it is for who serves the service that it names. */
static bool speaks_of(const struct config_rule *r, const char *name)
{
	const struct config_who *last = &r->to.v[r->to.n - 1];

	return r->to.n == 2 && last->derived && streq(last->name, name);
}

/* The first rule that fits decides: the node's own. Names of services stand for who serves them,
 * whichever config has these. */
static void rules_of_both(void **state)
{
	static const char own[] = "services:\n  mine: {ports: [\"80\"], backends: [mine1]}\n"
				  "policy:\n  rules:\n    - allow: {from: x, to: theirs}\n",
			  all[] = "services:\n  theirs: {ports: [\"80\"], backends: [theirs1]}\n"
				  "policy:\n  rules:\n    - deny: {from: x, to: mine}\n"
				  "    - deny: {from: y, to: theirs}\n";
	CLEANUP(config_errors_free) struct config_errors errs = {0};
	struct config c, shared;
	const struct config_beside beside = {.shared = &shared};
	struct config_rule *rules;
	struct error e;
	size_t n;

	(void)state;
	assert_int_equal(config_parse(own, strlen(own), &c, &errs), 0);
	assert_int_equal(config_shared_parse(all, strlen(all), &shared, &errs), 0);
	assert_int_equal(egress_rules(&c, &beside, NULL, 0, &rules, &n, &e), 0);
	assert_int_equal(n, 3);
	assert_int_equal(rules[0].action, RULE_ALLOW);
	assert_true(speaks_of(&rules[0], "theirs1"));
	assert_int_equal(rules[1].action, RULE_DENY);
	assert_true(speaks_of(&rules[1], "mine1"));
	assert_true(speaks_of(&rules[2], "theirs1"));
	config_rules_free(rules, n);
	config_free(&c);
	config_free(&shared);
}

/* Also one that somebody has written into the registry. */
static void how_long_it_may_be(void **state)
{
	CLEANUP(config_errors_free) struct config_errors errs = {0};
	const size_t most = CONFIG_SHARED_MAX;
	autofree char *text = malloc(most + 1);
	struct config c;

	(void)state;
	assert_non_null(text);
	memset(text, '\n', most + 1);
	assert_int_equal(config_shared_parse(text, most, &c, &errs), 0);
	config_free(&c);
	assert_int_equal(config_shared_parse(text, most + 1, &c, &errs), -EINVAL);
	assert_int_equal(errs.n, 1);
	assert_string_equal(errs.e[0].expected, "at most 256 KiB");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_it_may_have),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(how_long_it_may_be),
		cmocka_unit_test(rules_of_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
