// SPDX-License-Identifier: GPL-2.0-or-later
// timeout: 300
// beside others
/* Lists for what leaves an interface: what is another matter there than where packets come in. What
 * is alike the other tests of the filter look at in both directions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/filter_judge.h"

/* A frame that is to be cut to segments of `size` bytes of payload, by its sender into `segs` (0:
 * it does not say). */
struct large {
	const char *packet;
	uint32_t size, segs;
};

static bool passes(const struct large *l)
{
	struct __sk_buff skb = {.gso_size = l->size, .gso_segs = l->segs};
	struct frame_bytes f;
	LIBBPF_OPTS(bpf_test_run_opts, o, .ctx_in = &skb, .ctx_size_in = sizeof(skb), .repeat = 1);

	read_frame(l->packet, &f);
	o.data_in = f.b;
	o.data_size_in = (uint32_t)f.len;
	assert_int_equal(bpf_prog_test_run_opts(filter.g.prog, &o), 0);
	assert_true((int)o.retval == TC_ACT_UNSPEC || o.retval == TC_ACT_SHOT);
	return (int)o.retval == TC_ACT_UNSPEC;
}

#define TCP4 "tcp 10.0.0.1:5 > 10.0.0.2:9 flags ack "	/* 54 bytes of headers */
#define TCP6 "tcp [fd00::1]:5 > [fd00::2]:9 flags ack " /* 74 */
#define UDP4 "udp 10.0.0.1:5 > 10.0.0.2:9 "		/* 42 */

static void segments_are_counted_as_they_leave(void **state)
{
	static const struct {
		struct large l;
		unsigned packets, bytes;
	} rows[] = {
		{{TCP4 "len 1000", 0, 0}, 1, 1054},
		{{TCP4 "len 1000", 1000, 1}, 1, 1054},
		{{TCP4 "len 1000", 500, 2}, 2, 1108},
		{{TCP4 "len 1001", 500, 3}, 3, 1001 + 3 * 54},
		{{TCP4 "len 1001", 500, 0}, 3, 1001 + 3 * 54},
		{{TCP6 "len 3000", 100, 30}, 30, 3000 + 30 * 74},
		{{UDP4 "len 3000", 1000, 3}, 3, 3000 + 3 * 42},
		{{UDP4 "len 3000", 1000, 0}, 3, 3000 + 3 * 42},
	};

	(void)state;
	filter_load("rules: [{name: all, length: 0-, action: pass}]\n");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ax_rule_count a = filter_rule_count("all"), b;

		assert_true(passes(&rows[i].l));
		b = filter_rule_count("all");
		assert_int_equal(b.packets - a.packets, rows[i].packets);
		assert_int_equal(b.bytes - a.bytes, rows[i].bytes);
	}
}

static void a_length_is_that_of_the_longest_segment(void **state)
{
	static const struct {
		struct large l;
		bool drop;
	} rows[] = {
		{{TCP4 "len 1446", 0, 0}, false},    {{TCP4 "len 1447", 0, 0}, true},
		{{TCP4 "len 3400", 1446, 3}, false}, {{TCP4 "len 3400", 1447, 3}, true},
		{{TCP4 "len 3400", 0, 0}, true},     {{TCP6 "len 3400", 1426, 3}, false},
		{{TCP6 "len 3400", 1427, 3}, true},  {{UDP4 "len 3400", 1458, 0}, false},
		{{UDP4 "len 3400", 1459, 0}, true},  {{UDP4 "len 100", 1459, 1}, false},
	};

	(void)state;
	filter_load("rules: [{name: long, length: 1501-, action: drop}]\n");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (passes(&rows[i].l) == rows[i].drop)
			fail_msg("%s, in %u: %s", rows[i].l.packet, rows[i].l.size,
				 rows[i].drop ? "passes" : "is dropped");
}

/* How many of 40 such packets pass, one after the other. */
static unsigned passing(const struct large *l)
{
	unsigned n = 0;

	for (int i = 0; i < 40; i++)
		n += passes(l);
	return n;
}

/* 3,000 bytes in 30 segments are 30 packets of 154 bytes: a bucket that has room for one lets the
 * whole of it through, and then nothing for the time that all of it takes. */
static void a_rate_is_of_what_leaves(void **state)
{
	static const struct large whole = {TCP4 "len 3000", 0, 0}, cut = {TCP4 "len 3000", 100, 30};
	uint64_t t;
	unsigned n;

	(void)state;
	filter_load_afresh(
		"rules: [{name: r, proto: tcp, action: pass, rate: [1pps, burst=20]}]\n");
	t = time_mono_ns();
	n = passing(&whole);
	/* (and one for each second that it takes) */
	assert_in_range(n, 20, 21 + (time_mono_ns() - t) / 1000000000u);
	filter_load_afresh(
		"rules: [{name: r, proto: tcp, action: pass, rate: [1pps, burst=20]}]\n");
	assert_int_equal(passing(&cut), 1);
	filter_load_afresh(
		"rules: [{name: r, proto: tcp, action: pass, rate: [8bit, burst=30490]}]\n");
	assert_int_equal(passing(&whole), 10);
	filter_load_afresh(
		"rules: [{name: r, proto: tcp, action: pass, rate: [8bit, burst=30490]}]\n");
	assert_int_equal(passing(&cut), 7); /* of 4620 bytes each */
	/* what is far above the rate is not taken for another limit's */
	filter_load_afresh(
		"rules: [{name: r, proto: tcp, action: pass, rate: [8bit, burst=64]}]\n");
	assert_int_equal(passing(&cut), 1);
}

/* The root jumps to it, and what it passes is for who stands behind to judge. */
static void the_root_leads_to_it(void **state)
{
	char path[300];
	int root;

	(void)state;
	filter_load("rules: [{name: closed, dport: 9001, action: drop}]\n");
	snprintf(path, sizeof(path), "%s/root", filter.dir);
	root = bpf_obj_get(path);
	assert_true(root >= 0);
	for (int i = 0; i < 2; i++) {
		struct frame_bytes f;
		LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = f.b, .repeat = 1);

		read_frame(i ? "udp [fd00::1]:5 > [fd00::2]:9001" : UDP4, &f);
		o.data_size_in = (uint32_t)f.len;
		assert_int_equal(bpf_prog_test_run_opts(root, &o), 0);
		assert_int_equal((int)o.retval, i ? TC_ACT_SHOT : TC_ACT_UNSPEC);
	}
	close(root);
}

/* Both have their own, also of what has the same names. */
static void the_directions_are_apart(void **state)
{
	(void)state;
	filter_load_afresh("rules: [{name: web, dport: 80, action: drop}]\n");
	filter_to_ingress(NULL);
	filter_load_afresh("rules: [{name: web, dport: 443, action: drop}]\n");
	judge("tcp 10.0.0.1 > 10.0.0.2:443", &(struct expect)BY_DROP("web"));
	judge("tcp 10.0.0.1 > 10.0.0.2:80", &(struct expect)BY_PASS("default"));
	filter_to_egress(NULL);
	filter_reopen();
	assert_int_equal(filter_rule_count("web").packets, 0);
	judge("tcp 10.0.0.1 > 10.0.0.2:80", &(struct expect)BY_DROP("web"));
	judge("tcp fd00::1 > [fd00::2]:443", &(struct expect)BY_PASS("default"));
}

static void its_place_is_its_direction(void **state)
{
	const struct xdp_load_options o = {0};
	struct error e = {0};
	struct rule_list l;

	(void)state;
	rule_list_init(&l);
	assert_int_equal(xdp_apply(&filter.inst, IFNAME ":egress", &l, &o, &e), -EINVAL);
	l.direction = DIRECTION_EGRESS;
	assert_int_equal(xdp_apply(&filter.inst, IFNAME, &l, &o, &e), -EINVAL);
}

static void devices_without_ethernet_are_refused(void **state)
{
	const struct xdp_load_options o = {0};
	struct error e = {0};
	struct rule_list l;

	(void)state;
	if (system("ip tuntap add xl0 mode tun 2>/dev/null"))
		skip();
	rule_list_init(&l);
	l.direction = DIRECTION_EGRESS;
	assert_int_equal(xdp_apply(&filter.inst, "xl0:egress", &l, &o, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.text, "without an Ethernet header"));
}

static int setup(void **state)
{
	return filter_setup(state) || filter_to_egress(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_are_counted_as_they_leave),
		cmocka_unit_test(a_length_is_that_of_the_longest_segment),
		cmocka_unit_test(a_rate_is_of_what_leaves),
		cmocka_unit_test(the_root_leads_to_it),
		cmocka_unit_test(the_directions_are_apart),
		cmocka_unit_test(its_place_is_its_direction),
		cmocka_unit_test(devices_without_ethernet_are_refused),
	};

	return cmocka_run_group_tests(tests, setup, filter_teardown);
}
