// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules that learn addresses: what `learn` takes and refuses with which sentence, in rules and in
 * lists, and that it is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/rule_file.h"
#include "tests/lib/compiled.h"
#include "tests/lib/rule_lists.h"

static int try_parse(const char *value, const char *more, struct rule *r, struct error *e)
{
	const char *words[] = {"learn", value, "action", "drop", "rate", more};

	*e = (struct error){0};
	return rule_parse(words, more ? 6 : 4, r, e);
}

static void values_have_one_form(void **state)
{
	static const struct {
		const char *value, *rate, *line;
	} forms[] = {
		{"@bad,10m", NULL, "action drop learn @bad,10m"},
		{"@bad,600", NULL, "action drop learn @bad,10m"},
		{"@bad,90s", NULL, "action drop learn @bad,90s"},
		{"@b.-_:1,1500ms", NULL, "action drop learn @b.-_:1,1500ms"},
		{"@bad,1440m,src", NULL, "action drop learn @bad,1440m"},
		{"@bad,1m,src/32/128", NULL, "action drop learn @bad,1m"},
		{"@bad,1m,src/24", NULL, "action drop learn @bad,1m,src/24/64"},
		{"@bad,1m,src/0/0", NULL, "action drop learn @bad,1m,src/0/0"},
		{"@bad,1m,dst", NULL, "action drop learn @bad,1m,dst"},
		{"@bad,1m,dst/16/48", NULL, "action drop learn @bad,1m,dst/16/48"},
		{"@in,1m,flow", NULL, "action drop learn @in,1m,flow"},
		{"@in,1m,flow=22/tcp", NULL, "action drop learn @in,1m,flow=22/tcp"},
		{"@in,1m,flow=0/udp,above-rate", "5pps",
		 "action drop rate 5pps learn @in,1m,flow=0/udp,above-rate"},
		{"@bad,1m,above-rate,src", "5pps",
		 "action drop rate 5pps learn @bad,1m,above-rate"},
		{"@bad,1m,dst,above-rate", "5pps",
		 "action drop rate 5pps learn @bad,1m,dst,above-rate"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct rule r, copy;
		struct error e;
		autofree char *line = NULL;

		if (try_parse(forms[i].value, forms[i].rate, &r, &e) < 0)
			fail_msg("%s: %s", forms[i].value, e.text);
		line = rule_format(&r);
		assert_string_equal(line, forms[i].line);
		assert_int_equal(rule_copy(&r, &copy), 0);
		assert_true(rule_eq(&r, &copy));
		copy.learn_ms++;
		assert_false(rule_eq(&r, &copy));
		rule_free(&r);
		rule_free(&copy);
	}
}

#define DURATION "a duration such as 5s, 300ms or 2m, at most 24 hours (1440m), behind the set"
#define SET	 "@ and a set's name first, then a time: @bad,10m"
#define ENDS                                                                                       \
	"src, src/24 or src/24/64 (or dst), with a length for IPv4 of 0 to 32, then one for IPv6 " \
	"of 0 to 128"

#define FLOW                                                                                    \
	"flow, or flow=22/tcp for another port than the packet's own: one of 0 to 65535, then " \
	"/tcp or /udp"

static void wrong_values_are_named(void **state)
{
	static const struct {
		const char *value, *rate, *error;
	} wrong[] = {
		{"", NULL, "learn \"\" is not valid: use " SET},
		{"bad,10m", NULL, "learn \"bad\" is not valid: use " SET},
		{"@,10m", NULL, "learn \"@\" is not valid: use " SET},
		{"@a b,10m", NULL, "learn \"@a b\" is not valid: use " SET},
		{"@bad", NULL,
		 "learn \"@bad\" is not valid: use a time behind the set, such as @bad,10m"},
		{"@bad,", NULL, "learn \"\" is not valid: use " DURATION},
		{"@bad,x", NULL, "learn \"x\" is not valid: use " DURATION},
		{"@bad,1441m", NULL, "learn \"1441m\" is not valid: use " DURATION},
		{"@bad,999ms", NULL, "learn \"999ms\" is not valid: use a time of at least 1s"},
		{"@bad,0", NULL, "learn \"0\" is not valid: use a time of at least 1s"},
		{"@bad,1m,src/33", NULL, "learn \"src/33\" is not valid: use " ENDS},
		{"@bad,1m,dst/32/129", NULL, "learn \"dst/32/129\" is not valid: use " ENDS},
		{"@bad,1m,src/", NULL, "learn \"src/\" is not valid: use " ENDS},
		{"@bad,1m,srcs", NULL, "learn \"srcs\" is not valid: use " ENDS},
		{"@bad,1m,src,dst", NULL,
		 "learn \"dst\" is not valid: use src, dst or flow, and above-rate, each once"},
		{"@in,1m,flow,dst", NULL,
		 "learn \"dst\" is not valid: use src, dst or flow, and above-rate, each once"},
		{"@in,1m,flow=22", NULL, "learn \"flow=22\" is not valid: use " FLOW},
		{"@in,1m,flow=", NULL, "learn \"flow=\" is not valid: use " FLOW},
		{"@in,1m,flow=65536/tcp", NULL, "learn \"flow=65536/tcp\" is not valid: use " FLOW},
		{"@in,1m,flow=22/sctp", NULL, "learn \"flow=22/sctp\" is not valid: use " FLOW},
		{"@in,1m,flows", NULL, "learn \"flows\" is not valid: use " FLOW},
		{"@bad,1m,port", NULL,
		 "learn \"port\" is not valid: use src, dst or flow, and above-rate, each once"},
		{"@bad,1m,above-rate,above-rate", "5pps",
		 "learn \"above-rate\" is not valid: use src, dst or flow, and above-rate, each "
		 "once"},
		{"@bad,1m,src,above-rate,x", "5pps",
		 "learn more than 4 values is not valid: use at most 4"},
		{"@bad,1m,above-rate", NULL,
		 "learn above-rate without rate is not valid: use rate with it, which says what is "
		 "above"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct rule r;
		struct error e;

		assert_int_equal(try_parse(wrong[i].value, wrong[i].rate, &r, &e), -EINVAL);
		assert_string_equal(e.text, wrong[i].error);
	}
}

static void flows_as_text(void **state)
{
	static const char *const good[] = {"10.0.0.1-10.0.0.2:22/tcp", "fd00::1-[fd00::2]:53/udp",
					   "0.0.0.0-255.255.255.255:0/udp",
					   "::-[ffff::]:65535/tcp"};
	static const char *const bad[] = {"",
					  "-",
					  "10.0.0.1",
					  "10.0.0.1-10.0.0.2",
					  "10.0.0.1-10.0.0.2:22",
					  "10.0.0.1-10.0.0.2:22/",
					  "10.0.0.1-10.0.0.2:22/icmp",
					  "10.0.0.1-10.0.0.2:/tcp",
					  "10.0.0.1-10.0.0.2:65536/tcp",
					  "10.0.0.1-10.0.0.2:022/tcp",
					  "10.0.0.1-10.0.0.2:1-2/tcp",
					  "10.0.0.1/24-10.0.0.2:22/tcp",
					  "10.0.0.1-[10.0.0.2]:22/tcp",
					  "10.0.0.1-[fd00::2]:22/tcp",
					  "fd00::1-fd00::2:53/udp",
					  "fd00::1-[fd00::2:53/udp",
					  "fd00::1-[]:53/udp",
					  "fd00::1-:53/udp",
					  "-10.0.0.2:22/tcp",
					  ":-22/tcp",
					  "10.0.0.1-10.0.0.2:22/tcp "};
	char buf[FLOW_STRLEN], longer[FLOW_STRLEN + 1];
	struct ax_set_flow f;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(set_flow_parse(good[i], &f), 0);
		assert_string_equal(set_flow_format(&f, buf), good[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (set_flow_parse(bad[i], &f) != -EINVAL)
			fail_msg("%s", bad[i]);
	memset(longer, '1', sizeof(longer));
	longer[FLOW_STRLEN] = '\0';
	assert_int_equal(set_flow_parse(longer, &f), -EINVAL);
}

/* What a flow asks of a rule besides. */
static void rules_with_flows_fit_together(void **state)
{
	static const struct {
		const char *words[8], *error;
	} cases[] = {
		{{"flow", "@in", "action", "pass"}, NULL},
		{{"proto", "tcp", "flow", "@in", "action", "pass"}, NULL},
		{{"flow", "10.0.0.1-10.0.0.2:22/tcp", "action", "pass"},
		 "flow \"10.0.0.1-10.0.0.2:22/tcp\" is not valid: use @ and the name of a set of "
		 "flows, such as @open"},
		{{"proto", "icmp", "flow", "@in", "action", "pass"},
		 "flow with a protocol that has no ports is not valid: use proto tcp or udp or "
		 "both, or no proto, with flow"},
		{{"flow", "@in", "fragment", "later", "action", "pass"},
		 "flow with fragment later is not valid: use one of them: later fragments have no "
		 "ports"},
		{{"flow", "@in", "action", "balance", "b"},
		 "flow with action balance is not valid: use balance without flow, since all "
		 "packets of a flow have to go the same way, later fragments too"},
		{{"proto", "icmp", "learn", "@in,1m,flow=22/tcp", "action", "pass"}, NULL},
		{{"proto", "icmp", "learn", "@in,1m,flow", "action", "pass"},
		 "learn flow of packets without ports is not valid: use flow=22/tcp, which says "
		 "the "
		 "port, or rules of tcp or udp"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error e = {0};
		struct rule r;
		size_t n = 0;

		while (n < 8 && cases[i].words[n])
			n++;
		if (rule_parse(cases[i].words, n, &r, &e) < 0) {
			assert_non_null(cases[i].error);
			assert_string_equal(e.text, cases[i].error);
		} else {
			assert_null(cases[i].error);
			rule_free(&r);
		}
	}
}

static struct rule_list list_of(const char *sets, const char *timed, const char *const *rules)
{
	struct rule_list l;

	rule_list_init(&l);
	for (; *sets; sets++) { /* a letter each, a large one for ports */
		const char name[] = {(char)(*sets | 0x20), '\0'};
		bool ports = *sets < 'a';

		add_set(&l, name, ports ? SET_PORTS : SET_PREFIXES, ports ? "1" : "10.0.0.0/8");
		rule_list_set(&l, name)->timed = strchr(timed, *name) != NULL;
	}
	for (; *rules; rules++)
		add_rule(&l, *rules);
	return l;
}

static void lists_are_held_against_their_sets(void **state)
{
	static const struct {
		const char *sets, *timed, *rules[4], *error;
	} cases[] = {
		{"b",
		 "",
		 {"action drop learn @a,1m"},
		 "rule 1 with learn @a is not valid: use a set that is defined"},
		{"A",
		 "",
		 {"name x action drop learn @a,1m"},
		 "rule 1 (x) with learn @a is not valid: use a set of prefixes there, not of "
		 "ports"},
		{"A",
		 "a",
		 {"action drop"},
		 "set a of ports with timed is not valid: use timed with sets of prefixes only"},
		{"a",
		 "",
		 {"action drop learn @a,1m", "action drop learn @a,1m,dst/24"},
		 "rule 2 with learn @a,...dst/24/64 is not valid: use the prefix lengths of the "
		 "other rules that learn to the set: 32/128"},
		{"abcde",
		 "cd",
		 {"action drop learn @a,1m", "action drop learn @b,1m", "action drop learn @e,1m"},
		 "too many sets that elements come to for a time is not valid: use at most 4 of "
		 "them in a list"},
		{"abcde",
		 "cd",
		 {"action drop learn @a,1m", "action drop learn @b,1m",
		  "action drop learn @a,2m,dst"},
		 NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rule_list l = list_of(cases[i].sets, cases[i].timed, cases[i].rules);
		struct error e = {0};

		if (rule_list_check(&l, &e) < 0)
			assert_string_equal(e.text, cases[i].error);
		else
			assert_null(cases[i].error);
		rule_list_free(&l);
	}
}

static void lists_with_flows_are_held_against_their_sets(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"sets: {in: {flows: []}}\n"
		 "rules: [{flow: '@in', learn: ['@in', 1m, flow], action: pass}]\n",
		 NULL},
		{"sets: {in: {flows: []}}\nrules: [{src: '@in', action: pass}]\n",
		 "rule 1 with src @in is not valid: use a set of prefixes there, not of flows"},
		{"sets: {in: []}\nrules: [{flow: '@in', action: pass}]\n",
		 "rule 1 with flow @in is not valid: use a set of flows there, not of prefixes"},
		{"sets: {in: {flows: []}}\nrules: [{learn: ['@in', 1m], action: pass}]\n",
		 "rule 1 with learn @in is not valid: use a set of prefixes there, not of flows"},
		{"sets: {in: []}\nrules: [{learn: ['@in', 1m, flow], action: pass}]\n",
		 "rule 1 with learn @in is not valid: use a set of flows there, not of prefixes"},
		{"sets: {in: {flows: [], timed: no}}\nrules: []\n",
		 "set in of flows with timed: no is not valid: use timed: yes, as without it"},
		{"sets: {a: {flows: []}, b: {flows: []}, c: {flows: [], timed: yes},\n"
		 "  d: {timed: yes}, e: {timed: yes}}\nrules: []\n",
		 "too many sets that elements come to for a time is not valid: use at most 4 of "
		 "them in a list"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct config_errors errs;
		struct rule_list l;
		char all[512];

		if (rule_file_parse(cases[i].text, strlen(cases[i].text), DIRECTION_INGRESS, &l,
				    &errs) == 0) {
			assert_null(cases[i].error);
			rule_list_free(&l);
		} else {
			assert_non_null(cases[i].error);
			snprintf(all, sizeof(all), "%s is not valid: use %s", errs.e[0].found,
				 errs.e[0].expected);
			assert_string_equal(all, cases[i].error);
		}
		config_errors_free(&errs);
	}
}

static void timed_sets_are_found_in_order(void **state)
{
	static const char *const rules[] = {"action drop learn @d,1m,src/24", "action drop", NULL};
	struct rule_list l = list_of("aBcd", "a", rules);
	struct timed_set t[AX_TIMED_SETS];

	(void)state;
	assert_int_equal(rule_list_timed_sets(&l, t), 2);
	assert_int_equal(t[0].set, 0);
	assert_int_equal(t[0].len4, 32);
	assert_int_equal(t[0].len6, 128);
	assert_int_equal(t[1].set, 3);
	assert_int_equal(t[1].len4, 24);
	assert_int_equal(t[1].len6, 64);
	rule_list_free(&l);
}

static void lists_keep_it(void **state)
{
	struct rule_list l =
		rule_list_of("sets: {a: {timed: yes}, b: {timed: yes, prefixes: [10.0.0.1]},"
			     " c: [], d: {flows: []}}\n"
			     "rules: [{learn: ['@c', 90s, dst/24], action: pass},\n"
			     "        {flow: '@d', learn: '@d,5s,flow=7/udp', action: pass}]\n");
	struct rule_list again, copy;
	struct error e = {0};
	void *data;
	size_t len;

	(void)state;
	assert_int_equal(rule_list_check(&l, &e), 0);
	assert_int_equal(l.sets[1].n, 1);
	assert_true(l.sets[0].timed && l.sets[1].timed && !l.sets[2].timed);
	assert_true(l.sets[3].timed && l.sets[3].kind == SET_FLOWS);
	assert_int_equal(rule_list_save(&l, &data, &len), 0);
	assert_int_equal(rule_list_restore(data, len, &again), 0);
	assert_true(rule_list_eq(&l, &again));
	assert_int_equal(rule_list_copy(&again, &copy), 0);
	assert_true(rule_list_eq(&l, &copy));
	copy.sets[0].timed = false;
	assert_false(rule_list_eq(&l, &copy));
	free(data);
	rule_list_free(&copy);
	rule_list_free(&again);
	rule_list_free(&l);
}

/* What a class becomes with the sets of each mask, held against what the rules say. */
static void tables_have_what_sets_add(void **state)
{
	struct rule_list l = list_of("ab", "ab",
				     (const char *const[]){"src 10.1.0.0/16 dport 5 action pass",
							   "src @a dport 1 action drop",
							   "src @b action drop", NULL});
	struct compiled c = compile(&l);
	const struct ax_field_layout *f = &c.l.field[AX_FIELD_SRC];
	const uint16_t *table = (const uint16_t *)(c.a.data + f->timed);

	(void)state;
	assert_int_equal(c.l.timed_n, 2);
	assert_int_equal(f->timed_asked, 3);
	assert_int_equal(c.l.field[AX_FIELD_DST].timed, 0);
	assert_true(f->timed && f->timed + 4ull * f->classes * sizeof(*table) <= c.l.size);
	for (uint32_t cls = 0; cls < f->classes; cls++) {
		assert_int_equal(table[cls], cls);
		for (uint32_t mask = 0; mask < 4; mask++) {
			uint16_t with = table[mask * f->classes + cls];

			assert_true(with < f->classes);
			/* in any order, and again */
			assert_int_equal(table[mask * f->classes + with], with);
			assert_int_equal(table[3 * f->classes + with], table[3 * f->classes + cls]);
		}
	}
	arena_free(&c.a);
	rule_list_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_have_one_form),
		cmocka_unit_test(wrong_values_are_named),
		cmocka_unit_test(flows_as_text),
		cmocka_unit_test(rules_with_flows_fit_together),
		cmocka_unit_test(lists_are_held_against_their_sets),
		cmocka_unit_test(lists_with_flows_are_held_against_their_sets),
		cmocka_unit_test(timed_sets_are_found_in_order),
		cmocka_unit_test(lists_keep_it),
		cmocka_unit_test(tables_have_what_sets_add),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
