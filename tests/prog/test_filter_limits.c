// SPDX-License-Identifier: GPL-2.0-or-later
/* Rate limits: packets and bits, bursts, buckets for each source, and what stays of them when lists
 * change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <time.h>

#include "iface/iface.h"
#include "tests/lib/filter_judge.h"

/* 100 bytes; a limit of 8 bits a second lets one of them through in 100 seconds. But the first of
 * those comes when there is room for a byte: bursts of 50 more than whole packets leave a busy
 * machine as many seconds. */
#define FROM(src)  "udp " src ":5 > 10.0.0.2:9 len 58"
#define FROM6(src) "udp [" src "]:5 > [fd00::2]:9 len 38"
#define HUNDRED	   FROM("10.0.0.1")

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* How many of n packets pass. */
static unsigned offer(const char *spec, unsigned n)
{
	struct frame_bytes f;
	unsigned passed = 0;

	read_frame(spec, &f);
	while (n--) {
		uint32_t action = filter_run_frame(filter.g.prog, &f, NULL);

		if (action != XDP_PASS && action != XDP_DROP)
			fail_msg("action %u", action);
		passed += action == XDP_PASS;
	}
	return passed;
}

static void load_limit(const char *name, const char *rate)
{
	char list[200];

	snprintf(list, sizeof(list), "rules: [{name: %s, length: 0-, action: pass, rate: [%s]}]\n",
		 name, rate);
	filter_load(list);
}

static void afresh(const char *name, const char *rate)
{
	struct error e;

	filter_forget();
	xdp_unload(&filter.inst, IFNAME, &e);
	load_limit(name, rate);
}

/* --- how many pass --- */

struct row {
	const char *rate;
	double per_second; /* packets of 100 bytes */
	unsigned burst;	   /* packets */
};

static const struct row rows[] = {
	{"10pps, burst=5", 10, 5},
	{"10pps, burst=1", 10, 1},
	{"2pps", 2, 1},
	{"100pps", 100, 10},
	{"1kpps, burst=1000", 1000, 1000},
	{"8kbit, burst=1000", 10, 10},
	{"8kbit, burst=1k", 10, 10},
	{"8kbit, burst=1001", 10, 11}, /* what remains of a burst lets one more through */
	{"8kbit, burst=1", 10, 1},
	{"80kbit, burst=15000", 100, 150},
	{"8bit, burst=100", 0.01, 1},
	{"10pps, burst=5, per=src", 10, 5},
	{"8kbit, burst=1000, per=src/24/64", 10, 10},
};

static void test_row(void **state)
{
	const struct row *row = *state;
	double before, most;
	unsigned passed, sent = 2 * row->burst + 200;
	struct ax_rule_count n;

	afresh("a", row->rate);
	before = seconds();
	passed = offer(HUNDRED, sent);
	most = row->burst + (seconds() - before) * row->per_second + 1;
	if (passed < row->burst || passed > most)
		fail_msg("%u of %u passed, not %u to %g", passed, sent, row->burst, most);
	n = filter_rule_count("a");
	assert_int_equal(n.packets, sent);
	assert_int_equal(n.bytes, sent * 100);
	assert_int_equal(n.limited, sent - passed);
	assert_int_equal(filter_reason_count(AX_REASON_RATE_LIMITED), sent - passed);
}

/* Over a longer time it is the rate, as long as there is no pause longer than what the burst makes
 * up for. */
static void the_rate_is_kept(void **state)
{
	static const struct row sustained[] = {
		{"2kpps, burst=200", 2000, 200},
		{"1600kbit, burst=20000", 2000, 200},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sustained); i++) {
		const struct row *row = &sustained[i];
		double start, now, last, pause = 0;
		unsigned passed = 0;

		afresh("a", row->rate);
		start = last = seconds();
		do {
			passed += offer(HUNDRED, 1);
			now = seconds();
			pause = now - last > pause ? now - last : pause;
			last = now;
		} while (now - start < 0.3);
		/* what came together since the last packet */
		now = seconds();
		pause = now - last > pause ? now - last : pause;
		last = now - start;
		passed += offer(HUNDRED, row->burst + 1);
		now = seconds() - start;
		if (passed > row->burst + now * row->per_second + 1)
			fail_msg("%u passed in %g s", passed, now);
		/* (a packet may be at the beginning of one interval, and the next at the end of
		 * another) */
		if (2 * pause < row->burst / row->per_second &&
		    passed < row->burst + last * row->per_second - 2)
			fail_msg("only %u passed in %g s", passed, last);
	}
}

/* --- what is limited --- */

static void what_is_limited_is_dropped(void **state)
{
	static const struct {
		const char *action;
		uint32_t xdp;
		enum ax_verdict verdict;
	} actions[] = {
		{"pass", XDP_PASS, AX_VERDICT_PASS},
		{"drop", XDP_DROP, AX_VERDICT_DROP},
		{"reflect", XDP_TX, AX_VERDICT_REFLECT},
		{"redirect " TARGET, XDP_REDIRECT, AX_VERDICT_REDIRECT},
		{"cpu 0", XDP_REDIRECT, AX_VERDICT_CPU},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		struct frame_bytes f, out;
		struct expect x = {.rule = "a"};
		char list[200];

		snprintf(list, sizeof(list),
			 "rules: [{name: a, proto: udp, action: %s, rate: '8bit,burst=150'}]\n",
			 actions[i].action);
		filter_load_afresh(list);
		read_frame(HUNDRED, &f);
		x.verdict = actions[i].verdict;
		x.action = actions[i].xdp;
		judge_frame(HUNDRED, &f, &x, &out);
		judge_frame(HUNDRED, &f, &x, &out);
		x.action = XDP_DROP;
		x.reason = AX_REASON_RATE_LIMITED;
		x.limited = true;
		judge_frame(HUNDRED, &f, &x, &out);
		judge_frame(HUNDRED, &f, &x, &out);
		judge("tcp 10.0.0.1:5 > 10.0.0.2:9", &(struct expect)BY_PASS("default"));
	}
}

/* What is limited is not captured. */
static void captures_are_limited(void **state)
{
	unsigned long before;

	(void)state;
	filter_load_afresh("rules: [{name: a, proto: udp, action: pass, capture: 64, log: yes,\n"
			   "  rate: '8bit,burst=50'}]\n");
	before = ring_position(filter.maps.map[XDP_MAP_CAPTURES]);
	assert_int_equal(offer(HUNDRED, 1), 1);
	assert_true(ring_position(filter.maps.map[XDP_MAP_CAPTURES]) > before);
	before = ring_position(filter.maps.map[XDP_MAP_CAPTURES]);
	assert_int_equal(offer(HUNDRED, 10), 0);
	assert_int_equal(ring_position(filter.maps.map[XDP_MAP_CAPTURES]), before);
}

static void rules_have_their_own_buckets(void **state)
{
	(void)state;
	filter_load_afresh("rules: [{name: a, dport: 1, action: pass, rate: '8bit,burst=150'},\n"
			   "  {name: b, dport: 2, action: pass, rate: '8bit,burst=250'},\n"
			   "  {name: c, dport: 3, action: pass}]\n");
	assert_int_equal(offer("udp 10.0.0.1:5 > 10.0.0.2:1 len 58", 9), 2);
	assert_int_equal(offer("udp 10.0.0.1:5 > 10.0.0.2:2 len 58", 9), 3);
	assert_int_equal(offer("udp 10.0.0.1:5 > 10.0.0.2:3 len 58", 9), 9);
}

static void larger_frames_take_more(void **state)
{
	(void)state;
	afresh("a", "8bit, burst=950");
	assert_int_equal(offer("udp 10.0.0.1:5 > 10.0.0.2:9 len 458", 1), 1); /* 500 */
	assert_int_equal(offer("udp 10.0.0.1:5 > 10.0.0.2:9 len 358", 1), 1); /* 400 */
	assert_int_equal(offer(HUNDRED, 3), 1);
	afresh("a", "8bit, burst=10000");
	assert_int_equal(offer("udp 10.0.0.1:5 > 10.0.0.2:9 len 8958", 5), 2); /* two buffers */
}

/* --- sources --- */

static size_t sources(void)
{
	struct ax_source_limit_key key;
	const void *from = NULL;
	size_t n = 0;

	while (!bpf_map_get_next_key(filter.maps.map[XDP_MAP_SOURCE_LIMITS], from, &key)) {
		from = &key;
		n++;
	}
	return n;
}

static void each_source_has_a_bucket(void **state)
{
	(void)state;
	afresh("a", "8bit, burst=150, per=src");
	assert_int_equal(offer(FROM("10.0.0.1"), 5), 2);
	assert_int_equal(offer(FROM("10.0.0.3"), 5), 2);
	assert_int_equal(offer(FROM("10.0.0.1"), 5), 0);
	assert_int_equal(offer(FROM6("fd00::1"), 5), 2);
	assert_int_equal(offer(FROM6("fd00::3"), 5), 2);
	assert_int_equal(offer(FROM6("fd00::3"), 5), 0);
	assert_int_equal(sources(), 4);
	/* what has no source shares one */
	assert_int_equal(offer("arp 10.0.0.1 > 10.0.0.2 | pad58", 5), 2);
	assert_int_equal(offer("arp 10.0.0.9 > 10.0.0.2 | pad58", 5), 0);
	assert_int_equal(sources(), 5);
}

static void each_prefix_has_a_bucket(void **state)
{
	(void)state;
	afresh("a", "8bit, burst=150, per=src/24");
	assert_int_equal(offer(FROM("10.0.0.1"), 1), 1);
	assert_int_equal(offer(FROM("10.0.0.255"), 5), 1);
	assert_int_equal(offer(FROM("10.0.0.0"), 5), 0);
	assert_int_equal(offer(FROM("10.0.1.0"), 5), 2);
	assert_int_equal(offer(FROM("9.255.255.255"), 5), 2);
	assert_int_equal(offer(FROM6("fd00::1"), 1), 1);
	assert_int_equal(offer(FROM6("fd00::ffff:0:0:9"), 5), 1);
	assert_int_equal(offer(FROM6("fd00:0:0:1::1"), 5), 2);
	assert_int_equal(sources(), 5);
	afresh("a", "8bit, burst=150, per=src/0/0");
	assert_int_equal(offer(FROM("10.0.0.1"), 1), 1);
	assert_int_equal(offer(FROM("200.0.0.1"), 5), 1);
	assert_int_equal(offer(FROM6("fd00::1"), 1), 1);
	assert_int_equal(offer(FROM6("2001:db8::1"), 5), 1);
	afresh("a", "8bit, burst=150, per=src/23/57");
	assert_int_equal(offer(FROM("10.0.2.1"), 1), 1);
	assert_int_equal(offer(FROM("10.0.3.1"), 5), 1);
	assert_int_equal(offer(FROM("10.0.4.1"), 5), 2);
	assert_int_equal(offer(FROM6("fd00:0:0:80::1"), 1), 1);
	assert_int_equal(offer(FROM6("fd00:0:0:ff::1"), 5), 1);
	assert_int_equal(offer(FROM6("fd00:0:0:7f::1"), 5), 2);
	assert_int_equal(sources(), 4);
	afresh("a", "8bit, burst=150, per=src/31/127");
	assert_int_equal(offer(FROM("10.0.0.2"), 1), 1);
	assert_int_equal(offer(FROM("10.0.0.3"), 5), 1);
	assert_int_equal(offer(FROM("10.0.0.4"), 5), 2);
	assert_int_equal(offer(FROM6("fd00::2"), 1), 1);
	assert_int_equal(offer(FROM6("fd00::3"), 5), 1);
	assert_int_equal(offer(FROM6("fd00::4"), 5), 2);
	assert_int_equal(sources(), 4);
}

/* --- when lists change --- */

static void buckets_survive_a_swap(void **state)
{
	(void)state;
	afresh("a", "8bit, burst=250");
	assert_int_equal(offer(HUNDRED, 2), 2);
	load_limit("a", "8bit, burst=250");
	assert_int_equal(offer(HUNDRED, 5), 1);
	filter_load("rules: [{name: z, dport: 7, action: drop},\n"
		    "  {name: a, dport: 9, action: pass, rate: '8bit,burst=250'}]\n");
	assert_int_equal(offer(HUNDRED, 5), 0);
	assert_int_equal(filter_rule_count("a").limited, 9);
	load_limit("b", "8bit, burst=250");
	assert_int_equal(offer(HUNDRED, 5), 3);
	/* the name was gone in between */
	load_limit("a", "8bit, burst=250");
	assert_int_equal(offer(HUNDRED, 5), 3);
	assert_int_equal(filter_rule_count("a").limited, 2);
}

static void sources_survive_a_swap(void **state)
{
	(void)state;
	afresh("a", "8bit, burst=250, per=src");
	assert_int_equal(offer(HUNDRED, 2), 2);
	load_limit("a", "8bit, burst=250, per=src");
	assert_int_equal(offer(HUNDRED, 5), 1);
	assert_int_equal(offer(FROM("10.0.0.7"), 5), 3);
}

/* What a slow limit with a large burst left does not hold up a faster one. */
static void a_limit_is_changed(void **state)
{
	static const char *const slow[] = {"8bit, burst=79950", "8bit, burst=79950, per=src"};
	static const char *const fast[] = {"10kpps, burst=20", "10kpps, burst=20, per=src"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(slow); i++) {
		afresh("a", slow[i]);
		assert_int_equal(offer(HUNDRED, 1000), 800);
		load_limit("a", fast[i]);
		assert_true(offer(HUNDRED, 5) > 0);
		usleep(5000); /* 50 packets' time, but 20 is all that fits */
		assert_true(offer(HUNDRED, 20) >= 20);
	}
	/* and a stricter one begins at once */
	afresh("a", "1mpps, burst=1000");
	assert_int_equal(offer(HUNDRED, 500), 500);
	load_limit("a", "8bit, burst=150");
	assert_int_equal(offer(HUNDRED, 100), 2);
}

int main(void)
{
	static struct CMUnitTest tests[ARRAY_SIZE(rows) + 10];
	size_t n = 0;

	for (; n < ARRAY_SIZE(rows); n++)
		tests[n] = (struct CMUnitTest){.name = rows[n].rate,
					       .test_func = test_row,
					       .initial_state = (void *)(uintptr_t)&rows[n]};
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(the_rate_is_kept);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(what_is_limited_is_dropped);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(captures_are_limited);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(rules_have_their_own_buckets);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(larger_frames_take_more);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(each_source_has_a_bucket);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(each_prefix_has_a_bucket);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(buckets_survive_a_swap);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(sources_survive_a_swap);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_limit_is_changed);
	return cmocka_run_group_tests(tests, filter_setup, filter_teardown);
}
