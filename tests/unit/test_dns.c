// SPDX-License-Identifier: GPL-2.0-or-later
/* dns_answer(): queries as bytes in, answers as bytes out; and the reading of resolv.conf. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <ldns/ldns.h>

#include "tests/lib/dns_zone.h"

#define QR 0x8000
#define AA 0x0400
#define TC 0x0200
#define RD 0x0100
#define RA 0x0080
#define AD 0x0020
#define CD 0x0010

#define ROOT_OPT_LEN 11

struct answer {
	uint8_t b[65535];
	int len;
	ldns_pkt *pkt; /* the same, parsed */
};

static struct answer the_answer;

static unsigned get16(const uint8_t *p)
{
	return (unsigned)(p[0] << 8 | p[1]);
}

static int free_answer(void **state)
{
	(void)state;
	ldns_pkt_free(the_answer.pkt);
	the_answer.pkt = NULL;
	return 0;
}

static int ask_raw(const uint8_t *query, size_t len, size_t max_udp)
{
	struct dns_zone zone = test_zone("ax.internal");
	/* a copy of exactly that length, for the sanitizer to see what is read beyond */
	uint8_t *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, query, len);
	zone.ns4 = test_addr("127.0.0.9");
	free_answer(NULL);
	memset(the_answer.b, 0xee, sizeof(the_answer.b));
	the_answer.len = dns_answer(&zone, copy, len, the_answer.b, sizeof(the_answer.b), max_udp);
	free(copy);
	if (the_answer.len > 0)
		assert_int_equal(
			ldns_wire2pkt(&the_answer.pkt, the_answer.b, (size_t)the_answer.len),
			LDNS_STATUS_OK);
	return the_answer.len;
}

static struct answer *ask_query(const struct test_query *q, size_t max_udp)
{
	int len = ask_raw(q->b, q->len, max_udp);

	assert_true(len >= 12);
	assert_int_equal(get16(the_answer.b), get16(q->b));
	assert_int_equal(get16(the_answer.b + 2) & (QR | RA | AD), QR | RA);
	return &the_answer;
}

static struct answer *ask(const char *name, unsigned type)
{
	struct test_query q = test_query(0x1234, name, type);

	return ask_query(&q, DNS_UDP_MAX);
}

static int outcome(const char *name, unsigned type)
{
	struct test_query q = test_query(0x1234, name, type);

	return ask_raw(q.b, q.len, DNS_UDP_MAX);
}

static unsigned flags(const struct answer *a)
{
	return get16(a->b + 2) & 0xfff0;
}

static unsigned rcode(const struct answer *a)
{
	return a->b[3] & 15;
}

static void assert_counts(const struct answer *a, unsigned an, unsigned ns, unsigned ar)
{
	assert_int_equal(get16(a->b + 6), an);
	assert_int_equal(get16(a->b + 8), ns);
	assert_int_equal(get16(a->b + 10), ar);
}

/* Record i of a section in presentation form, with single blanks. */
static void assert_record(const ldns_rr_list *section, size_t i, const char *expected)
{
	char *text, *p;

	assert_true(ldns_rr_list_rr_count(section) > i);
	text = ldns_rr2str(ldns_rr_list_rr(section, i));
	assert_non_null(text);
	for (p = text; *p; p++) {
		if (*p == '\t')
			*p = ' ';
	}
	text[strcspn(text, "\n")] = 0;
	if (p > text && strlen(text) && text[strlen(text) - 1] == ' ')
		text[strlen(text) - 1] = 0;
	assert_string_equal(text, expected);
	free(text);
}

#define SOA_TEXT "ns.dns.ax.internal. hostmaster.ax.internal. 1 3600 600 86400 0"

static void assert_negative(const struct answer *a, unsigned code, const char *soa)
{
	assert_int_equal(rcode(a), code);
	assert_int_equal(flags(a), QR | AA | RD | RA);
	assert_counts(a, 0, 1, 0);
	assert_record(ldns_pkt_authority(a->pkt), 0, soa);
}

static void test_a_echoes_case(void **state)
{
	static const uint8_t record[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 10, 9, 0, 1};
	struct test_query q = test_query(0xbeef, "wEb.Ax.InTernal", LDNS_RR_TYPE_A);
	struct answer *a = ask_query(&q, DNS_UDP_MAX);

	(void)state;
	assert_int_equal(flags(a), QR | AA | RD | RA);
	assert_int_equal(rcode(a), 0);
	assert_counts(a, 1, 0, 0);
	/* the question byte by byte, and an owner that points to it */
	assert_int_equal(a->len, q.len + sizeof(record));
	assert_memory_equal(a->b + 12, q.b + 12, q.len - 12);
	assert_memory_equal(a->b + q.len, record, sizeof(record));
}

static void test_flags_are_copied(void **state)
{
	struct test_query q = test_query(1, "web.ax.internal", LDNS_RR_TYPE_A);

	(void)state;
	q.b[2] = 0;
	q.b[3] = CD;
	assert_int_equal(flags(ask_query(&q, 0)), QR | AA | RA | CD);
}

static void test_aaaa(void **state)
{
	(void)state;
	assert_record(ldns_pkt_answer(ask("web.ax.internal", LDNS_RR_TYPE_AAAA)->pkt), 0,
		      "web.ax.internal. 0 IN AAAA fd00::1");
	assert_record(ldns_pkt_answer(ask("six.ax.internal", LDNS_RR_TYPE_AAAA)->pkt), 0,
		      "six.ax.internal. 0 IN AAAA fd00::6");
}

static void test_known_name_without_type(void **state)
{
	static const unsigned types[] = {LDNS_RR_TYPE_AAAA, LDNS_RR_TYPE_MX,  LDNS_RR_TYPE_TXT,
					 LDNS_RR_TYPE_SRV,  LDNS_RR_TYPE_SOA, 65 /* HTTPS */};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		assert_negative(ask("four.ax.internal", types[i]), LDNS_RCODE_NOERROR,
				"ax.internal. 0 IN SOA " SOA_TEXT);
	assert_negative(ask("six.ax.internal", LDNS_RR_TYPE_A), LDNS_RCODE_NOERROR,
			"ax.internal. 0 IN SOA " SOA_TEXT);
	/* names that exist because there are names below them */
	assert_negative(ask("_tcp.web.ax.internal", LDNS_RR_TYPE_A), LDNS_RCODE_NOERROR,
			"ax.internal. 0 IN SOA " SOA_TEXT);
	assert_negative(ask("_80._tcp.web.ax.internal", LDNS_RR_TYPE_A), LDNS_RCODE_NOERROR,
			"ax.internal. 0 IN SOA " SOA_TEXT);
	assert_negative(ask("dns.ax.internal", LDNS_RR_TYPE_A), LDNS_RCODE_NOERROR,
			"ax.internal. 0 IN SOA " SOA_TEXT);
}

static void test_unknown_name(void **state)
{
	static const char *const names[] = {"nobody.ax.internal",	 "www.web.ax.internal",
					    "_80._sctp.web.ax.internal", "80._tcp.web.ax.internal",
					    "_80._tcp.no.ax.internal",	 "w b.ax.internal",
					    "a.b.c.d.e.ax.internal"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_negative(ask(names[i], LDNS_RR_TYPE_SRV), LDNS_RCODE_NXDOMAIN,
				"ax.internal. 0 IN SOA " SOA_TEXT);
}

static void test_single_label(void **state)
{
	(void)state;
	assert_record(ldns_pkt_answer(ask("wEB", LDNS_RR_TYPE_A)->pkt), 0, "wEB. 0 IN A 10.9.0.1");
	assert_negative(ask("four", LDNS_RR_TYPE_AAAA), LDNS_RCODE_NOERROR,
			"four. 0 IN SOA " SOA_TEXT);
	assert_record(ldns_pkt_answer(ask("_8080._tcp.web", LDNS_RR_TYPE_SRV)->pkt), 0,
		      "_8080._tcp.web. 0 IN SRV 0 0 8080 web.ax.internal.");
	assert_int_equal(outcome("nobody", LDNS_RR_TYPE_A), 0);
	assert_int_equal(outcome("_80._tcp.nobody", LDNS_RR_TYPE_SRV), 0);
}

/* NAME.CLUSTER, of another cluster's app. */
static void test_two_labels(void **state)
{
	(void)state;
	assert_record(ldns_pkt_answer(ask("Web.West.ax.internal", LDNS_RR_TYPE_A)->pkt), 0,
		      "Web.West.ax.internal. 0 IN A 10.9.0.7");
	assert_record(
		ldns_pkt_answer(ask("_http._tcp.web.west.ax.internal", LDNS_RR_TYPE_SRV)->pkt), 0,
		"_http._tcp.web.west.ax.internal. 0 IN SRV 0 0 80 web.west.ax.internal.");
	assert_negative(ask("_tcp.web.west.ax.internal", LDNS_RR_TYPE_A), LDNS_RCODE_NOERROR,
			"ax.internal. 0 IN SOA " SOA_TEXT);
	assert_negative(ask("west.ax.internal", LDNS_RR_TYPE_A), LDNS_RCODE_NOERROR,
			"ax.internal. 0 IN SOA " SOA_TEXT);
	assert_negative(ask("db.west.ax.internal", LDNS_RR_TYPE_A), LDNS_RCODE_NXDOMAIN,
			"ax.internal. 0 IN SOA " SOA_TEXT);
	assert_record(ldns_pkt_answer(ask("web.west", LDNS_RR_TYPE_A)->pkt), 0,
		      "web.west. 0 IN A 10.9.0.7");
	assert_negative(ask("web.west", LDNS_RR_TYPE_AAAA), LDNS_RCODE_NOERROR,
			"web.west. 0 IN SOA " SOA_TEXT);
	/* without the domain no more than what is known is ours */
	assert_int_equal(outcome("west", LDNS_RR_TYPE_A), 0);
	assert_int_equal(outcome("db.west", LDNS_RR_TYPE_A), 0);
}

static void test_foreign_names_are_forwarded(void **state)
{
	static const char *const names[] = {
		"example.com", "",    "internal", "xax.internal", "web.ax.internal.example",
		"www.web",     "arpa"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(outcome(names[i], LDNS_RR_TYPE_A), 0);
}

static void test_any(void **state)
{
	struct answer *a = ask("web.ax.internal", LDNS_RR_TYPE_ANY);

	(void)state;
	assert_counts(a, 1, 0, 0);
	assert_record(ldns_pkt_answer(a->pkt), 0, "web.ax.internal. 0 IN HINFO \"RFC8482\" \"\"");
	assert_negative(ask("no.ax.internal", LDNS_RR_TYPE_ANY), LDNS_RCODE_NXDOMAIN,
			"ax.internal. 0 IN SOA " SOA_TEXT);
}

static void test_srv(void **state)
{
	struct answer *a = ask("_any._tcp.web.ax.internal", LDNS_RR_TYPE_SRV);

	(void)state;
	assert_counts(a, 2, 0, 2);
	assert_record(ldns_pkt_answer(a->pkt), 0,
		      "_any._tcp.web.ax.internal. 0 IN SRV 0 0 80 web.ax.internal.");
	assert_record(ldns_pkt_answer(a->pkt), 1,
		      "_any._tcp.web.ax.internal. 0 IN SRV 0 0 8080 web.ax.internal.");
	assert_record(ldns_pkt_additional(a->pkt), 0, "web.ax.internal. 0 IN A 10.9.0.1");
	assert_record(ldns_pkt_additional(a->pkt), 1, "web.ax.internal. 0 IN AAAA fd00::1");
	a = ask("_ANY._UDP.Web.ax.internal", LDNS_RR_TYPE_SRV);
	assert_counts(a, 1, 0, 2);
	assert_record(ldns_pkt_answer(a->pkt), 0,
		      "_ANY._UDP.Web.ax.internal. 0 IN SRV 0 0 5353 web.ax.internal.");
	assert_negative(ask("_any._udp.four.ax.internal", LDNS_RR_TYPE_SRV), LDNS_RCODE_NOERROR,
			"ax.internal. 0 IN SOA " SOA_TEXT);
}

static void test_srv_target_is_not_compressed(void **state)
{
	static const uint8_t fixed[] = {0xc0, 12, 0,	  33, 0, 1, 0, 0, 0,
					0,    0,  6 + 17, 0,  0, 0, 0, 0, 80};
	static const uint8_t target[] = "\3web\2ax\10internal";
	struct test_query q = test_query(7, "_80._tcp.web.ax.internal", LDNS_RR_TYPE_SRV);
	struct answer *a = ask_query(&q, DNS_UDP_MAX);

	(void)state;
	assert_memory_equal(a->b + q.len, fixed, sizeof(fixed));
	assert_memory_equal(a->b + q.len + sizeof(fixed), target, sizeof(target));
}

static void test_srv_of_one_port(void **state)
{
	struct answer *a = ask("_8080._tcp.web.ax.internal", LDNS_RR_TYPE_SRV);

	(void)state;
	assert_counts(a, 1, 0, 2);
	assert_record(ldns_pkt_answer(a->pkt), 0,
		      "_8080._tcp.web.ax.internal. 0 IN SRV 0 0 8080 web.ax.internal.");
	assert_negative(ask("_8081._tcp.web.ax.internal", LDNS_RR_TYPE_SRV), LDNS_RCODE_NOERROR,
			"ax.internal. 0 IN SOA " SOA_TEXT);
	assert_negative(ask("_8080._udp.web.ax.internal", LDNS_RR_TYPE_SRV), LDNS_RCODE_NOERROR,
			"ax.internal. 0 IN SOA " SOA_TEXT);
}

static void test_srv_of_a_named_port(void **state)
{
	struct answer *a;

	(void)state;
	if (access("/etc/services", R_OK) < 0)
		skip();
	a = ask("_HTTP._tcp.web.ax.internal", LDNS_RR_TYPE_SRV);
	assert_counts(a, 1, 0, 2);
	assert_record(ldns_pkt_answer(a->pkt), 0,
		      "_HTTP._tcp.web.ax.internal. 0 IN SRV 0 0 80 web.ax.internal.");
	/* an alias of http-alt, and one that has another protocol there */
	a = ask("_webcache._tcp.web.ax.internal", LDNS_RR_TYPE_SRV);
	assert_counts(a, 1, 0, 2);
	assert_negative(ask("_ssh._tcp.web.ax.internal", LDNS_RR_TYPE_SRV), LDNS_RCODE_NOERROR,
			"ax.internal. 0 IN SOA " SOA_TEXT);
}

static void test_truncation(void **state)
{
	struct test_query q =
		test_query(7, "_any._tcp." LONG_NAME ".ax.internal", LDNS_RR_TYPE_SRV);
	const size_t record = 12 + 6 + sizeof(LONG_NAME ".ax.internal") + 1;
	struct answer *a = ask_query(&q, DNS_UDP_MAX);

	(void)state;
	assert_int_equal(flags(a), QR | AA | TC | RD | RA);
	assert_counts(a, (unsigned)((512 - q.len) / record), 0, 0);
	assert_int_equal(a->len, q.len + get16(a->b + 6) * record);
	assert_true(a->len <= 512);

	a = ask_query(&q, 0);
	assert_int_equal(flags(a), QR | AA | RD | RA);
	assert_counts(a, 16, 0, 1);

	/* more is said to be welcome than ever fits a packet */
	test_add_opt(&q, 4096, 0, false);
	a = ask_query(&q, DNS_UDP_MAX);
	assert_int_equal(flags(a), QR | AA | TC | RD | RA);
	assert_counts(a, (unsigned)((DNS_UDP_MAX - q.len) / record), 0, 1);
	assert_int_equal(a->len, q.len + get16(a->b + 6) * record);

	/* a transport that takes more than fits a packet, and one that takes less than the client
	 */
	assert_true(ask_query(&q, 4096)->len <= DNS_UDP_MAX);
	a = ask_query(&q, 600);
	assert_true(a->len <= 600 && flags(a) & TC);
}

static void test_additional_records_go_first(void **state)
{
	struct test_query q =
		test_query(7, "_1003._tcp." LONG_NAME ".ax.internal", LDNS_RR_TYPE_SRV);
	int full = ask_query(&q, 0)->len;
	struct answer *a = ask_query(&q, (size_t)full - 1);

	(void)state;
	assert_int_equal(flags(a), QR | AA | RD | RA);
	assert_counts(a, 1, 0, 0);
	a = ask_query(&q, (size_t)full);
	assert_counts(a, 1, 0, 1);
}

static void test_edns(void **state)
{
	static const uint8_t opt[ROOT_OPT_LEN] = {0, 0, 41,  DNS_UDP_MAX >> 8, DNS_UDP_MAX & 255,
						  0, 0, 0x80};
	struct test_query q = test_query(7, "web.ax.internal", LDNS_RR_TYPE_A);
	struct answer *a;

	(void)state;
	test_add_opt(&q, 0, 0, true);
	a = ask_query(&q, DNS_UDP_MAX);
	assert_counts(a, 1, 0, 1);
	assert_memory_equal(a->b + a->len - ROOT_OPT_LEN, opt, sizeof(opt));

	q = test_query(7, "_any._tcp." LONG_NAME ".ax.internal", LDNS_RR_TYPE_SRV);
	test_add_opt(&q, 100, 0, false); /* less than 512 counts as 512 */
	a = ask_query(&q, DNS_UDP_MAX);
	assert_true(a->len > 400 && a->len <= 512 && flags(a) & TC);
}

static void test_edns_version(void **state)
{
	static const uint8_t opt[ROOT_OPT_LEN] = {0, 0, 41, DNS_UDP_MAX >> 8, DNS_UDP_MAX & 255, 1};
	struct test_query q = test_query(7, "web.ax.internal", LDNS_RR_TYPE_A);
	struct answer *a;

	(void)state;
	test_add_opt(&q, 4096, 1, false);
	a = ask_query(&q, DNS_UDP_MAX);
	assert_int_equal(rcode(a), 0); /* BADVERS is 16: a one in the OPT record */
	assert_counts(a, 0, 0, 1);
	assert_memory_equal(a->b + a->len - ROOT_OPT_LEN, opt, sizeof(opt));
}

#define V6_1 "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa"
#define V6_2 "2.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa"
#define V6_X "x.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa"

static void test_ptr(void **state)
{
	static const char *const forwarded[] = {"9.9.9.9.in-addr.arpa",
						"0.9.10.in-addr.arpa",
						"01.0.9.10.in-addr.arpa",
						"256.0.9.10.in-addr.arpa",
						"1.1.0.9.10.in-addr.arpa",
						"x.0.9.10.in-addr.arpa",
						"1000.0.9.10.in-addr.arpa",
						V6_X,
						"in-addr.arpa",
						"0.0.d.f.ip6.arpa"};

	(void)state;
	assert_record(ldns_pkt_answer(ask("1.0.9.10.In-Addr.arpa", LDNS_RR_TYPE_PTR)->pkt), 0,
		      "1.0.9.10.In-Addr.arpa. 0 IN PTR web.ax.internal.");
	assert_record(ldns_pkt_answer(ask(V6_1, LDNS_RR_TYPE_PTR)->pkt), 0,
		      V6_1 ". 0 IN PTR web.ax.internal.");
	assert_record(ldns_pkt_answer(ask("9.0.0.127.in-addr.arpa", LDNS_RR_TYPE_PTR)->pkt), 0,
		      "9.0.0.127.in-addr.arpa. 0 IN PTR ns.dns.ax.internal.");
	assert_negative(ask("1.0.9.10.in-addr.arpa", LDNS_RR_TYPE_A), LDNS_RCODE_NOERROR,
			"in-addr.arpa. 0 IN SOA " SOA_TEXT);
	assert_negative(ask("77.0.9.10.in-addr.arpa", LDNS_RR_TYPE_PTR), LDNS_RCODE_NXDOMAIN,
			"in-addr.arpa. 0 IN SOA " SOA_TEXT);
	assert_negative(ask(V6_2, LDNS_RR_TYPE_PTR), LDNS_RCODE_NXDOMAIN,
			"ip6.arpa. 0 IN SOA " SOA_TEXT);
	for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++)
		assert_int_equal(outcome(forwarded[i], LDNS_RR_TYPE_PTR), 0);
}

static void test_apex(void **state)
{
	struct answer *a = ask("ax.internal", LDNS_RR_TYPE_SOA);

	(void)state;
	assert_counts(a, 1, 0, 1);
	assert_record(ldns_pkt_answer(a->pkt), 0, "ax.internal. 0 IN SOA " SOA_TEXT);
	a = ask("ax.internal", LDNS_RR_TYPE_NS);
	assert_counts(a, 1, 0, 1);
	assert_record(ldns_pkt_answer(a->pkt), 0, "ax.internal. 0 IN NS ns.dns.ax.internal.");
	assert_record(ldns_pkt_additional(a->pkt), 0, "ns.dns.ax.internal. 0 IN A 127.0.0.9");
	assert_negative(ask("ax.internal", LDNS_RR_TYPE_A), LDNS_RCODE_NOERROR,
			"ax.internal. 0 IN SOA " SOA_TEXT);
	assert_record(ldns_pkt_answer(ask("ns.dns.ax.internal", LDNS_RR_TYPE_A)->pkt), 0,
		      "ns.dns.ax.internal. 0 IN A 127.0.0.9");
}

static void assert_error(const struct test_query *q, unsigned code, unsigned qdcount)
{
	struct answer *a = ask_query(q, DNS_UDP_MAX);

	assert_int_equal(rcode(a), code);
	assert_int_equal(flags(a), QR | RD | RA);
	assert_int_equal(get16(a->b + 4), qdcount);
	assert_counts(a, 0, 0, get16(a->b + 10));
}

static void test_what_is_not_a_query(void **state)
{
	struct test_query q = test_query(7, "web.ax.internal", LDNS_RR_TYPE_A);

	(void)state;
	for (size_t len = 0; len < 12; len++)
		assert_int_equal(ask_raw(q.b, len, DNS_UDP_MAX), -EBADMSG);
	for (size_t len = 12; len < q.len; len++) {
		assert_int_equal(ask_raw(q.b, len, DNS_UDP_MAX), 12);
		assert_int_equal(rcode(&the_answer), LDNS_RCODE_FORMERR);
	}
	q.b[2] |= 0x80; /* a response */
	assert_int_equal(ask_raw(q.b, q.len, DNS_UDP_MAX), -EBADMSG);
}

static void test_malformed(void **state)
{
	struct test_query good = test_query(7, "web.ax.internal", LDNS_RR_TYPE_A), q = good;

	(void)state;
	for (unsigned section = 4; section <= 8; section += 2) { /* QDCOUNT 2, ANCOUNT, NSCOUNT 1 */
		q = good;
		q.b[section + 1]++;
		assert_error(&q, LDNS_RCODE_FORMERR, 0);
	}
	q = good;
	q.b[5] = 0; /* no question */
	assert_error(&q, LDNS_RCODE_FORMERR, 0);
	q = good;
	q.b[11] = 1; /* an additional record that is not there */
	assert_error(&q, LDNS_RCODE_FORMERR, 0);
	q = good;
	q.b[12] = 0xc0; /* a name that points to itself */
	q.b[13] = 12;
	assert_error(&q, LDNS_RCODE_FORMERR, 0);
	q = good;
	test_add_opt(&q, 1232, 0, false);
	test_add_opt(&q, 1232, 0, false);
	assert_error(&q, LDNS_RCODE_FORMERR, 0);
}

static void test_refused_and_not_implemented(void **state)
{
	struct test_query q = test_query(7, "web.ax.internal", LDNS_RR_TYPE_A);
	struct answer *a;

	(void)state;
	q.b[q.len - 1] = LDNS_RR_CLASS_CH;
	assert_error(&q, LDNS_RCODE_NOTIMPL, 1);
	q = test_query(7, "example.com", LDNS_RR_TYPE_AXFR);
	assert_error(&q, LDNS_RCODE_REFUSED, 1);
	q.b[2] = LDNS_PACKET_NOTIFY << 3;
	a = ask_query(&q, DNS_UDP_MAX);
	assert_int_equal(a->len, 12);
	assert_int_equal(rcode(a), LDNS_RCODE_NOTIMPL);
	assert_int_equal(a->b[2] >> 3 & 15, LDNS_PACKET_NOTIFY);
}

static void test_small_buffer(void **state)
{
	struct test_query q = test_query(7, "web.ax.internal", LDNS_RR_TYPE_A);
	struct dns_zone zone = test_zone("ax.internal");
	uint8_t out[64];

	(void)state;
	assert_int_equal(dns_answer(&zone, q.b, q.len, out, 11, 0), -EMSGSIZE);
	assert_int_equal(dns_answer(&zone, q.b, q.len, out, q.len, 0), q.len);
	assert_true(out[2] & TC >> 8);
}

static void test_resolv_conf(void **state)
{
	struct dns_upstream u[3];
	struct ax_addr expected[] = {test_addr("127.0.0.53"), test_addr("fd00::53"),
				     test_addr("192.0.2.1")};

	(void)state;
	assert_int_equal(dns_upstreams_from_resolv_conf("# nameserver 192.0.2.9\n"
							"search example.com\n"
							"nameserver 127.0.0.53\r\n"
							"nameserver\n"
							"nameserver \n"
							"nameservers 192.0.2.9\n"
							"nameserver fe80::1%eth0\n"
							"nameserver 1.2.3\n"
							"\tnameserver\t fd00::53 # comment\n"
							"options ndots:1\n"
							"nameserver 192.0.2.1;x\n"
							"nameserver 192.0.2.2",
							u, ARRAY_SIZE(u)),
			 3);
	for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
		assert_memory_equal(&u[i].addr, &expected[i], sizeof(u[i].addr));
		assert_int_equal(u[i].port_be, htons(53));
	}
	assert_int_equal(dns_upstreams_from_resolv_conf("nameserver 192.0.2.2", u, 3), 1);
	assert_int_equal(dns_upstreams_from_resolv_conf("nameserver", u, 3), 0);
	assert_int_equal(dns_upstreams_from_resolv_conf("", u, 3), 0);
}

#define TEST(f) cmocka_unit_test_teardown(f, free_answer)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_echoes_case),
		TEST(test_flags_are_copied),
		TEST(test_aaaa),
		TEST(test_known_name_without_type),
		TEST(test_unknown_name),
		TEST(test_two_labels),
		TEST(test_single_label),
		TEST(test_foreign_names_are_forwarded),
		TEST(test_any),
		TEST(test_srv),
		TEST(test_srv_target_is_not_compressed),
		TEST(test_srv_of_one_port),
		TEST(test_srv_of_a_named_port),
		TEST(test_truncation),
		TEST(test_additional_records_go_first),
		TEST(test_edns),
		TEST(test_edns_version),
		TEST(test_ptr),
		TEST(test_apex),
		TEST(test_what_is_not_a_query),
		TEST(test_malformed),
		TEST(test_refused_and_not_implemented),
		TEST(test_small_buffer),
		TEST(test_resolv_conf),
	};

	return cmocka_run_group_tests_name("dns", tests, NULL, NULL);
}
