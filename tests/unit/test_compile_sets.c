// SPDX-License-Identifier: GPL-2.0-or-later
/* The rule compiler: sets, rate limits, and as many rules, classes and prefixes as there may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>

#include "tests/lib/arena_eval.h"
#include "tests/lib/compiled.h"

#define NS_PER_SECOND	 1000000000ull
#define LIMIT_PER_SECOND (NS_PER_SECOND << AX_LIMIT_NS_SHIFT)

/* --- sets --- */

static void sets_belong_to_several_rules(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct match_packet p;
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	add_set(&l, "a", SET_PREFIXES, "10.0.0.0/8 10.1.0.0/16 fd00::/8 0.0.0.0");
	add_set(&l, "b", SET_PREFIXES, "10.1.0.0/16 10.1.2.0/24 fd00:1::/32");
	add_set(&l, "empty", SET_PREFIXES, "");
	add_set(&l, "web", SET_PORTS, "80 443 8000-8100 8050-8200");
	add_rule(&l, "src @empty action drop");
	add_rule(&l, "src @b,10.1.0.0/16 dst @a proto tcp dport @web,22 action drop");
	add_rule(&l, "src @a dst @b action pass");
	add_rule(&l, "src @a,@b,192.168.0.0/16 proto udp sport @web action pass");
	add_rule(&l, "dst @a proto tcp dport 8000-8300,@web action pass");
	c = compile(&l);
	p = packet("10.1.9.9", "10.9.9.9", 6, 8150);
	assert_int_equal(compiled_judge(&c, &p), 1);
	p = packet("10.1.9.9", "10.9.9.9", 6, 8201);
	assert_int_equal(compiled_judge(&c, &p), 4);
	p = packet("10.1.9.9", "10.1.9.9", 6, 8301);
	assert_int_equal(compiled_judge(&c, &p), 2);
	p = packet("fd00:1::1", "fd00:1::2", 17, 8301);
	assert_int_equal(compiled_judge(&c, &p), 2);
	p = packet("9.0.0.0", "9.0.0.0", 17, 1);
	assert_int_equal(compiled_judge(&c, &p), 5);
	arena_free(&c.a);
	check_list(&l, 3, 5000);
}

static void a_set_without_elements_matches_nothing(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct match_packet p = packet("10.0.0.1", "10.0.0.2", 6, 80);
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	add_set(&l, "none", SET_PREFIXES, "");
	add_rule(&l, "src @none action pass");
	c = compile(&l);
	assert_int_equal(compiled_judge(&c, &p), 1);
	assert_int_equal(compiled_judge(&c, &not_ip), 1);
	arena_free(&c.a);
	add_rule(&l, "length 0- vlan 0-4095,none action drop"); /* which every packet has */
	c = compile(&l);
	assert_int_equal(compiled_judge(&c, &p), 1);
	assert_false(c.l.field[AX_FIELD_LENGTH].used);
	assert_false(c.l.field[AX_FIELD_VLAN].used);
	arena_free(&c.a);
}

/* --- rates --- */

/* Packets of `len` bytes that pass in `ns` at full speed, one at each `gap` ns. */
static uint64_t admitted(const struct ax_limit *lim, uint64_t len, uint64_t gap, uint64_t ns)
{
	uint64_t cost = lim->bytes ? lim->cost * len >> AX_LIMIT_BYTE_SHIFT : lim->cost;
	uint64_t stamp = 0, n = 0;

	for (uint64_t t = NS_PER_SECOND; t < NS_PER_SECOND + ns; t += gap) {
		uint64_t now = t << AX_LIMIT_NS_SHIFT, from = stamp < now ? now : stamp;

		if (from - now > lim->tolerance)
			continue;
		stamp = from + cost;
		n++;
	}
	return n;
}

static struct ax_limit limit_of(const char *rate)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct ax_limit lim;
	struct compiled c;
	char line[128];

	rule_list_init(&l);
	snprintf(line, sizeof(line), "proto udp action pass rate %s", rate);
	add_rule(&l, "proto tcp action drop");
	add_rule(&l, line);
	c = compile(&l);
	assert_int_equal(c.l.limits_n, 1);
	assert_int_equal(eval_action(&c.a, &c.l, 0)->limit, 0);
	assert_int_equal(eval_action(&c.a, &c.l, 1)->limit, 1);
	lim = *(const struct ax_limit *)(c.a.data + c.l.limits);
	arena_free(&c.a);
	return lim;
}

static void limits_let_through_what_they_say(void **state)
{
	struct ax_limit lim;

	(void)state;
	lim = limit_of("1000pps,burst=50");
	assert_int_equal(lim.cost, LIMIT_PER_SECOND / 1000);
	assert_int_equal(admitted(&lim, 64, 10, 10), 1);
	assert_int_equal(admitted(&lim, 64, 1, 10000), 50);
	assert_in_range(admitted(&lim, 64, 10000, NS_PER_SECOND), 1049, 1051);
	lim = limit_of("1pps,burst=1");
	assert_int_equal(admitted(&lim, 64, NS_PER_SECOND / 10, 10 * NS_PER_SECOND), 10);
	lim = limit_of("100gbit,burst=15000"); /* 12.5 bytes in a ns: 1000 in 80 ns */
	assert_int_equal(lim.bytes, 1);
	assert_int_equal(admitted(&lim, 1000, 1, 1), 1);
	assert_in_range(admitted(&lim, 1000, 10, 1000000), 12500, 12520);
	lim = limit_of("10mbit,burst=12500");
	assert_int_equal(admitted(&lim, 1250, 1, 100), 10);
	assert_in_range(admitted(&lim, 1250, 100000, NS_PER_SECOND), 1008, 1011);
	lim = limit_of("10pps,per=src/24/64");
	assert_int_equal(lim.per_source, 1);
	assert_int_equal(lim.len4, 24);
	assert_int_equal(lim.len6, 64);
}

/* Whatever somebody asks for, a stamp does not overflow. */
static void limits_do_not_overflow(void **state)
{
	static const struct {
		uint64_t rate, burst;
		bool bits;
	} odd[] = {{1, UINT64_MAX, true},  {1, UINT64_MAX, false}, {UINT64_MAX, UINT64_MAX, true},
		   {UINT64_MAX, 0, false}, {UINT64_MAX, 1, true},  {7, 0, true}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		struct rule r = {
			.rate = odd[i].rate, .burst = odd[i].burst, .rate_bits = odd[i].bits};
		struct rule_list l = {.rules = &r, .n_rules = 1};
		struct compiled c = compile(&l);
		const struct ax_limit *lim = (const void *)(c.a.data + c.l.limits);

		assert_in_range(lim->cost, 1, (1ull << 47) - 1);
		assert_true(lim->tolerance <= 1ull << 60);
		arena_free(&c.a);
	}
}

/* --- size --- */

static void add_random_rule(struct rnd *r, struct rule *to)
{
	struct condition *src = &to->in[AX_FIELD_SRC], *dport = &to->in[AX_FIELD_DPORT];

	to->verdict = AX_VERDICT_DROP;
	src->prefixes = calloc(1, sizeof(*src->prefixes));
	src->n = 1;
	src->prefixes->addr = addr_from_v4((__be32)rnd_next(r));
	src->prefixes->len = 96 + 8 + rnd_below(r, 25);
	rnd_mask(src->prefixes);
	rnd_one_number(&to->in[AX_FIELD_PROTO], rnd_one_in(r, 2) ? 6 : 17);
	rnd_one_number(dport, rnd_below(r, 65536));
	dport->ranges->hi += rnd_below(r, 65536 - dport->ranges->lo);
}

static void make_big(struct rule_list *l, size_t n, uint64_t seed)
{
	struct rnd r = {seed};

	rule_list_init(l);
	l->rules = calloc(n, sizeof(*l->rules));
	l->n_rules = n;
	for (size_t i = 0; i < n; i++)
		add_random_rule(&r, &l->rules[i]);
}

static void as_many_rules_as_there_may_be(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l, one_more;
	struct error e = {0};
	struct compiled c;
	struct rnd r = {5};

	(void)state;
	make_big(&l, AX_XDP_RULES_MAX, 11);
	c = compile(&l);
	assert_int_equal(c.l.match, AX_MATCH_BITMAP);
	assert_int_equal(c.l.words, 256);
	assert_int_equal(c.l.summary, AX_SUMMARY_MAX);
	check_packets(&l, &c, &r, 500);
	arena_free(&c.a);
	make_big(&one_more, AX_XDP_RULES_MAX + 1, 12);
	assert_int_equal(try_compile(&one_more, &c, &e), -E2BIG);
	assert_non_null(strstr(e.text, "16384"));
	assert_null(c.a.data);
}

/* Each port range of its own, in many rules: more classes than 16 bits can tell. */
static void too_many_classes_are_refused(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct error e = {0};
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	l.rules = calloc(17, sizeof(*l.rules));
	l.n_rules = 17;
	for (unsigned bit = 0; bit < 17; bit++) {
		struct condition *src = &l.rules[bit].in[AX_FIELD_SRC];

		/* of /17 networks those whose number has this bit */
		src->prefixes = calloc(1 << 16, sizeof(*src->prefixes));
		for (uint32_t i = 0; i < 1u << 17; i++) {
			if (!(i >> bit & 1))
				continue;
			src->prefixes[src->n].addr = addr_from_v4(htonl(i << 15));
			src->prefixes[src->n++].len = 96 + 17;
		}
	}
	assert_int_equal(try_compile(&l, &c, &e), -E2BIG);
	assert_non_null(strstr(e.text, "65536"));
	assert_non_null(strstr(e.text, "'src'"));
	l.n_rules = 16; /* which is as many as there may be: 65536 classes */
	for (size_t i = 0; i < 16; i++)
		assert_int_equal(l.rules[i].in[AX_FIELD_SRC].n, 65536);
	c = compile(&l);
	assert_int_equal(c.l.match, AX_MATCH_SINGLE);
	arena_free(&c.a);
	rule_free(&l.rules[16]);
}

static void a_million_prefixes_are_found(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	const size_t n = 1000000;
	struct rule_set_def *s;
	struct rnd r = {77};
	struct compiled c;

	(void)state;
	rule_list_init(&l);
	add_set(&l, "big", SET_PREFIXES, "");
	add_set(&l, "other", SET_PREFIXES, "10.0.0.0/8 fd00::/8");
	s = &l.sets[0];
	s->prefixes = realloc(s->prefixes, n * sizeof(*s->prefixes));
	assert_non_null(s->prefixes);
	for (s->n = 0; s->n < n; s->n++) {
		bool v4 = s->n % 4;
		struct prefix *p = &s->prefixes[s->n];

		p->addr = (struct ax_addr){.w = {(__be32)rnd_next(&r), (__be32)rnd_next(&r)}};
		if (v4)
			p->addr = addr_from_v4((__be32)rnd_next(&r));
		p->len = v4 ? 96 + 24 + rnd_below(&r, 9) : 32 + rnd_below(&r, 33);
		rnd_mask(p);
	}
	assert_int_equal(set_sort(s), 0);
	add_rule(&l, "src @other action pass");
	add_rule(&l, "src @big action drop");
	c = compile(&l);
	assert_int_equal(c.l.match, AX_MATCH_SINGLE);
	check_packets(&l, &c, &r, 20);
	arena_free(&c.a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sets_belong_to_several_rules),
		cmocka_unit_test(a_set_without_elements_matches_nothing),
		cmocka_unit_test(limits_let_through_what_they_say),
		cmocka_unit_test(limits_do_not_overflow),
		cmocka_unit_test(as_many_rules_as_there_may_be),
		cmocka_unit_test(too_many_classes_are_refused),
		cmocka_unit_test(a_million_prefixes_are_found),
	};

	return cmocka_run_group_tests_name("compile_sets", tests, NULL, NULL);
}
