// SPDX-License-Identifier: GPL-2.0-or-later
/* `action challenge` as text: what goes with it, and what is said when something does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rules/rule.h"

static int parse(const char *line, struct rule *r, struct error *e)
{
	const char *words[32];
	char *copy = strdup(line), *save = NULL;
	size_t n = 0;
	int code;

	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
		words[n++] = w;
	*e = (struct error){0};
	*r = (struct rule){0};
	code = rule_parse(words, n, r, e);
	free(copy);
	return code;
}

static void what_is_written_is_read(void **state)
{
	static const char *const lines[] = {
		"proto tcp action challenge",
		"name web dst 192.0.2.0/24 proto tcp dport 80,443 action challenge",
		"proto tcp dport 80 flags syn,!ack state new action challenge log yes",
		"proto tcp dport 80 action challenge rate 1kpps,per=src",
	};
	struct error e;
	struct rule r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		autofree char *line = NULL;

		assert_int_equal(parse(lines[i], &r, &e), 0);
		assert_int_equal(r.verdict, AX_VERDICT_CHALLENGE);
		assert_null(r.target);
		line = rule_format(&r);
		assert_string_equal(line, lines[i]);
		rule_free(&r);
	}
	assert_false(rule_verdict_has_target(AX_VERDICT_CHALLENGE));
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *line, *error;
		int code;
	} mistakes[] = {
		{"action challenge",
		 "challenge without proto tcp is not valid: use proto tcp with it, since it is "
		 "SYNs "
		 "that are challenged",
		 -EINVAL},
		{"proto tcp,udp dport 80 action challenge", "challenge without proto tcp", -EINVAL},
		{"proto tcp action challenge 5", "\"5\" is no key of a rule", -ENOENT},
		{"proto tcp action challenges",
		 "action \"challenges\" is not valid: use pass, drop, reflect, ", -EINVAL},
		{"proto tcp to 10.0.0.1 action challenge",
		 "to with action challenge is not valid: use it with action redirect only",
		 -EINVAL},
		{"proto tcp checksum recompute action challenge",
		 "checksum with action challenge is not valid: use it with action redirect or "
		 "route only",
		 -EINVAL},
	};
	struct error e;
	struct rule r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
		assert_int_equal(parse(mistakes[i].line, &r, &e), mistakes[i].code);
		if (strncmp(e.text, mistakes[i].error, strlen(mistakes[i].error)) != 0)
			fail_msg("%s: \"%s\"", mistakes[i].line, e.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(mistakes_are_named),
	};

	return cmocka_run_group_tests_name("rule_challenge", tests, NULL, NULL);
}
