// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
/* Sets that addresses come to for a time: who learns what, who is asked, for how long it lasts,
 * what floods do to it and what they do not, and that lists come and go around it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/util.h"
#include "tests/lib/filter.h"

#define BAIT                                                  \
	"default: pass\nsets: {bad: [192.0.2.0/24]}\n"        \
	"rules: [{name: ban, src: \"@bad\", action: drop},\n" \
	"        {name: bait, proto: tcp, dport: 23, learn: \"@bad,10m\", action: drop}]\n"

static const struct xdp_timed_element *find(const struct xdp_timed_element *v, size_t n,
					    const char *what)
{
	char buf[ADDR_STRLEN];

	for (size_t i = 0; i < n; i++)
		if (streq(prefix_format(&v[i].prefix, buf), what))
			return &v[i];
	return NULL;
}

static size_t listed(const char *set, struct xdp_timed_element **v)
{
	struct error e = {0};
	size_t n;

	if (xdp_timed(filter.x, set, v, &n, &e))
		fail_msg("%s", e.text);
	return n;
}

/* How long it lasts yet, in ms; 0: it is not there. */
static uint64_t left(const char *set, const char *what)
{
	autofree struct xdp_timed_element *v = NULL;
	size_t n = listed(set, &v);
	const struct xdp_timed_element *found = find(v, n, what);

	return found ? found->left_ms : 0;
}

static size_t count(const char *set)
{
	autofree struct xdp_timed_element *v = NULL;

	return listed(set, &v);
}

/* The maps of the set in the loaded list's place `i`. */
static int learned_map(uint32_t i)
{
	uint32_t slot = filter.g.layout.timed[i].slot, id;
	int fd;

	assert_int_equal(bpf_map_lookup_elem(filter.maps.map[XDP_MAP_LEARNED], &slot, &id), 0);
	fd = bpf_map_get_fd_by_id(id);
	assert_true(fd >= 0);
	return fd;
}

static uint64_t *until_of(uint32_t i, const char *addr, struct ax_addr *key)
{
	static uint64_t until;
	int fd = learned_map(i);

	assert_int_equal(addr_parse(addr, key), 0);
	assert_int_equal(bpf_map_lookup_elem(fd, key, &until), 0);
	close_fd(&fd);
	return &until;
}

static void set_until(uint32_t i, const char *addr, uint64_t until)
{
	struct ax_addr key;
	int fd = learned_map(i);

	assert_int_equal(addr_parse(addr, &key), 0);
	assert_int_equal(bpf_map_update_elem(fd, &key, &until, 0), 0);
	close_fd(&fd);
}

static int hold(const char *set, const char *elements, uint32_t ms, struct error *e)
{
	struct rule_set_def s = {.kind = SET_PREFIXES};
	int r;

	*e = (struct error){0};
	assert_int_equal(set_parse(&s, elements, strlen(elements), "text", e), 0);
	r = xdp_hold(&filter.inst, IFNAME, set, &s, ms, e);
	set_free(&s);
	return r;
}

static int let_go(const char *set, const char *elements)
{
	struct rule_set_def s = {.kind = SET_PREFIXES};
	struct error e = {0};
	int r;

	assert_int_equal(set_parse(&s, elements, strlen(elements), "text", &e), 0);
	r = xdp_let_go(&filter.inst, IFNAME, set, &s, &e);
	set_free(&s);
	return r;
}

static void who_takes_the_bait_is_banned_at_once(void **state)
{
	(void)state;
	filter_load_afresh(BAIT);
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:80"), XDP_PASS);
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:23"), XDP_DROP);
	assert_int_equal(filter_rule_count("bait").packets, 1);
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:80"), XDP_DROP);
	assert_int_equal(filter_rule_count("ban").packets, 1);
	assert_int_equal(filter_run("tcp 10.0.0.2 > 10.0.0.9:80"), XDP_PASS);
	/* what the list itself has in the set is there as ever */
	assert_int_equal(filter_run("udp 192.0.2.9 > 10.0.0.9:80"), XDP_DROP);
	assert_int_equal(filter_run("tcp fd00::1 > [fd00::9]:23"), XDP_DROP);
	assert_int_equal(filter_run("udp fd00::1 > [fd00::9]:80"), XDP_DROP);
	assert_int_equal(filter_run("udp fd00::2 > [fd00::9]:80"), XDP_PASS);
	assert_int_equal(count("bad"), 2);
	assert_in_range(left("bad", "10.0.0.1/32"), 1, 600000);
	assert_in_range(left("bad", "fd00::1/128"), 1, 600000);
}

static void nothing_that_is_not_ip_is_learned(void **state)
{
	(void)state;
	filter_load_afresh("default: pass\nsets: {bad: []}\n"
			   "rules: [{name: all, learn: \"@bad,10m\", action: pass}]\n");
	assert_int_equal(filter_run("arp 10.0.0.1 > 10.0.0.9"), XDP_PASS);
	assert_int_equal(count("bad"), 0);
	assert_int_equal(filter_run("udp 10.0.0.1 > 10.0.0.9:5"), XDP_PASS);
	assert_int_equal(count("bad"), 1);
}

static void what_is_over_is_over(void **state)
{
	struct ax_addr key;

	(void)state;
	filter_load_afresh(BAIT);
	filter_run("tcp 10.0.0.1 > 10.0.0.9:23");
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:80"), XDP_DROP);
	set_until(0, "10.0.0.1", time_boot_ns());
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:80"), XDP_PASS);
	assert_int_equal(count("bad"), 0);
	/* and comes again */
	filter_run("tcp 10.0.0.1 > 10.0.0.9:23");
	assert_true(*until_of(0, "10.0.0.1", &key) > time_boot_ns());
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:80"), XDP_DROP);
}

/* A flood from one source is no write for each packet. */
static void what_is_fresh_is_not_written_again(void **state)
{
	const uint64_t minute = 60000000000ull;
	uint64_t near, was;
	struct ax_addr key;

	(void)state;
	filter_load_afresh("default: pass\nsets: {seen: []}\n"
			   "rules: [{name: all, learn: \"@seen,10m\", action: pass}]\n");
	filter_run("udp 10.0.0.1 > 10.0.0.9:5");
	was = *until_of(0, "10.0.0.1", &key);
	for (int i = 0; i < 100; i++)
		filter_run("udp 10.0.0.1 > 10.0.0.9:5");
	assert_int_equal(*until_of(0, "10.0.0.1", &key), was);
	near = time_boot_ns() + 8 * minute; /* more than an eighth of its time is over */
	set_until(0, "10.0.0.1", near);
	filter_run("udp 10.0.0.1 > 10.0.0.9:5");
	assert_true(*until_of(0, "10.0.0.1", &key) > near);
}

static void explaining_learns_nothing(void **state)
{
	struct xdp_explanation x;
	struct frame_bytes f;
	struct error e = {0};

	(void)state;
	filter_load_afresh(BAIT);
	read_frame("tcp 10.0.0.1 > 10.0.0.9:23", &f);
	assert_int_equal(xdp_explain(filter.x, f.b, f.len, &x, &e), 0);
	assert_string_equal(x.rule, "bait");
	xdp_explanation_free(&x);
	assert_int_equal(count("bad"), 0);
	/* but knows what was learned */
	filter_run("tcp 10.0.0.1 > 10.0.0.9:23");
	assert_int_equal(xdp_explain(filter.x, f.b, f.len, &x, &e), 0);
	assert_string_equal(x.rule, "ban");
	xdp_explanation_free(&x);
}

static void above_its_rate_a_source_is_banned(void **state)
{
	(void)state;
	filter_load_afresh(
		"default: pass\nsets: {bad: []}\n"
		"rules: [{name: ban, src: \"@bad\", action: drop},\n"
		"        {name: dns, proto: udp, dport: 53, rate: \"1pps,burst=3,per=src\",\n"
		"         learn: \"@bad,10m,above-rate\", action: pass}]\n");
	for (int i = 0; i < 3; i++) /* as many as may come at once */
		assert_int_equal(filter_run("udp 10.0.0.1 > 10.0.0.9:53"), XDP_PASS);
	assert_int_equal(count("bad"), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(filter_run("udp 10.0.0.1 > 10.0.0.9:53"), XDP_DROP);
	assert_int_equal(filter_rule_count("dns").limited, 1);
	assert_int_equal(filter_rule_count("ban").packets, 2);
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:80"), XDP_DROP);
	assert_int_equal(filter_run("udp 10.0.0.2 > 10.0.0.9:53"), XDP_PASS);
}

#define KNOCK                                                                                     \
	"default: drop\nsets: {one: [], two: [], in: []}\n"                                       \
	"rules: [{name: ssh, src: \"@in\", proto: tcp, dport: 22, action: pass},\n"               \
	"        {name: k3, src: \"@two\", proto: tcp, dport: 9003, learn: \"@in,1m\", action: "  \
	"drop},\n"                                                                                \
	"        {name: k2, src: \"@one\", proto: tcp, dport: 9002, learn: \"@two,5s\", action: " \
	"drop},\n"                                                                                \
	"        {name: k1, proto: tcp, dport: 9001, learn: \"@one,5s\", action: drop}]\n"

static void knocking_in_order_opens_the_port(void **state)
{
	static const char *const wrong[] = {"9003", "9002", "9003", "9001", "9003"};
	char spec[64];

	(void)state;
	filter_load_afresh(KNOCK);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		snprintf(spec, sizeof(spec), "tcp 10.0.0.1 > 10.0.0.9:%s", wrong[i]);
		filter_run(spec);
	}
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:22"), XDP_DROP);
	filter_run("tcp 10.0.0.1 > 10.0.0.9:9002");
	filter_run("tcp 10.0.0.1 > 10.0.0.9:9003");
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:22"), XDP_PASS);
	assert_int_equal(filter_run("tcp 10.0.0.2 > 10.0.0.9:22"), XDP_DROP);
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:23"), XDP_DROP);
}

static void destinations_and_networks_are_learned(void **state)
{
	(void)state;
	filter_load_afresh(
		"default: pass\nsets: {nets: [], to: []}\n"
		"rules: [{name: a, src: \"@nets\", action: drop},\n"
		"        {name: b, dst: \"@to\", dport: 7, action: drop},\n"
		"        {name: c, dport: 23, learn: \"@nets,1m,src/24/64\", action: pass},\n"
		"        {name: d, dport: 24, learn: \"@to,1m,dst\", action: pass}]\n");
	assert_int_equal(filter_run("udp 10.1.2.3 > 10.0.0.9:23"), XDP_PASS);
	assert_int_equal(filter_run("udp 10.1.2.200 > 10.0.0.9:80"), XDP_DROP);
	assert_int_equal(filter_run("udp 10.1.3.3 > 10.0.0.9:80"), XDP_PASS);
	assert_int_equal(filter_run("udp [fd00:0:0:1::1] > [fd00::9]:23"), XDP_PASS);
	assert_int_equal(filter_run("udp [fd00:0:0:1:ffff::1] > [fd00::9]:80"), XDP_DROP);
	assert_int_equal(filter_run("udp [fd00:0:0:2::1] > [fd00::9]:80"), XDP_PASS);
	assert_in_range(left("nets", "10.1.2.0/24"), 1, 60000);
	assert_in_range(left("nets", "fd00:0:0:1::/64"), 1, 60000);
	assert_int_equal(filter_run("udp 10.9.9.9 > 10.0.0.9:24"), XDP_PASS);
	assert_int_equal(filter_run("udp 10.9.9.8 > 10.0.0.9:7"), XDP_DROP);
	assert_int_equal(filter_run("udp 10.9.9.8 > 10.0.0.8:7"), XDP_PASS);
	/* a source is no destination: the set is asked for where rules ask for it */
	assert_int_equal(filter_run("udp 10.0.0.9 > 10.9.9.8:7"), XDP_PASS);
}

/* Made-up sources push out what was learned in that set, and nothing else. */
static void floods_harm_nothing_but_what_they_fill(void **state)
{
	struct frame_bytes f;
	struct error e;
	size_t n;

	(void)state;
	filter_load_afresh(
		"default: pass\nsets: {bad: [192.0.2.0/24], other: []}\n"
		"rules: [{name: ban, src: [\"@bad\", \"@other\"], action: drop},\n"
		"        {name: x, proto: tcp, dport: 24, learn: \"@other,10m\", action: drop},\n"
		"        {name: bait, proto: tcp, dport: 23, learn: \"@bad,10m\", action: "
		"drop}]\n");
	filter_run("tcp 10.5.5.5 > 10.0.0.9:24");
	assert_int_equal(hold("bad", "10.6.6.6", 600000, &e), 0);
	read_frame("tcp 172.16.0.0 > 10.0.0.9:23", &f);
	for (uint32_t i = 0; i < AX_TIMED_ELEMENTS + 20000; i++) {
		uint32_t src = htonl(0xac100000u + i);

		memcpy(f.b + 26, &src, sizeof(src)); /* the checksum is not looked at */
		if (filter_run_frame(filter.g.prog, &f, NULL) != XDP_DROP)
			fail_msg("packet %u", i);
	}
	n = count("bad");
	assert_in_range(n, AX_TIMED_ELEMENTS / 2, AX_TIMED_ELEMENTS + 1);
	assert_int_equal(filter_run("udp 10.5.5.5 > 10.0.0.9:9"), XDP_DROP);
	assert_int_equal(filter_run("udp 10.6.6.6 > 10.0.0.9:9"), XDP_DROP);
	assert_int_equal(filter_run("udp 192.0.2.77 > 10.0.0.9:9"), XDP_DROP);
	assert_true(let_go("bad", "172.16.0.0/12") == 1);
	assert_int_equal(count("bad"), 1);
}

static void what_was_learned_stays_when_lists_change(void **state)
{
	struct error e;

	(void)state;
	filter_load_afresh(BAIT);
	filter_run("tcp 10.0.0.1 > 10.0.0.9:23");
	assert_int_equal(hold("bad", "10.0.0.3", 600000, &e), 0);
	/* other rules and sets around it, and other places for it */
	filter_load("default: pass\nsets: {a: [10.0.0.0/30], new: [], bad: [10.9.0.0/16]}\n"
		    "rules: [{name: z, src: \"@a\", dport: 1, action: drop},\n"
		    "        {name: n, dport: 77, learn: \"@new,1m\", action: pass},\n"
		    "        {name: ban, src: \"@bad\", action: drop},\n"
		    "        {name: hit, src: \"@new\", action: drop},\n"
		    "        {name: bait, proto: tcp, dport: 23, learn: \"@bad,10m\", action: "
		    "drop}]\n");
	assert_int_equal(filter_run("udp 10.0.0.1 > 10.0.0.9:9"), XDP_DROP);
	assert_int_equal(filter_run("udp 10.0.0.3 > 10.0.0.9:9"), XDP_DROP);
	assert_int_equal(filter_run("udp 10.0.0.2 > 10.0.0.9:9"), XDP_PASS);
	assert_int_equal(filter_run("udp 10.0.0.2 > 10.0.0.9:77"), XDP_PASS);
	assert_int_equal(filter_run("udp 10.0.0.2 > 10.0.0.9:9"), XDP_DROP);
	/* a set that is gone meanwhile has nothing when it comes again */
	filter_load("default: pass\n");
	filter_load(BAIT);
	assert_int_equal(filter_run("udp 10.0.0.1 > 10.0.0.9:9"), XDP_PASS);
	assert_int_equal(filter_run("udp 10.0.0.3 > 10.0.0.9:9"), XDP_PASS);
	/* nor does one whose elements are of another kind now */
	filter_run("tcp 10.0.0.1 > 10.0.0.9:23");
	filter_load("default: pass\nsets: {bad: []}\n"
		    "rules: [{name: ban, src: \"@bad\", action: drop},\n"
		    "        {name: bait, dport: 23, learn: \"@bad,10m,src/24\", action: drop}]\n");
	assert_int_equal(filter_run("udp 10.0.0.1 > 10.0.0.9:9"), XDP_PASS);
	assert_int_equal(count("bad"), 0);
}

static void commands_hold_and_let_go(void **state)
{
	struct error e;

	(void)state;
	filter_load_afresh("default: pass\nsets: {bad: {timed: yes}, plain: []}\n"
			   "rules: [{name: ban, src: \"@bad\", action: drop},\n"
			   "        {name: p, src: \"@plain\", action: drop}]\n");
	assert_int_equal(hold("bad", "10.0.0.1 fd00::1", 600000, &e), 0);
	assert_int_equal(filter_run("udp 10.0.0.1 > 10.0.0.9:9"), XDP_DROP);
	assert_int_equal(filter_run("udp fd00::1 > [fd00::9]:9"), XDP_DROP);
	assert_int_equal(filter_run("udp 10.0.0.2 > 10.0.0.9:9"), XDP_PASS);
	assert_in_range(left("bad", "10.0.0.1/32"), 1, 600000);
	assert_int_equal(let_go("bad", "10.0.0.1 10.0.0.7"), 1);
	assert_int_equal(filter_run("udp 10.0.0.1 > 10.0.0.9:9"), XDP_PASS);
	assert_int_equal(let_go("bad", "fd00::/8"), 1);
	assert_int_equal(count("bad"), 0);
	assert_int_equal(hold("plain", "10.0.0.1", 600000, &e), -EOPNOTSUPP);
	assert_int_equal(hold("none", "10.0.0.1", 600000, &e), -ENOENT);
	assert_int_equal(hold("bad", "10.0.0.0/24", 600000, &e), -EINVAL);
	assert_string_equal(e.text,
			    "10.0.0.0/24 cannot be there for a time: give addresses (this set then "
			    "has networks of 32 bits of IPv4 and 128 of IPv6)");
	assert_int_equal(let_go("plain", "10.0.0.1"), 0);
}

/* Some rules, and more than one bit vector's word of them: the other way of matching. */
static void long_lists_learn_as_well(void **state)
{
	autofree char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_non_null(f);
	fputs("default: pass\nsets: {bad: [], good: []}\n"
	      "rules:\n - {name: ok, src: \"@good\", dport: 80, action: pass}\n"
	      " - {name: ban, src: \"@bad\", action: drop}\n"
	      " - {name: bait, dport: 23, learn: \"@bad,10m\", action: drop}\n"
	      " - {name: fair, dport: 24, learn: \"@good,10m\", action: pass}\n",
	      f);
	for (int i = 0; i < 1500; i++)
		fprintf(f, " - {src: 10.%d.%d.0/24, dport: %d-%d, length: %d-, action: drop}\n",
			i / 200, i % 200, 1000 + i, 3000 + i * 3, 60 + i % 700);
	fclose(f);
	filter_load_afresh(text);
	assert_int_equal(filter.g.layout.match, AX_MATCH_BITMAP);
	assert_int_equal(filter_run("udp 10.0.5.1 > 10.0.0.9:23"), XDP_DROP);
	assert_int_equal(filter_run("udp 10.0.5.1 > 10.0.0.9:80"), XDP_DROP);
	set_until(1, "10.0.5.1", time_boot_ns() + 600000000000ull);
	/* that the set has something, is what a packet tells */
	assert_int_equal(filter_run("udp 10.0.6.1 > 10.0.0.9:24"), XDP_PASS);
	assert_int_equal(filter_run("udp 10.0.5.1 > 10.0.0.9:80"), XDP_PASS);
	assert_int_equal(filter_run("udp 10.0.5.1 > 10.0.0.9:81"), XDP_DROP);
	assert_int_equal(filter_run("udp 10.0.7.1 > 10.0.0.9:81"), XDP_PASS);
}

/* --- flows --- */

#define SECRET                                                                                     \
	"default: drop\nsets: {in: {flows: []}}\n"                                                 \
	"rules: [{name: in, flow: \"@in\", action: pass},\n"                                       \
	"        {name: knock, dport: 7001, learn: \"@in,1m,flow=22/tcp\", action: drop},\n"       \
	"        {name: own, proto: udp, dport: 53, learn: \"@in,1m,flow\", action: drop},\n"      \
	"        {name: ping, icmp: echo-request, learn: \"@in,1m,flow=80/tcp\", action: drop},\n" \
	"        {name: any, ttl: 1, learn: \"@in,1m,flow\", action: drop}]\n"

static bool has_flow(const char *set, const char *what, bool held)
{
	autofree struct xdp_timed_element *v = NULL;
	size_t n = listed(set, &v);
	char buf[FLOW_STRLEN];

	for (size_t i = 0; i < n; i++)
		if (v[i].is_flow && streq(set_flow_format(&v[i].flow, buf), what))
			return v[i].held == held && v[i].left_ms > 0;
	return false;
}

/* Where it is from, where it goes to, which port and which protocol: all of them. */
static void flows_open_what_they_are_alone(void **state)
{
	(void)state;
	filter_load_afresh(SECRET);
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:22"), XDP_DROP);
	filter_run("udp 10.0.0.1 > 10.0.0.9:7001");
	assert_int_equal(filter_run("tcp 10.0.0.1:5 > 10.0.0.9:22"), XDP_PASS);
	assert_int_equal(filter_run("tcp 10.0.0.1:6 > 10.0.0.9:22"), XDP_PASS);
	assert_int_equal(filter_run("udp 10.0.0.1 > 10.0.0.9:22"), XDP_DROP);
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:23"), XDP_DROP);
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.8:22"), XDP_DROP);
	assert_int_equal(filter_run("tcp 10.0.0.2 > 10.0.0.9:22"), XDP_DROP);
	assert_int_equal(filter_run("tcp 10.0.0.9 > 10.0.0.1:22"), XDP_DROP);
	assert_int_equal(filter_rule_count("in").packets, 2);
	filter_run("tcp fd00::1 > [fd00::9]:7001");
	assert_int_equal(filter_run("tcp fd00::1 > [fd00::9]:22"), XDP_PASS);
	assert_int_equal(filter_run("tcp fd00::2 > [fd00::9]:22"), XDP_DROP);
	assert_int_equal(count("in"), 2);
	assert_true(has_flow("in", "10.0.0.1-10.0.0.9:22/tcp", false));
	assert_true(has_flow("in", "fd00::1-[fd00::9]:22/tcp", false));
}

static void flows_have_their_own_port_unless_said(void **state)
{
	(void)state;
	filter_load_afresh(SECRET);
	assert_int_equal(filter_run("udp 10.0.0.1 > 10.0.0.9:53"), XDP_DROP);
	assert_int_equal(filter_run("udp 10.0.0.1 > 10.0.0.9:53"), XDP_PASS);
	assert_true(has_flow("in", "10.0.0.1-10.0.0.9:53/udp", false));
	/* what has no ports is no flow, but may tell of one */
	assert_int_equal(filter_run("icmp 10.0.0.1 > 10.0.0.9 ttl 1 type 13"), XDP_DROP);
	assert_int_equal(count("in"), 1);
	filter_run("icmp 10.0.0.3 > 10.0.0.9 type 8");
	assert_int_equal(filter_run("tcp 10.0.0.3 > 10.0.0.9:80"), XDP_PASS);
	assert_int_equal(filter_run("icmp 10.0.0.3 > 10.0.0.9 type 8"), XDP_DROP);
	assert_int_equal(count("in"), 2);
}

static int hold_flows(const char *set, const char *elements, struct error *e)
{
	struct rule_set_def s = {.kind = SET_FLOWS};
	int r;

	*e = (struct error){0};
	assert_int_equal(set_parse(&s, elements, strlen(elements), "text", e), 0);
	r = xdp_hold(&filter.inst, IFNAME, set, &s, 60000, e);
	set_free(&s);
	return r;
}

static int let_go_flows(const char *set, const char *elements)
{
	struct rule_set_def s = {.kind = SET_FLOWS};
	struct error e = {0};
	int r;

	assert_int_equal(set_parse(&s, elements, strlen(elements), "text", &e), 0);
	r = xdp_let_go(&filter.inst, IFNAME, set, &s, &e);
	set_free(&s);
	return r;
}

#define FLOWS_AND_PREFIXES                                           \
	"default: drop\nsets: {in: {flows: []}, ok: {timed: yes}}\n" \
	"rules: [{name: in, flow: \"@in\", action: pass},\n"         \
	"        {name: ok, src: \"@ok\", action: pass},\n"          \
	"        {name: learn, proto: tcp, dport: 7, learn: \"@in,1m,flow\", action: drop}]\n"

static void commands_hold_and_let_flows_go(void **state)
{
	struct error e;

	(void)state;
	filter_load_afresh(FLOWS_AND_PREFIXES);
	assert_int_equal(hold_flows("in", "10.0.0.1-10.0.0.9:22/tcp fd00::1-[fd00::9]:53/udp", &e),
			 0);
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:22"), XDP_PASS);
	assert_int_equal(filter_run("udp fd00::1 > [fd00::9]:53"), XDP_PASS);
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:23"), XDP_DROP);
	assert_true(has_flow("in", "fd00::1-[fd00::9]:53/udp", true));
	assert_int_equal(let_go_flows("in", "10.0.0.1-10.0.0.9:22/tcp 10.0.0.1-10.0.0.9:2/tcp"), 1);
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:22"), XDP_DROP);
	filter_run("tcp 10.0.0.1 > 10.0.0.9:7");
	assert_int_equal(let_go_flows("in", "10.0.0.1-10.0.0.9:7/tcp"), 1);
	assert_int_equal(count("in"), 1);
	assert_int_equal(hold("in", "10.0.0.1", 60000, &e), -EINVAL);
	assert_string_equal(e.text,
			    "the set is one of flows: give such as 10.0.0.1-10.0.0.2:22/tcp");
	assert_int_equal(hold_flows("ok", "10.0.0.1-10.0.0.9:22/tcp", &e), -EINVAL);
	assert_string_equal(e.text, "the set is one of prefixes: give addresses");
	assert_int_equal(let_go_flows("ok", "10.0.0.1-10.0.0.9:22/tcp"), 0);
	assert_int_equal(hold("ok", "10.0.0.1", 60000, &e), 0);
	assert_int_equal(filter_run("udp 10.0.0.1 > 10.0.0.9:99"), XDP_PASS);
}

static void flows_stay_when_lists_change(void **state)
{
	struct error e;

	(void)state;
	filter_load_afresh(FLOWS_AND_PREFIXES);
	filter_run("tcp 10.0.0.1 > 10.0.0.9:7");
	assert_int_equal(hold_flows("in", "10.0.0.3-10.0.0.9:22/tcp", &e), 0);
	filter_load("default: drop\nsets: {a: {timed: yes}, in: {flows: []}}\n"
		    "rules: [{name: x, src: \"@a\", dport: 1, action: drop},\n"
		    "        {name: in, flow: \"@in\", action: pass}]\n");
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:7"), XDP_PASS);
	assert_int_equal(filter_run("tcp 10.0.0.3 > 10.0.0.9:22"), XDP_PASS);
	/* a set of that name with other elements begins anew, and so does the next one */
	filter_load("default: drop\nsets: {in: {timed: yes}}\n"
		    "rules: [{name: in, src: \"@in\", action: pass}]\n");
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:7"), XDP_DROP);
	assert_int_equal(count("in"), 0);
	filter_load(FLOWS_AND_PREFIXES);
	assert_int_equal(filter_run("tcp 10.0.0.3 > 10.0.0.9:22"), XDP_DROP);
	assert_int_equal(count("in"), 0);
}

/* Made-up flows push out what was learned in that set, and nothing else. */
static void floods_of_flows_harm_nothing_else(void **state)
{
	struct frame_bytes f;
	struct error e;

	(void)state;
	filter_load_afresh("default: drop\nsets: {in: {flows: []}, other: {flows: []}}\n"
			   "rules: [{name: in, flow: [\"@in\", \"@other\"], action: pass},\n"
			   "        {proto: udp, learn: \"@other,10m,flow\", action: drop},\n"
			   "        {proto: tcp, learn: \"@in,10m,flow\", action: drop}]\n");
	filter_run("udp 10.5.5.5 > 10.0.0.9:24");
	assert_int_equal(hold_flows("in", "10.6.6.6-10.0.0.9:9/tcp", &e), 0);
	read_frame("tcp 172.16.0.0 > 10.0.0.9:23", &f);
	for (uint32_t i = 0; i < AX_TIMED_ELEMENTS + 20000; i++) {
		uint32_t src = htonl(0xac100000u + i);

		memcpy(f.b + 26, &src, sizeof(src)); /* the checksum is not looked at */
		if (filter_run_frame(filter.g.prog, &f, NULL) != XDP_DROP)
			fail_msg("packet %u", i);
	}
	assert_in_range(count("in"), AX_TIMED_ELEMENTS / 2, AX_TIMED_ELEMENTS + 1);
	assert_int_equal(filter_run("udp 10.5.5.5 > 10.0.0.9:24"), XDP_PASS);
	assert_int_equal(filter_run("tcp 10.6.6.6 > 10.0.0.9:9"), XDP_PASS);
}

/* Such a set as the only condition, and beside all others. */
static void flows_are_matched_in_any_list(void **state)
{
	autofree char *text = NULL;
	struct error e;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_non_null(f);
	filter_load_afresh("default: drop\nsets: {in: {flows: []}}\n"
			   "rules: [{name: in, flow: \"@in\", action: pass}]\n");
	assert_int_equal(filter.g.layout.match, AX_MATCH_SINGLE);
	assert_int_equal(hold_flows("in", "10.0.0.1-10.0.0.9:22/tcp", &e), 0);
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:22"), XDP_PASS);
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:23"), XDP_DROP);
	fputs("default: pass\nsets: {from: {timed: yes}, in: {flows: []}, to: {timed: yes}}\n"
	      "rules:\n - {name: ok, flow: \"@in\", src: \"@from\", dst: \"@to\", action: drop}\n",
	      f);
	for (int i = 0; i < 1500; i++)
		fprintf(f, " - {src: 10.%d.%d.0/24, dport: %d-%d, length: %d-, action: drop}\n",
			9 + i / 200, i % 200, 1000 + i, 3000 + i * 3, 60 + i % 700);
	fclose(f);
	filter_load(text);
	assert_int_equal(filter.g.layout.match, AX_MATCH_BITMAP);
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:22"), XDP_PASS);
	assert_int_equal(hold("from", "10.0.0.1", 60000, &e), 0);
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:22"), XDP_PASS);
	assert_int_equal(hold("to", "10.0.0.9", 60000, &e), 0);
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:22"), XDP_DROP);
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:23"), XDP_PASS);
	assert_int_equal(let_go_flows("in", "10.0.0.1-10.0.0.9:22/tcp"), 1);
	assert_int_equal(filter_run("tcp 10.0.0.1 > 10.0.0.9:22"), XDP_PASS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_takes_the_bait_is_banned_at_once),
		cmocka_unit_test(nothing_that_is_not_ip_is_learned),
		cmocka_unit_test(what_is_over_is_over),
		cmocka_unit_test(what_is_fresh_is_not_written_again),
		cmocka_unit_test(explaining_learns_nothing),
		cmocka_unit_test(above_its_rate_a_source_is_banned),
		cmocka_unit_test(knocking_in_order_opens_the_port),
		cmocka_unit_test(destinations_and_networks_are_learned),
		cmocka_unit_test(floods_harm_nothing_but_what_they_fill),
		cmocka_unit_test(what_was_learned_stays_when_lists_change),
		cmocka_unit_test(commands_hold_and_let_go),
		cmocka_unit_test(long_lists_learn_as_well),
		cmocka_unit_test(flows_open_what_they_are_alone),
		cmocka_unit_test(flows_have_their_own_port_unless_said),
		cmocka_unit_test(commands_hold_and_let_flows_go),
		cmocka_unit_test(flows_stay_when_lists_change),
		cmocka_unit_test(floods_of_flows_harm_nothing_else),
		cmocka_unit_test(flows_are_matched_in_any_list),
	};

	return cmocka_run_group_tests(tests, filter_setup, filter_teardown);
}
