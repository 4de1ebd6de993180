// SPDX-License-Identifier: GPL-2.0-or-later
/* Egress lists: names and entries as text, the rules that they become, and what is learnt of names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>

#include "allot/learnt.h"
#include "base/domain.h"
#include "config/config.h"
#include "config/parse.h"

static void is_domain(const char *from, const char *to)
{
	char name[DOMAIN_STRLEN];

	assert_null(want_domain(from, true, name));
	assert_string_equal(name, to);
}

static void names_are_read(void **state)
{
	static const char *const bad[] = {"",		".",	  "..",	   "a..b", "a b",
					  "*.",		"*a.b",	  "a.*.b", "b.*",  "**",
					  "10.0.1",	"a.1",	  "a/b",   "a:1",  "\xc3\xa4.test",
					  "a\x01.test", ".a.test"};
	char name[DOMAIN_STRLEN], text[300];

	(void)state;
	is_domain("Www.Example.COM", "www.example.com");
	is_domain("www.example.com.", "www.example.com");
	is_domain("*.example.com", "*.example.com");
	is_domain("*", "*");
	is_domain("_dmarc.xn--bcher-kva.example", "_dmarc.xn--bcher-kva.example");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (!want_domain(bad[i], true, name))
			fail_msg("%s is taken for a name", bad[i]);
	assert_non_null(want_domain("*.example.com", false, name));
	memset(text, 'a', sizeof(text));
	text[64] = 0;
	assert_non_null(want_domain(text, false, name)); /* a label of 64 */
	text[63] = 0;
	assert_null(want_domain(text, false, name));
	memset(text, 'a', sizeof(text));
	for (int i = 50; i < 254; i += 50)
		text[i] = '.';
	text[254] = 0;
	assert_non_null(want_domain(text, false, name));
	text[253] = 0;
	assert_null(want_domain(text, false, name));
}

static void names_match(void **state)
{
	(void)state;
	assert_true(domain_matches("a.test", "a.test"));
	assert_false(domain_matches("a.test", "b.a.test"));
	assert_true(domain_matches("*.a.test", "b.a.test"));
	assert_true(domain_matches("*.a.test", "c.b.a.test"));
	assert_false(domain_matches("*.a.test", "a.test"));
	assert_false(domain_matches("*.a.test", "ba.test"));
	assert_false(domain_matches("*.a.test", "b.a.test.evil"));
	assert_true(domain_matches("*", "a.test"));
}

static void entries_are_read(void **state)
{
	static const char *const good[] = {
		"10.0.0.0/8",
		"192.0.2.7:443",
		"192.0.2.7:443/tcp",
		"192.0.2.0/24:1-65535/udp",
		"192.0.2.7/icmp",
		"2001:db8::/32",
		"2001:db8::1",
		"[2001:db8::/32]:443/tcp",
		"[2001:db8::1]",
		"*.example.com:443",
		"www.example.com",
		"*",
		"*:443/tcp",
		"0.0.0.0/0:53/udp",
		"::/0",
	};
	static const char *const bad[] = {
		"",
		":443",
		"10.0.0.1/8",
		"10.0.0.0/33",
		"192.0.2.7:0",
		"192.0.2.7:65536",
		"192.0.2.7:9-8",
		"192.0.2.7:443/sctp",
		"192.0.2.7:443/icmp",
		"192.0.2.7:",
		"[192.0.2.7",
		"[::1]443",
		"example",
		"10.0.0",
		"a.test/24",
		"a.test:x",
		"a..test",
		"*.*.test",
		"all/tcp",
	};
	int r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct config_rule rule = {0};
		const char *want = want_egress_entry(good[i], &rule, &r);

		if (want || r || rule.to.n != 1)
			fail_msg("%s: %s", good[i], want ? want : "?");
		config_rule_free(&rule);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (!want_egress_entry(bad[i], NULL, &r))
			fail_msg("%s is taken for an entry", bad[i]);
}

static struct config parse(const char *text)
{
	struct config_errors errs;
	struct config c;

	if (config_parse(text, strlen(text), &c, &errs))
		fail_msg("%s", text);
	return c;
}

static void lists_become_rules(void **state)
{
	static const char *const texts[] = {
		"deny any app -> 192.0.2.9/32",	   "allow tier=back -> *.a.test port 443 tcp",
		"allow egress of x -> 10.0.0.0/8", "allow egress of y -> 192.0.2.1/32",
		"deny tier=back -> outside",	   "deny egress of x -> outside",
		"deny egress of y -> outside",
	};
	struct config c = parse("apps:\n"
				"  x: {egress: [10.0.0.0/8]}\n"
				"  x2: {egress: 10.0.0.0/8}\n"
				"  y: {egress: {to: [192.0.2.1], audit: true}}\n"
				"  z: {egress: all}\n"
				"policy:\n"
				"  egress: [{from: {tier: back}, to: '*.A.test:443/tcp'}]\n"
				"  rules: [{deny: {to: 192.0.2.9}}]\n");
	struct config_rule *rules;
	size_t n;
	struct error e;

	(void)state;
	assert_int_equal(egress_rules(&c, NULL, NULL, 0, &rules, &n, &e), 0);
	assert_int_equal(n, ARRAY_SIZE(texts)); /* lists that say the same are one */
	for (size_t i = 0; i < n; i++) {
		autofree char *text = config_rule_text(&rules[i]);

		assert_string_equal(text, texts[i]);
	}
	assert_true(rules[6].audit);
	assert_int_equal(egress_id(&c.apps[0].spec.egress), egress_id(&c.apps[1].spec.egress));
	assert_int_equal(egress_id(&c.apps[3].spec.egress), 0);
	config_rules_free(rules, n);
	config_free(&c);
}

static struct learnt_entry entry(const char *addr, const char *name, uint64_t until, uint32_t app)
{
	struct learnt_entry e = {.name = name, .until_ns = until, .app = app};

	assert_int_equal(addr_parse(addr, &e.addr), 0);
	return e;
}

static int count_one(void *arg, const struct ax_addr *addr)
{
	(void)addr;
	++*(int *)arg;
	return 0;
}

static void addresses_have_names_for_a_while(void **state)
{
	struct learnt_entry a = entry("192.0.2.1", "a.test", 10, 1),
			    b = entry("192.0.2.1", "b.test", 20, 1),
			    c = entry("192.0.2.2", "a.test", 30, 1), gone;
	struct learnt *l = learnt_new();
	struct strv names;
	int n = 0;

	(void)state;
	assert_int_equal(learnt_put(l, &a, &gone), 1);
	assert_int_equal(learnt_put(l, &b, &gone), 1);
	assert_int_equal(learnt_put(l, &c, &gone), 1);
	assert_int_equal(learnt_put(l, &a, &gone), 0);
	assert_int_equal(learnt_names(l, &a.addr, &names), 0);
	assert_int_equal(names.n, 2);
	free(names.v);
	learnt_each(l, count_one, &n);
	assert_int_equal(n, 2);
	assert_int_equal(learnt_next_ns(l), 10);
	assert_false(learnt_take_old(l, 9, &gone));
	assert_true(learnt_take_old(l, 10, &gone));
	assert_string_equal(gone.name, "a.test");
	free((char *)gone.name);
	assert_false(learnt_take_old(l, 19, &gone));
	a.until_ns = 40; /* again, and for longer */
	assert_int_equal(learnt_put(l, &a, &gone), 1);
	b.until_ns = 50;
	assert_int_equal(learnt_put(l, &b, &gone), 0);
	b.until_ns = 45; /* a shorter time, which another has heard of, takes nothing away */
	b.app = 2;
	assert_int_equal(learnt_put(l, &b, &gone), 0);
	assert_int_equal(b.until_ns, 50);
	assert_int_equal(b.app, 1);
	assert_false(learnt_take_old(l, 29, &gone));
	assert_int_equal(learnt_next_ns(l), 30);
	learnt_free(l);
}

static void nobody_takes_all_places(void **state)
{
	struct learnt *l = learnt_new();
	struct learnt_entry gone, e = entry("192.0.2.1", "victim.test", 5, 1);
	char name[32];

	(void)state;
	assert_int_equal(learnt_put(l, &e, &gone), 1);
	e.app = 2;
	e.name = name;
	for (unsigned i = 0; i < 2 * LEARNT_SHARE; i++) {
		snprintf(name, sizeof(name), "n%u.test", i);
		e.until_ns = 100 + i;
		assert_int_equal(learnt_put(l, &e, &gone), 1);
		assert_true(addr_is_zero(&gone.addr) == (i < LEARNT_SHARE));
		if (gone.name)
			assert_string_not_equal(gone.name, "victim.test");
		free((char *)gone.name);
	}
	assert_int_equal(learnt_count(l), LEARNT_SHARE + 1);
	learnt_free(l);
}

static void learn(struct learnt *l, unsigned i, uint32_t app, int expected)
{
	char name[32] = "";
	struct learnt_entry gone, e = entry("192.0.2.1", name, 100 + i, app);

	snprintf(name, sizeof(name), "n%u.test", i);
	e.addr.w[3] = htonl(i);
	assert_int_equal(learnt_put(l, &e, &gone), expected);
	free((char *)gone.name);
}

static size_t names_of(struct learnt *l, unsigned i)
{
	struct ax_addr addr = entry("192.0.2.1", "", 0, 0).addr;
	struct strv names;

	addr.w[3] = htonl(i);
	assert_int_equal(learnt_names(l, &addr, &names), 0);
	free(names.v);
	return names.n;
}

/* What two have learnt goes when both have had to give it up. */
static void what_two_have_learnt_stays(void **state)
{
	struct learnt *l = learnt_new();

	(void)state;
	assert_non_null(l);
	learn(l, 1, 1, 1);
	learn(l, 1, 2, 0);
	for (unsigned i = 2; i < 2 + LEARNT_SHARE; i++)
		learn(l, i, 1, 1);
	assert_int_equal(names_of(l, 1), 1);
	assert_int_equal(learnt_count(l), LEARNT_SHARE + 1);
	for (unsigned i = 10000; i < 10000 + LEARNT_SHARE; i++)
		learn(l, i, 2, 1);
	assert_int_equal(names_of(l, 1), 0);
	assert_int_equal(learnt_count(l), 2 * LEARNT_SHARE);
	learnt_free(l);
}

/* Whoever comes when others have all places has some from who has most. */
static void who_comes_late_has_places(void **state)
{
	struct learnt *l = learnt_new();
	uint32_t app = 1;

	(void)state;
	assert_non_null(l);
	for (unsigned i = 0; i < AX_LEARNT_MAX; i++)
		learn(l, i, app += i && i % LEARNT_SHARE == 0, 1);
	for (unsigned i = 0; i < LEARNT_SURE; i++)
		learn(l, 100000 + i, app + 1, 1);
	for (unsigned i = 0; i < LEARNT_SURE; i++)
		assert_int_equal(names_of(l, 100000 + i), 1);
	learn(l, 200000, app + 1, 1); /* for its own first */
	assert_int_equal(names_of(l, 100000), 0);
	assert_int_equal(learnt_count(l), AX_LEARNT_MAX);
	learnt_free(l);
}

/* What somebody else has learnt, too, is not taken for them. */
static void late_comers_take_what_one_has_learnt(void **state)
{
	struct learnt *l = learnt_new();
	uint32_t app = 1;

	(void)state;
	assert_non_null(l);
	for (unsigned i = 0; i < AX_LEARNT_MAX; i++)
		learn(l, i, app += i && i % LEARNT_SHARE == 0, 1);
	learn(l, 0, app + 1, 0); /* of who has most the one that goes first */
	learn(l, 100000, app + 2, 1);
	assert_int_equal(names_of(l, 0), 1);
	assert_int_equal(names_of(l, 1), 0);
	assert_int_equal(names_of(l, 100000), 1);
	assert_int_equal(learnt_count(l), AX_LEARNT_MAX);
	learnt_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_read),
		cmocka_unit_test(names_match),
		cmocka_unit_test(entries_are_read),
		cmocka_unit_test(lists_become_rules),
		cmocka_unit_test(addresses_have_names_for_a_while),
		cmocka_unit_test(nobody_takes_all_places),
		cmocka_unit_test(what_two_have_learnt_stays),
		cmocka_unit_test(who_comes_late_has_places),
		cmocka_unit_test(late_comers_take_what_one_has_learnt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
