// SPDX-License-Identifier: GPL-2.0-or-later
/* Packets as text: to bytes, checksums and all, and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "packet/text.h"

struct frame {
	uint8_t *b;
	size_t len;
};

static struct frame make(const char *text)
{
	struct packet p;
	struct frame f;
	struct error e = {0};

	if (packet_parse(text, &p, &e))
		fail_msg("%s: %s", text, e.text);
	assert_int_equal(packet_build(&p, &f.b, &f.len), 0);
	packet_free(&p);
	return f;
}

/* RFC 1071: over data with a right checksum in it, the sum is all ones. */
static uint32_t sum(const uint8_t *p, size_t n, uint32_t s)
{
	for (size_t i = 0; i < n; i++)
		s += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return s;
}

static uint32_t sum_l4(const uint8_t *src, size_t addr_len, unsigned proto, const uint8_t *l4,
		       size_t len)
{
	return sum(l4, len, sum(src, 2 * addr_len, proto + (uint32_t)len));
}

static void bytes_are_those_of_the_wire(void **state)
{
	static const struct {
		const char *text, *hex;
	} cases[] = {
		{"udp 10.0.0.1:5 > 10.0.0.2:9000 data 'hi'",
		 "020000000002 020000000001 0800 4500001e0000000040 11 66cd 0a000001 0a000002"
		 "0005 2328 000a 6041 6869"},
		{"vlan 100 vlan 7:88a8 tcp [fd00::1]:1024 > [fd00::2]:443 flags syn,ack",
		 "020000000002 020000000001 8100 0064 88a8 0007 86dd"
		 "60000000 0014 06 40 fd000000000000000000000000000001"
		 "fd000000000000000000000000000002 0400 01bb 00000000 00000000 5012 ffff b013 "
		 "0000"},
		{"arp 10.0.0.1 > 10.0.0.2",
		 "ffffffffffff 020000000001 0806 0001 0800 06 04 0001 020000000001 0a000001"
		 "000000000000 0a000002"},
		{"arp 10.0.0.2 > 10.0.0.1 reply mac 02:00:00:00:00:0a > 02:00:00:00:00:0b",
		 "02000000000b 02000000000a 0806 0001 0800 06 04 0002 02000000000a 0a000002"
		 "02000000000b 0a000001"},
		{"udp 10.0.0.1 > 10.0.0.2 frag later=16 data hex:01020304 ttl 9 dscp ef ecn ect0",
		 "020000000002 020000000001 0800 45ba0018 0001 0002 09 11 9d16 0a000001 0a000002"
		 "01020304"},
		{"udp [fd00::1]:1 > [fd00::2]:2 ecn ce dscp 47",
		 "020000000002 020000000001 86dd 6bf00000 0008 11 40 "
		 "fd000000000000000000000000000001 fd000000000000000000000000000002 0001 0002 0008 "
		 "05d7"},
		{"udp 10.0.0.1 > 10.0.0.2 frag later=16 data hex:01020304 ttl 9",
		 "020000000002 020000000001 0800 45000018 0001 0002 09 11 9dd0 0a000001 0a000002"
		 "01020304"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct frame f = make(cases[i].text);
		uint8_t *want;
		size_t len;
		struct error e;

		assert_int_equal(packet_parse_hex(cases[i].hex, &want, &len, &e), 0);
		assert_int_equal(f.len, len);
		for (size_t k = 0; k < len; k++)
			if (f.b[k] != want[k])
				fail_msg("%s: byte %zu is %02x, not %02x", cases[i].text, k, f.b[k],
					 want[k]);
		free(want);
		free(f.b);
	}
}

static void checksums_are_right(void **state)
{
	static const char *const v4[] = {
		"tcp 10.1.2.3:80 > 192.0.2.7:1 flags fin,ack data 'odd'",
		"udp 255.255.255.255:65535 > 10.0.0.2:65535 len 1000",
		"udp 10.0.0.1:1 > 10.0.0.2:2 frag first len 8",
		"icmp 10.0.0.1 > 10.0.0.2 data 'ping'",
		"icmp 10.0.0.9 > 10.0.0.1 type 3/4 quoting (tcp 10.0.0.1:80 > 10.0.0.2:1024)",
	};
	static const char *const v6[] = {
		"tcp [fd00::1]:80 > [fd00::ffff]:1 data 'odd'",
		"udp [fd00::1]:1 > [fd00::2]:2 len 999",
		"icmp6 fd00::1 > fd00::2",
		"nd fe80::1 > ff02::1",
		"icmp6 fd00::9 > fd00::1 type 2/0 quoting (udp [fd00::1]:80 > [fd00::2]:1 len 9)",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v4); i++) {
		struct frame f = make(v4[i]);
		const uint8_t *ip = f.b + 14, *l4 = ip + 20;
		size_t len = f.len - 34;

		assert_int_equal(sum(ip, 20, 0), 0xffff);
		if (ip[9] == 1)
			assert_int_equal(sum(l4, len, 0), 0xffff);
		else
			assert_int_equal(sum_l4(ip + 12, 4, ip[9], l4, len), 0xffff);
		free(f.b);
	}
	for (size_t i = 0; i < ARRAY_SIZE(v6); i++) {
		struct frame f = make(v6[i]);
		const uint8_t *ip = f.b + 14, *l4 = ip + 40;

		assert_int_equal(sum_l4(ip + 8, 16, ip[6], l4, f.len - 54), 0xffff);
		free(f.b);
	}
}

/* 0 would say that there is no checksum (RFC 768). */
static void no_udp_checksum_is_zero(void **state)
{
	bool seen = false;

	(void)state;
	for (unsigned i = 0; i < 65536 && !seen; i++) {
		char text[80];
		struct frame f;

		snprintf(text, sizeof(text), "udp 10.0.0.1:0 > 10.0.0.2:0 data hex:%04x", i);
		f = make(text);
		assert_false(f.b[40] == 0 && f.b[41] == 0);
		seen = f.b[40] == 0xff && f.b[41] == 0xff;
		free(f.b);
	}
	assert_true(seen);
}

static void errors_quote_what_icmp_quotes(void **state)
{
	struct frame f = make("icmp 10.0.0.9 > 10.0.0.1 type 3/4 "
			      "quoting (tcp 10.0.0.1:80 > 10.0.0.2:1024)");

	(void)state;
	assert_int_equal(f.len, 14 + 20 + 8 + 20 + 8);
	/* the length is the whole packet's, however little of it is quoted */
	assert_int_equal(f.b[14 + 28 + 3], 40);
	free(f.b);
	f = make("icmp6 fd00::9 > fd00::1 type 2/0 quoting (udp [fd00::1]:80 > [fd00::2]:1 "
		 "len 5000)");
	assert_int_equal(f.len, 14 + 1280);
	free(f.b);
}

/* What stands in one column is printed as the other, which is taken again. */
static void lines_are_the_same_words(void **state)
{
	static const struct {
		const char *text, *line;
	} cases[] = {
		{"tcp 10.0.0.1 > 10.0.0.2:80", "tcp 10.0.0.1:40000 > 10.0.0.2:80 flags syn"},
		{"6 10.0.0.1 > 10.0.0.2:80 flags none len 3",
		 "tcp 10.0.0.1:40000 > 10.0.0.2:80 flags none len 3"},
		{"udp [fd00::1]:5 > [fd00::2]:0 data 'a\\x00\\'b'",
		 "udp [fd00::1]:5 > [fd00::2]:0 len 4"},
		{"vlan 1 vlan 2:9100 udp 10.0.0.1:1>10.0.0.2:2 ttl 1",
		 "vlan 1 vlan 2:9100 udp 10.0.0.1:1 > 10.0.0.2:2 ttl 1"},
		{"udp 10.0.0.1:1 > 10.0.0.2:2 ecn ect1 dscp 10 ttl 2",
		 "udp 10.0.0.1:1 > 10.0.0.2:2 ttl 2 dscp af11 ecn ect1"},
		{"tcp [fd00::1]:1 > [fd00::2]:2 dscp 47",
		 "tcp [fd00::1]:1 > [fd00::2]:2 flags syn dscp 47"},
		{"gre fd00::1 > fd00::2 dscp cs0 ecn ce", "gre fd00::1 > fd00::2 ecn ce"},
		{"icmp 10.0.0.1 > 10.0.0.2", "icmp 10.0.0.1 > 10.0.0.2 type 8/0"},
		{"icmp6 fd00::1 > fd00::2 type echo-reply", "icmp6 fd00::1 > fd00::2 type 129/0"},
		{"icmp 10.0.0.9 > 10.0.0.1 type frag-needed quoting (udp 10.0.0.1:1 > "
		 "10.0.0.2:2 frag first len 9)",
		 "icmp 10.0.0.9 > 10.0.0.1 type 3/4 quoting (udp 10.0.0.1:1 > 10.0.0.2:2 frag "
		 "first)"},
		{"icmp 10.0.0.9 > 10.0.0.1 type 11/1 quoting (udp 10.0.0.1 > 10.0.0.2 frag "
		 "later=8 len 9)",
		 "icmp 10.0.0.9 > 10.0.0.1 type 11/1 quoting (udp 10.0.0.1 > 10.0.0.2 frag "
		 "later=8)"},
		{"udp 10.0.0.1:1 > 10.0.0.2:2 frag first len 8",
		 "udp 10.0.0.1:1 > 10.0.0.2:2 frag first len 8"},
		{"tcp fd00::1 > fd00::2 frag later len 16",
		 "tcp fd00::1 > fd00::2 frag later len 16"},
		{"tcp fd00::1 > fd00::2 frag later=65528",
		 "tcp fd00::1 > fd00::2 frag later=65528"},
		{"gre 10.0.0.1 > 10.0.0.2 len 10", "gre 10.0.0.1 > 10.0.0.2 len 10"},
		{"253 fd00::1 > fd00::2", "253 fd00::1 > fd00::2"},
		{"arp 10.0.0.1 > 10.0.0.2", "arp 10.0.0.1 > 10.0.0.2"},
		{"arp 10.0.0.1 > 10.0.0.2 reply", "arp 10.0.0.1 > 10.0.0.2 reply"},
		{"nd fe80::1 > ff02::1", "nd fe80::1 > ff02::1"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct frame f = make(cases[i].text), again;
		char *line = packet_line(f.b, f.len, false), *second;

		assert_string_equal(line, cases[i].line);
		again = make(line);
		second = packet_line(again.b, again.len, false);
		assert_string_equal(second, line);
		free(f.b);
		free(again.b);
		free(line);
		free(second);
	}
}

static void lines_name_what_is_odd(void **state)
{
	static const struct {
		const char *hex, *line;
	} cases[] = {
		{"", "(0 bytes: too short for Ethernet)"},
		{"020000000002 020000000001 08", "(13 bytes: too short for Ethernet)"},
		{"020000000002 020000000001 88cc 0102", "(ethertype 0x88cc, 2 bytes)"},
		{"020000000002 020000000001 8100 01", "(ethertype 0x8100, 1 bytes)"},
		{"020000000002 020000000001 0800 4500", "(its IPv4 header is cut short, 2 bytes)"},
		{"020000000002 020000000001 0806 0001", "(ARP, not of Ethernet and IPv4, 2 bytes)"},
		{"020000000002 020000000001 0800 60000014000000004011000001020304 05060708",
		 "(its version is not 4, 20 bytes)"},
		{"020000000002 020000000001 0800 44000014000000004011000001020304 05060708",
		 "udp 1.2.3.4 > 5.6.7.8 (its IPv4 header length is wrong, 20 bytes)"},
		{"020000000002 020000000001 0800 4500ffff000000004011000001020304 05060708",
		 "udp 1.2.3.4 > 5.6.7.8 (its IPv4 length is wrong, 20 bytes)"},
		{"020000000002 020000000001 0800 45000018000000004011000001020304 05060708 "
		 "00010002",
		 "udp 1.2.3.4 > 5.6.7.8 len 4 (its header is cut short or wrong)"},
		{"020000000002 020000000001 0800 46000020000000004011000001020304 05060708 01010101"
		 "000100020008 0000 ffff",
		 "udp 1.2.3.4:1 > 5.6.7.8:2 (with 4 bytes of IP options) (2 bytes behind it)"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct frame f;
		struct error e;
		char *line;

		assert_int_equal(packet_parse_hex(cases[i].hex, &f.b, &f.len, &e), 0);
		line = packet_line(f.b, f.len, false);
		assert_string_equal(line, cases[i].line);
		free(line);
		free(f.b);
	}
}

static void addresses_of_the_link_are_shown_on_request(void **state)
{
	struct frame f = make("udp 10.0.0.1:1 > 10.0.0.2:2 mac 02:00:00:00:00:aa > "
			      "02:00:00:00:00:bb");
	char *line = packet_line(f.b, f.len, true);

	(void)state;
	assert_string_equal(line, "udp 10.0.0.1:1 > 10.0.0.2:2 mac 02:00:00:00:00:aa > "
				  "02:00:00:00:00:bb");
	free(line);
	free(f.b);
}

static void errors_name_the_word(void **state)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{"", "ends where a protocol"},
		{"tpc 10.0.0.1 > 10.0.0.2:1", "'tpc' is not a protocol"},
		{"tcp 10.0.0.256 > 10.0.0.2:1", "'10.0.0.256' is not an address"},
		{"tcp 10.0.0.1:70000 > 10.0.0.2:1", "is not an address"},
		{"tcp 10.0.0.1 10.0.0.2:1", "'10.0.0.2:1' is not a >"},
		{"tcp 10.0.0.1 >", "ends where an address"},
		{"tcp 10.0.0.1 > 10.0.0.2", "need the destination's port"},
		{"tcp 10.0.0.1 > [fd00::1]:1", "both IPv4 or both IPv6"},
		{"icmp 10.0.0.1:1 > 10.0.0.2", "only TCP and UDP have ports"},
		{"icmp fd00::1 > fd00::2", "nd and icmp6"},
		{"icmp6 10.0.0.1 > 10.0.0.2", "arp and icmp"},
		{"arp fd00::1 > fd00::2", "nd and icmp6"},
		{"tcp 10.0.0.1 > 10.0.0.2:1 flag syn", "did you mean 'flags'"},
		{"tcp 10.0.0.1 > 10.0.0.2:1 flags syn,sin", "'sin' is not TCP flags"},
		{"udp 10.0.0.1 > 10.0.0.2:1 flags syn", "flags are for TCP"},
		{"udp 10.0.0.1 > 10.0.0.2:1 frag later", "later fragment has no ports"},
		{"udp 10.0.0.1 > 10.0.0.2 frag later=12", "multiple of 8"},
		{"udp 10.0.0.1 > 10.0.0.2:1 ttl 256", "'256' is not a number of 0 to 255"},
		{"udp 10.0.0.1 > 10.0.0.2:1 ttl -1", "'-1' is not a number"},
		{"udp 10.0.0.1 > 10.0.0.2:1 dscp 64", "'64' is not a codepoint"},
		{"udp 10.0.0.1 > 10.0.0.2:1 dscp", "a codepoint"},
		{"udp 10.0.0.1 > 10.0.0.2:1 ecn 1", "'1' is not not-ect, ect0"},
		{"udp 10.0.0.1 > 10.0.0.2:1 len 1 len 2", "'len' stands twice"},
		{"udp 10.0.0.1 > 10.0.0.2:1 len 1 data 'ab'", "less than the data"},
		{"udp 10.0.0.1 > 10.0.0.2:1 len 9217", "is not a number of 0 to 9216"},
		{"udp 10.0.0.1 > 10.0.0.2:1 data 'ab", "has no end"},
		{"udp 10.0.0.1 > 10.0.0.2:1 data 'a\\", "backslash"},
		{"udp 10.0.0.1 > 10.0.0.2:1 data 'a\\q'", "backslash"},
		{"udp 10.0.0.1 > 10.0.0.2:1 data hex:abc", "is not data"},
		{"udp 10.0.0.1 > 10.0.0.2:1 mac 02:00:00:00:00:01", "a > between"},
		{"udp 10.0.0.1 > 10.0.0.2:1 mac 02:00:00:00:00 > x", "is not a MAC"},
		{"vlan 4096 udp 10.0.0.1 > 10.0.0.2:1", "VLAN's number"},
		{"vlan 1:0800 udp 10.0.0.1 > 10.0.0.2:1", "VLAN's number"},
		{"udp 10.0.0.1 > 10.0.0.2:1 type 8", "'type' and 'quoting' are for icmp"},
		{"icmp 10.0.0.1 > 10.0.0.2 type 3,4", "one ICMP type"},
		{"icmp 10.0.0.1 > 10.0.0.2 quoting (udp 10.0.0.1:1 > 10.0.0.2:2)",
		 "only an ICMP error quotes"},
		{"icmp 10.0.0.1 > 10.0.0.2 type 3 quoting udp", "a packet in parentheses"},
		{"icmp 10.0.0.1 > 10.0.0.2 type 3 quoting (udp 10.0.0.1:1 > 10.0.0.2:2",
		 "no ) at its end"},
		{"icmp 10.0.0.1 > 10.0.0.2 type 3 quoting (arp 10.0.0.1 > 10.0.0.2)", "'arp'"},
		{"icmp 10.0.0.1 > 10.0.0.2 type 3 quoting (udp [fd00::1]:1 > [fd00::2]:2)",
		 "icmp quotes an IPv4 packet"},
		{"arp 10.0.0.1 > 10.0.0.2 ttl 3", "take no option"},
		{"udp 10.0.0.1:1 > 10.0.0.2:2 reply", "for arp"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error e = {0};
		struct packet p;

		if (packet_parse(cases[i].text, &p, &e) != -EINVAL)
			fail_msg("%s is taken", cases[i].text);
		if (!strstr(e.text, cases[i].part))
			fail_msg("%s: %s", cases[i].text, e.text);
	}
}

static void hex_is_pairs_of_digits(void **state)
{
	static const char *const good[] = {"0a0B0c", "0a:0b:0c", "0x0a, 0x0b, 0x0c", " 0a\n0b 0c "};
	static const char *const bad[] = {"0", "0g", "0a0", "0x", "hello"};
	struct error e;
	uint8_t *b;
	size_t len;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(packet_parse_hex(good[i], &b, &len, &e), 0);
		assert_int_equal(len, 3);
		assert_memory_equal(b, "\x0a\x0b\x0c", 3);
		free(b);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (!streq(bad[i], "0x"))
			assert_int_equal(packet_parse_hex(bad[i], &b, &len, &e), -EINVAL);
	assert_int_equal(packet_parse_hex("", &b, &len, &e), 0);
	assert_int_equal(len, 0);
	free(b);
}

static void ends_are_found_behind_tags_and_in_what_was_cut(void **state)
{
	static const struct {
		const char *text;
		const char *src, *dst;
		uint8_t proto;
		int dport; /* -1: none */
		size_t cut;
	} cases[] = {
		{"udp 10.0.0.1:5 > 10.0.0.2:9000", "10.0.0.1", "10.0.0.2", 17, 9000, 0},
		{"vlan 5 vlan 100:88a8 tcp [fd00::1]:9 > [fd00::2]:443 flags syn", "fd00::1",
		 "fd00::2", 6, 443, 0},
		{"tcp 10.0.0.1:5 > 10.0.0.2:80 len 1000", "10.0.0.1", "10.0.0.2", 6, 80, 38},
		{"tcp 10.0.0.1:5 > 10.0.0.2:80", "10.0.0.1", "10.0.0.2", 6, -1, 37},
		{"udp 10.0.0.1 > 10.0.0.2 frag later data 'abcdefgh'", "10.0.0.1", "10.0.0.2", 17,
		 -1, 0},
		{"icmp 10.0.0.1 > 10.0.0.2", "10.0.0.1", "10.0.0.2", 1, -1, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree uint8_t *frame = NULL;
		struct packet_ends ends;
		char buf[ADDR_STRLEN];
		struct error e;
		size_t len;

		assert_int_equal(packet_text_parse(cases[i].text, &frame, &len, &e), 0);
		assert_true(packet_ends(frame, cases[i].cut ? cases[i].cut : len, &ends));
		assert_string_equal(addr_format(&ends.src, buf), cases[i].src);
		assert_string_equal(addr_format(&ends.dst, buf), cases[i].dst);
		assert_int_equal(ends.proto, cases[i].proto);
		assert_int_equal(ends.has_ports ? ends.dport : -1, cases[i].dport);
		assert_false(packet_ends(frame, 13, &ends));
	}
}

static void what_is_not_ip_has_no_ends(void **state)
{
	autofree uint8_t *frame = NULL;
	struct packet_ends ends;
	struct error e;
	size_t len;

	(void)state;
	assert_int_equal(packet_text_parse("arp 10.0.0.1 > 10.0.0.2", &frame, &len, &e), 0);
	assert_false(packet_ends(frame, len, &ends));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_those_of_the_wire),
		cmocka_unit_test(checksums_are_right),
		cmocka_unit_test(no_udp_checksum_is_zero),
		cmocka_unit_test(errors_quote_what_icmp_quotes),
		cmocka_unit_test(lines_are_the_same_words),
		cmocka_unit_test(lines_name_what_is_odd),
		cmocka_unit_test(addresses_of_the_link_are_shown_on_request),
		cmocka_unit_test(errors_name_the_word),
		cmocka_unit_test(hex_is_pairs_of_digits),
		cmocka_unit_test(ends_are_found_behind_tags_and_in_what_was_cut),
		cmocka_unit_test(what_is_not_ip_has_no_ends),
	};

	return cmocka_run_group_tests_name("packet text", tests, NULL, NULL);
}
