// SPDX-License-Identifier: GPL-2.0-or-later
/* The rule compiler, held against the plain meaning of a rule list (matcher.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>

#include "tests/lib/arena_eval.h"
#include "tests/lib/compiled.h"

#define RANDOM_LISTS   4000
#define RANDOM_PACKETS 40
#define ALL_FIELDS     ((1u << AX_FIELDS) - 1)

/* A list of a single rule, which holds or does not hold for the packet. */
static bool holds(const char *line, const struct match_packet *p)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct compiled c;
	size_t got;

	rule_list_init(&l);
	add_rule(&l, line);
	c = compile(&l);
	got = compiled_judge(&c, p);
	assert_int_equal(got, match_first(&l, p));
	arena_free(&c.a);
	return got == 0;
}

/* --- random lists --- */

static void random_lists_mean_what_they_say(void **state)
{
	unsigned modes[4] = {0};

	(void)state;
	for (uint64_t i = 0; i < RANDOM_LISTS; i++) {
		CLEANUP(rule_list_free) struct rule_list l;
		struct rnd r = {i * 7919 + 1};
		struct compiled c;

		rnd_list(&r, ALL_FIELDS, i % 4 == 0, &l);
		c = compile(&l);
		modes[c.l.match]++;
		check_packets(&l, &c, &r, RANDOM_PACKETS);
		arena_free(&c.a);
	}
	for (int i = 0; i < 4; i++) /* or nothing was tested */
		assert_true(modes[i] >= RANDOM_LISTS / 100);
}

/* --- modes --- */

static void no_conditions_need_no_lookup(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	c = compile(&l);
	assert_int_equal(c.l.match, AX_MATCH_NONE);
	assert_int_equal(c.l.only, 0);
	assert_int_equal(c.l.rules, 0);
	assert_int_equal(compiled_judge(&c, &not_ip), 0);
	arena_free(&c.a);

	add_rule(&l, "action drop");
	add_rule(&l, "src 10.0.0.0/8 dport 1-65535 proto tcp action pass");
	c = compile(&l);
	assert_int_equal(c.l.match, AX_MATCH_NONE);
	assert_int_equal(c.l.only, 0);
	assert_int_equal(c.l.rules, 1);
	assert_int_equal(compiled_judge(&c, &not_ip), 0);
	arena_free(&c.a);
}

static void one_field_holds_the_rules_themselves(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct match_packet p;
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	add_rule(&l, "src 10.1.0.0/16 action drop");
	add_rule(&l, "src 10.0.0.0/8,fd00::/8 action pass");
	c = compile(&l);
	assert_int_equal(c.l.match, AX_MATCH_SINGLE);
	assert_int_equal(c.l.field[AX_FIELD_SRC].none, 2);
	p = packet("10.1.2.3", "1.1.1.1", 6, 80);
	assert_int_equal(compiled_judge(&c, &p), 0);
	p = packet("10.2.2.3", "1.1.1.1", 6, 80);
	assert_int_equal(compiled_judge(&c, &p), 1);
	p = packet("fd00::1", "::1", 6, 80);
	assert_int_equal(compiled_judge(&c, &p), 1);
	p = packet("11.0.0.0", "1.1.1.1", 6, 80);
	assert_int_equal(compiled_judge(&c, &p), 2);
	assert_int_equal(compiled_judge(&c, &not_ip), 2);
	arena_free(&c.a);
}

static void few_classes_are_multiplied_and_many_are_not(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct compiled c;
	char line[128];

	(void)state;
	rule_list_init(&l);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(line, sizeof(line), "src 10.%u.0.0/16 dport %u proto tcp action drop", i,
			 1000 + i);
		add_rule(&l, line);
	}
	c = compile(&l);
	assert_int_equal(c.l.match, AX_MATCH_PRODUCT);
	assert_int_equal(c.l.products_n, 21 * 21 * 2);
	arena_free(&c.a);
	check_list(&l, 1, 2000);

	for (unsigned i = 0; i < 600; i++) {
		snprintf(line, sizeof(line), "src 1%u.0.%u.0/24 dport %u proto tcp action drop",
			 i / 256, i & 255, 10000 + 4 * i);
		add_rule(&l, line);
	}
	c = compile(&l);
	assert_int_equal(c.l.match, AX_MATCH_BITMAP);
	assert_int_equal(c.l.words, 10);
	assert_int_equal(c.l.summary, 1);
	assert_int_equal(c.l.row_size, 88);
	arena_free(&c.a);
	check_list(&l, 2, 2000);
}

static void what_is_behind_a_rule_for_all_costs_nothing(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	add_rule(&l, "proto tcp action pass");
	add_rule(&l, "action drop");
	add_rule(&l, "src 10.0.0.0/8 action pass");
	c = compile(&l);
	assert_int_equal(c.l.match, AX_MATCH_SINGLE);
	assert_int_equal(c.l.rules, 2);
	assert_false(c.l.field[AX_FIELD_SRC].used);
	assert_int_equal(compiled_judge(&c, &not_ip), 1);
	assert_int_equal(eval_action(&c.a, &c.l, 1)->flags, AX_ACTION_CATCH_ALL);
	assert_int_equal(eval_action(&c.a, &c.l, 2)->rule, 3);
	arena_free(&c.a);
}

/* --- fields --- */

static void each_field_is_told_from_its_absence(void **state)
{
	struct match_packet tcp = packet("10.0.0.1", "10.0.0.2", 6, 80),
			    udp = packet("10.0.0.1", "10.0.0.2", 17, 80),
			    icmp = packet("10.0.0.1", "10.0.0.2", 1, 0),
			    icmp6 = packet("fd00::1", "fd00::2", 58, 0),
			    esp = packet("10.0.0.1", "10.0.0.2", 50, 0), later = tcp, tagged = tcp;

	(void)state;
	later.fragment = AX_FRAGMENT_LATER;
	later.has_l4 = false;
	tagged.vlan = 0;
	icmp.icmp_type = 8;
	icmp6.icmp_type = 128;
	tcp.tcp_flags = 0x02;

	assert_true(holds("proto tcp action drop", &tcp));
	assert_true(holds("proto 0-255 action drop", &esp));
	assert_false(holds("proto 0-255 action drop", &not_ip));
	assert_true(holds("proto tcp dport 0-65535 action drop", &tcp));
	assert_false(holds("proto tcp dport 0-65535 action drop", &udp));
	assert_false(holds("proto tcp dport 0-65535 action drop", &later));
	assert_true(holds("proto tcp sport 40000 action drop", &tcp));
	assert_false(holds("proto tcp sport 40001 action drop", &tcp));
	assert_true(holds("proto tcp flags syn,!ack action drop", &tcp));
	assert_false(holds("proto tcp flags !syn action drop", &tcp));
	assert_false(holds("proto tcp flags !ack action drop", &later));
	assert_true(holds("icmp echo-request action drop", &icmp));
	assert_false(holds("icmp echo-request action drop", &icmp6));
	assert_true(holds("icmp6 echo-request action drop", &icmp6));
	assert_true(holds("icmp 3,8/0,9 action drop", &icmp));
	assert_false(holds("icmp 0/0 action drop", &tcp));
	assert_true(holds("vlan none action drop", &tcp));
	assert_true(holds("vlan 0 action drop", &tagged));
	assert_false(holds("vlan none action drop", &tagged));
	assert_false(holds("vlan 0-4095 action drop", &tcp));
	assert_true(holds("fragment later action drop", &later));
	assert_false(holds("fragment none action drop", &later));
	assert_false(holds("fragment none,first,later action drop", &not_ip));
	assert_true(holds("length 64 action drop", &tcp));
	assert_true(holds("length 60- action drop", &not_ip));
	assert_false(holds("length 65- action drop", &tcp));
	assert_true(holds("mac 02:00:00:00:00:01 action drop", &tcp));
	assert_false(holds("mac 02:00:00:00:00:00,02:00:00:00:00:02 action drop", &tcp));
	assert_true(holds("mac 02:00:00:00:00:00 action drop", &not_ip));
}

static void lengths_above_the_table_are_its_last(void **state)
{
	struct match_packet p = packet("10.0.0.1", "10.0.0.2", 6, 80);

	(void)state;
	p.len = 70000;
	assert_true(holds("length 1500- action drop", &p));
	assert_false(holds("length 0-65534 action drop", &p));
}

static void addresses_of_one_family_never_match_the_other(void **state)
{
	struct match_packet v4 = packet("10.0.0.1", "10.0.0.2", 6, 80),
			    v6 = packet("fd00::1", "fd00::2", 6, 80), mapped = v6;

	(void)state;
	mapped.src = v4.src;
	assert_true(holds("src 0.0.0.0/0 action drop", &v4));
	assert_false(holds("src 0.0.0.0/0 action drop", &v6));
	assert_false(holds("src 0.0.0.0/0 action drop", &mapped));
	assert_true(holds("src ::/0 action drop", &v6));
	assert_true(holds("src ::/0 action drop", &mapped));
	assert_false(holds("src ::/0 action drop", &v4));
	assert_false(holds("src ::/0,0.0.0.0/0 action drop", &not_ip));
}

static void ends_of_the_address_space_are_addresses(void **state)
{
	static const char *const edges[] = {"0.0.0.0",
					    "255.255.255.255",
					    "::",
					    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
					    "ffff:ffff:ffff:ffff::",
					    "0:0:0:0:ffff:ffff:ffff:ffff"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(edges); i++)
		for (size_t k = 0; k < ARRAY_SIZE(edges); k++) {
			struct match_packet p = packet(edges[k], edges[k], 6, 80);
			char line[128];

			snprintf(line, sizeof(line), "dst %s action drop", edges[i]);
			assert_int_equal(holds(line, &p), i == k);
		}
}

/* Every prefix length around one address, each a rule, the longest first. By its port a packet also
 * gets to the rules whose prefixes are around others. */
static void nested_prefixes_are_told_apart(void **state)
{
	static const struct {
		const char *addr;
		unsigned bits;
	} around[] = {{"10.11.12.13", 32}, {"255.255.255.255", 32},
		      {"0.0.0.0", 32},	   {"fd00:1:2:3:4:5:6:7", 128},
		      {"::", 128},	   {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 128}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(around); i++) {
		CLEANUP(rule_list_free) struct rule_list l;
		struct condition *src;

		rule_list_init(&l);
		for (unsigned len = 0; len <= around[i].bits; len++) {
			struct rule r = {.verdict = AX_VERDICT_DROP};

			src = &r.in[len % 2 ? AX_FIELD_SRC : AX_FIELD_DST];
			rnd_one_number(&r.in[AX_FIELD_DPORT], 1 + len % 5);
			src->prefixes = calloc(1, sizeof(*src->prefixes));
			src->n = 1;
			assert_int_equal(addr_parse(around[i].addr, &src->prefixes->addr), 0);
			src->prefixes->len = len + 128 - around[i].bits;
			rnd_mask(src->prefixes);
			assert_int_equal(rule_list_insert(&l, 0, &r), 0);
		}
		check_list(&l, i + 100, 3000);
	}
}

static void lists_of_one_family_have_no_tables_of_the_other(void **state)
{
	CLEANUP(rule_list_free) struct rule_list v4, v6;
	struct compiled c;

	(void)state;
	rule_list_init(&v4);
	add_rule(&v4, "src 10.0.0.0/8,10.0.0.1,11.0.0.0/25 action drop");
	c = compile(&v4);
	assert_int_equal(c.l.field[AX_FIELD_SRC].entries, 1);
	assert_int_equal(c.l.field[AX_FIELD_SRC].buckets6_size, sizeof(struct ax_key128));
	assert_true(c.l.field[AX_FIELD_SRC].buckets4_size > 0);
	arena_free(&c.a);
	rule_list_init(&v6);
	add_rule(&v6, "src fd00::/64,fd00::1:0:0:0:1 action drop");
	c = compile(&v6);
	assert_int_equal(c.l.field[AX_FIELD_SRC].buckets4_size, 0);
	assert_true(c.l.field[AX_FIELD_SRC].buckets6_size > sizeof(struct ax_key128));
	arena_free(&c.a);
}

/* --- what rules do --- */

static void actions_carry_what_the_rule_says(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	const struct ax_action *a;
	const struct ax_rewrite *w;
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	add_rule(&l, "proto udp action redirect eth1 dmac 02:00:00:00:00:09 to 10.0.0.9 to-port 99 "
		     "checksum recompute");
	add_rule(&l, "proto tcp action cpu 3");
	add_rule(&l, "proto icmp action drop capture 100,ring,slot=x,frame sample 8 log yes");
	c = compile(&l);
	a = eval_action(&c.a, &c.l, 0);
	assert_int_equal(a->verdict, AX_VERDICT_REDIRECT);
	assert_int_equal(a->flags, AX_ACTION_CHECKSUM);
	assert_int_equal(a->counter, 1000);
	assert_int_equal(a->target, 2);
	assert_int_equal(a->rewrite, 1);
	assert_int_equal(c.l.rewrites_n, 1);
	w = (const struct ax_rewrite *)(c.a.data + c.l.rewrites);
	assert_int_equal(w->flags, AX_REWRITE_DMAC | AX_REWRITE_DST | AX_REWRITE_DPORT);
	assert_int_equal(w->dport_be, htons(99));
	assert_int_equal(w->dst.w[3], htonl(0x0a000009));
	assert_int_equal(w->dmac[5], 9);
	assert_int_equal(a[1].verdict, AX_VERDICT_CPU);
	assert_int_equal(a[1].target, 3);
	assert_int_equal(a[1].rewrite, 0);
	assert_int_equal(a[2].flags,
			 AX_ACTION_RING | AX_ACTION_SLOT | AX_ACTION_FRAME | AX_ACTION_LOG);
	assert_int_equal(a[2].capture, 100);
	assert_int_equal(a[2].slot, 7);
	assert_int_equal(a[2].sample, 8);
	assert_int_equal(a[3].verdict, AX_VERDICT_PASS);
	assert_int_equal(a[3].flags, AX_ACTION_CATCH_ALL);
	assert_int_equal(a[3].counter, 1003);
	assert_int_equal(a[3].rule, 3);
	arena_free(&c.a);
}

static void balanced_fragments_follow_their_first(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct match_packet p = packet("10.0.0.1", "10.0.0.2", 17, 53);
	const struct ax_action *a;
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	l.balancers = calloc(1, sizeof(*l.balancers));
	l.n_balancers = 1;
	l.balancers->name = strdup("dns");
	add_rule(&l, "src 9.0.0.0/8 action drop");
	add_rule(&l, "dst 10.0.0.2 proto udp dport 53 action balance dns rate 10pps");
	add_rule(&l, "action drop");
	c = compile(&l);
	assert_int_equal(c.l.balance_first, 1);
	assert_int_equal(c.l.rules, 4);
	assert_int_equal(compiled_judge(&c, &p), 1);
	p.dport = 54;
	assert_int_equal(compiled_judge(&c, &p), 2);
	p.fragment = AX_FRAGMENT_LATER;
	p.has_l4 = false;
	assert_int_equal(compiled_judge(&c, &p), 1);
	p.proto = 6;
	assert_int_equal(compiled_judge(&c, &p), 2);
	a = eval_action(&c.a, &c.l, 1);
	assert_memory_equal(a, a + 1, sizeof(*a));
	assert_int_equal(a->limit, 1);
	assert_int_equal(a->verdict, AX_VERDICT_BALANCE);
	assert_int_equal(a->target, 0);
	assert_int_equal(c.l.limits_n, 1);
	arena_free(&c.a);
}

static void errors_are_quoted_where_the_last_word_is_drop(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	l.policy[AX_REASON_ICMP_ERROR] = AX_POLICY_PASS;
	c = compile(&l);
	assert_int_equal(c.l.quotes, 0);
	assert_memory_equal(c.l.policy, l.policy, sizeof(l.policy));
	arena_free(&c.a);
	l.default_action = AX_VERDICT_DROP;
	c = compile(&l);
	assert_int_equal(c.l.quotes, 1);
	arena_free(&c.a);
	add_rule(&l, "action pass");
	c = compile(&l);
	assert_int_equal(c.l.quotes, 0);
	arena_free(&c.a);
	rule_list_remove(&l, 0);
	l.policy[AX_REASON_ICMP_ERROR] = AX_POLICY_RULES;
	c = compile(&l);
	assert_int_equal(c.l.quotes, 0);
	arena_free(&c.a);
}

static void the_list_itself_is_in_the_arena(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l, back;
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	add_set(&l, "a", SET_PREFIXES, "10.0.0.0/8 fd00::/8");
	add_rule(&l, "name x src @a action drop");
	c = compile(&l);
	assert_true(c.l.state + c.l.state_size <= c.l.size);
	rule_list_init(&back);
	assert_int_equal(rule_list_restore(c.a.data + c.l.state, c.l.state_size, &back), 0);
	assert_int_equal(back.n_rules, 1);
	assert_true(rule_eq(&back.rules[0], &l.rules[0]));
	arena_free(&c.a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_lists_mean_what_they_say),
		cmocka_unit_test(no_conditions_need_no_lookup),
		cmocka_unit_test(one_field_holds_the_rules_themselves),
		cmocka_unit_test(few_classes_are_multiplied_and_many_are_not),
		cmocka_unit_test(what_is_behind_a_rule_for_all_costs_nothing),
		cmocka_unit_test(each_field_is_told_from_its_absence),
		cmocka_unit_test(lengths_above_the_table_are_its_last),
		cmocka_unit_test(addresses_of_one_family_never_match_the_other),
		cmocka_unit_test(ends_of_the_address_space_are_addresses),
		cmocka_unit_test(nested_prefixes_are_told_apart),
		cmocka_unit_test(lists_of_one_family_have_no_tables_of_the_other),
		cmocka_unit_test(actions_carry_what_the_rule_says),
		cmocka_unit_test(balanced_fragments_follow_their_first),
		cmocka_unit_test(errors_are_quoted_where_the_last_word_is_drop),
		cmocka_unit_test(the_list_itself_is_in_the_arena),
	};

	return cmocka_run_group_tests_name("compile", tests, NULL, NULL);
}
