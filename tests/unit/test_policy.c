// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "allot/policy.h"

static struct labels parse(const char *s)
{
	struct labels l;

	assert_int_equal(labels_parse(s, &l, NULL), 0);
	return l;
}

static uint32_t take(struct policy *p, const char *text)
{
	CLEANUP(labels_free) struct labels l = parse(text);
	uint32_t party;
	struct error e;

	if (policy_ref(p, &l, &party, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	assert_int_not_equal(party, AX_PARTY_NONE);
	return party;
}

static void give_back(struct policy *p, const char *text)
{
	CLEANUP(labels_free) struct labels l = parse(text);
	uint32_t party;
	struct error e;

	assert_int_equal(policy_ref(p, &l, &party, &e), 0); /* somebody has it */
	assert_false(policy_unref(p, party));
	policy_unref(p, party);
}

static bool share(const struct policy *p, uint32_t x, uint32_t y)
{
	const struct ax_party *a = policy_party(p, x), *b = policy_party(p, y);

	for (int i = 0; i < AX_LABEL_WORDS; i++)
		if (a->labels[i] & b->labels[i])
			return true;
	return false;
}

static unsigned count_bits(const struct policy *p, uint32_t party)
{
	unsigned n = 0;

	for (int i = 0; i < AX_LABEL_WORDS; i++)
		n += (unsigned)__builtin_popcountll(policy_party(p, party)->labels[i]);
	return n;
}

static unsigned labels_in_use(const struct policy *p)
{
	unsigned n = 0;

	for (int i = 0; i < AX_LABELS_MAX; i++)
		n += p->labels[i].refs > 0;
	return n;
}

static unsigned parties_in_use(const struct policy *p)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < AX_PARTIES_MAX; i++)
		n += policy_party(p, i) != NULL;
	return n;
}

static void equal_labels_share_a_bit(void **state)
{
	CLEANUP(policy_free) struct policy p = {0};
	uint32_t a = take(&p, "zone=eu,app=web"), b = take(&p, "app=db,zone=eu"),
		 c = take(&p, "app=web"), d = take(&p, "zone=us"), none = take(&p, "");

	(void)state;
	assert_true(share(&p, a, b));
	assert_true(share(&p, a, c));
	assert_false(share(&p, b, c));
	assert_false(share(&p, a, d));
	assert_int_equal(count_bits(&p, a), 2);
	assert_int_equal(count_bits(&p, none), 0);
	assert_int_equal(labels_in_use(&p), 4);
	assert_int_equal(parties_in_use(&p), 5);
	assert_int_equal(take(&p, "app=web,zone=eu"), a);
	give_back(&p, "zone=eu,app=web");
	give_back(&p, "zone=eu,app=web");
	give_back(&p, "app=db,zone=eu");
	give_back(&p, "app=web");
	give_back(&p, "zone=us");
	give_back(&p, "");
	assert_int_equal(labels_in_use(&p), 0);
	assert_int_equal(parties_in_use(&p), 0);
}

static void a_bit_is_kept_while_anybody_has_it(void **state)
{
	CLEANUP(policy_free) struct policy p = {0};
	uint32_t b = take(&p, "k=1"), c, d;

	(void)state;
	assert_int_equal(take(&p, "k=1"), b);
	give_back(&p, "k=1");
	c = take(&p, "k=2");
	assert_int_not_equal(b, c);
	assert_false(share(&p, b, c)); /* else a new label would mean an old one */
	assert_int_equal(labels_in_use(&p), 2);
	give_back(&p, "k=1");
	/* neither its number nor its bit is somebody else's a moment later */
	d = take(&p, "k=3");
	assert_int_not_equal(d, b);
	assert_true(policy_party(&p, d)->labels[0] == 1 << 2);
	give_back(&p, "k=2");
	give_back(&p, "k=3");
	assert_int_equal(labels_in_use(&p), 0);
	/* but in the end */
	for (int i = 0; i < 2 * AX_PARTIES_MAX; i++) {
		take(&p, "k=4");
		give_back(&p, "k=4");
	}
}

static void there_are_256_labels(void **state)
{
	CLEANUP(policy_free) struct policy p = {0};
	CLEANUP(labels_free) struct labels two = parse("a=old,new=0,z=new");
	struct error e = {0};
	uint32_t one;

	(void)state;
	for (int i = 0; i < AX_LABELS_MAX - 1; i++) {
		char text[16];

		snprintf(text, sizeof(text), "n=%d", i);
		one = take(&p, text);
		assert_int_equal(count_bits(&p, one), 1);
		for (uint32_t k = 1; k < one; k++)
			assert_false(share(&p, k, one));
	}
	/* one bit is left for two new labels: neither may stay behind */
	assert_int_equal(policy_ref(&p, &two, &one, &e), -ENOSPC);
	assert_int_equal(e.code, -ENOSPC);
	assert_non_null(strstr(e.text, "256 different labels"));
	assert_int_equal(labels_in_use(&p), AX_LABELS_MAX - 1);
	one = take(&p, "last=1,n=0");
	assert_int_equal(count_bits(&p, one), 2);
	assert_int_equal(policy_ref(&p, &two, &one, &e), -ENOSPC);
	take(&p, "n=5"); /* those that are known still go */
}

static void there_are_8191_parties(void **state)
{
	CLEANUP(policy_free) struct policy p = {0};
	CLEANUP(labels_free) struct labels more = parse("a=100,b=100");
	struct error e = {0};
	uint32_t party;

	(void)state;
	for (int i = 0; i < AX_PARTIES_MAX - 1; i++) {
		char text[32];

		snprintf(text, sizeof(text), "a=%d,b=%d", i % 100, i / 100);
		take(&p, text);
	}
	assert_int_equal(parties_in_use(&p), AX_PARTIES_MAX - 1);
	assert_int_equal(policy_ref(&p, &more, &party, &e), -ENOSPC);
	assert_non_null(strstr(e.text, "8191 different sets of labels"));
	assert_int_equal(labels_in_use(&p), 100 + 82);
	take(&p, "a=1,b=1");
}

/* The next agent has the labels' record and the table of the programs. */
static void an_agent_adopts_the_numbers_of_the_last(void **state)
{
	CLEANUP(policy_free) struct policy last = {0}, p = {0};
	uint32_t gone = take(&last, "zone=eu"), a = take(&last, "app=web,zone=eu"),
		 lost = take(&last, "lost=1"), unused = take(&last, "old=1");
	static const uint32_t all[] = {1, 2, 3, 4};

	(void)state;
	assert_true(policy_unref(&last, gone));
	for (int i = 0; i < AX_LABELS_MAX; i++) {
		if (!last.labels[i].refs || streq(last.labels[i].text, "lost=1"))
			continue;
		p.labels[i].text = strdup(last.labels[i].text);
		p.labels[i].refs = 1;
		p.labels[i].held = true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (policy_party(&last, all[i]))
			assert_int_equal(policy_adopt(&p, all[i], policy_party(&last, all[i])), 0);
	assert_int_equal(take(&p, "zone=eu,app=web"), a);
	/* whose label is not known any more: neither its number nor its bit is given out */
	assert_int_not_equal(take(&p, "lost=1"), lost);
	assert_false(share(&p, lost, take(&p, "zone=eu")));
	for (uint32_t i = 0; i < AX_PARTIES_MAX; i++)
		assert_int_equal(policy_release_party(&p, i), i == lost || i == unused);
	assert_null(policy_party(&p, unused));
	assert_non_null(policy_party(&p, a));
}

static void rules_become_masks(void **state)
{
	struct config_rule rules[] = {
		{.allow = false, .from = parse("zone=eu"), .to = parse("app=db")},
		{.allow = true, .from = {0}, .to = parse("app=db,tier=1")},
		{.allow = true, .from = parse("app=web"), .to = {0}},
	};
	CLEANUP(policy_free)
	struct policy p = {.rules = rules, .n_rules = ARRAY_SIZE(rules)};
	static const struct {
		const char *labels;
		uint64_t from, to;
	} cases[] = {
		{"", 2, 4},
		{"zone=eu", 3, 4},
		{"zone=us", 2, 4},
		{"app=web", 6, 4},
		{"app=web,zone=eu", 7, 4},
		{"app=db", 2, 5},
		{"app=db,tier=1", 2, 7},
		{"app=db,tier=2,zone=eu", 3, 5},
	};
	struct ax_party before;
	uint32_t web, db;

	(void)state;
	assert_int_equal(policy_allow_mask(&p), 6);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct ax_party *party = policy_party(&p, take(&p, cases[i].labels));

		for (int set = 0; set < AX_RULE_SETS; set++) {
			assert_int_equal(party->rules[set].from, cases[i].from);
			assert_int_equal(party->rules[set].to, cases[i].to);
		}
	}
	web = take(&p, "app=web,zone=eu");
	db = take(&p, "app=db");
	assert_false(policy_may(&p, web, db, 0));
	assert_true(policy_may(&p, db, take(&p, "app=db,tier=1"), 0));
	assert_true(policy_may(&p, web, take(&p, "zone=us"), 0));
	assert_false(policy_may(&p, db, take(&p, "zone=us"), 0));
	/* other rules: the bits of one set are new, all else stays */
	before = *policy_party(&p, web);
	p.n_rules = 0;
	policy_rules(&p, 1);
	assert_memory_equal(policy_party(&p, web)->labels, before.labels, sizeof(before.labels));
	assert_int_equal(policy_party(&p, web)->rules[0].from, before.rules[0].from);
	assert_int_equal(policy_party(&p, web)->rules[1].from, 0);
	assert_int_equal(policy_party(&p, web)->rules[1].to, 0);
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		labels_free(&rules[i].from);
		labels_free(&rules[i].to);
	}
}

static void there_are_64_rules(void **state)
{
	struct config_rule rules[AX_RULES_MAX + 1] = {0};
	CLEANUP(policy_free) struct policy p = {.rules = rules, .n_rules = AX_RULES_MAX};
	const struct ax_party *party;

	(void)state;
	rules[63].allow = true;
	rules[AX_RULES_MAX].allow = true;
	party = policy_party(&p, take(&p, ""));
	assert_true(party->rules[0].from == UINT64_MAX && party->rules[0].to == UINT64_MAX);
	assert_true(policy_allow_mask(&p) == 1ull << 63);
	p.n_rules = AX_RULES_MAX + 1; /* the config refuses so many */
	policy_rules(&p, 0);
	assert_true(party->rules[0].from == UINT64_MAX);
	assert_true(policy_allow_mask(&p) == 1ull << 63);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_labels_share_a_bit),
		cmocka_unit_test(a_bit_is_kept_while_anybody_has_it),
		cmocka_unit_test(there_are_256_labels),
		cmocka_unit_test(there_are_8191_parties),
		cmocka_unit_test(an_agent_adopts_the_numbers_of_the_last),
		cmocka_unit_test(rules_become_masks),
		cmocka_unit_test(there_are_64_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
