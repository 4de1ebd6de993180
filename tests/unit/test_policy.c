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

static struct ax_party take(struct policy *p, const char *text)
{
	CLEANUP(labels_free) struct labels l = parse(text);
	struct ax_party party;
	struct error e;

	if (policy_ref(p, &l, &party, &e))
		fail_msg("%s: %s", text, e.text);
	return party;
}

static void give_back(struct policy *p, const char *text)
{
	CLEANUP(labels_free) struct labels l = parse(text);

	policy_unref(p, &l);
}

static bool share(const struct ax_party *a, const struct ax_party *b)
{
	for (int i = 0; i < AX_LABEL_WORDS; i++)
		if (a->labels[i] & b->labels[i])
			return true;
	return false;
}

static unsigned count_bits(const struct ax_party *a)
{
	unsigned n = 0;

	for (int i = 0; i < AX_LABEL_WORDS; i++)
		n += (unsigned)__builtin_popcountll(a->labels[i]);
	return n;
}

static unsigned labels_in_use(const struct policy *p)
{
	unsigned n = 0;

	for (int i = 0; i < AX_LABELS_MAX; i++)
		n += p->labels[i].refs > 0;
	return n;
}

static void equal_labels_share_a_bit(void **state)
{
	struct policy p = {0};
	struct ax_party a = take(&p, "zone=eu,app=web"), b = take(&p, "app=db,zone=eu"),
			c = take(&p, "app=web"), d = take(&p, "zone=us"), none = take(&p, "");

	(void)state;
	assert_true(share(&a, &b));
	assert_true(share(&a, &c));
	assert_false(share(&b, &c));
	assert_false(share(&a, &d));
	assert_int_equal(count_bits(&a), 2);
	assert_int_equal(count_bits(&none), 0);
	assert_int_equal(labels_in_use(&p), 4);
	give_back(&p, "zone=eu,app=web");
	give_back(&p, "app=db,zone=eu");
	give_back(&p, "app=web");
	give_back(&p, "zone=us");
	assert_int_equal(labels_in_use(&p), 0);
}

static void a_bit_is_kept_while_anybody_has_it(void **state)
{
	struct policy p = {0};
	struct ax_party a = take(&p, "k=1"), b = take(&p, "k=1"), c;

	(void)state;
	assert_memory_equal(&a, &b, sizeof(a));
	give_back(&p, "k=1");
	c = take(&p, "k=2");
	assert_false(share(&b, &c)); /* else a new label would mean an old one */
	assert_int_equal(labels_in_use(&p), 2);
	give_back(&p, "k=1");
	give_back(&p, "k=1"); /* of nobody */
	a = take(&p, "k=3");
	assert_false(share(&a, &c));
	assert_memory_equal(&a, &b, sizeof(a)); /* the bit is free to be used again */
	give_back(&p, "k=2");
	give_back(&p, "k=3");
	assert_int_equal(labels_in_use(&p), 0);
}

static void there_are_256_labels(void **state)
{
	struct policy p = {0};
	struct ax_party all = {0}, one;
	CLEANUP(labels_free) struct labels two = parse("a=old,new=0,z=new");
	struct error e = {0};

	(void)state;
	for (int i = 0; i < AX_LABELS_MAX - 1; i++) {
		char text[16];

		snprintf(text, sizeof(text), "n=%d", i);
		one = take(&p, text);
		assert_int_equal(count_bits(&one), 1);
		assert_false(share(&all, &one));
		for (int w = 0; w < AX_LABEL_WORDS; w++)
			all.labels[w] |= one.labels[w];
	}
	/* one bit is left for two new labels: neither may stay behind */
	assert_int_equal(policy_ref(&p, &two, &one, &e), -ENOSPC);
	assert_int_equal(e.code, -ENOSPC);
	assert_non_null(strstr(e.text, "256 different labels"));
	assert_int_equal(labels_in_use(&p), AX_LABELS_MAX - 1);
	one = take(&p, "last=1,n=0");
	assert_int_equal(count_bits(&one), 2);
	assert_int_equal(policy_ref(&p, &two, &one, &e), -ENOSPC);
	one = take(&p, "n=5"); /* those that are known still go */
	assert_true(share(&all, &one));
	give_back(&p, "n=5");
	give_back(&p, "last=1,n=0");
	for (int i = 0; i < AX_LABELS_MAX - 1; i++) {
		char text[16];

		snprintf(text, sizeof(text), "n=%d", i);
		give_back(&p, text);
	}
	assert_int_equal(labels_in_use(&p), 0);
}

static void rules_become_masks(void **state)
{
	struct config_rule rules[] = {
		{.allow = false, .from = parse("zone=eu"), .to = parse("app=db")},
		{.allow = true, .from = {0}, .to = parse("app=db,tier=1")},
		{.allow = true, .from = parse("app=web"), .to = {0}},
	};
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

	(void)state;
	assert_int_equal(policy_allow_mask(&p), 6);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ax_party party = take(&p, cases[i].labels);

		assert_int_equal(party.from, cases[i].from);
		assert_int_equal(party.to, cases[i].to);
		give_back(&p, cases[i].labels);
	}
	/* other rules: the party's bits of the old ones go, its labels stay */
	{
		struct ax_party party = take(&p, "app=web"), before = party;
		CLEANUP(labels_free) struct labels l = parse("app=web");

		p.n_rules = 1;
		policy_rules(&p, &l, &party);
		assert_int_equal(party.from, 0);
		assert_int_equal(party.to, 0);
		assert_memory_equal(party.labels, before.labels, sizeof(party.labels));
		give_back(&p, "app=web");
	}
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		labels_free(&rules[i].from);
		labels_free(&rules[i].to);
	}
}

static void there_are_64_rules(void **state)
{
	struct config_rule rules[AX_RULES_MAX + 1] = {0};
	struct policy p = {.rules = rules, .n_rules = AX_RULES_MAX};
	struct ax_party party;

	(void)state;
	rules[63].allow = true;
	rules[AX_RULES_MAX].allow = true;
	party = take(&p, "");
	assert_true(party.from == UINT64_MAX && party.to == UINT64_MAX);
	assert_true(policy_allow_mask(&p) == 1ull << 63);
	p.n_rules = AX_RULES_MAX + 1; /* the config refuses so many */
	party = take(&p, "");
	assert_true(party.from == UINT64_MAX);
	assert_true(policy_allow_mask(&p) == 1ull << 63);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_labels_share_a_bit),
		cmocka_unit_test(a_bit_is_kept_while_anybody_has_it),
		cmocka_unit_test(there_are_256_labels),
		cmocka_unit_test(rules_become_masks),
		cmocka_unit_test(there_are_64_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
