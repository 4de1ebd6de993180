// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
/* What `payload` says of packets: where a payload begins and ends, whatever is in front of it, and
 * what has none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "tests/lib/filter_judge.h"

/* Two pieces, of which one has a mask. */
#define TWO   "rules: [{name: hit, payload: 'at 0 0x17 0x03 at 4 0x01/0x0f', action: drop}]\n"
#define QUIC  "rules: [{name: hit, payload: quic-long, action: drop}]\n"
#define FIRST "rules: [{name: hit, payload: at 0 0x61, action: drop}]\n"
/* As far away as a payload can be asked for. */
#define FAR "rules: [{name: hit, payload: at 127 0x7a, action: drop}]\n"
#define FOUR                                                                                   \
	"rules: [{name: hit, action: drop, payload: 'at 0 0x01 0x02 0x03 0x04 0x05 0x06 0x07 " \
	"0x08 at 16 0x11 at 8 0x09/0xff at 3 0x04 0x05'}]\n"
/* Zeros, as frames are padded with. */
#define ZERO "rules: [{name: hit, payload: at 1 0x00, action: drop}]\n"
/* Any of two, several fields, and rules in front and behind. */
#define OTHERS                                                                         \
	"default: drop\n"                                                              \
	"rules: [{name: front, src: 10.0.0.7, action: pass},\n"                        \
	"        {name: hit, proto: udp, dport: 53, payload: [at 0 0x61, at 1 0x62], " \
	"action: drop},\n"                                                             \
	"        {name: second, payload: at 0 0x63, action: reflect},\n"               \
	"        {name: behind, dport: 53, action: pass}]\n"
/* Classes that the rules are to judge, not a policy. */
#define ODDS                                                                                  \
	"classes: {bad-udp: rules, bad-tcp: rules, short-fragment: rules, short-l4: rules,\n" \
	"          tunnel: rules, split-header: rules, ip-options: rules}\n" FIRST
#define QUOTED                                                     \
	"default: drop\n"                                          \
	"rules: [{name: hit, payload: at 0 0x61, action: pass},\n" \
	"        {name: err, icmp: unreachable, action: pass}]\n"

#define HIT	    BY_DROP("hit")
#define MISS	    BY_PASS("default")
#define OPTIONS_HIT ODD(DROP, "hit", AX_REASON_IP_OPTIONS)

struct row {
	const char *name, *list, *packet;
	struct expect x;
};

#define U4 "udp 10.0.0.1:9 > 10.0.0.2:53 "
#define U6 "udp [fd00::1]:9 > [fd00::2]:53 "
#define T4 "tcp 10.0.0.1:9 > 10.0.0.2:53 flags ack "
/* clang-format off */
static const struct row rows[] = {
	{"both pieces", TWO, U4 "data hex:1703000061", HIT},
	{"the mask leaves bits out", TWO, U4 "data hex:17030000f1ff", HIT},
	{"a bit of the mask differs", TWO, U4 "data hex:17030000f3", MISS},
	{"the first piece differs", TWO, U4 "data hex:1704000001", MISS},
	{"one byte too short", TWO, U4 "data hex:17030000", MISS},
	{"none at all", TWO, U4, MISS},
	{"by TCP", TWO, T4 "data hex:1703000061", HIT},
	{"behind TCP's options", TWO, T4 "data hex:1703000061 | 54+01010101 46=60 len sum", HIT},
	{"on IPv6", TWO, U6 "data hex:1703000061", HIT},
	{"IPv6, too short", TWO, U6 "data hex:17030000", MISS},
	{"behind a tag", TWO, "vlan 7 " U4 "data hex:1703000061", HIT},
	{"behind two tags", TWO, "vlan 7 vlan 8 " U6 "data hex:1703000061", HIT},
	{"behind IPv4's options", FIRST, U4 "data 'abc' | 34+01010101 14=46 len sum", OPTIONS_HIT},
	{"behind an extension header", FIRST, U6 "data 'abc' | 54+1100010400000000 20=3c len", HIT},
	{"the extension header is none", FIRST, U6 "data 'xbc' | 54+1100010461616161 20=3c len", MISS},
	{"QUIC's long header", QUIC, U4 "data hex:c300000001", HIT},
	{"QUIC's short header", QUIC, U6 "data hex:4300000001", MISS},
	{"RTP", QUIC, U4 "data hex:8060000001", MISS},
	{"a ping's", FIRST, "icmp 10.0.0.1 > 10.0.0.2 data 'abc'", HIT},
	{"another ping's", FIRST, "icmp6 fd00::1 > fd00::2 data 'bbc'", MISS},
	{"a ping's on IPv6", FIRST, "icmp6 fd00::1 > fd00::2 data 'abc'", HIT},
	{"another protocol, behind IP", FIRST, "gre 10.0.0.1 > 10.0.0.2 data 'abcdefgh'", HIT},
	{"another protocol on IPv6", FIRST, "gre fd00::1 > fd00::2 data 'abcdefgh'", HIT},
	{"ARP has none", FIRST, "arp 10.0.0.1 > 10.0.0.2", MISS},

	{"four pieces", FOUR, U4 "data hex:0102030405060708090a0b0c0d0e0f1011", HIT},
	{"without the second", FOUR, U4 "data hex:0102030405060708090a0b0c0d0e0f1012", MISS},
	{"without the third", FOUR, U4 "data hex:0102030405060708080a0b0c0d0e0f1011", MISS},
	{"one byte of the first", FOUR, U4 "data hex:0102030405060707090a0b0c0d0e0f1011", MISS},
	{"too short for the second", FOUR, U4 "data hex:0102030405060708090a0b0c0d0e0f10", MISS},

	{"the padding is no payload", ZERO, U4 "data 'a' | pad20", MISS},
	{"nor IPv6's", ZERO, U6 "data 'a' | pad20", MISS},
	{"a zero that was sent", ZERO, U4 "data hex:6100", HIT},
	{"what UDP's length leaves out", ZERO, U4 "data hex:610000 | 38=0009", MISS},
	{"what it does not", ZERO, U4 "data hex:610000 | 38=000a", HIT},
	{"TCP's padding", ZERO, T4 "data 'a' | pad20", MISS},

	{"a first fragment", FIRST, U4 "frag first data 'abcdefgh'", HIT},
	{"of TCP on IPv6", FIRST, "tcp [fd00::1]:9 > [fd00::2]:53 frag first data 'abcdefgh'", HIT},
	{"a later one has none", FIRST, "udp 10.0.0.1 > 10.0.0.2 frag later data 'aaaaaaaaaaaa'",
	 ODD(PASS, "default", AX_REASON_LATER_FRAGMENT)},
	{"a later one on IPv6", FIRST, "udp fd00::1 > fd00::2 frag later data 'aaaaaaaaaaaa'",
	 ODD(PASS, "default", AX_REASON_LATER_FRAGMENT)},

	{"any of two", OTHERS, U4 "data 'ab'", BY_DROP("hit")},
	{"the other of two", OTHERS, U4 "data 'xb'", BY_DROP("hit")},
	{"none of two", OTHERS, U4 "data 'xy'", BY_PASS("behind")},
	{"another port", OTHERS, "udp 10.0.0.1:9 > 10.0.0.2:54 data 'ab'", BY_DROP("default")},
	{"decided before", OTHERS, "udp 10.0.0.7:9 > 10.0.0.2:53 data 'ab'", BY_PASS("front")},
	{"another protocol's", OTHERS, T4 "data 'ab'", BY_PASS("behind")},

	{"a UDP length that lies", ODDS, U4 "data 'abc' | 38=ffff",
	 ODD(DROP, "hit", AX_REASON_BAD_UDP)},
	{"one below the header's", ODDS, U4 "data 'abc' | 38=0007",
	 ODD(PASS, "default", AX_REASON_BAD_UDP)},
	{"a TCP header longer than all", ODDS, T4 "data 'aaaa' | 46=f0",
	 ODD(PASS, "default", AX_REASON_BAD_TCP)},
	{"no room for a header", ODDS, U4 "data 'aaaa' | 16=0018 sum",
	 ODD(PASS, "default", AX_REASON_SHORT_L4)},
	{"a tunnel's is the inner packet", ODDS, "ipip 10.0.0.1 > 10.0.0.2 data 'abcdefgh'",
	 ODD(DROP, "hit", AX_REASON_TUNNEL)},
	{"what an error quotes has none", QUOTED, "icmp 192.0.2.9 > 10.0.0.1 type 3/4 quoting (udp "
	 "10.0.0.1:9 > 10.0.0.2:53 data 'abc')", BY_PASS("err")},
};
/* clang-format on */

static void test_row(void **state)
{
	const struct row *row = *state;

	filter_load_once(row->list);
	judge(row->packet, &row->x);
}

/* --- the end of what can be asked for, and frames in several buffers --- */

/* A datagram of `len` bytes of zero, with `what` at `at`. */
static void data_frame(struct frame_bytes *f, const char *head, size_t header, size_t len,
		       size_t at, uint8_t what)
{
	char spec[128];

	snprintf(spec, sizeof(spec), "%s len %zu", head, len);
	read_frame(spec, f);
	assert_true(header + at < f->len);
	f->b[header + at] = what;
}

static void the_last_byte_is_found(void **state)
{
	static const struct expect hit = HIT, miss = MISS;
	struct frame_bytes f, out;

	(void)state;
	filter_load_once(FAR);
	for (size_t len = 127; len < 137; len++) {
		data_frame(&f, U4, 42, len, 126, 'z');
		judge_frame("beside it", &f, &miss, &out);
		if (len == 127)
			continue;
		data_frame(&f, U4, 42, len, 127, 'z');
		judge_frame("there", &f, &hit, &out);
		data_frame(&f, "vlan 9 " U6, 66, len, 127, 'z');
		judge_frame("there on IPv6", &f, &hit, &out);
	}
}

/* Where the piece lies in the second buffer, or in both. */
static void jumbo_frames_have_theirs(void **state)
{
	static const struct expect hit = HIT, miss = MISS;
	struct frame_bytes f, out;

	(void)state;
	filter_load_once(FAR);
	data_frame(&f, T4, 54, 8800, 127, 'z');
	judge_frame("a jumbo frame", &f, &hit, &out);
	data_frame(&f, T4, 54, 8800, 126, 'z');
	judge_frame("another jumbo frame", &f, &miss, &out);
}

/* Each payload of a list has its own number. */
static void many_payloads_are_told_apart(void **state)
{
	char list[2048] = "rules:\n", spec[128], name[8];
	size_t n = strlen(list);

	(void)state;
	for (unsigned i = 0; i < AX_PAYLOADS_MAX; i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n,
				      "- {name: r%u, payload: at %u 0x01, action: drop}\n", i,
				      AX_PAYLOADS_MAX - 1 - i);
	filter_load_once(list);
	for (unsigned i = 0; i < AX_PAYLOADS_MAX; i++) {
		struct expect x = BY_DROP(name);

		snprintf(name, sizeof(name), "r%u", i);
		/* this one, and all that come behind it */
		snprintf(spec, sizeof(spec), U4 "data hex:%.*s%s", (int)(AX_PAYLOADS_MAX - i) * 2,
			 "010101010101010101010101", "0000000000000000");
		judge(spec, &x);
	}
}

static void too_many_are_refused(void **state)
{
	const struct xdp_load_options o = {0};
	char list[2048] = "rules:\n";
	size_t n = strlen(list);
	struct error e = {0};

	(void)state;
	for (unsigned i = 0; i <= AX_PAYLOADS_MAX; i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n,
				      "- {payload: [at 0 0x01, at %u 0x02], action: drop}\n", i);
	assert_int_equal(filter_try_load(list, &o, &e), -E2BIG);
	assert_string_equal(e.text, "the rules ask for more than 12 different payloads: use fewer");
}

int main(void)
{
	static struct CMUnitTest tests[2 * ARRAY_SIZE(rows) + 4];
	size_t n = ARRAY_SIZE(rows);

	for (size_t i = 0; i < n; i++)
		tests[i] = (struct CMUnitTest){.name = rows[i].name,
					       .test_func = test_row,
					       .initial_state = (void *)(uintptr_t)&rows[i]};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].x.action != XDP_TX)
			tests[n++] =
				(struct CMUnitTest){.name = rows[i].name,
						    .test_func = test_row,
						    .setup_func = filter_to_egress,
						    .teardown_func = filter_to_ingress,
						    .initial_state = (void *)(uintptr_t)&rows[i]};
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(the_last_byte_is_found);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(jumbo_frames_have_theirs);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(many_payloads_are_told_apart);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(too_many_are_refused);
	return _cmocka_run_group_tests("payloads", tests, n, filter_setup, filter_teardown);
}
