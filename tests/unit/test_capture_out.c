// SPDX-License-Identifier: GPL-2.0-or-later
/* What captures are turned into: text that is safe, and frames of a pcap file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tools/xdp/capture_json.c"
#include "tools/xdp/capture_out.c"
#include "tools/xdp/capture_pcap.c"
#include "tools/lib/text.c"

static struct ax_addr addr(const char *s)
{
	struct ax_addr a;

	assert_int_equal(addr_parse(s, &a), 0);
	return a;
}

static struct ax_capture record(const char *src, const char *dst, uint8_t proto, uint16_t off,
				const char *data)
{
	return (struct ax_capture){
		.time_ns = time_boot_ns(),
		.frame_len = 200,
		.captured = (uint16_t)strlen(data),
		.data_off = off,
		.vlan = AX_VLAN_NONE,
		.src = addr(src),
		.dst = addr(dst),
		.sport_be = htons(5),
		.dport_be = htons(9000),
		.ethertype_be = htons(strchr(src, ':') ? 0x86dd : 0x0800),
		.proto = proto,
		.has_ports = proto == IPPROTO_TCP || proto == IPPROTO_UDP,
	};
}

/* The output for one record; `left_out` says whether it was. */
static char *output(enum capture_format format, const struct ax_capture *c, const char *data,
		    size_t *len, bool *left_out)
{
	char *buf;
	struct capture_out o = {.to = open_memstream(&buf, len), .format = format};
	int r;

	capture_begin(&o);
	r = capture_put(&o, c, (const uint8_t *)data, "a rule");
	assert_true(r >= 0);
	*left_out = r == 1;
	assert_int_equal(o.left_out, r);
	assert_int_equal(fclose(o.to), 0);
	return buf;
}

static void bytes_become_harmless_text(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *text;
	} cases[] = {
		{"", 0, ""},
		{"plain", 5, "plain"},
		{"a\0b", 3, "a\\x00b"},
		{"\0", 1, "\\x00"},
		{"\0\0x\0", 4, "\\x00\\x00x\\x00"},
		{"\x1b[31m\r\n\t\x7f", 9, "\\e[31m\\r\\n\\t\\x7f"},
		{"\xc3\xa9\xff\xe2\x80\xae", 6, "\xc3\xa9\\xff\\u{202e}"},
		{"\xe2\x80", 2, "\\xe2\\x80"}, /* cut in the middle of a character */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text = capture_text((const uint8_t *)cases[i].bytes, cases[i].len);

		assert_string_equal(text, cases[i].text);
		free(text);
	}
}

static void a_record_is_a_line(void **state)
{
	struct ax_capture c = record("10.0.0.1", "10.0.0.2", IPPROTO_TCP, 54, "hi\nyou");
	bool left_out;
	size_t len;
	char *line;

	(void)state;
	c.verdict = AX_VERDICT_DROP;
	c.tcp_flags = 0x12;
	c.vlan = 7;
	line = output(CAPTURE_ASCII, &c, "hi\nyou", &len, &left_out);
	assert_non_null(strstr(line, " drop a rule  vlan 7 tcp 10.0.0.1:5 > 10.0.0.2:9000 flags "
				     "syn,ack  200 bytes: hi\\nyou\n"));
	free(line);
	c.kind = AX_CAPTURE_LOG;
	c.captured = 0;
	line = output(CAPTURE_ASCII, &c, "", &len, &left_out);
	assert_non_null(strstr(line, "syn,ack  200 bytes\n"));
	free(line);
}

/* What is written for each kind of record, as packet_line() has it. */
static void pcap_frames_are_rebuilt(void **state)
{
	struct {
		const char *src, *dst;
		uint8_t proto;
		uint16_t off, vlan, icmp;
		enum ax_fragment fragment;
		const char *line; /* NULL: it is left out */
	} cases[] = {
		{"10.0.0.1", "10.0.0.2", 17, 42, AX_VLAN_NONE, 0, AX_FRAGMENT_NONE,
		 "udp 10.0.0.1:5 > 10.0.0.2:9000 len 7"},
		{"fd00::1", "fd00::2", 6, 74, 100, 0, AX_FRAGMENT_NONE,
		 "vlan 100 tcp [fd00::1]:5 > [fd00::2]:9000 flags none len 7"},
		{"10.0.0.1", "10.0.0.2", 1, 42, AX_VLAN_NONE, 0x0b01, AX_FRAGMENT_NONE,
		 "icmp 10.0.0.1 > 10.0.0.2 type 11/1 len 7"},
		{"10.0.0.1", "10.0.0.2", 47, 34, AX_VLAN_NONE, 0, AX_FRAGMENT_NONE,
		 "gre 10.0.0.1 > 10.0.0.2 len 7"},
		{"10.0.0.1", "10.0.0.2", 17, 42, AX_VLAN_NONE, 0, AX_FRAGMENT_FIRST,
		 "udp 10.0.0.1:5 > 10.0.0.2:9000 frag first len 7"},
		{"10.0.0.1", "10.0.0.2", 17, 34, AX_VLAN_NONE, 0, AX_FRAGMENT_LATER, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		static const char data[] = "payload";
		struct ax_capture c =
			record(cases[i].src, cases[i].dst, cases[i].proto, cases[i].off, data);
		struct pcap_packet p;
		struct error e;
		struct pcap file;
		bool left_out;
		size_t len;
		char *buf, *line;

		c.vlan = cases[i].vlan;
		c.pad = cases[i].icmp;
		c.fragment = (uint8_t)cases[i].fragment;
		if (cases[i].fragment == AX_FRAGMENT_LATER)
			c.has_ports = 0;
		buf = output(CAPTURE_PCAP, &c, data, &len, &left_out);
		assert_int_equal(left_out, !cases[i].line);
		assert_int_equal(pcap_begin(&file, buf, len, &e), 0);
		assert_int_equal(pcap_next(&file, &p, &e), cases[i].line ? 1 : 0);
		if (cases[i].line) {
			assert_int_equal(p.original_len, 200);
			line = packet_line(p.data, p.len, false);
			assert_string_equal(line, cases[i].line);
			assert_memory_equal(p.data + p.len - strlen(data), data, strlen(data));
			free(line);
		}
		free(buf);
	}
}

/* A frame is written as it was; what begins with the network header gets an Ethernet header. */
static void what_is_whole_stays(void **state)
{
	static const char frame[] = "\2\2\2\2\2\2\3\3\3\3\3\3\x88\xcc"
				    "lldp";
	struct ax_capture c = {.time_ns = time_boot_ns(),
			       .frame_len = 18,
			       .captured = 18,
			       .vlan = AX_VLAN_NONE,
			       .ethertype_be = htons(0x88cc)};
	struct pcap_packet p;
	struct error e;
	struct pcap file;
	bool left_out;
	size_t len;
	char *buf;

	(void)state;
	buf = output(CAPTURE_PCAP, &c, frame, &len, &left_out);
	assert_int_equal(pcap_begin(&file, buf, len, &e), 0);
	assert_int_equal(pcap_next(&file, &p, &e), 1);
	assert_int_equal(p.len, 18);
	assert_memory_equal(p.data, frame, 18);
	free(buf);
	c.data_off = 18;
	c.vlan = 9;
	c.captured = 4;
	buf = output(CAPTURE_PCAP, &c, "lldp", &len, &left_out);
	assert_int_equal(pcap_begin(&file, buf, len, &e), 0);
	assert_int_equal(pcap_next(&file, &p, &e), 1);
	assert_int_equal(p.len, 22);
	assert_memory_equal(p.data + 12,
			    "\x81\x00\x00\x09\x88\xcc"
			    "lldp",
			    10);
	free(buf);
}

static void json_has_both_forms_of_the_bytes(void **state)
{
	struct ax_capture c = record("fd00::1", "fd00::2", IPPROTO_UDP, 62, "a\x1b");
	json_t *j;
	bool left_out;
	size_t len;
	char *buf = output(CAPTURE_JSON, &c, "a\x1b", &len, &left_out);

	(void)state;
	j = json_loads(buf, 0, NULL);
	assert_non_null(j);
	assert_string_equal(member_string(j, "bytes"), "611b");
	assert_string_equal(member_string(j, "text"), "a\\e");
	assert_string_equal(member_string(j, "src"), "fd00::1");
	assert_int_equal(member_int(j, "dport"), 9000);
	assert_int_equal(member_int(j, "offset"), 62);
	json_decref(j);
	free(buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_become_harmless_text),
		cmocka_unit_test(a_record_is_a_line),
		cmocka_unit_test(pcap_frames_are_rebuilt),
		cmocka_unit_test(what_is_whole_stays),
		cmocka_unit_test(json_has_both_forms_of_the_bytes),
	};

	return cmocka_run_group_tests_name("capture output", tests, NULL, NULL);
}
