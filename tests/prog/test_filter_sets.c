// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
/* Elements of large sets that come and go beside the packets that are judged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <sys/wait.h>

#include "iface/iface.h"
#include "tests/lib/filter_judge.h"
#include "tests/lib/rule_lists.h"

/* --- single elements of a large set --- */

static bool change_element(const char *prefix, bool gone)
{
	const struct xdp_load_options o = {.session = -1};
	struct prefix p;
	const struct rule_set_def one = {.kind = SET_PREFIXES, .prefixes = &p, .n = 1};
	const struct set_change ch = {.set = "big", .gone = gone, .elements = &one};
	struct set_changed done;

	assert_int_equal(prefix_parse(prefix, &p), 0);
	return xdp_change_sets(&filter.inst, IFNAME, &ch, 1, &o, &done) == 1;
}

/* One for every other /16 below 240.0.0.0, and one behind. */
static void load_large_set(void)
{
	struct rule_list l = rule_list_of("sets: {big: {prefixes: [240.0.200.1]}}\n"
					  "rules: [{name: big, src: '@big', action: drop}]\n");
	const struct xdp_load_options o = {.force = true};
	autofree char *text = NULL;
	struct error e = {0};
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	for (unsigned i = 0; i < 240 * 256; i += 2)
		fprintf(f, "%u.%u.1.1\n", i / 256, i % 256);
	fclose(f);
	assert_int_equal(set_parse(&l.sets[0], text, len, "test", &e), 0);
	filter_forget();
	xdp_unload(&filter.inst, IFNAME, &e);
	e = (struct error){0};
	if (xdp_apply(&filter.inst, IFNAME, &l, &o, &e))
		fail_msg("%s", e.text);
	rule_list_free(&l);
	filter_reopen();
}

static void change_elements(void)
{
	char prefix[32];

	for (unsigned i = 0; i < 100; i++) {
		snprintf(prefix, sizeof(prefix), "240.0.%u.1", i % 20);
		if (!change_element(prefix, i % 40 >= 20))
			_exit(1);
	}
	_exit(0);
}

static void elements_change_beside_packets(void **state)
{
	struct rule_list l;
	struct error e = {0};
	int status;
	pid_t pid;

	(void)state;
	load_large_set();
	assert_int_equal(filter_run("udp 240.0.7.1:5 > 10.0.0.2:9"), XDP_PASS);
	assert_true(change_element("240.0.7.0/24", false));
	assert_int_equal(filter_run("udp 240.0.7.1:5 > 10.0.0.2:9"), XDP_DROP);
	assert_int_equal(filter_run("udp 240.0.8.1:5 > 10.0.0.2:9"), XDP_PASS);
	assert_true(change_element("240.0.7.0/24", true));
	assert_int_equal(filter_run("udp 240.0.7.1:5 > 10.0.0.2:9"), XDP_PASS);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		change_elements();
	do { /* what is in the same bucket is judged as it was */
		assert_int_equal(filter_run("udp 240.0.200.1:5 > 10.0.0.2:9"), XDP_DROP);
		assert_int_equal(filter_run("udp 240.0.199.1:5 > 10.0.0.2:9"), XDP_PASS);
	} while (!waitpid(pid, &status, WNOHANG));
	assert_int_equal(status, 0);
	assert_int_equal(filter_run("udp 240.0.5.1:5 > 10.0.0.2:9"), XDP_DROP);
	rule_list_init(&l);
	assert_int_equal(xdp_list(filter.x, &l, &e), 0); /* opened before it changed */
	assert_int_equal(l.sets[0].n, 240 * 128 + 1 + 20);
	rule_list_free(&l);
	assert_true(change_element("240.0.5.1", true));
	assert_int_equal(filter_run("udp 240.0.5.1:5 > 10.0.0.2:9"), XDP_PASS);
	assert_int_equal(xdp_list(filter.x, &l, &e), 0);
	assert_int_equal(l.sets[0].n, 240 * 128 + 20);
	rule_list_free(&l);
}

/* --- elements of all kinds, several at once --- */

static void many_elements(struct rule_set_def *s, uint32_t from)
{
	struct rule_set_def more = {.kind = SET_PREFIXES};

	more.prefixes = calloc(20000, sizeof(*more.prefixes));
	assert_non_null(more.prefixes);
	for (uint32_t i = 0; i < 20000; i++) {
		struct prefix *p = &more.prefixes[more.n++];

		p->len = 128;
		p->addr.w[0] = htonl(0x20010db9);
		p->addr.w[2] = htonl(from + i * 7);
		if (i % 2)
			p->addr = addr_from_v4(htonl(0x20000000 + i * 4096));
	}
	assert_int_equal(set_sort(&more), 0);
	assert_int_equal(set_merge(s, &more), 0);
	free(more.prefixes);
}

static struct rule_list large_list(const char *some, const char *ports)
{
	struct rule_list l =
		rule_list_of("sets: {big: {prefixes: [2001:db9:0:1::/64]}, web: {ports: [80]}}\n"
			     "rules: [{src: '@big', proto: udp, dport: '@web', action: drop},\n"
			     "  {dst: '@big', action: drop}, {dst: 10.9.0.0/16, action: drop}]\n");
	struct error e = {0};

	many_elements(&l.sets[0], 0);
	assert_int_equal(set_parse(&l.sets[0], some, strlen(some), "test", &e), 0);
	assert_int_equal(set_parse(&l.sets[1], ports, strlen(ports), "test", &e), 0);
	return l;
}

static void put_list(struct rule_list *l)
{
	const struct xdp_load_options o = {.session = -1};
	struct error e = {0};

	if (xdp_apply(&filter.inst, IFNAME, l, &o, &e))
		fail_msg("%s", e.text);
	rule_list_free(l);
}

static uint32_t generation_now(void)
{
	struct xdp_status s = {0};
	struct error e = {0};
	uint32_t n;

	assert_int_equal(xdp_status(filter.x, &s, &e), 0);
	n = s.generation;
	xdp_status_free(&s);
	return n;
}

#define IN_SETS	  "203.0.113.0/30 2001:db9::1:2:0:0/108 2001:db9:7::7 10.9.1.1"
#define FROM6(to) "udp [2001:db9:7::7]:5 > [2001:db9:8::8]:" #to

/* The same list with other elements: what a config or a rules file says, applied again. */
static void changed_sets_need_no_new_list(void **state)
{
	struct rule_list l = large_list("", "");
	struct error e = {0};
	uint32_t generation;

	(void)state;
	filter_forget();
	xdp_unload(&filter.inst, IFNAME, &e);
	put_list(&l);
	filter_reopen();
	generation = generation_now();
	assert_int_equal(filter_run(FROM6(80)), XDP_PASS);
	l = large_list(IN_SETS, "8000-8010 22");
	put_list(&l);
	assert_int_equal(filter_run(FROM6(80)), XDP_DROP);
	assert_int_equal(filter_run(FROM6(8010)), XDP_DROP);
	assert_int_equal(filter_run(FROM6(8011)), XDP_PASS);
	assert_int_equal(filter_run("udp 203.0.113.3:5 > 10.0.0.2:22"), XDP_DROP);
	assert_int_equal(filter_run("udp 203.0.113.4:5 > 10.0.0.2:22"), XDP_PASS);
	assert_int_equal(filter_run("udp 10.0.0.2:5 > 203.0.113.3:9"), XDP_DROP);
	assert_int_equal(filter_run("udp 10.9.1.1:5 > 10.0.0.2:22"), XDP_DROP);
	l = large_list("10.9.1.1", "8000-8010");
	put_list(&l);
	assert_int_equal(filter_run(FROM6(80)), XDP_PASS);
	assert_int_equal(filter_run("udp 203.0.113.3:5 > 10.0.0.2:80"), XDP_PASS);
	assert_int_equal(filter_run("udp 10.9.1.1:5 > 10.0.0.2:8000"), XDP_DROP);
	assert_int_equal(filter_run("udp 10.0.0.2:5 > 10.9.1.1:9"), XDP_DROP);
	assert_int_equal(generation_now(), generation);
	l = large_list("10.9.1.1", "8000-8010");
	l.default_action = AX_VERDICT_DROP;
	put_list(&l);
	filter_reopen();
	assert_int_equal(filter_run("udp 10.0.0.2:5 > 10.0.0.3:9"), XDP_DROP);
	assert_int_equal(generation_now(), generation + 1);
}

static bool change_web(const char *elements, bool gone)
{
	const struct xdp_load_options o = {.session = -1};
	CLEANUP(set_free) struct rule_set_def s = {.kind = SET_PORTS};
	const struct set_change ch = {.set = "web", .gone = gone, .elements = &s};
	struct set_changed done;
	struct error e = {0};

	assert_int_equal(set_parse(&s, elements, strlen(elements), "test", &e), 0);
	return xdp_change_sets(&filter.inst, IFNAME, &ch, 1, &o, &done) == 1;
}

/* Neighbours come and go in the same buckets, and ports around one that stays. */
static void change_neighbours(void)
{
	char prefix[40];

	for (unsigned i = 0; i < 100; i++) {
		snprintf(prefix, sizeof(prefix), "2001:db9:7::%x", i % 20 + 8);
		if (!change_element(prefix, i % 40 >= 20) || !change_web("70-90", i % 2))
			_exit(1);
	}
	_exit(0);
}

static void what_stays_is_in_the_set_all_the_time(void **state)
{
	struct rule_list l = large_list(IN_SETS, "");
	struct error e = {0};
	int status;
	pid_t pid;

	(void)state;
	filter_forget();
	xdp_unload(&filter.inst, IFNAME, &e);
	put_list(&l);
	filter_reopen();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		change_neighbours();
	do {
		assert_int_equal(filter_run(FROM6(80)), XDP_DROP);
		assert_int_equal(filter_run(FROM6(69)), XDP_PASS);
		assert_int_equal(filter_run("udp [2001:db9:7::6]:5 > [2001:db9:8::8]:80"),
				 XDP_PASS);
	} while (!waitpid(pid, &status, WNOHANG));
	assert_int_equal(status, 0);
}

/* What is to be confirmed stays, and what has a warning is not done in silence. */
static void elements_that_need_a_new_list(void **state)
{
	(void)state;
	load_large_set();
	assert_false(change_element("192.0.2.1", false));
	filter.maps.root->deadline_ns = ~0ull;
	assert_false(change_element("240.0.9.1", false));
	filter.maps.root->deadline_ns = 0;
	assert_true(change_element("240.0.9.1", false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elements_change_beside_packets),
		cmocka_unit_test(elements_that_need_a_new_list),
		cmocka_unit_test(changed_sets_need_no_new_list),
		cmocka_unit_test(what_stays_is_in_the_set_all_the_time),
	};

	return cmocka_run_group_tests(tests, filter_setup, filter_teardown);
}
