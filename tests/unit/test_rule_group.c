// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules for interfaces of some groups: their text, which groups they are for, what names stand for,
 * and lists in which some rules are not for the interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>

#include "net/link_groups.h"
#include "tests/lib/arena_eval.h"
#include "tests/lib/compiled.h"

static int parse_group(const char *value, struct rule *r, struct error *e)
{
	const char *words[] = {"interface-group", value, "action", "drop"};

	*e = (struct error){0};
	return rule_parse(words, ARRAY_SIZE(words), r, e);
}

static void a_line_is_written_back(void **state)
{
	static const struct {
		const char *value, *back;
	} cases[] = {
		{"5", "5"},
		{"0", "0"},
		{"0x10", "16"},
		{"4294967295", "4294967295"},
		{"7-,1-3,lan", "7-,1-3,lan"},
		{"3-3,10g", "3,10g"},
		{"!5,!up-link_2.x,!0-3", "!5,!up-link_2.x,!0-3"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *back = NULL;
		struct rule r, again;
		struct error e;
		char want[128];

		if (parse_group(cases[i].value, &r, &e) < 0)
			fail_msg("%s: %s", cases[i].value, e.text);
		back = rule_format(&r);
		snprintf(want, sizeof(want), "interface-group %s action drop", cases[i].back);
		assert_string_equal(back, want);
		assert_int_equal(parse_group(cases[i].back, &again, &e), 0);
		assert_true(rule_eq(&r, &again));
		assert_false(rule_catches_all(&r));
		assert_true(rule_takes_any_packet(&r));
		rule_free(&r);
		rule_free(&again);
	}
}

static void what_is_no_group_is_refused(void **state)
{
#define WANTED                                                                                \
	"groups of interfaces such as 5, 10-19 or lan, or those that it must not be in with " \
	"! before each: !5,!lan"
#define EITHER \
	"either the groups that it may be in, or with ! before each those that it must not be in"
	static const struct {
		const char *value, *quoted, *want;
	} cases[] = {
		{"4294967296", "4294967296", WANTED},
		{"5-3", "5-3", WANTED},
		{"-5", "-5", WANTED},
		{"0x123456789", "0x123456789", WANTED},
		{"!", "!", WANTED},
		{"!!5", "!!5", WANTED},
		{"a b", "a b", WANTED},
		{"", "", WANTED},
		{"1,,2", "", WANTED},
		{"@lan", "@lan", WANTED},
		{"1,!2", "!2", EITHER},
		{"!lan,wan", "wan", EITHER},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error e;
		struct rule r;
		char want[400];

		assert_int_equal(parse_group(cases[i].value, &r, &e), -EINVAL);
		snprintf(want, sizeof(want), "interface-group \"%s\" is not valid: use %s",
			 cases[i].quoted, cases[i].want);
		assert_string_equal(e.text, want);
	}
}

/* --- which groups --- */

static int number(void *arg, const char *name, uint32_t *ret)
{
	return link_groups_find(arg, name, ret);
}

static int fits(const char *value, uint32_t group)
{
	struct link_groups names = {.text = strdup("# of the test\n"
						   "7 lan\n"
						   "0x2a\twan # the way out\n"
						   "not a line\n"
						   "8 lan\n"
						   "9lan x\n"
						   "4294967296 big\n"
						   "4294967295 last")};
	const char *unknown = NULL;
	struct error e;
	struct rule r;
	int ret;

	assert_int_equal(parse_group(value, &r, &e), 0);
	ret = rule_group_fits(&r, group, number, &names, &unknown);
	if (ret < 0)
		assert_string_equal(unknown, value);
	rule_free(&r);
	link_groups_free(&names);
	return ret;
}

static void rules_are_for_the_groups_that_they_name(void **state)
{
	(void)state;
	assert_int_equal(fits("5", 5), 1);
	assert_int_equal(fits("5", 6), 0);
	assert_int_equal(fits("1-3,7-", 3), 1);
	assert_int_equal(fits("1-3,7-", 4), 0);
	assert_int_equal(fits("1-3,7-", UINT32_MAX), 1);
	assert_int_equal(fits("!5,!7", 5), 0);
	assert_int_equal(fits("!5,!7", 7), 0);
	assert_int_equal(fits("!5,!7", 6), 1);
	assert_int_equal(fits("lan", 7), 1);
	assert_int_equal(fits("lan", 8), 0); /* the first line with a name holds */
	assert_int_equal(fits("lan,wan", 42), 1);
	assert_int_equal(fits("!wan", 42), 0);
	assert_int_equal(fits("default", 0), 1);
	assert_int_equal(fits("last", UINT32_MAX), 1);
	assert_int_equal(fits("big", 0), -ENOENT);
	assert_int_equal(fits("x", 9), -ENOENT);
	assert_int_equal(fits("la", 7), -ENOENT);
}

/* --- lists --- */

static struct compiled compile_some(const struct rule_list *l, const bool *off)
{
	autofree struct rule_binding *bind = calloc(l->n_rules + 1, sizeof(*bind));
	autofree struct real_binding *slots = calloc(64, sizeof(*slots));
	struct error e = {0};
	struct compiled c;

	assert_true(bind && slots);
	for (size_t i = 0; i < l->n_rules; i++)
		bind[i] = (struct rule_binding){.counter = (uint16_t)(i + 1000), .off = off[i]};
	if (rule_compile(l, bind, slots, &c.a, &c.l, &e) < 0)
		fail_msg("%s", e.text);
	return c;
}

/* The first rule for a packet, as if those that are off were not there. */
static size_t first_on(const struct rule_list *l, const bool *off, const struct match_packet *p)
{
	struct rule_list one = *l;

	for (size_t i = 0; i < l->n_rules; i++) {
		one.rules = &l->rules[i];
		one.n_rules = 1;
		if (!off[i] && match_first(&one, p) == 0)
			return i;
	}
	return l->n_rules;
}

static void check_some(struct rule_list *l, struct rnd *r)
{
	autofree bool *off = calloc(l->n_rules + 1, sizeof(*off));
	struct compiled c;

	assert_non_null(off);
	for (size_t i = 0; i < l->n_rules; i++) {
		struct condition *in = &l->rules[i].in[RULE_FIELD_GROUP];

		off[i] = rnd_one_in(r, 3);
		if (!off[i] && rnd_one_in(r, 2))
			continue;
		in->groups = rnd_alloc(1, sizeof(*in->groups));
		in->n = 1;
	}
	c = compile_some(l, off);
	for (uint32_t i = 0; i < c.l.rules; i++) {
		const struct ax_action *a = eval_action(&c.a, &c.l, i);

		assert_int_equal(!!(a->flags & AX_ACTION_OFF), off[a->rule]);
		assert_int_equal(a->counter, a->rule + 1000);
	}
	for (unsigned k = 0; k < 40; k++) {
		struct match_packet p;

		rnd_packet(r, l, &p);
		assert_int_equal(compiled_judge(&c, &p), first_on(l, off, &p));
	}
	arena_free(&c.a);
}

static void rules_that_are_off_are_as_if_not_there(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 2000; i++) {
		CLEANUP(rule_list_free) struct rule_list l;
		struct rnd r = {i * 6007 + 3};

		rnd_list(&r, (1u << AX_FIELDS) - 1, i % 4 == 0, &l);
		check_some(&l, &r);
	}
}

/* Rules for everything: with the group they are what the list's default is, without they are
 * nothing, and what packets are asked does not grow by them. */
static void rules_without_conditions_on_packets(void **state)
{
	static const bool first[] = {true, false, false}, none[3], all[] = {true, true, true};
	CLEANUP(rule_list_free) struct rule_list l;
	struct match_packet p = packet("10.1.2.3", "1.1.1.1", 17, 80);
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	add_rule(&l, "interface-group lan src 10.0.0.0/8 state new payload quic-long action pass");
	add_rule(&l, "interface-group 5 action drop");
	add_rule(&l, "proto tcp action pass");
	c = compile_some(&l, first);
	assert_int_equal(compiled_judge(&c, &p), 1);
	assert_int_equal(compiled_judge(&c, &not_ip), 1);
	assert_false(c.l.field[AX_FIELD_SRC].used);
	assert_false(c.l.field[AX_FIELD_STATE].used);
	assert_false(c.l.field[AX_FIELD_PAYLOAD].used);
	assert_true(c.l.quotes);
	assert_true(eval_action(&c.a, &c.l, 1)->flags & AX_ACTION_CATCH_ALL);
	arena_free(&c.a);
	c = compile_some(&l, all);
	assert_int_equal(compiled_judge(&c, &p), 3);
	assert_int_equal(compiled_judge(&c, &not_ip), 3);
	assert_false(c.l.quotes);
	arena_free(&c.a);
	c = compile_some(&l, none);
	assert_true(c.l.field[AX_FIELD_STATE].used);
	arena_free(&c.a);
}

#define LARGE 20000

static void add_large_set(struct rule_list *l)
{
	struct rule_set_def more = {.kind = SET_PREFIXES,
				    .prefixes = rnd_alloc(LARGE, sizeof(*more.prefixes))};

	add_set(l, "big", SET_PREFIXES, "fd00::/8");
	for (; more.n < LARGE; more.n++)
		more.prefixes[more.n] = (struct prefix){
			.addr = addr_from_v4(htonl(0x0b000000 + 2 * (uint32_t)more.n)), .len = 128};
	assert_int_equal(set_sort(&more), 0);
	assert_int_equal(set_merge(&l->sets[0], &more), 0);
	free(more.prefixes);
}

/* Elements of sets come and go in place, whichever rules are on. */
static void sets_of_rules_that_are_off_change_in_place(void **state)
{
	static const bool off[2][4] = {{true, false, true}, {false, true, false}};
	CLEANUP(rule_list_free) struct rule_list l;
	struct match_packet p = packet("192.0.2.7", "1.1.1.1", 6, 80);
	struct prefix one = {.addr = p.src, .len = 128};
	const struct rule_set_def elements = {.kind = SET_PREFIXES, .prefixes = &one, .n = 1};

	(void)state;
	rule_list_init(&l);
	add_large_set(&l);
	add_rule(&l, "interface-group 1 src @big proto tcp dport 80 action drop");
	add_rule(&l, "interface-group 2 src @big,10.0.0.0/8 proto tcp dport 80-90 action pass");
	add_rule(&l, "interface-group 1 dport 80 proto tcp action drop");
	for (size_t i = 0; i < ARRAY_SIZE(off); i++) {
		struct compiled c = compile_some(&l, off[i]);
		struct lazy_view v = {.data = c.a.data, .size = c.a.size};
		struct set_change ch = {.set = "big", .elements = &elements};
		struct set_changed done;

		assert_int_equal(compiled_judge(&c, &p), i ? 2 : 3);
		assert_int_equal(arena_change_sets(&v, &ch, 1, &done), 1);
		assert_int_equal(compiled_judge(&c, &p), i ? 0 : 1);
		ch.gone = true;
		assert_int_equal(arena_change_sets(&v, &ch, 1, &done), 1);
		assert_int_equal(compiled_judge(&c, &p), i ? 2 : 3);
		arena_free(&c.a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_written_back),
		cmocka_unit_test(what_is_no_group_is_refused),
		cmocka_unit_test(rules_are_for_the_groups_that_they_name),
		cmocka_unit_test(rules_that_are_off_are_as_if_not_there),
		cmocka_unit_test(rules_without_conditions_on_packets),
		cmocka_unit_test(sets_of_rules_that_are_off_change_in_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
