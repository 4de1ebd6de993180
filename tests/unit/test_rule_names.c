// SPDX-License-Identifier: GPL-2.0-or-later
/* Names in rules: what is one, and how it is written back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "rules/rule.h"

#define NAMES "names such as example.org, each of which stands for all names under it, too"
#define LABEL "123456789-123456789-123456789-123456789-123456789-123456789-abc" /* 63 */
#define LONG  LABEL "." LABEL "." LABEL "."					/* 192 */
#define REST  "1234567890123456789012345678901234567890123456789012345678901"	/* 61 */

static int parse_line(const char *line, struct rule *r, struct error *e)
{
	autofree char *copy = strdup(line);
	const char *words[32];
	char *save = NULL;
	size_t n = 0;

	assert_non_null(copy);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
		words[n++] = w;
	*e = (struct error){0};
	return rule_parse(words, n, r, e);
}

static void a_line_is_written_back(void **state)
{
	static const struct {
		const char *line, *back;
	} cases[] = {
		{"dns-name example.org action drop", "dns-name example.org action drop"},
		{"dns-name WWW.Example.ORG. action drop", "dns-name www.example.org action drop"},
		{"dns-name b.org,a.org,B.org.,org action drop",
		 "dns-name a.org,b.org,org action drop"},
		{"dns-name . action drop", "dns-name . action drop"},
		{"tls-sni B.org,a.org dns-name a.org action drop",
		 "dns-name a.org tls-sni a.org,b.org action drop"},
		{"http-host b,a tls-sni b dns-name . dport 1-9 action pass",
		 "dport 1-9 dns-name . tls-sni b http-host a,b action pass"},
		{"tls-sni xn--bcher-kva.example. proto tcp action drop",
		 "proto tcp tls-sni xn--bcher-kva.example action drop"},
		{"action drop dns-name xn--bcher-kva.example,_dmarc.a-b.1 dport 53",
		 "dport 53 dns-name _dmarc.a-b.1,xn--bcher-kva.example action drop"},
		{"dns-name " LABEL " action drop", "dns-name " LABEL " action drop"},
		{"dns-name " LONG REST " action drop", "dns-name " LONG REST " action drop"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *back = NULL;
		struct rule r, again;
		struct error e;

		if (parse_line(cases[i].line, &r, &e) < 0)
			fail_msg("%s: %s", cases[i].line, e.text);
		back = rule_format(&r);
		assert_string_equal(back, cases[i].back);
		assert_int_equal(parse_line(back, &again, &e), 0);
		assert_true(rule_eq(&r, &again));
		assert_false(rule_catches_all(&r));
		rule_free(&r);
		rule_free(&again);
	}
}

static void what_is_no_name_is_refused(void **state)
{
	static const struct {
		const char *value, *quoted, *want;
	} cases[] = {
		{"a..b", "\"a..b\"", NAMES},
		{".a", "\".a\"", NAMES},
		{"..", "\"..\"", NAMES},
		{"a.org..", "\"a.org..\"", NAMES},
		{"a/b", "\"a/b\"", NAMES},
		{"a:53", "\"a:53\"", NAMES},
		{"@set", "\"@set\"", NAMES},
		{"a.org,", "\"\"", NAMES},
		{"ok.org,a!,b", "\"a!\"", NAMES},
		{"*.a.org", "\"*.a.org\"", "a.org, which stands for all names under it, too"},
		{"*.", "\"*.\"", "., which stands for all names under it, too"},
		{"b\xc3\xbc.org", NULL, "the name's form in packets, which begins with xn--"},
		{LABEL "d", NULL, NAMES},
		{LONG REST "x", NULL, "a name of up to 253 characters"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *words[] = {"dns-name", cases[i].value, "action", "drop"};
		char want[700];
		struct error e = {0};
		struct rule r;

		assert_int_equal(rule_parse(words, ARRAY_SIZE(words), &r, &e), -EINVAL);
		if (cases[i].quoted) {
			snprintf(want, sizeof(want), "dns-name %s is not valid: use %s",
				 cases[i].quoted, cases[i].want);
			assert_string_equal(e.text, want);
		} else {
			assert_non_null(strstr(e.text, cases[i].want));
		}
	}
}

static void what_does_not_go_with_names_is_refused(void **state)
{
	static const struct {
		const char *line, *error;
	} cases[] = {
		{"dns-name a action balance b",
		 "dns-name with action balance is not valid: use balance without it, since all "
		 "packets of a flow have to go the same way"},
		{"dns-name a fragment later action drop",
		 "dns-name with fragment later is not valid: use one of them: later fragments have "
		 "a part of a payload only"},
		{"dns-name a proto tcp action drop",
		 "a name with another protocol is not valid: use proto udp, or no proto, with "
		 "dns-name"},
		{"tls-sni a proto udp action drop",
		 "a name with another protocol is not valid: use proto tcp, or no proto, with "
		 "tls-sni"},
		{"http-host a proto udp action drop",
		 "a name with another protocol is not valid: use proto tcp, or no proto, with "
		 "http-host"},
		{"tls-sni a action balance b",
		 "tls-sni with action balance is not valid: use balance without it, since all "
		 "packets of a flow have to go the same way"},
		{"dns-name a icmp 8 action drop",
		 "dns-name with icmp is not valid: use one of them: ICMP has no such names"},
	};
	static const char *const fine[] = {
		"dns-name a proto udp,tcp action drop",
		"dns-name a proto 0-255 fragment first,later action drop",
		"dns-name a dport 53 state new action pass",
		"dns-name a tls-sni a proto tcp action pass",
		"dns-name a tls-sni a dport 53,443 action pass",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error e;
		struct rule r;

		assert_true(parse_line(cases[i].line, &r, &e) < 0);
		assert_string_equal(e.text, cases[i].error);
	}
	for (size_t i = 0; i < ARRAY_SIZE(fine); i++) {
		struct error e;
		struct rule r;

		if (parse_line(fine[i], &r, &e) < 0)
			fail_msg("%s: %s", fine[i], e.text);
		rule_free(&r);
	}
}

static void equal_means_the_same(void **state)
{
	struct rule a, b, copy;
	struct error e;

	(void)state;
	assert_int_equal(parse_line("dns-name b.org,a.org action drop", &a, &e), 0);
	assert_int_equal(parse_line("dns-name A.org.,B.org action drop", &b, &e), 0);
	assert_true(rule_eq(&a, &b));
	assert_int_equal(rule_copy(&a, &copy), 0);
	assert_true(rule_eq(&a, &copy));
	rule_free(&b);
	assert_int_equal(parse_line("dns-name a.org action drop", &b, &e), 0);
	assert_false(rule_eq(&a, &b));
	rule_free(&b);
	assert_int_equal(parse_line("dns-name a.org tls-sni b.org action drop", &b, &e), 0);
	assert_false(rule_eq(&a, &b));
	rule_free(&a);
	rule_free(&b);
	rule_free(&copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_written_back),
		cmocka_unit_test(what_is_no_name_is_refused),
		cmocka_unit_test(what_does_not_go_with_names_is_refused),
		cmocka_unit_test(equal_means_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
