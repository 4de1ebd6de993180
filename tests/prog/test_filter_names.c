// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
/* What `dns-name` and its like say of packets: which bytes are a name, and what a name ends with.
 */
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

#define DNS "rules: [{name: hit, dns-name: [Example.org., b.test], action: drop}]\n"
/* Who stands first decides, whichever name is longer. */
#define NESTED                                                                               \
	"rules: [{name: inner, dns-name: ok.example.org, action: pass},\n"                   \
	"        {name: outer, dns-name: example.org, dport: 53, action: drop},\n"           \
	"        {name: never, dns-name: bad.example.org, dport: 53, action: reflect},\n"    \
	"        {name: deep, dns-name: [x.y.z.test, test], src: 10.0.0.1, action: drop},\n" \
	"        {name: any, dns-name: ., action: pass},\n"                                  \
	"        {name: none, proto: udp, dport: 53, action: drop}]\n"
/* A name, bytes, and other fields, of which each can be the reason to look. */
#define OTHERS                                                          \
	"default: drop\n"                                               \
	"rules: [{name: front, src: 10.0.0.7, action: pass},\n"         \
	"        {name: bytes, payload: at 0 0x61, action: pass},\n"    \
	"        {name: hit, dns-name: example.org, src: 10.0.0.0/24, " \
	"payload: at 2 0x01, action: drop},\n"                          \
	"        {name: behind, dport: 53, action: pass}]\n"
#define ODDS                                                                                 \
	"classes: {bad-udp: rules, short-fragment: rules, split-header: rules, ip-options: " \
	"rules}\n" DNS
#define QUOTED                                              \
	"default: drop\n"                                   \
	"rules: [{name: hit, dns-name: ., action: pass},\n" \
	"        {name: err, icmp: unreachable, action: pass}]\n"

#define HIT	    BY_DROP("hit")
#define MISS	    BY_PASS("default")
#define OPTIONS_HIT ODD(DROP, "hit", AX_REASON_IP_OPTIONS)

struct row {
	const char *name, *list, *packet;
	struct expect x;
};

#define U4   "udp 10.0.0.1:9 > 10.0.0.2:53 data hex:"
#define U6   "udp [fd00::1]:9 > [fd00::2]:53 data hex:"
#define HEAD "123401000001000000000000"
#define IN_A "00010001"
#define EX   "076578616d706c65" /* example */
#define ORG  "036f726700"
/* clang-format off */
static const struct row dns_rows[] = {
	{"the name itself", DNS, U4 HEAD EX ORG IN_A, HIT},
	{"one under it", DNS, U4 HEAD "0161" EX ORG IN_A, HIT},
	{"far under it", DNS, U4 HEAD "0161" "0162" "0163" "0164" EX ORG IN_A, HIT},
	{"the other name", DNS, U4 HEAD "01620474657374" "00" IN_A, HIT},
	{"in capitals", DNS, U4 HEAD "074558414d504c45" "034f724700" IN_A, HIT},
	{"what it is under", DNS, U4 HEAD ORG IN_A, MISS},
	{"its end is in a label", DNS, U4 HEAD "0878" "6578616d706c65" ORG IN_A, MISS},
	{"a label is its beginning", DNS, U4 HEAD "066578616d706c" ORG IN_A, MISS},
	{"it stands in front", DNS, U4 HEAD EX "036f7267" "0161" "00" IN_A, MISS},
	{"another name", DNS, U4 HEAD "0161" "0474657374" "00" IN_A, MISS},
	{"a dot in a label is none", DNS, U4 HEAD "0b" "6578616d706c652e6f7267" "00" IN_A, MISS},
	{"a dot in a label in front of it", DNS, U4 HEAD "03" "612e62" EX ORG IN_A, HIT},
	{"one with only a dot", DNS, U4 HEAD "012e" EX ORG IN_A, HIT},
	{"a byte of zero in a label", DNS, U4 HEAD "08" "6578616d706c6500" ORG IN_A, MISS},
	{"a letter with another bit", DNS, U4 HEAD "07" "657861ed706c65" ORG IN_A, MISS},
	{"the root", DNS, U4 HEAD "00" IN_A, MISS},
	{"for another type and class", DNS, U4 HEAD EX ORG "00ff00ff", HIT},
	{"with more behind it", DNS, U4 "123401200001000000000001" EX ORG IN_A "0000291000000000000000", HIT},
	{"a response", DNS, "udp 10.0.0.1:53 > 10.0.0.2:999 data hex:"
	 "123481800001000100000000" EX ORG IN_A "c00c00010001000000050004c0000201", HIT},
	{"an error for a response", DNS, "udp 10.0.0.1:53 > 10.0.0.2:999 data hex:"
	 "123481830001000000000000" EX ORG IN_A, HIT},
	{"between name servers", DNS, "udp 10.0.0.1:53 > 10.0.0.2:53 data hex:" HEAD EX ORG IN_A, HIT},
	{"on IPv6", DNS, U6 HEAD "0161" EX ORG IN_A, HIT},
	{"another one on IPv6", DNS, U6 HEAD "0161" "0161" ORG IN_A, MISS},
	{"behind a tag", DNS, "vlan 7 " U4 HEAD EX ORG IN_A, HIT},
	{"behind IPv4's options", ODDS, U4 HEAD EX ORG IN_A " | 34+01010101 14=46 len sum", OPTIONS_HIT},
	{"other ports", DNS, "udp 10.0.0.1:9 > 10.0.0.2:5353 data hex:" HEAD EX ORG IN_A, MISS},
	{"by TCP", DNS, "tcp 10.0.0.1:9 > 10.0.0.2:53 flags ack data hex:" HEAD EX ORG IN_A, MISS},
	{"a ping's", DNS, "icmp 10.0.0.1 > 10.0.0.2 data hex:" HEAD EX ORG IN_A, MISS},

	{"no question", DNS, U4 "123401000000000000000000" EX ORG IN_A, MISS},
	{"two questions", DNS, U4 "123401000002000000000000" EX ORG IN_A EX ORG IN_A, MISS},
	{"256 questions", DNS, U4 "123401000100000000000000" EX ORG IN_A, MISS},
	{"a notify", DNS, U4 "123424000001000000000000" EX ORG "00060001", MISS},
	{"an update", DNS, U4 "123428000001000000000000" EX ORG "00060001", MISS},
	{"a pointer for a name", DNS, U4 HEAD "c00c" IN_A, MISS},
	{"a pointer to itself behind a label", DNS, U4 HEAD EX "c00c" IN_A, MISS},
	{"a pointer to the name's end", DNS, U4 HEAD "0161" "c012" IN_A EX ORG, MISS},
	{"a label of no known kind", DNS, U4 HEAD "4161" EX ORG IN_A, MISS},
	{"one of another", DNS, U4 HEAD "8161" EX ORG IN_A, MISS},
	{"the header alone", DNS, U4 HEAD, MISS},
	{"a part of the header", DNS, U4 "12340100000100", MISS},
	{"without an end", DNS, U4 HEAD EX "036f7267", MISS},
	{"cut off in a label", DNS, U4 HEAD EX "036f72", MISS},
	{"a length and no label", DNS, U4 HEAD EX "3f", MISS},
	{"no type", DNS, U4 HEAD EX ORG, MISS},
	{"no class", DNS, U4 HEAD EX ORG "0001", MISS},
	{"half a class", DNS, U4 HEAD EX ORG "000100", MISS},
	{"what UDP's length leaves out", DNS, U4 HEAD EX ORG IN_A " | 38=0024", MISS},
	{"what it does not", DNS, U4 HEAD EX ORG IN_A "00" " | 38=0025", HIT},
	{"nothing at all", DNS, "udp 10.0.0.1:9 > 10.0.0.2:53", MISS},
	{"a first fragment", DNS, "udp 10.0.0.1:9 > 10.0.0.2:53 frag first data hex:" HEAD EX ORG IN_A "000000", HIT},
	{"a later one has none", DNS, "udp 10.0.0.1 > 10.0.0.2 frag later data hex:" HEAD EX ORG IN_A,
	 ODD(PASS, "default", AX_REASON_LATER_FRAGMENT)},
	{"a UDP length that lies", ODDS, U4 HEAD EX ORG IN_A " | 38=ffff", ODD(DROP, "hit", AX_REASON_BAD_UDP)},
	{"what an error quotes has none", QUOTED, "icmp 192.0.2.9 > 10.0.0.1 type 3/4 quoting (udp "
	 "10.0.0.1:9 > 10.0.0.2:53 data hex:" HEAD EX ORG IN_A ")", BY_PASS("err")},

	{"the first rule, for the longer name", NESTED, U4 HEAD "026f6b" EX ORG IN_A, BY_PASS("inner")},
	{"under that", NESTED, U4 HEAD "0161" "026f6b" EX ORG IN_A, BY_PASS("inner")},
	{"the shorter name, which stands before", NESTED, U4 HEAD "03626164" EX ORG IN_A, BY_DROP("outer")},
	{"all of a longer one", NESTED, U4 HEAD "0178" "0179" "017a" "0474657374" "00" IN_A, BY_DROP("deep")},
	{"a part of it", NESTED, U4 HEAD "0179" "017a" "0474657374" "00" IN_A, BY_DROP("deep")},
	{"another source", NESTED, "udp 10.0.0.9:9 > 10.0.0.2:53 data hex:" HEAD "0474657374" "00" IN_A, BY_PASS("any")},
	{"any name", NESTED, U4 HEAD "0161" "00" IN_A, BY_PASS("any")},
	{"the root is a name", NESTED, U4 HEAD "00" IN_A, BY_PASS("any")},
	{"none is not", NESTED, U4 HEAD "0161" IN_A, BY_DROP("none")},

	{"a name and bytes", OTHERS, U4 HEAD EX ORG IN_A, BY_DROP("hit")},
	{"other bytes", OTHERS, U4 "123400000001000000000000" EX ORG IN_A, BY_PASS("behind")},
	{"bytes that decide before", OTHERS, U4 "613401000001000000000000" EX ORG IN_A, BY_PASS("bytes")},
	{"another field", OTHERS, "udp 10.0.1.1:9 > 10.0.0.2:53 data hex:" HEAD EX ORG IN_A, BY_PASS("behind")},
	{"decided before", OTHERS, "udp 10.0.0.7:9 > 10.0.0.2:53 data hex:" HEAD EX ORG IN_A, BY_PASS("front")},
	{"another name", OTHERS, U4 HEAD EX "0474657374" "00" IN_A, BY_PASS("behind")},
};
/* clang-format on */

static void test_row(void **state)
{
	const struct row *row = *state;

	filter_load_once(row->list);
	judge(row->packet, &row->x);
}

/* --- names of any length --- */

/* A datagram with these bytes. */
static void judge_bytes(const char *what, const uint8_t *data, size_t n, const struct expect *x)
{
	struct frame_bytes f, out;
	char spec[128];

	snprintf(spec, sizeof(spec), "udp 10.0.0.1:9 > 10.0.0.2:53 len %zu", n);
	read_frame(spec, &f);
	assert_int_equal(f.len, n + 42);
	memcpy(f.b + 42, data, n);
	judge_frame(what, &f, x, &out);
}

/* A name of `n` characters under example.org, of labels of at most `label`. */
static void name_of_length(char *name, size_t n, size_t label)
{
	const char end[] = ".example.org";
	size_t front = n - strlen(end);

	for (size_t i = 0; i < front; i++)
		name[i] = i % (label + 1) == label && i + 1 < front ? '.' : 'n';
	strcpy(name + front, end);
}

/* 255 bytes are a name, with the length of each label and the root's: 253 characters. */
static void the_longest_name_is_found(void **state)
{
	static const struct expect hit = HIT, miss = MISS;
	uint8_t carried[CARRIED_MAX];
	char name[300];

	(void)state;
	filter_load_once(DNS);
	for (size_t n = 245; n < 270; n++) {
		name_of_length(name, n, 63);
		judge_bytes(name, carried, carry_name(AX_NAME_DNS, name, carried),
			    n <= AX_NAME_MAX ? &hit : &miss);
		name_of_length(name, n, 1);
		judge_bytes(name, carried, carry_name(AX_NAME_DNS, name, carried),
			    n <= AX_NAME_MAX ? &hit : &miss);
	}
}

/* However it is cut off, it is none; and nothing of the one before is taken for a part of it. */
static void names_that_are_cut_off_are_none(void **state)
{
	static const struct expect hit = HIT, miss = MISS;
	uint8_t carried[CARRIED_MAX];
	size_t n = carry_name(AX_NAME_DNS, "www.example.org", carried);

	(void)state;
	filter_load_once(DNS);
	for (size_t len = 0; len <= n; len++) {
		judge_bytes("the whole", carried, n, &hit);
		judge_bytes("a part", carried, len, len < n ? &miss : &hit);
	}
}

/* --- many names --- */

#define MANY 1500

/* For each number two rules: of a name, behind one that is under it. */
static char *many_names(void)
{
	char *list;
	size_t size;
	FILE *f = open_memstream(&list, &size);

	assert_non_null(f);
	fprintf(f, "rules:\n");
	for (unsigned i = 0; i < MANY; i++)
		fprintf(f,
			"- {name: under%u, dns-name: deep.n%u.example.org, action: drop}\n"
			"- {name: r%u, dns-name: n%u.example.org, action: drop}\n",
			i, i, i, i);
	assert_int_equal(fclose(f), 0);
	return list;
}

/* What the rule of that name drops, if there is such a rule. */
static void judge_name(const char *rule, const char *name)
{
	const struct expect hit = BY_DROP(rule), miss = MISS;
	uint8_t carried[CARRIED_MAX];

	judge_bytes(name, carried, carry_name(AX_NAME_DNS, name, carried), rule ? &hit : &miss);
}

static void many_names_are_told_apart(void **state)
{
	autofree char *list = many_names();
	char name[64], rule[16];

	(void)state;
	filter_load(list);
	for (unsigned i = 0; i < MANY; i += 107) {
		snprintf(rule, sizeof(rule), "r%u", i);
		snprintf(name, sizeof(name), "n%u.example.org", i);
		judge_name(rule, name);
		snprintf(name, sizeof(name), "other.N%u.Example.Org", i);
		judge_name(rule, name);
		snprintf(rule, sizeof(rule), "under%u", i);
		snprintf(name, sizeof(name), "a.b.deep.n%u.example.org", i);
		judge_name(rule, name);
		snprintf(name, sizeof(name), "n%u.under.example.org", i);
		judge_name(NULL, name);
	}
	judge_name(NULL, "example.org");
	judge_name(NULL, "n1500.example.org");
}

#define TESTS_MAX (2 * ARRAY_SIZE(dns_rows) + 8)

static struct CMUnitTest tests[TESTS_MAX];
static size_t n_tests;

/* In both directions. */
static void add_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		tests[n_tests++] =
			(struct CMUnitTest){.name = rows[i].name,
					    .test_func = test_row,
					    .initial_state = (void *)(uintptr_t)&rows[i]};
	for (size_t i = 0; i < n; i++)
		tests[n_tests++] =
			(struct CMUnitTest){.name = rows[i].name,
					    .test_func = test_row,
					    .setup_func = filter_to_egress,
					    .teardown_func = filter_to_ingress,
					    .initial_state = (void *)(uintptr_t)&rows[i]};
}

int main(void)
{
	add_rows(dns_rows, ARRAY_SIZE(dns_rows));
	tests[n_tests++] = (struct CMUnitTest)cmocka_unit_test(the_longest_name_is_found);
	tests[n_tests++] = (struct CMUnitTest)cmocka_unit_test(names_that_are_cut_off_are_none);
	tests[n_tests++] = (struct CMUnitTest)cmocka_unit_test(many_names_are_told_apart);
	return _cmocka_run_group_tests("names", tests, n_tests, filter_setup, filter_teardown);
}
