// SPDX-License-Identifier: GPL-2.0-or-later
/* Packets of Intel PT: as they are, in pieces, and among bytes that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "probes/pt/pt.h"

#define PSB "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"

static const char trace[] = PSB "\x00"				   /* PAD */
				"\x99\x01"			   /* MODE.Exec, 64 bits */
				"\x19\x08\x07\x06\x05\x04\x03\x02" /* TSC */
				"\x02\x73\x3c\xb2\x00\x30\x00"	   /* TMA */
				"\x02\x03\x1d\x00"		   /* CBR */
				"\x02\x43\x00\x34\xd4\x3f\x00\x00" /* PIP */
				"\x02\x23"			   /* PSBEND */
				"\x71\x00\x10\x40\x00\x00\x00"	   /* TIP.PGE 0x401000 */
				"\xee"				   /* TNT */
				"\x2d\x34\x12"			   /* TIP, 16 bits */
				"\x59\x48"			   /* MTC */
				"\x4d\x78\x56\x34\x12"		   /* TIP, 32 bits */
				"\x02\xa3\x05\x00\x00\x00\x00\x01" /* TNT64 */
				"\x3d\x00\x20"			   /* FUP, 16 bits */
				"\x02\xf3"			   /* OVF */
				"\x01";				   /* TIP.PGD without an address */

static const char expected[] =
	"0 PSB\n16 PAD\n17 MODE.Exec bits=40\n"
	"19 TSC tsc=2030405060708\n27 TMA ctc=b23c fc=30\n34 CBR ratio=1d\n"
	"38 PIP cr3=3fd434000 nr=0\n46 PSBEND\n48 TIP.PGE 401000\n55 TNT TTNTTT\n"
	"56 TIP 401234\n59 MTC ctc=48\n61 TIP 12345678\n"
	"66 TNT64 NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNTNT\n"
	"74 FUP 12342000\n77 OVF\n79 TIP.PGD\n";

struct text {
	char s[65536];
	size_t n;
};

static void say(struct text *t, const struct pt_one *one)
{
	char *at = t->s + t->n, *end = t->s + sizeof(t->s);

	at += snprintf(at, (size_t)(end - at), "%llu %s", (unsigned long long)one->offset,
		       pt_kind_name(one->kind));
	if (one->has_ip)
		at += snprintf(at, (size_t)(end - at), " %llx", (unsigned long long)one->ip);
	if (one->n_bits)
		*at++ = ' ';
	for (unsigned i = one->n_bits; i--;)
		*at++ = one->bits >> i & 1 ? 'T' : 'N';
	for (unsigned i = 0; pt_value_name(one->kind, i); i++)
		at += snprintf(at, (size_t)(end - at), " %s=%llx", pt_value_name(one->kind, i),
			       (unsigned long long)one->v[i]);
	*at++ = '\n';
	*at = 0;
	t->n = (size_t)(at - t->s);
	assert_true(t->n < sizeof(t->s) - 256);
}

/* In pieces of so many bytes. */
static void decode(struct text *t, const void *bytes, size_t n, size_t piece)
{
	struct pt_packets *p = NULL;
	struct error e = {0};
	struct pt_one one;

	t->n = 0;
	t->s[0] = 0;
	if (pt_packets_new(&p, &e) < 0)
		fail_msg("%s", e.text);
	pt_packets_begin(p, 0);
	for (size_t at = 0; at < n; at += piece) {
		size_t some = n - at < piece ? n - at : piece;

		assert_int_equal(pt_packets_give(p, (const uint8_t *)bytes + at, some, &e), 0);
		while (pt_packets_next(p, &one))
			say(t, &one);
	}
	if (pt_packets_last(p, &one))
		say(t, &one);
	assert_false(pt_packets_last(p, &one));
	pt_packets_free(p);
}

static void packets_come_whole_from_any_pieces(void **state)
{
	static struct text t;

	(void)state;
	for (size_t piece = 1; piece <= sizeof(trace); piece++) {
		decode(&t, trace, sizeof(trace) - 1, piece);
		assert_string_equal(t.s, expected);
	}
}

static void what_stands_before_a_psb_is_skipped(void **state)
{
	static const char bytes[] =
		"\x11\x22\x02\x82\x33\x82" PSB "\x00\xd9\xd9\x02" PSB "\x02\x23";
	static struct text t;

	(void)state;
	for (size_t piece = 1; piece <= sizeof(bytes); piece++) {
		decode(&t, bytes, sizeof(bytes) - 1, piece);
		assert_string_equal(t.s, "0 BAD skipped=6\n6 PSB\n22 PAD\n23 BAD skipped=3\n"
					 "26 PSB\n42 PSBEND\n");
	}
}

static void a_trace_without_a_psb_is_bad(void **state)
{
	static const char bytes[40] = {0};
	static struct text t;

	(void)state;
	for (size_t piece = 1; piece <= sizeof(bytes); piece++) {
		decode(&t, bytes, sizeof(bytes), piece);
		assert_string_equal(t.s, "0 BAD skipped=28\n");
	}
}

static void a_packet_may_be_cut_off(void **state)
{
	static const char bytes[] = PSB "\x19\x01\x02";
	static struct text t;

	(void)state;
	for (size_t piece = 1; piece <= sizeof(bytes); piece++) {
		decode(&t, bytes, sizeof(bytes) - 1, piece);
		assert_string_equal(t.s, "0 PSB\n16 CUT left=3\n");
	}
}

static void a_new_piece_begins_anew(void **state)
{
	struct pt_packets *p = NULL;
	struct error e = {0};
	struct pt_one one;

	(void)state;
	assert_int_equal(pt_packets_new(&p, &e), 0);
	pt_packets_begin(p, 0);
	assert_int_equal(pt_packets_give(p, (const uint8_t *)PSB "\x19", 17, &e), 0);
	assert_true(pt_packets_next(p, &one));
	assert_false(pt_packets_next(p, &one));
	pt_packets_begin(p, 4096);
	assert_int_equal(pt_packets_give(p, (const uint8_t *)PSB "\x02\x23", 18, &e), 0);
	assert_true(pt_packets_next(p, &one));
	assert_int_equal(one.kind, PT_PSB);
	assert_int_equal(one.offset, 4096);
	assert_true(pt_packets_next(p, &one));
	assert_int_equal(one.kind, PT_PSBEND);
	assert_int_equal(one.offset, 4112);
	assert_false(pt_packets_last(p, &one));
	pt_packets_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_come_whole_from_any_pieces),
		cmocka_unit_test(what_stands_before_a_psb_is_skipped),
		cmocka_unit_test(a_trace_without_a_psb_is_bad),
		cmocka_unit_test(a_packet_may_be_cut_off),
		cmocka_unit_test(a_new_piece_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
