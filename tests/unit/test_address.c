// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include "base/address.h"

static struct ax_addr addr(const char *s)
{
	struct ax_addr a;

	assert_int_equal(addr_parse(s, &a), 0);
	return a;
}

static void addresses_are_parsed_and_formatted(void **state)
{
	static const struct {
		const char *text, *formatted;
		bool v4;
	} cases[] = {
		{"1.2.3.4", "1.2.3.4", true},
		{"0.0.0.0", "0.0.0.0", true},
		{"255.255.255.255", "255.255.255.255", true},
		{"::ffff:1.2.3.4", "1.2.3.4", true},
		{"::ffff:102:304", "1.2.3.4", true},
		{"[::ffff:1.2.3.4]", "1.2.3.4", true},
		{"fd00::1", "fd00::1", false},
		{"[fd00::1]", "fd00::1", false},
		{"FD00:0:0::0001", "fd00::1", false},
		{"::", "::", false},
		{"::1", "::1", false},
		{"::1.2.3.4", "::1.2.3.4", false},
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		 "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false},
		{"ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255",
		 "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false},
	};
	char buf[ADDR_STRLEN];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ax_addr a = addr(cases[i].text);

		assert_string_equal(addr_format(&a, buf), cases[i].formatted);
		assert_int_equal(addr_is_v4(&a), cases[i].v4);
	}
}

static void mapped_form_has_network_byte_order(void **state)
{
	static const uint8_t bytes[16] = {[10] = 0xff, [11] = 0xff, 1, 2, 3, 4};
	struct ax_addr a = addr("1.2.3.4");

	(void)state;
	assert_memory_equal(a.b, bytes, 16);
	assert_int_equal(a.w[3], htonl(0x01020304));
	a = addr_from_v4(htonl(0x01020304));
	assert_memory_equal(a.b, bytes, 16);
}

static void what_is_no_address_is_refused(void **state)
{
	static const char *const cases[] = {
		"",
		" ",
		"1.2.3",
		"1.2.3.4.5",
		"1.2.3.256",
		"1.2.3.4 ",
		" 1.2.3.4",
		"1.2.3.4/8",
		"1.2.3.4:80",
		"a",
		"web",
		"[1.2.3.4]",
		"[",
		"[]",
		"[fd00::1",
		"fd00::1]",
		"[fd00::1]x",
		"[[fd00::1]]",
		":",
		":::",
		"fd00::1%lo",
		"g::1",
		"1.2.3.4,::1",
		"0x1.2.3.4",
		"01.2.3.4",
		"1",
		"[fd00::1]:80",
		"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000",
		"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ax_addr a = {.b = {7}}, before = a;

		if (addr_parse(cases[i], &a) != -EINVAL)
			fail_msg("\"%s\" was taken for an address", cases[i]);
		assert_true(addr_eq(&a, &before));
	}
}

static void addresses_compare_by_bytes(void **state)
{
	struct ax_addr a = addr("10.0.0.1"), b = addr("10.0.0.2"), c = addr("::1"), zero = {0};

	(void)state;
	assert_true(addr_cmp(&a, &b) < 0);
	assert_true(addr_cmp(&b, &a) > 0);
	assert_int_equal(addr_cmp(&a, &a), 0);
	assert_true(addr_cmp(&c, &a) < 0);
	assert_true(addr_is_zero(&zero));
	assert_false(addr_is_zero(&c));
	zero = addr("0.0.0.0"); /* the mapped form is not all zero */
	assert_false(addr_is_zero(&zero));
}

static void prefixes_are_parsed_and_formatted(void **state)
{
	static const struct {
		const char *text, *formatted;
		unsigned len;
	} cases[] = {
		{"10.0.0.0/8", "10.0.0.0/8", 104},
		{"0.0.0.0/0", "0.0.0.0/0", 96},
		{"10.1.2.3/32", "10.1.2.3/32", 128},
		{"10.1.2.3", "10.1.2.3/32", 128},
		{"10.128.0.0/9", "10.128.0.0/9", 105},
		{"::ffff:10.0.0.0/104", "10.0.0.0/8", 104},
		{"fd00::/64", "fd00::/64", 64},
		{"fd00::1", "fd00::1/128", 128},
		{"::/0", "::/0", 0},
		{"8000::/1", "8000::/1", 1},
		{"fd61:78::/61", "fd61:78::/61", 61},
	};
	char buf[ADDR_STRLEN];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct prefix p;

		assert_int_equal(prefix_parse(cases[i].text, &p), 0);
		assert_int_equal(p.len, cases[i].len);
		assert_string_equal(prefix_format(&p, buf), cases[i].formatted);
	}
}

static void what_is_no_prefix_is_refused(void **state)
{
	static const struct {
		const char *text;
		int code;
	} cases[] = {
		{"", -EINVAL},
		{"/8", -EINVAL},
		{"10.0.0.0/", -EINVAL},
		{"10.0.0.0/33", -EINVAL},
		{"10.0.0.0/08", -EINVAL},
		{"10.0.0.0/+8", -EINVAL},
		{"10.0.0.0/-1", -EINVAL},
		{"10.0.0.0/8 ", -EINVAL},
		{"10.0.0.0/8/8", -EINVAL},
		{"fd00::/129", -EINVAL},
		{"[fd00::]/64", -EINVAL},
		{"10.0.0.0/4294967304", -EINVAL},
		{"10.0.0.1/8", -ERANGE},
		{"10.64.0.0/9", -ERANGE},
		{"10.0.0.1/31", -ERANGE},
		{"fd00::1/64", -ERANGE},
		{"::1/0", -ERANGE},
		{"1.0.0.0/0", -ERANGE},
		{"::ffff:10.0.0.0/8", -ERANGE},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct prefix p = {.len = 77};

		if (prefix_parse(cases[i].text, &p) != cases[i].code)
			fail_msg("\"%s\" gave another result", cases[i].text);
		assert_int_equal(p.len, 77);
	}
}

static void prefixes_contain_what_they_cover(void **state)
{
	static const struct {
		const char *prefix, *addr;
		bool in;
	} cases[] = {
		{"10.0.0.0/8", "10.255.255.255", true},
		{"10.0.0.0/8", "11.0.0.0", false},
		{"10.0.0.0/8", "::a00:1", false},
		{"10.128.0.0/9", "10.128.0.1", true},
		{"10.128.0.0/9", "10.127.0.1", false},
		{"10.0.0.4/31", "10.0.0.5", true},
		{"10.0.0.4/31", "10.0.0.6", false},
		{"10.0.0.4", "10.0.0.4", true},
		{"10.0.0.4", "10.0.0.5", false},
		{"0.0.0.0/0", "1.2.3.4", true},
		{"0.0.0.0/0", "fd00::1", false},
		{"::/0", "fd00::1", true},
		{"::/0", "1.2.3.4", true},
		{"fd00::/61", "fd00::7:0:0:0:1", true},
		{"fd00::/61", "fd00::8:0:0:0:1", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ax_addr a = addr(cases[i].addr);
		struct prefix p;

		assert_int_equal(prefix_parse(cases[i].prefix, &p), 0);
		if (prefix_contains(&p, &a) != cases[i].in)
			fail_msg("%s in %s", cases[i].addr, cases[i].prefix);
	}
}

static void ports_are_decimal(void **state)
{
	static const char *const bad[] = {"",	"0",   "65536", "-1",  "+1", " 1",	  "1 ",
					  "01", "0x1", "1.0",	"80a", "a",  "4294967376"};

	(void)state;
	assert_int_equal(port_parse("1"), 1);
	assert_int_equal(port_parse("80"), 80);
	assert_int_equal(port_parse("65535"), 65535);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(port_parse(bad[i]), -EINVAL);
}

static void endpoints_are_parsed_and_formatted(void **state)
{
	static const struct {
		const char *text, *addr, *formatted;
		unsigned port;
	} good[] = {
		{"1.2.3.4:80", "1.2.3.4", "1.2.3.4:80", 80},
		{"[fd00::1]:65535", "fd00::1", "[fd00::1]:65535", 65535},
		{"[::ffff:1.2.3.4]:1", "1.2.3.4", "1.2.3.4:1", 1},
		{"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
		 "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		 "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535", 65535},
	};
	static const char *const bad[] = {"",
					  ":80",
					  "1.2.3.4",
					  "1.2.3.4:",
					  "1.2.3.4:0",
					  "fd00::1:80",
					  "fd00::1",
					  "[fd00::1]",
					  "[fd00::1]80",
					  "[fd00::1:80",
					  "[1.2.3.4]:80",
					  "web:80",
					  "[]:80",
					  "1.2.3.4:65536"};
	char buf[ADDR_STRLEN];
	__be16 port_be = 77;
	struct ax_addr a;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct ax_addr expected = addr(good[i].addr);

		assert_int_equal(addr_port_parse(good[i].text, &a, &port_be), 0);
		assert_true(addr_eq(&a, &expected));
		assert_int_equal(ntohs(port_be), good[i].port);
		assert_string_equal(addr_port_format(&a, port_be, buf), good[i].formatted);
	}
	port_be = 77;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (addr_port_parse(bad[i], &a, &port_be) != -EINVAL)
			fail_msg("\"%s\" was taken for an address and a port", bad[i]);
		assert_int_equal(port_be, 77);
	}
}

static void socket_addresses_go_both_ways(void **state)
{
	struct ax_addr v4 = addr("1.2.3.4"), v6 = addr("fd00::1"), a;
	struct sockaddr_storage ss;
	__be16 port_be;

	(void)state;
	assert_int_equal(addr_to_sockaddr(&v4, htons(80), &ss), sizeof(struct sockaddr_in));
	assert_int_equal(ss.ss_family, AF_INET);
	assert_int_equal(((struct sockaddr_in *)&ss)->sin_addr.s_addr, htonl(0x01020304));
	assert_int_equal(addr_from_sockaddr((struct sockaddr *)&ss, &a, &port_be), 0);
	assert_true(addr_eq(&a, &v4));
	assert_int_equal(port_be, htons(80));

	assert_int_equal(addr_to_sockaddr(&v6, htons(443), &ss), sizeof(struct sockaddr_in6));
	assert_int_equal(ss.ss_family, AF_INET6);
	assert_int_equal(addr_from_sockaddr((struct sockaddr *)&ss, &a, &port_be), 0);
	assert_true(addr_eq(&a, &v6));
	assert_int_equal(port_be, htons(443));

	ss.ss_family = AF_UNIX;
	assert_int_equal(addr_from_sockaddr((struct sockaddr *)&ss, &a, &port_be), -EAFNOSUPPORT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_parsed_and_formatted),
		cmocka_unit_test(mapped_form_has_network_byte_order),
		cmocka_unit_test(what_is_no_address_is_refused),
		cmocka_unit_test(addresses_compare_by_bytes),
		cmocka_unit_test(prefixes_are_parsed_and_formatted),
		cmocka_unit_test(what_is_no_prefix_is_refused),
		cmocka_unit_test(prefixes_contain_what_they_cover),
		cmocka_unit_test(ports_are_decimal),
		cmocka_unit_test(endpoints_are_parsed_and_formatted),
		cmocka_unit_test(socket_addresses_go_both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
