// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
// timeout: 300
/* Lists of so many rules that what was found for a packet's classes is kept: the same rule comes
 * out of it, whatever came before, and after changes too. Both directions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "compile/compile.h"
#include "tests/lib/filter.h"

#define SIDE	 20    /* so many networks and so many ports, with a rule for each pair */
#define ELEMENTS 16500 /* of a set that is so large that it is changed where it is */
#define FILLERS	 70    /* values of each of three fields more: too many for a table of products */

static char *text_of(const char *first)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	fprintf(f, "sets: {blocked: {prefixes: [192.0.2.1");
	for (int i = 0; i < ELEMENTS; i++)
		fprintf(f, ", 11.%d.%d.1", i / 256, i % 256);
	fprintf(f, "]}}\nrules:\n");
	fprintf(f, "- {name: blocked, dst: '@blocked', action: drop}\n%s", first);
	for (int i = 0; i < SIDE * SIDE; i++)
		fprintf(f, "- {name: r%d, src: 10.0.%d.0/24, proto: udp, dport: %d, action: %s}\n",
			i, i / SIDE, 1000 + i % SIDE, i % 3 ? "pass" : "drop");
	for (int i = 0; i < FILLERS; i++)
		fprintf(f,
			"- {src: 172.16.%d.1, action: drop}\n- {dst: 172.17.%d.1, action: drop}\n"
			"- {sport: %d, action: drop}\n",
			i, i, 50000 + 3 * i);
	assert_int_equal(fclose(f), 0);
	return text;
}

static void load(const char *first)
{
	autofree char *text = text_of(first);

	filter_load(text);
	assert_int_equal(filter.g.layout.match, AX_MATCH_BITMAP);
	assert_true(filter.g.layout.words > 3);
}

static void assert_action(unsigned net, unsigned host, unsigned port, unsigned sport,
			  uint32_t expected)
{
	char spec[128];

	snprintf(spec, sizeof(spec), "udp 10.0.%u.%u:%u > 10.9.9.9:%u", net, host, sport, port);
	if (filter_run(spec) != expected)
		fail_msg("%s: not %u", spec, expected);
}

static void look_at_all(unsigned rounds)
{
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < SIDE * SIDE; i++)
			assert_action(i / SIDE, 1 + round, 1000 + i % SIDE, 7,
				      i % 3 ? XDP_PASS : XDP_DROP);
	}
}

static void each_packet_gets_its_rule(void **state)
{
	(void)state;
	filter_load_afresh("rules: []");
	load("");
	look_at_all(3);
	for (unsigned i = 0; i < SIDE * SIDE; i++) {
		char name[16];

		snprintf(name, sizeof(name), "r%u", i);
		assert_int_equal(filter_rule_count(name).packets, 3);
	}
	/* what no rule has */
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < SIDE; i++)
			assert_action(i, 5, 999, 7, XDP_PASS);
	}
	assert_int_equal(filter_rule_count("default").packets, 3 * SIDE);
}

/* Another list, and the one before again. */
static void a_new_list_knows_nothing_of_the_old_one(void **state)
{
	(void)state;
	filter_load_afresh("rules: []");
	load("");
	look_at_all(2);
	load("- {name: all, sport: 7, action: drop}\n");
	for (unsigned i = 0; i < SIDE * SIDE; i++)
		assert_action(i / SIDE, 1, 1000 + i % SIDE, 7, XDP_DROP);
	assert_int_equal(filter_rule_count("all").packets, SIDE * SIDE);
	assert_action(0, 1, 1001, 8, XDP_PASS);
	load("");
	look_at_all(2);
}

static void change(const char *address, bool gone)
{
	struct prefix p;
	const struct rule_set_def one = {.kind = SET_PREFIXES, .prefixes = &p, .n = 1};
	const struct set_change ch = {.set = "blocked", .gone = gone, .elements = &one};
	const struct xdp_load_options o = {.session = -1};
	uint32_t generation = filter.g.layout.generation;
	struct set_changed done;

	assert_int_equal(prefix_parse(address, &p), 0);
	assert_int_equal(xdp_change_sets(&filter.inst, filter_place(), &ch, 1, &o, &done), 1);
	filter_reopen();
	assert_int_equal(filter.g.layout.generation, generation);
}

/* Elements come to the sets of a list while it stays. */
static void changes_in_place_count_at_once(void **state)
{
	(void)state;
	filter_load_afresh("rules: []");
	load("");
	look_at_all(2);
	change("10.9.9.9", false);
	for (unsigned i = 0; i < SIDE * SIDE; i++)
		assert_action(i / SIDE, 1, 1000 + i % SIDE, 7, XDP_DROP);
	assert_int_equal(filter_rule_count("blocked").packets, SIDE * SIDE);
	change("10.9.9.9", true);
	look_at_all(2);
	assert_int_equal(filter_rule_count("blocked").packets, SIDE * SIDE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_packet_gets_its_rule),
		cmocka_unit_test(a_new_list_knows_nothing_of_the_old_one),
		cmocka_unit_test(changes_in_place_count_at_once),
		cmocka_unit_test_setup_teardown(each_packet_gets_its_rule, filter_to_egress,
						filter_to_ingress),
		cmocka_unit_test_setup_teardown(a_new_list_knows_nothing_of_the_old_one,
						filter_to_egress, filter_to_ingress),
		cmocka_unit_test_setup_teardown(changes_in_place_count_at_once, filter_to_egress,
						filter_to_ingress),
	};

	return cmocka_run_group_tests_name("what was found", tests, filter_setup, filter_teardown);
}
