// SPDX-License-Identifier: GPL-2.0-or-later
/* What is right by its form and hardly meant: each is told once, and what is meant is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "config/hints.h"
#include "config/parse.h"

static char said[2048];

static void keep(void *arg, const char *text)
{
	size_t len = strlen(said);

	(void)arg;
	snprintf(said + len, sizeof(said) - len, "%s\n", text);
}

static const char *hints_of(const char *text)
{
	struct config_errors errs = {0};
	struct config c;

	said[0] = '\0';
	assert_int_equal(config_parse(text, strlen(text), &c, &errs), 0);
	config_hints(&c, keep, NULL);
	config_free(&c);
	config_errors_free(&errs);
	return said;
}

#define SERVICES                                                                              \
	"services:\n"                                                                         \
	"  shop: {ip: 10.7.0.1, ports: [\"80:7000\", \"81:81\", \"53:5353/udp\"], backends: " \
	"[web]}\n"                                                                            \
	"  all: {ip: 10.7.0.2, backends: [web]}\n"                                            \
	"policy:\n"                                                                           \
	"  rules:\n"

#define WANTS_7000                                                                           \
	"80 is the port of the service shop, whose backends are asked at 7000: rules go by " \
	"the backends' ports, so it wants port: 7000\n"

static void port_of_a_service(void **state)
{
	(void)state;
	assert_string_equal(hints_of(SERVICES "    - deny: {from: guest, to: shop, port: 80}\n"),
			    "policy.rules[0]: " WANTS_7000);
	assert_string_equal(hints_of(SERVICES
				     "    - deny: {from: guest, to: shop, port: 22}\n"
				     "    - allow: {from: guest, to: shop, ports: [1-100]}\n"),
			    "policy.rules[1]: " WANTS_7000);
	assert_string_equal(
		hints_of(SERVICES "    - deny: {from: guest, to: shop, port: 53, protocol: udp}\n"),
		"policy.rules[0]: 53 is the port of the service shop, whose backends are asked at "
		"5353: rules go by the backends' ports, so it wants port: 5353\n");
}

static void what_is_meant(void **state)
{
	static const char *const rules[] = {
		"    - deny: {from: guest, to: shop, port: 7000}\n",
		"    - deny: {from: guest, to: shop, ports: [80, 7000]}\n",
		"    - deny: {from: guest, to: shop, port: 81}\n",
		"    - deny: {from: guest, to: shop, port: 53, protocol: tcp}\n",
		"    - deny: {from: guest, to: shop, port: 80, protocol: udp}\n",
		"    - deny: {from: guest, to: all, port: 80}\n",
		"    - deny: {from: shop, to: guest, port: 80}\n",
		"    - deny: {from: guest, to: shop}\n",
	};
	char text[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		snprintf(text, sizeof(text), "%s%s", SERVICES, rules[i]);
		assert_string_equal(hints_of(text), "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(port_of_a_service),
		cmocka_unit_test(what_is_meant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
