// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules that are added to those of a config: where they stand, also among other ones than those
 * that they were put among, and what number each has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "config/added_rules.h"
#include "config/config.h"
#include "config/parse.h"

static struct config parse(const char *text)
{
	struct config_errors errs = {0};
	struct config c;

	if (config_parse(text, strlen(text), &c, &errs)) {
		fail_msg("%s: found %s, expected %s", errs.e[0].path, errs.e[0].found,
			 errs.e[0].expected);
	}
	config_errors_free(&errs);
	return c;
}

/* Named rules are shown by their names, others by their number. */
static void is_order(const struct config *c, const struct config *more,
		     const struct added_rules *added, const char *wanted)
{
	const struct config_beside beside = {.services = more, .added = added};
	struct config_rule *rules = NULL;
	char order[256] = "";
	struct error e = {0};
	size_t n = 0;

	assert_int_equal(egress_rules(c, &beside, NULL, 0, &rules, &n, &e), 0);
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(order);

		if (rules[i].name)
			snprintf(order + len, sizeof(order) - len, " %s", rules[i].name);
		else
			snprintf(order + len, sizeof(order) - len, " %u", rule_number(rules, i));
		assert_int_equal(!rule_number(rules, i), rules[i].origin == RULE_ADDED);
	}
	assert_string_equal(order, wanted);
	config_rules_free(rules, n);
}

#define CONFIG                                                       \
	"policy:\n"                                                  \
	"  egress: [{from: {tier: back}, to: 192.0.2.1}]\n"          \
	"  rules: [deny: {from: a}, allow: {name: named, from: b}, " \
	"deny: {from: c}]\n"
#define ADDED "policy: {rules: [deny: {name: x}, allow: {name: y}, deny: {name: z}]}\n"

static void each_stands_where_it_was_put(void **state)
{
	struct config c = parse(CONFIG), more = parse(ADDED);
	struct added_rule v[] = {{&more.rules[0], RULE_LAST, NULL},
				 {&more.rules[1], RULE_LAST, NULL},
				 {&more.rules[2], RULE_LAST, NULL}};
	struct added_rules added = {v, 3};

	(void)state;
	is_order(&c, NULL, NULL, " 1 named 3 4 5");
	is_order(&c, NULL, &added, " 1 named 3 x y z 4 5"); /* egress lists come last */
	v[0].place = v[1].place = v[2].place = RULE_FIRST;
	is_order(&c, NULL, &added, " z y x 1 named 3 4 5");
	v[1] = (struct added_rule){&more.rules[1], RULE_BEFORE, "named"};
	v[2] = (struct added_rule){&more.rules[2], RULE_AFTER, "named"};
	is_order(&c, NULL, &added, " x 1 y named z 3 4 5");
	v[1] = (struct added_rule){&more.rules[1], RULE_AFTER, "x"};
	v[2] = (struct added_rule){&more.rules[2], RULE_BEFORE, "y"};
	is_order(&c, NULL, &added, " x z y 1 named 3 4 5");
	v[0] = (struct added_rule){&more.rules[0], RULE_BEFORE, "deny c -> any app"};
	is_order(&c, NULL, &added, " 1 named x z y 3 4 5");
	assert_null(added_rules_lost(&added, &c));
	config_free(&more);
	config_free(&c);
}

/* By whatever number the others have there. */
static void another_config_leaves_them_where_they_are(void **state)
{
	struct config more = parse(ADDED);
	struct config c = parse("policy: {rules: [log: {}, deny: {from: c}, log: {from: a}, "
				"allow: {name: named, to: d}]}\n");
	struct added_rule v[] = {{&more.rules[0], RULE_AFTER, "deny c -> any app"},
				 {&more.rules[1], RULE_AFTER, "named"},
				 {&more.rules[2], RULE_FIRST, NULL}};
	const struct added_rules added = {v, 3};

	(void)state;
	is_order(&c, NULL, &added, " z 1 2 x 3 named y");
	config_free(&more);
	config_free(&c);
}

static void without_its_neighbour_it_lets_the_least_through(void **state)
{
	struct config c = parse(CONFIG), more = parse(ADDED);
	struct added_rule v[] = {{&more.rules[0], RULE_AFTER, "deny gone -> any app"},
				 {&more.rules[1], RULE_BEFORE, "gone"},
				 {&more.rules[2], RULE_BEFORE, "y"}};
	const struct added_rules added = {v, 3};

	(void)state;
	is_order(&c, NULL, &added, " x 1 named 3 z y 4 5");
	assert_ptr_equal(added_rules_lost(&added, &c), &v[0]);
	v[0].place = RULE_FIRST;
	v[0].at = NULL;
	assert_ptr_equal(added_rules_lost(&added, &c), &v[1]);
	v[1].at = "z"; /* which is put there after it */
	assert_ptr_equal(added_rules_lost(&added, &c), &v[1]);
	v[1].at = "named";
	assert_null(added_rules_lost(&added, &c));
	config_free(&more);
	config_free(&c);
}

static void one_of_a_name_that_the_config_has_is_the_configs(void **state)
{
	struct config more = parse(ADDED);
	struct config c = parse("policy: {rules: [log: {}, deny: {name: x, from: c}], "
				"egress: [{name: z, from: {a: b}, to: none}]}\n");
	struct added_rule v[] = {{&more.rules[0], RULE_FIRST, NULL},
				 {&more.rules[1], RULE_BEFORE, "x"},
				 {&more.rules[2], RULE_BEFORE, "gone"}};
	const struct added_rules added = {v, 3};

	(void)state;
	is_order(&c, NULL, &added, " 1 y x z");
	assert_null(added_rules_lost(&added, &c));
	/* (an egress list is nothing that one stands beside) */
	v[0] = (struct added_rule){&more.rules[2], RULE_FIRST, NULL};
	v[1] = (struct added_rule){&more.rules[1], RULE_AFTER, "z"};
	v[2] = (struct added_rule){&more.rules[0], RULE_FIRST, NULL};
	assert_ptr_equal(added_rules_lost(&added, &c), &v[1]);
	config_free(&more);
	config_free(&c);
}

static void they_know_services_and_whether_all_are_on_trial(void **state)
{
	struct config more = parse("policy: {rules: [deny: {name: x, from: shop, to: cart}]}\n"),
		      services = parse("services: {cart: {backends: [{address: 192.0.2.2}]}}\n");
	struct config c = parse("policy: {audit: true}\n"
				"services: {shop: {backends: [{address: 192.0.2.1}]}}\n");
	struct added_rule v[] = {{&more.rules[0], RULE_FIRST, NULL}};
	const struct added_rules added = {v, 1};
	const struct config_beside beside = {.services = &services, .added = &added};
	struct config_rule *rules = NULL;
	struct error e = {0};
	size_t n = 0;

	(void)state;
	assert_int_equal(egress_rules(&c, &beside, NULL, 0, &rules, &n, &e), 0);
	assert_int_equal(n, 1);
	assert_true(rules[0].audit);
	assert_int_equal(config_side_prefixes(&rules[0].from), 1);
	assert_int_equal(config_side_prefixes(&rules[0].to), 1);
	assert_int_equal(config_side_prefixes(&more.rules[0].from),
			 0); /* what is kept is as it was */
	assert_true(added_rules_have_name(&added, "cart"));
	assert_false(added_rules_have_name(&added, "x"));
	assert_false(added_rules_have_name(NULL, "cart"));
	config_rules_free(rules, n);
	config_free(&services);
	config_free(&more);
	config_free(&c);
}

static void what_has_a_name_is_not_found_by_what_it_says(void **state)
{
	struct config c = parse("policy: {rules: [deny: {name: a}, deny: {}]}\n");
	autofree char *named = added_rule_key(&c.rules[0]), *other = added_rule_key(&c.rules[1]);

	(void)state;
	assert_string_equal(named, "a");
	assert_string_equal(other, "deny any app -> any app");
	assert_int_equal(added_rule_find(c.rules, c.n_rules, named), 0);
	assert_int_equal(added_rule_find(c.rules, c.n_rules, other), 1);
	assert_int_equal(added_rule_find(c.rules, c.n_rules, "deny"), 2);
	config_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_stands_where_it_was_put),
		cmocka_unit_test(another_config_leaves_them_where_they_are),
		cmocka_unit_test(without_its_neighbour_it_lets_the_least_through),
		cmocka_unit_test(one_of_a_name_that_the_config_has_is_the_configs),
		cmocka_unit_test(they_know_services_and_whether_all_are_on_trial),
		cmocka_unit_test(what_has_a_name_is_not_found_by_what_it_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
