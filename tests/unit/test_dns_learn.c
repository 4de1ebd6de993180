// SPDX-License-Identifier: GPL-2.0-or-later
/* What an upstream's answer says of the name that was asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dns/message.h"

static size_t message(const char *name, const char *const *records, size_t n, uint8_t out[4096])
{
	ldns_pkt *pkt = ldns_pkt_new();
	ldns_rr *rr = ldns_rr_new();
	ldns_buffer *b = ldns_buffer_new(4096);
	size_t len;

	ldns_rr_set_question(rr, true);
	ldns_rr_set_owner(rr, ldns_dname_new_frm_str(name));
	ldns_rr_set_type(rr, LDNS_RR_TYPE_A);
	ldns_rr_set_class(rr, LDNS_RR_CLASS_IN);
	ldns_pkt_set_qr(pkt, true);
	ldns_pkt_push_rr(pkt, LDNS_SECTION_QUESTION, rr);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(ldns_rr_new_frm_str(&rr, records[i], 0, NULL, NULL),
				 LDNS_STATUS_OK);
		ldns_pkt_push_rr(pkt, LDNS_SECTION_ANSWER, rr);
	}
	assert_int_equal(ldns_pkt2buffer_wire(b, pkt), LDNS_STATUS_OK);
	len = ldns_buffer_position(b);
	memcpy(out, ldns_buffer_begin(b), len);
	ldns_buffer_free(b);
	ldns_pkt_free(pkt);
	return len;
}

/* "ADDRESS/TTL ..." of what is found. */
static const char *learn(const char *name, const char *const *records, size_t n)
{
	static char text[1024];
	struct dns_learnt v[8];
	char asked[DOMAIN_STRLEN], buf[ADDR_STRLEN];
	uint8_t msg[4096];
	size_t len = message(name, records, n, msg), at = 0;
	size_t found = dns_answer_addresses(msg, len, asked, v, ARRAY_SIZE(v));

	text[0] = 0;
	for (size_t i = 0; i < found; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s/%u ",
				       addr_format(&v[i].addr, buf), v[i].ttl_s);
	/* however it is cut, nothing else is read */
	for (size_t i = 0; i < len; i++)
		assert_true(dns_answer_addresses(msg, i, asked, v, ARRAY_SIZE(v)) <= found);
	return text;
}

#define LEARN(name, ...) \
	learn(name, (const char *const[]){__VA_ARGS__}, ARRAY_SIZE(((const char *[]){__VA_ARGS__})))

static void addresses_are_found(void **state)
{
	(void)state;
	assert_string_equal(
		LEARN("A.test.", "a.test. 60 IN A 192.0.2.1", "a.test. 30 IN A 192.0.2.2"),
		"192.0.2.1/60 192.0.2.2/30 ");
	assert_string_equal(LEARN("a.test.", "A.TEST. 60 IN AAAA 2001:db8::1"), "2001:db8::1/60 ");
	assert_string_equal(LEARN("a.test.", "b.test. 60 IN A 192.0.2.1"), "");
	assert_string_equal(LEARN("a.test.", "a.test. 60 CH A 192.0.2.1"), "");
	assert_string_equal(LEARN("a.test.", "a.test. 60 IN TXT \"192.0.2.1\""), "");
}

static void cnames_are_followed(void **state)
{
	(void)state;
	assert_string_equal(LEARN("a.test.", "a.test. 60 IN CNAME b.test.",
				  "b.test. 20 IN CNAME c.example.", "c.example. 90 IN A 192.0.2.1",
				  "d.example. 90 IN A 192.0.2.66"),
			    "192.0.2.1/20 ");
	/* in whatever order */
	assert_string_equal(
		LEARN("a.test.", "b.test. 90 IN A 192.0.2.1", "a.test. 60 IN CNAME b.test."),
		"192.0.2.1/60 ");
	/* round and round; and beside the way */
	assert_string_equal(LEARN("a.test.", "a.test. 60 IN CNAME b.test.",
				  "b.test. 60 IN CNAME a.test.", "a.test. 60 IN A 192.0.2.1"),
			    "");
	assert_string_equal(
		LEARN("a.test.", "a.test. 60 IN CNAME b.test.", "a.test. 60 IN A 192.0.2.1"), "");
}

static void names_are_unambiguous(void **state)
{
	/* one label "www.good" below test; a zero byte */
	static const uint8_t dot[] = "\0\1\1\0\0\1\0\0\0\0\0\0\10www.good\4test\0\0\1\0\1",
			     zero[] = "\0\1\1\0\0\1\0\0\0\0\0\0\4good\4te\0t\0\0\1\0\1",
			     good[] = "\0\1\1\0\0\1\0\0\0\0\0\0\4Good\4test\0\0\1\0\1";
	char name[DOMAIN_STRLEN];

	(void)state;
	assert_false(dns_asked_name(dot, sizeof(dot) - 1, name));
	assert_false(dns_asked_name(zero, sizeof(zero) - 1, name));
	assert_true(dns_asked_name(good, sizeof(good) - 1, name));
	assert_string_equal(name, "good.test");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_found),
		cmocka_unit_test(cnames_are_followed),
		cmocka_unit_test(names_are_unambiguous),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
