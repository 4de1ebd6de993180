// SPDX-License-Identifier: GPL-2.0-or-later
// timeout: 300
// beside others
/* What `tls-sni` and `http-host` say of segments: which bytes are a hello or a request with a name,
 * and which are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "tests/lib/carry_name.h"
#include "tests/lib/filter_judge.h"

#define TLS "rules: [{name: hit, tls-sni: [example.org, b.test], action: drop}]\n"
/* One rule for a name wherever it is, and other fields. */
#define BOTH                                                                                \
	"rules: [{name: port, tls-sni: example.org, dport: 8443, action: pass},\n"          \
	"        {name: hit, dns-name: example.org, tls-sni: [example.org, test], action: " \
	"drop, http-host: test},\n"                                                         \
	"        {name: data, payload: at 0 0x16 0x03, action: drop},\n"                    \
	"        {name: rest, tls-sni: ., dns-name: net, action: drop}]\n"
#define HTTP "rules: [{name: hit, http-host: [example.org, b.test], action: drop}]\n"

#define HIT  BY_DROP("hit")
#define MISS BY_PASS("default")

#define T4 "tcp 10.0.0.1:9 > 10.0.0.2:443 flags ack"
#define T6 "tcp [fd00::1]:9 > [fd00::2]:443 flags ack"

/* --- hellos --- */

/* The parts of a hello, of which a row says some; the lengths around them are right. */
struct hello {
	const char *name;
	const char *exts;  /* extensions, in hex; NULL: not even their length */
	const char *front; /* of the packet; NULL: T4 */
	const char *session, *ciphers, *compressions; /* with their length; NULL: the usual */
	const char *change;			      /* of the frame, see frame_text.h */
	const char *list;			      /* NULL: TLS */
	struct expect x;
};

#define SNI    \
	"0000" \
	"0010" \
	"000e" \
	"00"   \
	"000b" \
	"6578616d706c652e6f7267" /* example.org */
#define ALPN   \
	"0010" \
	"000e" \
	"000c" \
	"02"   \
	"6832" \
	"08"   \
	"687474702f312e31"
#define GREASE \
	"3a3a" \
	"0000"
#define GREASE1 \
	"8a8a"  \
	"0001"  \
	"00"
#define PAD64                                                                  \
	"0015"                                                                 \
	"0040"                                                                 \
	"00000000000000000000000000000000000000000000000000000000000000000000" \
	"000000000000000000000000000000000000000000000000000000000000"
/* that mean nothing */
#define EMPTY5     \
	"5a5a0000" \
	"6a6a0000" \
	"7a7a0000" \
	"8a8a0000" \
	"9a9a0000"
#define EMPTY20 EMPTY5 EMPTY5 EMPTY5 EMPTY5
#define EMPTY60 EMPTY20 EMPTY20 EMPTY20
#define S32                                \
	"20"                               \
	"000102030405060708090a0b0c0d0e0f" \
	"101112131415161718191a1b1c1d1e1f"
/* clang-format off */
static const struct hello hellos[] = {
	{"the name itself", SNI, .x = HIT},
	{"in capitals", "0000" "0010" "000e" "00" "000b" "4558414d504c452e4f5247", .x = HIT},
	{"one under it", "0000" "0012" "0010" "00" "000d" "612e" "6578616d706c652e6f7267", .x = HIT},
	{"the other name", "0000" "000b" "0009" "00" "0006" "622e74657374", .x = HIT},
	{"what it is under", "0000" "0008" "0006" "00" "0003" "6f7267", .x = MISS},
	{"its end is in a label", "0000" "0011" "000f" "00" "000c" "78" "6578616d706c652e6f7267", .x = MISS},
	{"a dot at its end", "0000" "0011" "000f" "00" "000c" "6578616d706c652e6f7267" "2e", .x = HIT},
	{"two dots at its end", "0000" "0012" "0010" "00" "000d" "6578616d706c652e6f7267" "2e2e", .x = MISS},
	{"two dots within", "0000" "0011" "000f" "00" "000c" "6578616d706c652e2e6f7267", .x = MISS},
	{"a dot in front", "0000" "0011" "000f" "00" "000c" "2e" "6578616d706c652e6f7267", .x = HIT},
	{"a byte of zero at its end", "0000" "0011" "000f" "00" "000c" "6578616d706c652e6f7267" "00", .x = MISS},
	{"a dot alone", "0000" "0006" "0004" "00" "0001" "2e", .x = MISS},
	{"behind a tag", SNI, .front = "vlan 7 " T4, .x = HIT},
	{"on IPv6", SNI, .front = T6, .x = HIT},
	{"at any port", SNI, .front = "tcp 10.0.0.1:9 > 10.0.0.2:25 flags ack", .x = HIT},
	{"to a client", SNI, .front = "tcp 10.0.0.1:443 > 10.0.0.2:9 flags ack", .x = HIT},
	{"in a SYN", SNI, .front = "tcp 10.0.0.1:9 > 10.0.0.2:443 flags syn", .x = HIT},
	{"behind TCP's options", SNI, .change = "54+01010101 46=60 len sum", .x = HIT},
	{"in a datagram", SNI, .front = "udp 10.0.0.1:9 > 10.0.0.2:443", .x = MISS},
	{"in a datagram of DNS's", SNI, .front = "udp 10.0.0.1:9 > 10.0.0.2:53", .x = MISS},

	{"behind others", ALPN "002b00050403040303" SNI, .x = HIT},
	{"in front of others", SNI ALPN, .x = HIT},
	{"between what means nothing", GREASE ALPN GREASE1 SNI GREASE, .x = HIT},
	{"behind padding", PAD64 SNI, .x = HIT},
	{"behind 63", EMPTY60 "5a5a0000" "6a6a0000" "7a7a0000" SNI, .x = HIT},
	{"behind 64", EMPTY60 "5a5a0000" "6a6a0000" "7a7a0000" "8a8a0000" SNI, .x = MISS},
	{"none", ALPN, .x = MISS},
	{"no extension", "", .x = MISS},
	{"not even their length", NULL, .x = MISS},
	{"the first of two", SNI "0000" "0006" "0004" "00" "0001" "61", .x = HIT},
	{"the second of two", "0000" "0006" "0004" "00" "0001" "61" SNI, .x = MISS},
	{"an extension longer than all", "0010" "00ff" "0000" SNI, .x = MISS},
	{"one that hides it", "0010" "0014" SNI, .x = MISS},

	{"an empty one", "0000" "0000" ALPN, .x = MISS},
	{"an empty list", "0000" "0002" "0000" ALPN, .x = MISS},
	{"an empty name", "0000" "0005" "0003" "00" "0000", .x = MISS},
	{"a name of another kind", "0000" "0010" "000e" "01" "000b" "6578616d706c652e6f7267", .x = MISS},
	{"a list that is too long", "0000" "0010" "000f" "00" "000b" "6578616d706c652e6f7267", .x = MISS},
	{"a list that is too short", "0000" "0010" "000d" "00" "000b" "6578616d706c652e6f7267", .x = MISS},
	{"a name that is too long", "0000" "0010" "000e" "00" "000c" "6578616d706c652e6f7267", .x = MISS},
	{"a name that is too short", "0000" "0010" "000e" "00" "000a" "6578616d706c652e6f7267", .x = MISS},
	{"two names", "0000" "0013" "0011" "00" "000b" "6578616d706c652e6f7267" "00" "0000", .x = MISS},
	{"a name of 65535 bytes", "0000" "0010" "000e" "00" "ffff" "6578616d706c652e6f7267", .x = MISS},

	{"with a session", SNI, .session = S32, .x = HIT},
	{"with a session that is too long", SNI, .session = "21" "00" "000102030405060708090a0b0c0d0e0f"
	 "101112131415161718191a1b1c1d1e1f", .x = MISS},
	{"no cipher", SNI, .ciphers = "0000", .x = MISS},
	{"half a cipher", SNI, .ciphers = "000313010f", .x = MISS},
	{"ciphers without an end", SNI, .ciphers = "ffff1301", .x = MISS},
	{"no way to compress", SNI, .compressions = "00", .x = MISS},
	{"several ways", SNI, .compressions = "03000140", .x = HIT},
	{"a way without an end", SNI, .compressions = "ff00", .x = MISS},

	/* the segment begins at 54: record 16 0301 len 01 len 0303 */
	{"another record", SNI, .change = "54=17", .x = MISS},
	{"an alert", SNI, .change = "54=15", .x = MISS},
	{"of another version", SNI, .change = "55=02", .x = MISS},
	{"of TLS 1.0", SNI, .change = "63=0301", .x = HIT},
	{"a hello of another version", SNI, .change = "63=0203", .x = MISS},
	{"a server's hello", SNI, .change = "59=02", .x = MISS},
	{"a record that goes on", SNI, .change = "57=3fff", .x = HIT},
	{"a hello in two records", SNI, .change = "57=0020", .x = MISS},
	{"a record of nothing", SNI, .change = "57=0000", .x = MISS},
	{"a hello that goes on", SNI ALPN, .change = "57=0800 60=0007fc", .x = HIT},
	{"a hello that is over before it", SNI, .change = "60=000030", .x = MISS},
	{"a hello of nothing", SNI, .change = "60=000000", .x = MISS},
	{"a header that reaches into it", SNI, .change = "46=f0", .x = MISS},

	{"by several keys", SNI, .list = BOTH, .x = HIT},
	{"with a port", SNI, .list = BOTH, .front = "tcp 10.0.0.1:9 > 10.0.0.2:8443 flags ack", .x = BY_PASS("port")},
	{"another name", "0000" "0006" "0004" "00" "0001" "61", .list = BOTH, .x = BY_DROP("data")},
};
/* clang-format on */

static size_t hex_len(const char *hex)
{
	return strlen(hex) / 2;
}

/* A record with the hello, in hex. */
static void write_hello(const struct hello *h, FILE *f)
{
	const char *session = h->session ? h->session : "00";
	const char *ciphers = h->ciphers ? h->ciphers : "000613011302c02f";
	const char *compressions = h->compressions ? h->compressions : "0100";
	size_t exts = h->exts ? 2 + hex_len(h->exts) : 0;
	size_t len = 34 + hex_len(session) + hex_len(ciphers) + hex_len(compressions) + exts;

	fprintf(f, "160301%04zx01%06zx0303", len + 4, len);
	for (int i = 0; i < 32; i++)
		fprintf(f, "%02x", i + 0x20);
	fprintf(f, "%s%s%s", session, ciphers, compressions);
	if (h->exts)
		fprintf(f, "%04zx%s", exts - 2, h->exts);
}

static void test_hello(void **state)
{
	const struct hello *h = *state;
	char *spec;
	size_t size;
	FILE *f = open_memstream(&spec, &size);

	assert_non_null(f);
	fprintf(f, "%s data hex:", h->front ? h->front : T4);
	write_hello(h, f);
	if (h->change)
		fprintf(f, " | %s", h->change);
	assert_int_equal(fclose(f), 0);
	filter_load_once(h->list ? h->list : TLS);
	judge(spec, &h->x);
	free(spec);
}

/* --- requests --- */

struct request {
	const char *name;
	const char *text;  /* as the packet's text has it */
	const char *front; /* of the packet; NULL: T4 */
	const char *list;  /* NULL: HTTP */
	struct expect x;
};

#define GET  "GET / HTTP/1.1\\r\\n"
#define HOST "Host: example.org\\r\\n"
#define END  "\\r\\n"
/* clang-format off */
static const struct request requests[] = {
	{"the name itself", GET HOST END, .x = HIT},
	{"in capitals", GET "HOST: EXAMPLE.ORG\\r\\n" END, .x = HIT},
	{"in small letters", GET "host:www.example.org\\r\\n" END, .x = HIT},
	{"the other name", GET "Host: b.test\\r\\n" END, .x = HIT},
	{"what it is under", GET "Host: org\\r\\n" END, .x = MISS},
	{"its end is in a label", GET "Host: anexample.org\\r\\n" END, .x = MISS},
	{"it stands in front", GET "Host: example.org.net\\r\\n" END, .x = MISS},
	{"a dot at its end", GET "Host: example.org.\\r\\n" END, .x = HIT},
	{"with a port", GET "Host: example.org:8080\\r\\n" END, .x = HIT},
	{"with an empty port", GET "Host: example.org:\\r\\n" END, .x = HIT},
	{"with a port that is none", GET "Host: example.org:80a\\r\\n" END, .x = MISS},
	{"with two", GET "Host: example.org:80:80\\r\\n" END, .x = MISS},
	{"with blanks around", GET "Host: \\t  example.org\\t \\r\\n" END, .x = HIT},
	{"with a blank within", GET "Host: a example.org\\r\\n" END, .x = MISS},
	{"with a carriage return within", GET "Host: a\\rexample.org\\r\\n" END, .x = MISS},
	{"with a byte of zero", GET "Host: a\\x00example.org\\r\\n" END, .x = MISS},
	{"two names", GET "Host: a, example.org\\r\\n" END, .x = MISS},
	{"with a user", GET "Host: me@example.org\\r\\n" END, .x = MISS},
	{"with a password", GET "Host: me:1@example.org\\r\\n" END, .x = MISS},
	{"with a path", GET "Host: example.org/\\r\\n" END, .x = MISS},
	{"with a query", GET "Host: a?b.example.org\\r\\n" END, .x = MISS},
	{"an address", GET "Host: [2001:db8::1]:80\\r\\n" END, .x = MISS},
	{"empty", GET "Host:\\r\\n" END, .x = MISS},
	{"a port alone", GET "Host: :80\\r\\n" END, .x = MISS},
	{"on IPv6, behind a tag", GET HOST END, .front = "vlan 7 " T6, .x = HIT},
	{"at any port", GET HOST END, .front = "tcp 10.0.0.1:9 > 10.0.0.2:8080 flags ack", .x = HIT},
	{"in a datagram", GET HOST END, .front = "udp 10.0.0.1:9 > 10.0.0.2:80", .x = MISS},

	{"behind other headers", GET "Accept: */*\\r\\nHo: a\\r\\nH\\r\\nHosts: a\\r\\nX-Host: b\\r\\n" HOST END, .x = HIT},
	{"in front of others", GET HOST "Accept: Host: a\\r\\nCookie: a\\r\\n" END, .x = HIT},
	{"in another's value", GET "Accept: Host: example.org\\r\\n" END, .x = MISS},
	{"in the body", GET "Content-Length: 20\\r\\n" END HOST, .x = MISS},
	{"behind a body's begin, too", GET HOST END "Host: a\\r\\n", .x = HIT},
	{"two of them", GET HOST "Host: a\\r\\n" END, .x = MISS},
	{"the second of two", GET "Host: a\\r\\n" HOST END, .x = MISS},
	{"the same twice", GET HOST HOST END, .x = MISS},
	{"a blank before the colon", GET "Host : example.org\\r\\n" END, .x = MISS},
	{"a blank in front", GET " Host: example.org\\r\\n" END, .x = MISS},
	{"on a line that goes on", GET "Host: example.org\\r\\n .net\\r\\n" END, .x = MISS},
	{"on the second of such lines", GET "Host:\\r\\n example.org\\r\\n" END, .x = MISS},
	{"beside such a line", GET "A: b\\r\\n Host: a\\r\\n\\tHost: b\\r\\n" HOST END, .x = HIT},
	{"none", GET "Accept: */*\\r\\n" END, .x = MISS},
	{"the next line is not there", GET HOST, .x = MISS},
	{"the next line has begun", GET HOST "A", .x = HIT},
	{"lines without a carriage return", "GET / HTTP/1.1\\nHost: example.org\\n\\n", .x = HIT},

	{"another method", "POST /a?b=c HTTP/1.1\\r\\n" HOST END, .x = HIT},
	{"one with a dash", "BASELINE-CONTROL /a HTTP/1.1\\r\\n" HOST END, .x = HIT},
	{"for all of a server", "OPTIONS * HTTP/1.1\\r\\n" HOST END, .x = HIT},
	{"of version 1.0", "GET / HTTP/1.0\\r\\n" HOST END, .x = HIT},
	{"of version 2", "PRI * HTTP/2.0\\r\\n" HOST END, .x = MISS},
	{"of version 0.9", "GET /\\r\\n" HOST END, .x = MISS},
	{"a version that is none", "GET / HTTP/1.x\\r\\n" HOST END, .x = MISS},
	{"a version that is too short", "GET / HTTP/1.\\r\\n" HOST END, .x = MISS},
	{"no target", "GET HTTP/1.1\\r\\n" HOST END, .x = MISS},
	{"an empty target", "GET  HTTP/1.1\\r\\n" HOST END, .x = MISS},
	{"another protocol", "HELO example.org\\r\\n" HOST END, .x = MISS},
	{"a response", "HTTP/1.1 200 OK\\r\\n" HOST END, .x = MISS},
	{"a method in small letters", "get / HTTP/1.1\\r\\n" HOST END, .x = MISS},
	{"a method that is too long", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA / HTTP/1.1\\r\\n" HOST END, .x = MISS},
	{"a line in front", "\\r\\n" GET HOST END, .x = MISS},

	{"a whole target", "GET http://example.org/ HTTP/1.1\\r\\nHost: a\\r\\n" END, .x = HIT},
	{"which counts, not the Host", "GET http://a/ HTTP/1.1\\r\\n" HOST END, .x = MISS},
	{"without a path", "GET HTTP://www.Example.org:80 HTTP/1.1\\r\\n" END, .x = HIT},
	{"with a query", "GET https://example.org?a HTTP/1.1\\r\\n" END, .x = HIT},
	{"with a name in its path", "GET http://a/http://example.org/ HTTP/1.1\\r\\n" END, .x = MISS},
	{"with a user", "GET http://me@example.org/ HTTP/1.1\\r\\n" END, .x = MISS},
	{"with a password", "GET http://example.org:1@a/ HTTP/1.1\\r\\n" END, .x = MISS},
	{"of another scheme", "GET ftp://example.org/ HTTP/1.1\\r\\n" HOST END, .x = MISS},
	{"of no scheme", "GET example.org HTTP/1.1\\r\\n" HOST END, .x = MISS},
	{"a tunnel", "CONNECT example.org:443 HTTP/1.1\\r\\nHost: a\\r\\n" END, .x = HIT},
	{"a tunnel to another", "CONNECT a:443 HTTP/1.1\\r\\n" HOST END, .x = MISS},
	{"a whole target and two Hosts", "GET http://example.org/ HTTP/1.1\\r\\nHost: a\\r\\nHost: b\\r\\n" END, .x = MISS},
};
/* clang-format on */

static void test_request(void **state)
{
	const struct request *r = *state;
	char spec[512];

	assert_true(snprintf(spec, sizeof(spec), "%s data '%s'", r->front ? r->front : T4,
			     r->text) < (int)sizeof(spec));
	filter_load_once(r->list ? r->list : HTTP);
	judge(spec, &r->x);
}

/* --- segments --- */

static void judge_segment(const char *what, const uint8_t *data, size_t n, const struct expect *x)
{
	struct frame_bytes f, out;
	char spec[128];

	snprintf(spec, sizeof(spec), T4 " len %zu", n);
	read_frame(spec, &f);
	assert_int_equal(f.len, n + 54);
	memcpy(f.b + 54, data, n);
	judge_frame(what, &f, x, &out);
}

/* However it is cut off, it is none; and nothing of the one before is taken for a part of it. */
static void segments_that_are_cut_off_have_none(enum ax_name_kind kind, const char *list)
{
	static const struct expect hit = HIT, miss = MISS;
	uint8_t carried[CARRIED_MAX];
	size_t n = carry_name(kind, "www.example.org", carried);

	filter_load_once(list);
	for (size_t len = 1; len <= n; len++) {
		judge_segment("the whole", carried, n, &hit);
		judge_segment("a part", carried, len, len < n ? &miss : &hit);
	}
}

static void hellos_that_are_cut_off_have_none(void **state)
{
	(void)state;
	segments_that_are_cut_off_have_none(AX_NAME_TLS, TLS);
}

/* Only the last byte shows that the line with the Host is not continued. */
static void requests_that_are_cut_off_have_none(void **state)
{
	static const struct expect hit = HIT, miss = MISS;
	uint8_t carried[CARRIED_MAX];
	size_t n = carry_name(AX_NAME_HTTP, "www.example.org", carried);

	(void)state;
	filter_load_once(HTTP);
	for (size_t len = 1; len <= n; len++) {
		judge_segment("the whole", carried, n, &hit);
		judge_segment("a part", carried, len, len < n - 1 ? &miss : &hit);
	}
}

/* A Host begins behind a header of so many bytes: in the first 1536 of the segment, or not. */
static void a_host_is_found_as_far_as_it_is_looked_for(void **state)
{
	static const struct expect hit = HIT, miss = MISS;
	static const char end[] = "\r\nHost: example.org\r\n\r";
	static uint8_t data[3000];

	(void)state;
	filter_load_once(HTTP);
	for (size_t n = 1400; n < 1600; n++) {
		size_t head = (size_t)sprintf((char *)data, "GET /%0*d HTTP/1.1", (int)n, 0);

		memcpy(data + head, end, sizeof(end));
		judge_segment("a long target", data, 2048,
			      head + sizeof(end) - 1 <= 1536 ? &hit : &miss);
	}
}

/* Of 255 characters, as many as there may be; the length of one more is none. */
static void the_longest_name_is_found(void **state)
{
	static const struct expect hit = HIT, miss = MISS;
	uint8_t carried[CARRIED_MAX];
	char name[300];

	(void)state;
	filter_load_once(TLS);
	for (size_t n = 240; n < 270; n++) {
		memset(name, 'n', n);
		for (size_t i = 9; i < n - 12; i += 10)
			name[i] = '.';
		strcpy(name + n - 12, ".example.org");
		judge_segment(name, carried, carry_name(AX_NAME_TLS, name, carried),
			      n <= 255 ? &hit : &miss);
	}
}

/* In a jumbo frame the hello lies in several buffers. */
static void jumbo_frames_have_theirs(void **state)
{
	static const struct expect hit = HIT;
	static uint8_t data[8800];
	const char *end = "\x00\x00\x00\x10\x00\x0e\x00\x00\x0b"
			  "example.org";
	const size_t pad = 8000, all = 34 + 1 + 4 + 2 + 2 + 4 + pad + 20;
	uint8_t *p = data;

	(void)state;
	filter_load_once(TLS);
	p += sprintf((char *)p, "\x16\x03\x01%c%c\x01", (int)((all + 4) >> 8),
		     (int)(all + 4) & 255);
	*p++ = 0;
	*p++ = (uint8_t)(all >> 8);
	*p++ = (uint8_t)all;
	*p++ = 3;
	*p++ = 3;
	p += 32;
	*p++ = 0;
	memcpy(p, "\x00\x02\x13\x01\x01\x00", 6);
	p += 6;
	*p++ = (uint8_t)((4 + pad + 20) >> 8);
	*p++ = (uint8_t)(4 + pad + 20);
	memcpy(p, "\x00\x15\x1f\x40", 4); /* 8000 bytes of padding */
	p += 4 + pad;
	memcpy(p, end, 20);
	judge_segment("a jumbo frame", data, sizeof(data), &hit);
}

static struct CMUnitTest tests[2 * (ARRAY_SIZE(hellos) + ARRAY_SIZE(requests)) + 16];
static size_t n_tests;

static void add_row(const void *row, CMUnitTestFunction run, bool egress)
{
	tests[n_tests++] = (struct CMUnitTest){
		.name = *(const char *const *)row, /* its first member */
		.test_func = run,
		.setup_func = egress ? filter_to_egress : NULL,
		.teardown_func = egress ? filter_to_ingress : NULL,
		.initial_state = (void *)(uintptr_t)row,
	};
}

/* In both directions. */
static void add_rows(const void *rows, size_t n, size_t size, CMUnitTestFunction run)
{
	for (int egress = 0; egress < 2; egress++)
		for (size_t i = 0; i < n; i++)
			add_row((const char *)rows + i * size, run, egress);
}

int main(void)
{
	add_rows(hellos, ARRAY_SIZE(hellos), sizeof(hellos[0]), test_hello);
	add_rows(requests, ARRAY_SIZE(requests), sizeof(requests[0]), test_request);
	tests[n_tests++] = (struct CMUnitTest)cmocka_unit_test(requests_that_are_cut_off_have_none);
	tests[n_tests++] =
		(struct CMUnitTest)cmocka_unit_test(a_host_is_found_as_far_as_it_is_looked_for);
	tests[n_tests++] = (struct CMUnitTest)cmocka_unit_test(hellos_that_are_cut_off_have_none);
	tests[n_tests++] = (struct CMUnitTest)cmocka_unit_test(the_longest_name_is_found);
	tests[n_tests++] = (struct CMUnitTest)cmocka_unit_test(jumbo_frames_have_theirs);
	return _cmocka_run_group_tests("names in segments", tests, n_tests, filter_setup,
				       filter_teardown);
}
