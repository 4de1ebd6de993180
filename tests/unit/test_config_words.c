// SPDX-License-Identifier: GPL-2.0-or-later
/* Flags take the words of the config file, and a word that is nearly one is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/near.h"
#include "config/config.h"
#include "config/spec.h"

#define NAME "a name of 1 to 63 lower-case letters, digits and hyphens (none at its ends)"
#define WAIT "a duration such as 5s, 300ms or 2m, at most 24 hours (1440m)"

static void flags_take_the_same_words(void **state)
{
	enum restart_policy restart = RESTART_NO;
	struct ax_addr ip4, ip6;
	enum splice_mode splice;
	enum net_mode net;
	struct error e;
	uint32_t ms;

	(void)state;
	assert_int_equal(spec_parse_ip("fd00::1,10.0.0.1", &ip4, &ip6, &e), 0);
	assert_true(addr_is_v4(&ip4));
	assert_false(addr_is_v4(&ip6));
	assert_int_equal(spec_parse_ip("10.0.0.1,::1", &ip4, &ip6, &e), -EINVAL);
	assert_string_equal(e.text, "address \"10.0.0.1,::1\" is not valid: use a unicast "
				    "address, not a loopback one");
	assert_false(addr_is_zero(&ip6)); /* left alone */
	assert_int_equal(spec_parse_duration_ms("1440m", &ms, &e), 0);
	assert_int_equal(ms, 24 * 60 * 60 * 1000);
	assert_int_equal(spec_parse_duration_ms("1.5", &ms, &e), 0);
	assert_int_equal(ms, 1500);
	assert_int_equal(spec_parse_duration_ms("0.25m", &ms, &e), 0);
	assert_int_equal(ms, 15000);
	assert_int_equal(spec_parse_duration_ms("0.0005", &ms, &e), -EINVAL);
	assert_int_equal(spec_parse_duration_ms("1.", &ms, &e), -EINVAL);
	assert_int_equal(spec_parse_duration_ms(".5", &ms, &e), -EINVAL);
	assert_int_equal(spec_parse_duration_ms("1.5.5", &ms, &e), -EINVAL);
	assert_int_equal(spec_parse_duration_ms("", &ms, &e), -EINVAL);
	assert_int_equal(spec_parse_duration_ms("s", &ms, &e), -EINVAL);
	assert_string_equal(e.text, "duration \"s\" is not valid: use " WAIT);
	assert_int_equal(spec_parse_net("host", &net, &e), 0);
	assert_string_equal(net_mode_name(net), "host");
	assert_int_equal(spec_parse_net("Host", &net, &e), -EINVAL);
	assert_string_equal(e.text, "network mode \"Host\" is not valid: use private or host");
	assert_int_equal(spec_parse_restart("on-failure", &restart, &e), 0);
	assert_string_equal(restart_policy_name(restart), "on-failure");
	assert_int_equal(spec_parse_restart("", &restart, &e), -EINVAL);
	assert_int_equal(spec_parse_splice("forced", &splice, &e), 0);
	assert_string_equal(splice_mode_name(splice), "forced");
	assert_int_equal(spec_parse_splice("yes", &splice, &e), -EINVAL);
	assert_int_equal(spec_check_name("web-1", &e), 0);
	assert_int_equal(spec_check_name("web.1", &e), -EINVAL);
	assert_string_equal(e.text, "name \"web.1\" is not valid: use " NAME);
	assert_int_equal(
		spec_check_name("a23456789012345678901234567890123456789012345678901234567890123",
				&e),
		0);
	assert_int_equal(
		spec_check_name("a234567890123456789012345678901234567890123456789012345678901234",
				&e),
		-EINVAL);
}

static void near_words_are_found(void **state)
{
	static const char *const words[] = {"ports", "port", "backends", "ip", "strategy"};
	static const char *const cases[][2] = {{"prots", "ports"},	 {"ports", "ports"},
					       {"pots", "ports"},	 {"portss", "ports"},
					       {"prt", "port"},		 {"backend", "backends"},
					       {"bakcends", "backends"}, {"stratgey", "strategy"}};
	static const char *const far[] = {"",
					  "p",
					  "ix",
					  "xx",
					  "address",
					  "backward",
					  "sssssssssssssssssssssssssssssssssssssssssssssss"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(nearest_word(cases[i][0], words, ARRAY_SIZE(words)),
				    cases[i][1]);
	for (size_t i = 0; i < ARRAY_SIZE(far); i++)
		assert_null(nearest_word(far[i], words, ARRAY_SIZE(words)));
	assert_null(nearest_word("ports", NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags_take_the_same_words),
		cmocka_unit_test(near_words_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
