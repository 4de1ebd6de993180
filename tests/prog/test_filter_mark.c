// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
/* What `mark` says of packets that leave: each is explained, and run with the mark that the kernel
 * would have given it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "tests/lib/filter_judge.h"

#define OUT	"direction: egress\n"
#define ONE	OUT "rules: [{name: hit, mark: 0x10, action: drop}]\n"
#define MASKED	OUT "rules: [{name: hit, mark: 0x10/0xf0, action: drop}]\n"
#define NONE	OUT "rules: [{name: hit, mark: 0, action: drop}]\n"
#define ANY	OUT "rules: [{name: hit, mark: 0/0, action: drop}]\n"
#define HIGHEST OUT "rules: [{name: hit, mark: 0xffffffff, action: drop}]\n"
#define SEVERAL \
	OUT "rules: [{name: hit, mark: [1, 0x200/0xff00, 0x80000000/0x80000000], action: drop}]\n"
/* Several fields: products. */
#define FIELDS                                                                            \
	OUT "default: drop\n"                                                             \
	    "rules: [{name: front, proto: udp, dport: 7, mark: 2, action: pass},\n"       \
	    "        {name: hit, proto: udp, dport: 53, mark: [2, 4/6], action: drop},\n" \
	    "        {name: behind, mark: 4/4, action: pass}]\n"
/* Bit vectors. */
#define ROWS                                                                                   \
	OUT "rules:\n"                                                                         \
	    "  - {name: front, src: 172.16.0.0/16, dst: 172.17.0.0/16, sport: 1-5, dport: 7, " \
	    "length: 5-, action: drop}\n"                                                      \
	    "  - {name: macs, mac: '02:00:00:00:00:09', length: 100-, ttl: 3, action: drop}\n" \
	    "  - {name: hit, dst: 10.0.0.0/8, mark: 0x10/0xf0, action: drop}\n"                \
	    "  - {name: behind, dport: 53, mark: 3, action: pass}\n"
/* Matched once more, for a payload. */
#define PAYLOAD                                                                   \
	OUT "rules: [{name: hit, mark: 1/1, payload: at 0 0x61, action: drop},\n" \
	    "        {name: behind, mark: 1, action: pass}]\n"
#define STATE                                                             \
	OUT "rules: [{name: hit, mark: 1/1, state: new, action: drop},\n" \
	    "        {name: behind, mark: 1, action: pass}]\n"
/* An error about a flow is judged by its own mark, which the flow's is not known of. */
#define QUOTED OUT "default: drop\nrules: [{name: hit, proto: udp, mark: 5, action: pass}]\n"

struct row {
	const char *name, *list;
	uint32_t mark;
	const char *packet, *rule;
	bool pass;
};

#define U4	   "udp 10.0.0.1:9 > 10.0.0.2:53"
#define U6	   "udp [fd00::1]:9 > [fd00::2]:53"
#define DROPPED(r) (r), false
#define PASSED(r)  (r), true
#define HIT	   DROPPED("hit")
#define MISS	   PASSED("default")
/* clang-format off */
static const struct row rows[] = {
	{"the mark", ONE, 0x10, U4, HIT},
	{"none", ONE, 0, U4, MISS},
	{"a bit more", ONE, 0x11, U4, MISS},
	{"the highest bit more", ONE, 0x80000010, U4, MISS},
	{"on IPv6", ONE, 0x10, U6, HIT},
	{"behind a tag", ONE, 0x10, "vlan 7 " U6, HIT},
	{"of TCP", ONE, 0x10, "tcp 10.0.0.1:9 > 10.0.0.2:53 flags syn", HIT},
	{"of a protocol that is not known", ONE, 0x10, "gre 10.0.0.1 > 10.0.0.2", HIT},
	{"of what is not IP", ONE, 0x10, "arp 10.0.0.1 > 10.0.0.2", HIT},
	{"of a later fragment", ONE, 0x10, "udp 10.0.0.1 > 10.0.0.2 frag later data 'abcdefgh'", HIT},

	{"within the mask", MASKED, 0x10, U4, HIT},
	{"with bits beside it", MASKED, 0xffffff1f, U4, HIT},
	{"another within it", MASKED, 0x30, U4, MISS},
	{"only beside it", MASKED, 0xffffff0f, U4, MISS},
	{"no mark is asked for", NONE, 0, U4, HIT},
	{"there is one", NONE, 0x80000000, U4, MISS},
	{"any mark", ANY, 0x12345678, U4, HIT},
	{"any, and none", ANY, 0, U4, HIT},
	{"all bits", HIGHEST, 0xffffffff, U4, HIT},
	{"all bits but one", HIGHEST, 0x7fffffff, U4, MISS},
	{"the first of several", SEVERAL, 1, U4, HIT},
	{"the second", SEVERAL, 0x2ff, U4, HIT},
	{"the last", SEVERAL, 0xf0000000, U4, HIT},
	{"none of them", SEVERAL, 0x1201, U4, MISS},

	{"the first rule's", FIELDS, 2, "udp 10.0.0.1:9 > 10.0.0.2:7", PASSED("front")},
	{"another port's", FIELDS, 2, U4, HIT},
	{"of two that overlap", FIELDS, 0x14, U6, HIT},
	{"the other of them", FIELDS, 6, U4, PASSED("behind")},
	{"of another protocol", FIELDS, 4, "tcp 10.0.0.1:9 > 10.0.0.2:53 flags syn", PASSED("behind")},
	{"no rule's", FIELDS, 3, U4, DROPPED("default")},

	{"among bit vectors", ROWS, 0x12, U4, HIT},
	{"another address", ROWS, 0x12, U6, MISS},
	{"the last rule's", ROWS, 3, U6, PASSED("behind")},
	{"no rule's among them", ROWS, 0x32, U4, MISS},

	{"with a payload", PAYLOAD, 1, U4 " data 'abc'", HIT},
	{"with another", PAYLOAD, 1, U4 " data 'xbc'", PASSED("behind")},
	{"a payload without the mark", PAYLOAD, 2, U4 " data 'abc'", MISS},
	{"with a state", STATE, 1, "tcp 10.9.0.1:9 > 10.9.0.2:53 flags syn", HIT},
	{"with another state", STATE, 1, "tcp 10.9.0.1:9 > 10.9.0.2:53 flags ack", PASSED("behind")},
	{"a state without the mark", STATE, 4, "tcp 10.9.0.1:9 > 10.9.0.2:53 flags syn", MISS},
	{"an error with the mark", QUOTED, 5, "icmp 10.0.0.9 > 10.0.0.1 type 3/4 quoting (udp "
	 "10.0.0.1:9 > 10.0.0.2:53)", PASSED("default")},
	{"an error without it", QUOTED, 0, "icmp 10.0.0.9 > 10.0.0.1 type 3/4 quoting (udp "
	 "10.0.0.1:9 > 10.0.0.2:53)", DROPPED("default")},
};
/* clang-format on */

/* By which rule, as explain says. */
static void explained(const struct frame_bytes *f, uint32_t mark, const char *rule, bool pass)
{
	const struct xdp_assumed as = {
		.state = AX_STATE_UNASKED, .minute = AX_TIME_UNKNOWN, .mark = mark};
	struct xdp_explanation r;
	struct error e = {0};

	if (xdp_explain_as(filter.x, f->b, f->len, &as, &r, &e))
		fail_msg("%s", e.text);
	assert_string_equal(r.rule, rule);
	assert_int_equal(r.action, pass ? XDP_PASS : XDP_DROP);
	xdp_explanation_free(&r);
}

static bool passes(const struct frame_bytes *f, uint32_t mark)
{
	struct __sk_buff skb = {.mark = mark};
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = f->b, .data_size_in = (uint32_t)f->len,
		    .ctx_in = &skb, .ctx_size_in = sizeof(skb), .repeat = 1);

	assert_int_equal(bpf_prog_test_run_opts(filter.g.prog, &o), 0);
	assert_true((int)o.retval == TC_ACT_UNSPEC || o.retval == TC_ACT_SHOT);
	return (int)o.retval == TC_ACT_UNSPEC;
}

static void assert_judged(const char *packet, uint32_t mark, const char *rule, bool pass)
{
	bool quotes = strstr(packet, "quoting");
	struct frame_bytes f;
	uint64_t before;

	read_frame(packet, &f);
	before = filter_rule_count(rule).packets;
	explained(&f, mark, rule, pass);
	assert_int_equal(filter_rule_count(rule).packets, before);
	assert_int_equal(passes(&f, mark), pass);
	/* (what is let through of itself counts for no rule) */
	if (!quotes || !pass)
		assert_int_equal(filter_rule_count(rule).packets, before + 1);
}

static void test_row(void **state)
{
	const struct row *row = *state;

	filter_load_once(row->list);
	assert_judged(row->packet, row->mark, row->rule, row->pass);
}

/* Each mark of a list has its own number. */
static void many_marks_are_told_apart(void **state)
{
	char list[2048] = OUT "rules:\n", name[8];
	size_t n = strlen(list);

	(void)state;
	for (unsigned i = 0; i < AX_MARKS_MAX; i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n,
				      "- {name: r%u, mark: 0x%x/0x%x, action: drop}\n", i,
				      1u << 2 * i, 1u << 2 * i);
	filter_load_once(list);
	for (unsigned i = 0; i < AX_MARKS_MAX; i++) {
		snprintf(name, sizeof(name), "r%u", i);
		/* this one, and all that come behind it */
		assert_judged(U4, UINT32_MAX << 2 * i, name, false);
		assert_judged(U6, 1u << 2 * i, name, false);
	}
	assert_judged(U4, 0xaaaaaaaa, "default", true);
}

static void assert_refused(const char *list, int code, const char *why)
{
	const struct xdp_load_options o = {0};
	struct error e = {0};

	assert_int_equal(filter_try_load(list, &o, &e), code);
	assert_string_equal(e.text, why);
}

static void too_many_are_refused(void **state)
{
	char list[2048] = OUT "rules:\n";
	size_t n = strlen(list);

	(void)state;
	for (unsigned i = 0; i <= AX_MARKS_MAX; i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n,
				      "- {mark: [0x100, %u], action: drop}\n", i);
	assert_refused(list, -E2BIG,
		       "the rules ask for more than 12 different marks: use fewer, or masks that "
		       "many of them have in common");
}

int main(void)
{
	static struct CMUnitTest tests[ARRAY_SIZE(rows) + 2];
	size_t n = ARRAY_SIZE(rows);

	for (size_t i = 0; i < n; i++)
		tests[i] = (struct CMUnitTest){.name = rows[i].name,
					       .test_func = test_row,
					       .setup_func = filter_to_egress,
					       .initial_state = (void *)(uintptr_t)&rows[i]};
	tests[n++] = (struct CMUnitTest)cmocka_unit_test_setup(many_marks_are_told_apart,
							       filter_to_egress);
	tests[n++] =
		(struct CMUnitTest)cmocka_unit_test_setup(too_many_are_refused, filter_to_egress);
	return _cmocka_run_group_tests("marks", tests, n, filter_setup, filter_teardown);
}
