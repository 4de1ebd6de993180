// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "allot/policy.h"
#include "config/config.h"
#include "config/parse.h"

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

	if (policy_ref(p, &l, &(struct policy_who){0}, &party, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	assert_int_not_equal(party, AX_PARTY_NONE);
	return party;
}

static void give_back(struct policy *p, const char *text)
{
	CLEANUP(labels_free) struct labels l = parse(text);
	uint32_t party;
	struct error e;

	assert_int_equal(policy_ref(p, &l, &(struct policy_who){0}, &party, &e),
			 0); /* somebody has it */
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
	assert_int_equal(policy_ref(&p, &two, &(struct policy_who){0}, &one, &e), -ENOSPC);
	assert_int_equal(e.code, -ENOSPC);
	assert_non_null(strstr(e.text, "256 different labels"));
	assert_int_equal(labels_in_use(&p), AX_LABELS_MAX - 1);
	one = take(&p, "last=1,n=0");
	assert_int_equal(count_bits(&p, one), 2);
	assert_int_equal(policy_ref(&p, &two, &(struct policy_who){0}, &one, &e), -ENOSPC);
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
	assert_int_equal(policy_ref(&p, &more, &(struct policy_who){0}, &party, &e), -ENOSPC);
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

/* --- rules --- */

static struct config rules_of(const char *text)
{
	struct config_errors errs;
	struct config c;

	if (config_parse(text, strlen(text), &c, &errs))
		fail_msg("%s: %s, expected %s", text, errs.n ? errs.e[0].found : "?",
			 errs.n ? errs.e[0].expected : "?");
	return c;
}

static uint32_t take_named(struct policy *p, const char *text, const char *name)
{
	CLEANUP(labels_free) struct labels l = parse(text);
	uint32_t party;
	struct error e;

	assert_true(policy_ref(p, &l, &(struct policy_who){.name = name}, &party, &e) >= 0);
	return party;
}

static void assert_vectors(const struct policy *p, uint32_t party, uint64_t from, uint64_t to)
{
	struct ax_party_rules r;

	policy_party_rules(p, party, &r);
	assert_true(r.from.w[0] == from);
	assert_true(r.to.w[0] == to);
}

static void rules_become_vectors(void **state)
{
	struct config c = rules_of("policy:\n  rules:\n"
				   "    - deny: {from: {zone: eu}, to: app=db}\n"
				   "    - allow: {to: 'app=db,tier=1'}\n"
				   "    - allow: {from: app=web}\n"
				   "    - deny: {from: 10.0.0.0/8, to: [app=db, front]}\n");
	CLEANUP(policy_free) struct policy p = {.rules = c.rules, .n_rules = c.n_rules};
	const struct policy_port any = {.proto = IPPROTO_TCP, .port = 80};
	static const struct {
		const char *labels;
		uint64_t from, to;
	} cases[] = {
		{"", 2, 4},
		{"zone=eu", 3, 4},
		{"zone=us", 2, 4},
		{"app=web", 6, 4},
		{"app=web,zone=eu", 7, 4},
		{"app=db", 2, 13},
		{"app=db,tier=1", 2, 15},
		{"app=db,tier=2,zone=eu", 3, 13},
	};
	uint32_t web, db;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_vectors(&p, take(&p, cases[i].labels), cases[i].from, cases[i].to);
	web = take(&p, "app=web,zone=eu");
	db = take(&p, "app=db");
	assert_false(policy_may(&p, web, db, &any));
	assert_true(policy_may(&p, db, take(&p, "app=db,tier=1"), &any));
	assert_true(policy_may(&p, web, take(&p, "zone=us"), &any));
	assert_false(policy_may(&p, db, take(&p, "zone=us"), &any));
	assert_false(policy_may(&p, db, AX_PARTIES_MAX - 1, &any));
	config_free(&c);
}

/* A rule may name the node's own cluster, which is no label that apps talk by. */
static void the_own_cluster_is_a_label_of_rules(void **state)
{
	struct config c = rules_of("policy:\n  rules:\n"
				   "    - allow: {from: cluster=east, to: cluster=west}\n"
				   "    - deny: {from: 'cluster=east,zone=eu'}\n"
				   "    - deny: {to: cluster=eas}\n");
	CLEANUP(policy_free)
	struct policy p = {.rules = c.rules, .n_rules = c.n_rules, .cluster = "east"};
	const struct policy_port any = {.proto = IPPROTO_TCP, .port = 80};
	static const struct {
		const char *labels;
		uint64_t from, to;
	} cases[] = {
		{"", 1 | 4, 2},
		{"zone=eu", 1 | 2 | 4, 2},
		{"cluster=east", 1 | 4, 2},
		{"cluster=west", 4, 1 | 2}, /* another cluster's, or one that says so */
		{"cluster=west,zone=eu", 4, 1 | 2},
		{"clusters=east", 1 | 4, 2},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_vectors(&p, take(&p, cases[i].labels), cases[i].from, cases[i].to);
	assert_true(policy_may(&p, take(&p, "zone=us"), take(&p, "cluster=west"), &any));
	assert_false(policy_may(&p, take(&p, "cluster=west"), take(&p, "zone=us"), &any));
	assert_false(policy_may(&p, take(&p, "zone=us"), take(&p, "zone=uk"), &any));
	p.cluster = NULL;
	assert_vectors(&p, take(&p, "zone=us"), 4, 2);
	config_free(&c);
}

/* An app has a party of its own while a rule names it, and no longer. */
static void names_make_parties(void **state)
{
	struct config c = rules_of("services: {shop: {ports: [80], backends: [front, {labels: "
				   "{tier: shop}}]}}\n"
				   "policy: {rules: [{deny: {from: web, to: shop}}]}\n");
	CLEANUP(policy_free) struct policy p = {0};
	uint32_t plain = take_named(&p, "a=b", "web"), web, front;

	(void)state;
	assert_int_equal(take_named(&p, "a=b", "other"), plain);
	assert_int_equal(policy_name(&p, c.rules, c.n_rules, true), 0);
	p.rules = c.rules;
	p.n_rules = c.n_rules;
	assert_false(policy_fits(&p, plain, &(struct policy_who){.name = "web"}));
	assert_true(policy_fits(&p, plain, &(struct policy_who){.name = "other"}));
	assert_int_equal(take_named(&p, "a=b", "other"), plain);
	web = take_named(&p, "a=b", "web");
	front = take_named(&p, "a=b", "front");
	assert_int_not_equal(web, plain);
	assert_true(policy_fits(&p, web, &(struct policy_who){.name = "web"}));
	assert_string_equal(policy_party(&p, web)->name, "web");
	assert_vectors(&p, plain, 0, 0);
	assert_vectors(&p, web, 1, 0);
	assert_vectors(&p, front, 0, 1);
	assert_vectors(&p, take_named(&p, "tier=shop", "x"), 0, 1);
	/* other rules: both are known until all have moved */
	assert_int_equal(policy_name(&p, NULL, 0, true), 0);
	assert_true(policy_fits(&p, web, &(struct policy_who){.name = "web"}));
	assert_int_equal(policy_name(&p, NULL, 0, false), 0);
	assert_false(policy_fits(&p, web, &(struct policy_who){.name = "web"}));
	assert_true(policy_fits(&p, plain, &(struct policy_who){.name = "web"}));
	config_free(&c);
}

static void assert_port(const struct policy_tables *t, int udp, unsigned port, uint64_t bits)
{
	assert_true(t->classes[t->class_of[udp][port]].w[0] == bits);
}

static void ports_become_classes(void **state)
{
	struct config c = rules_of("policy:\n  rules:\n"
				   "    - allow: {port: 80, protocol: tcp}\n"
				   "    - deny: {ports: [80, 8000-8099, 65535]}\n"
				   "    - deny: {protocol: [udp, icmp]}\n"
				   "    - deny: {}\n");
	CLEANUP(policy_free) struct policy p = {.rules = c.rules, .n_rules = c.n_rules};
	struct policy_tables *t = policy_compile(&p);

	(void)state;
	assert_non_null(t);
	assert_int_equal(t->set.n_words, 1);
	assert_int_equal(t->set.flags, AX_RULES_PORTS);
	assert_int_equal(t->set.allow.w[0], 1);
	assert_port(t, 0, 80, 8 | 2 | 1);
	assert_port(t, 0, 81, 8);
	assert_port(t, 0, 7999, 8);
	assert_port(t, 0, 8000, 8 | 2);
	assert_port(t, 0, 8099, 8 | 2);
	assert_port(t, 0, 8100, 8);
	assert_port(t, 0, 65535, 8 | 2);
	assert_port(t, 0, 0, 8);
	assert_port(t, 1, 80, 8 | 4 | 2);
	assert_port(t, 1, 81, 8 | 4);
	assert_true(t->classes[AX_PORTS_NONE].w[0] == (8 | 4));
	/* a later fragment comes in where the first one may have */
	assert_true(t->classes[AX_PORTS_TCP_FRAGMENT].w[0] == (8 | 1));
	assert_true(t->classes[AX_PORTS_UDP_FRAGMENT].w[0] == (8 | 4));
	policy_tables_free(t);
	config_free(&c);
}

static void there_are_1024_rules(void **state)
{
	autofree char *text = malloc(AX_RULES_MAX * 64);
	char *s = stpcpy(text, "policy:\n  rules:\n");
	CLEANUP(policy_free) struct policy p = {0};
	struct ax_party_rules r;
	struct policy_tables *t;
	struct config c;

	(void)state;
	for (int i = 0; i < AX_RULES_MAX; i++)
		s += sprintf(s, "  - %s: {port: %d}\n", i == AX_RULES_MAX - 1 ? "allow" : "deny",
			     2 * i + 1);
	c = rules_of(text);
	p.rules = c.rules;
	p.n_rules = c.n_rules;
	policy_party_rules(&p, take(&p, ""), &r);
	for (int i = 0; i < AX_RULE_WORDS; i++)
		assert_true(r.from.w[i] == UINT64_MAX && r.to.w[i] == UINT64_MAX);
	t = policy_compile(&p);
	assert_int_equal(t->set.n_words, AX_RULE_WORDS);
	assert_true(t->set.allow.w[AX_RULE_WORDS - 1] == 1ull << 63);
	assert_true(t->classes[t->class_of[0][2047]].w[AX_RULE_WORDS - 1] == 1ull << 63);
	assert_true(t->n_classes < AX_PORT_CLASSES);
	policy_tables_free(t);
	config_free(&c);
}

/* The longest prefix that is found has what all that cover it have. */
static void prefixes_are_united(void **state)
{
	struct config c = rules_of("policy:\n  rules:\n"
				   "    - deny: {from: 192.0.2.0/24}\n"
				   "    - deny: {to: [0.0.0.0/0, 192.0.2.128/25]}\n"
				   "    - deny: {from: '2001:db8::/32', to: 192.0.2.0/24}\n");
	CLEANUP(policy_free) struct policy p = {.rules = c.rules, .n_rules = c.n_rules};
	struct policy_tables *t = policy_compile(&p);

	(void)state;
	assert_int_equal(t->n_outside, 4);
	assert_int_equal(t->set.flags, AX_RULES_OUTSIDE);
	for (size_t i = 0; i < 4; i++) {
		const struct policy_outside *o = &t->outside[i];
		char buf[ADDR_STRLEN];
		bool all = streq(prefix_format(&o->prefix, buf), "0.0.0.0/0");
		bool v6 = streq(buf, "2001:db8::/32");

		assert_true(o->rules.from.w[0] == (v6 ? 4 : all ? 0 : 1));
		assert_true(o->rules.to.w[0] == (v6 ? 0 : all ? 2 : 6));
	}
	policy_tables_free(t);
	config_free(&c);
}

static int take_other(struct policy *p, const char *text, uint32_t *party, struct error *e)
{
	CLEANUP(labels_free) struct labels l = parse(text);

	return policy_ref(p, &l, &(struct policy_who){.other = true}, party, e);
}

static void other_nodes_have_half_of_the_labels(void **state)
{
	CLEANUP(policy_free) struct policy p = {0};
	uint32_t party[POLICY_OTHERS_LABELS_MAX], none;
	struct error e = {0};
	char text[32];

	(void)state;
	for (int i = 0; i < POLICY_OTHERS_LABELS_MAX; i++) {
		snprintf(text, sizeof(text), "k=%d", i);
		assert_int_equal(take_other(&p, text, &party[i], &e), 1);
	}
	assert_int_equal(take_other(&p, "new=1", &none, &e), -ENOSPC);
	assert_non_null(strstr(e.text, "of other nodes"));
	assert_int_equal(labels_in_use(&p), POLICY_OTHERS_LABELS_MAX);
	for (int i = POLICY_OTHERS_LABELS_MAX; i < AX_LABELS_MAX; i++) {
		snprintf(text, sizeof(text), "k=%d", i);
		take(&p, text); /* those of this node have what is left */
	}
	/* nor have they what others have brought here */
	assert_int_equal(take_other(&p, "k=200", &none, &e), -ENOSPC);
	assert_int_equal(take_other(&p, "k=1", &none, &e), 0);
	assert_false(policy_unref_other(&p, none));
	take(&p, "k=1");
	assert_false(policy_unref_other(&p, party[1])); /* its label is this node's alone now */
	assert_int_equal(take_other(&p, "k=200", &none, &e), 0);
	assert_int_equal(take_other(&p, "k=1", &none, &e), -ENOSPC);
	assert_true(policy_unref_other(&p, party[2]));
	assert_int_equal(take_other(&p, "k=1", &none, &e), 0);
}

static void other_nodes_have_half_of_the_parties(void **state)
{
	CLEANUP(policy_free) struct policy p = {0};
	uint32_t party = 0, none;
	struct error e = {0};
	char text[64];

	(void)state;
	for (int i = 0; i < POLICY_OTHERS_PARTIES_MAX; i++) {
		snprintf(text, sizeof(text), "x=%d,y=%d", i % 64, i / 64 % 64);
		assert_int_equal(take_other(&p, text, &party, &e), 1);
	}
	assert_int_equal(take_other(&p, "x=1", &none, &e), -ENOSPC);
	assert_int_equal(take_other(&p, "z=1", &none, &e), -ENOSPC);
	assert_int_equal(parties_in_use(&p), POLICY_OTHERS_PARTIES_MAX);
	take(&p, "x=1");
	assert_int_equal(take_other(&p, "x=1", &none, &e), -ENOSPC);
	assert_true(policy_unref_other(&p, party));
	assert_int_equal(take_other(&p, "x=1", &none, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_labels_share_a_bit),
		cmocka_unit_test(a_bit_is_kept_while_anybody_has_it),
		cmocka_unit_test(there_are_256_labels),
		cmocka_unit_test(there_are_8191_parties),
		cmocka_unit_test(an_agent_adopts_the_numbers_of_the_last),
		cmocka_unit_test(rules_become_vectors),
		cmocka_unit_test(the_own_cluster_is_a_label_of_rules),
		cmocka_unit_test(names_make_parties),
		cmocka_unit_test(ports_become_classes),
		cmocka_unit_test(there_are_1024_rules),
		cmocka_unit_test(prefixes_are_united),
		cmocka_unit_test(other_nodes_have_half_of_the_labels),
		cmocka_unit_test(other_nodes_have_half_of_the_parties),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
