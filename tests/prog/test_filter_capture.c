// SPDX-License-Identifier: GPL-2.0-or-later
// timeout: 300
// beside others
/* What rules keep of packets: captures in the ring and in slots, log records, samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <netinet/in.h>
#include <time.h>

#include "iface/iface.h"
#include "tests/lib/filter_judge.h"

/* --- reading --- */

static struct got {
	size_t n;
	struct ax_capture c; /* the last one */
	uint8_t data[AX_CAPTURE_MAX];
	char rule[64];
	size_t end_at; /* not 0: enough */
} got;

static int on_record(void *arg, const struct ax_capture *c, const uint8_t *data, const char *rule)
{
	(void)arg;
	got.n++;
	got.c = *c;
	assert_true(c->captured <= sizeof(got.data));
	memcpy(got.data, data, c->captured);
	snprintf(got.rule, sizeof(got.rule), "%s", rule);
	return got.end_at && got.n == got.end_at ? 7 : 0;
}

static void read_ring(void)
{
	memset(&got, 0, sizeof(got));
	assert_int_equal(xdp_capture_read(filter.x, on_record, NULL), 0);
}

static void load_capture(const char *text)
{
	struct error e = {0};

	filter_load(text);
	if (xdp_capture_open(filter.x, &e) < 0)
		fail_msg("%s", e.text);
	read_ring();
}

/* --- what is captured --- */

struct row {
	const char *name, *rule, *packet;
	size_t off, len;
	enum ax_reason reason;
};

/* clang-format off */
#define BIG4(n) "udp 10.0.0.1:5 > 10.0.0.2:9 data 'abcdef' len " #n
static const struct row rows[] = {
	{"UDP", "capture: 64", "udp 10.0.0.1:5 > 10.0.0.2:9 data 'hello'", 42, 5, 0},
	{"without padding", "capture: 64", "udp 10.0.0.1:5 > 10.0.0.2:9 data 'hello' | pad13 50=ff",
	 42, 5, 0},
	{"nothing but padding", "capture: 64", "udp 10.0.0.1:5 > 10.0.0.2:9 | pad18 50=ff", 42, 0, 0},
	{"TCP", "capture: 64", "tcp 10.0.0.1:5 > 10.0.0.2:9 data 'hello'", 54, 5, 0},
	{"TCP with options", "capture: 64", "tcp 10.0.0.1:5 > 10.0.0.2:9 data 'hello' | 46=80 "
	 "54+010101010101010101010101 len", 66, 5, 0},
	{"TCP with padding", "capture: 64", "tcp 10.0.0.1:5 > 10.0.0.2:9 | pad6 54=ffff", 54, 0, 0},
	{"ICMP", "capture: 64", "icmp 10.0.0.1 > 10.0.0.2 data 'hello'", 42, 5, 0},
	{"UDP on IPv6", "capture: 64", "udp [fd00::1]:5 > [fd00::2]:9 data 'hello' | pad4", 62, 5, 0},
	{"behind an extension header", "capture: 64", "udp [fd00::1]:5 > [fd00::2]:9 data 'hello' "
	 "| 20=3c 54+1100000000000000 len pad9", 70, 5, 0},
	{"ICMPv6", "capture: 64", "icmp6 fd00::1 > fd00::2 data 'hello'", 62, 5, 0},
	{"a tag", "capture: 64", "vlan 7 udp 10.0.0.1:5 > 10.0.0.2:9 data 'hello' | pad9", 46, 5, 0},
	{"two tags on IPv6", "capture: 64", "vlan 7:88a8 vlan 8 tcp [fd00::1]:5 > [fd00::2]:9 "
	 "data 'hello'", 82, 5, 0},
	{"IPv4 options", "capture: 64", "udp 10.0.0.1:5 > 10.0.0.2:9 data 'hello' | 14=46 "
	 "34+01010101 len", 46, 5, AX_REASON_IP_OPTIONS},
	{"another protocol", "capture: 64", "gre 10.0.0.1 > 10.0.0.2 data 'hello' | pad20", 34, 5, 0},
	{"a first fragment", "capture: 64", "udp 10.0.0.1:5 > 10.0.0.2:9 frag first data 'hello'",
	 42, 5, 0},
	{"a later fragment", "capture: 64", "udp 10.0.0.1 > 10.0.0.2 frag later data 'hello' | pad20",
	 34, 5, AX_REASON_LATER_FRAGMENT},
	{"ARP", "capture: 64", "arp 10.0.0.1 > 10.0.0.2", 14, 28, 0},
	{"ARP behind a tag, with padding", "capture: 64", "vlan 3 arp 10.0.0.1 > 10.0.0.2 | pad14",
	 18, 42, 0},
	{"63 bytes", "capture: 9216", BIG4(63), 42, 63, 0},
	{"64 bytes", "capture: 9216", BIG4(64), 42, 64, 0},
	{"65 bytes", "capture: 9216", BIG4(65), 42, 65, 0},
	{"511 bytes", "capture: 9216", BIG4(511), 42, 511, 0},
	{"512 bytes", "capture: 9216", BIG4(512), 42, 512, 0},
	{"513 bytes", "capture: 9216", BIG4(513), 42, 513, 0},
	{"2047 bytes", "capture: 9216", BIG4(2047), 42, 2047, 0},
	{"2048 bytes", "capture: 9216", BIG4(2048), 42, 2048, 0},
	{"2049 bytes", "capture: 9216", BIG4(2049), 42, 2049, 0},
	{"9000 bytes in several buffers", "capture: 9216", BIG4(9000) " | 5000=abcdef 9040=11", 42,
	 9000, 0},
	{"9216 bytes", "capture: 9216", BIG4(9216), 42, 9216, 0},
	{"1 of them", "capture: 1", BIG4(100), 42, 1, 0},
	{"63 of them", "capture: 63", BIG4(100), 42, 63, 0},
	{"64 of them", "capture: 64", BIG4(100), 42, 64, 0},
	{"65 of them", "capture: 65", BIG4(100), 42, 65, 0},
	{"512 of them", "capture: 512", BIG4(1000), 42, 512, 0},
	{"2048 of them", "capture: 2048", BIG4(3000), 42, 2048, 0},
	{"2049 of them", "capture: 2049", BIG4(3000), 42, 2049, 0},
	{"the frame", "capture: [200, frame]", "udp 10.0.0.1:5 > 10.0.0.2:9 data 'hello' | pad13 "
	 "59=ff", 0, 60, 0},
	{"the frame behind a tag", "capture: [200, frame]", "vlan 9 arp 10.0.0.1 > 10.0.0.2", 0, 46, 0},
	{"the start of the frame", "capture: [50, frame]", BIG4(1000), 0, 50, 0},
	{"the frame in several buffers", "capture: [9216, frame]", BIG4(9000), 0, 9042, 0},
	{"the frame of the shortest packet", "capture: [64, frame]", "hex 0200000000020200000000018999",
	 0, 14, 0},
};
/* clang-format on */

static void check_data(const struct row *row, const struct frame_bytes *f)
{
	const struct ax_capture *c = &got.c;

	assert_int_equal(got.n, 1);
	assert_string_equal(got.rule, "a");
	assert_int_equal(c->kind, AX_CAPTURE_DATA);
	assert_int_equal(c->frame_len, f->len);
	assert_int_equal(c->captured, row->len);
	assert_int_equal(c->data_off, row->off);
	assert_memory_equal(got.data, f->b + row->off, row->len);
}

static void test_row(void **state)
{
	const struct row *row = *state;
	const struct expect x = {
		.action = XDP_DROP, .verdict = AX_VERDICT_DROP, .rule = "a", .reason = row->reason};
	struct frame_bytes f;
	char list[200];

	snprintf(list, sizeof(list),
		 "classes: {arp: rules}\nrules: [{name: a, length: 0-, action: drop, %s}]\n",
		 row->rule);
	load_capture(list);
	read_frame(row->packet, &f);
	judge(row->packet, &x);
	read_ring();
	check_data(row, &f);
}

/* --- what is said of it --- */

struct said {
	const char *packet, *src, *dst;
	uint16_t sport, dport, vlan, ethertype;
	uint8_t proto, tcp_flags, has_ports, fragment;
};

static const struct said said[] = {
	{"udp 10.0.0.1:5 > 10.0.0.2:9", "10.0.0.1", "10.0.0.2", 5, 9, AX_VLAN_NONE, ETH_P_IP,
	 IPPROTO_UDP, 0, 1, AX_FRAGMENT_NONE},
	{"vlan 7:88a8 vlan 8 tcp [fd00::1]:5 > [fd00::2]:9 flags syn,ack", "fd00::1", "fd00::2", 5,
	 9, 7, ETH_P_IPV6, IPPROTO_TCP, 0x12, 1, AX_FRAGMENT_NONE},
	{"icmp 10.0.0.1 > 10.0.0.2", "10.0.0.1", "10.0.0.2", 0, 0, AX_VLAN_NONE, ETH_P_IP,
	 IPPROTO_ICMP, 0, 0, AX_FRAGMENT_NONE},
	{"udp fd00::1 > fd00::2 frag later data 'x'", "fd00::1", "fd00::2", 0, 0, AX_VLAN_NONE,
	 ETH_P_IPV6, IPPROTO_UDP, 0, 0, AX_FRAGMENT_LATER},
	{"udp 10.0.0.1:5 > 10.0.0.2:9 frag first", "10.0.0.1", "10.0.0.2", 5, 9, AX_VLAN_NONE,
	 ETH_P_IP, IPPROTO_UDP, 0, 1, AX_FRAGMENT_FIRST},
	{"vlan 0 arp 10.0.0.1 > 10.0.0.2", NULL, NULL, 0, 0, 0, ETH_P_ARP, 0, 0, 0,
	 AX_FRAGMENT_NOT_IP},
};

static void assert_addr(const struct ax_addr *a, const char *expected)
{
	char text[ADDR_STRLEN];

	if (expected)
		assert_string_equal(addr_format(a, text), expected);
	else
		assert_true(addr_is_zero(a));
}

static void check_said(const struct said *s)
{
	const struct ax_capture *c = &got.c;

	assert_int_equal(got.n, 1);
	assert_addr(&c->src, s->src);
	assert_addr(&c->dst, s->dst);
	assert_int_equal(ntohs(c->sport_be), s->sport);
	assert_int_equal(ntohs(c->dport_be), s->dport);
	assert_int_equal(c->vlan, s->vlan);
	assert_int_equal(ntohs(c->ethertype_be), s->ethertype);
	assert_int_equal(c->proto, s->proto);
	assert_int_equal(c->tcp_flags, s->tcp_flags);
	assert_int_equal(c->has_ports, s->has_ports);
	assert_int_equal(c->fragment, s->fragment);
	assert_int_equal(c->verdict, AX_VERDICT_PASS);
	assert_int_equal(c->generation, filter.g.layout.generation);
}

static uint64_t boot_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* As if it had come in by the interface. */
static void run_there(const struct frame_bytes *f)
{
	struct xdp_md md = {.data_end = (uint32_t)f->len,
			    .ingress_ifindex = if_nametoindex(IFNAME)};
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = f->b, .data_size_in = (uint32_t)f->len,
		    .ctx_in = &md, .ctx_size_in = sizeof(md), .repeat = 1);

	assert_int_equal(bpf_prog_test_run_opts(filter.g.prog, &o), 0);
}

static void what_records_say(void **state)
{
	(void)state;
	load_capture("rules: [{name: b, action: pass, capture: 100}]\n");
	for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
		uint64_t before = boot_ns();
		struct frame_bytes f;

		read_frame(said[i].packet, &f);
		run_there(&f);
		read_ring();
		check_said(&said[i]);
		assert_string_equal(got.rule, "b");
		assert_int_equal(got.c.ifindex, if_nametoindex(IFNAME));
		assert_int_equal(got.c.queue, 0);
		assert_true(got.c.time_ns >= before && got.c.time_ns <= boot_ns());
	}
}

/* A packet is captured as it came, not as it goes. */
static void captured_as_it_came(void **state)
{
	static const char *const actions[] = {"reflect", "redirect " TARGET ", to-port: 7", "drop"};
	struct frame_bytes f;
	char list[200];

	(void)state;
	read_frame("udp 10.0.0.1:5 > 10.0.0.2:9 data 'x'", &f);
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		snprintf(list, sizeof(list),
			 "rules: [{name: a, proto: udp, capture: [100, frame], action: %s}]\n",
			 actions[i]);
		load_capture(list);
		filter_run("tcp 10.0.0.1:5 > 10.0.0.2:9");
		filter_run_frame(filter.g.prog, &f, NULL);
		read_ring();
		assert_int_equal(got.n, 1);
		assert_int_equal(got.c.captured, f.len);
		assert_memory_equal(got.data, f.b, f.len);
	}
}

static void a_log_has_no_data(void **state)
{
	(void)state;
	load_capture("rules: [{name: a, proto: udp, action: drop, log: yes}]\n");
	judge("udp 10.0.0.1:5 > 10.0.0.2:9 data 'hello'", &(struct expect)BY_DROP("a"));
	read_ring();
	assert_int_equal(got.n, 1);
	assert_int_equal(got.c.kind, AX_CAPTURE_LOG);
	assert_int_equal(got.c.captured, 0);
	assert_int_equal(got.c.frame_len, 47);
	assert_int_equal(got.c.verdict, AX_VERDICT_DROP);
	assert_int_equal(ntohs(got.c.dport_be), 9);
	assert_string_equal(got.rule, "a");
	load_capture("rules: [{name: a, proto: udp, action: drop, log: yes, capture: 3}]\n");
	filter_run("udp 10.0.0.1:5 > 10.0.0.2:9 data 'hello'");
	read_ring();
	assert_int_equal(got.n, 2);
}

/* What comes from a former list is said to. */
static void records_of_a_former_list(void **state)
{
	uint32_t generation;

	(void)state;
	filter_load("rules: [{name: a, proto: udp, action: pass, capture: 10}]\n");
	generation = filter.g.layout.generation;
	filter_run("udp 10.0.0.1:5 > 10.0.0.2:9 data 'hello'");
	filter_load("rules: [{name: b, proto: udp, action: pass, capture: 10}]\n");
	{
		struct error e = {0};

		assert_int_equal(xdp_capture_open(filter.x, &e), 0);
	}
	read_ring();
	assert_int_equal(got.n, 1);
	assert_int_equal(got.c.generation, generation);
	assert_string_equal(got.rule, "(a former rule)");
}

static void one_reader_at_a_time(void **state)
{
	struct xdp *other = NULL;
	struct error e = {0};

	(void)state;
	load_capture("rules: [{name: a, action: pass, capture: 10}]\n");
	assert_int_equal(xdp_open(&filter.inst, IFNAME, &other, &e), 0);
	assert_int_equal(xdp_capture_open(other, &e), -EBUSY);
	xdp_close(other);
	for (int i = 0; i < 5; i++)
		filter_run("udp 10.0.0.1:5 > 10.0.0.2:9 data 'hello'");
	memset(&got, 0, sizeof(got));
	got.end_at = 2;
	assert_int_equal(xdp_capture_read(filter.x, on_record, NULL), 7);
	read_ring();
	assert_int_equal(got.n, 3);
}

/* --- no room --- */

static void lost_captures_are_counted(void **state)
{
	const uint64_t before = filter_reason_count(AX_REASON_CAPTURE_LOST);
	struct frame_bytes f;
	uint64_t lost;
	int sent = 0;

	(void)state;
	load_capture("rules: [{name: a, action: pass, capture: 2048}]\n");
	read_frame("udp 10.0.0.1:5 > 10.0.0.2:9 len 1400", &f);
	while (sent < 2000) {
		assert_int_equal(filter_run_frame(filter.g.prog, &f, NULL), XDP_PASS);
		sent++;
	}
	lost = filter_reason_count(AX_REASON_CAPTURE_LOST) - before;
	read_ring();
	assert_true(lost > 0 && got.n > 100);
	assert_int_equal(got.n + lost, sent);
	filter_run_frame(filter.g.prog, &f, NULL);
	read_ring();
	assert_int_equal(got.n, 1);
	assert_int_equal(filter_reason_count(AX_REASON_CAPTURE_LOST) - before, lost);
}

/* --- slots --- */

static struct ax_slot slot;
static size_t slots_seen;

static int on_slot(void *arg, const char *name, const struct ax_slot *s)
{
	slots_seen++;
	if (streq(arg, name))
		slot = *s;
	return 0;
}

static void read_slot(char *name, size_t n)
{
	struct error e = {0};

	memset(&slot, 0, sizeof(slot));
	slots_seen = 0;
	if (xdp_slots_each(filter.x, on_slot, name, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(slots_seen, n);
}

static void assert_slot(const char *data, size_t len, uint64_t count)
{
	static const uint8_t zeros[AX_SLOT_BYTES];

	assert_int_equal(slot.len, len);
	assert_int_equal(slot.count, count);
	if (data)
		assert_memory_equal(slot.data, data, len);
	assert_memory_equal(slot.data + len, zeros, sizeof(zeros) - len);
}

static void slots_hold_the_latest(void **state)
{
	char x[] = "x", y[] = "y";
	uint64_t before;

	(void)state;
	filter_load_afresh(
		"rules: [{name: a, proto: udp, action: drop, capture: [16, slot=x]},\n"
		"        {name: b, proto: tcp, action: pass, capture: [256, slot=y, ring]}]\n");
	read_slot(x, 2);
	assert_int_equal(slot.time_ns, 0);
	assert_slot(NULL, 0, 0);
	judge("udp 10.0.0.1:5 > 10.0.0.2:9 data 'a longer text than fits'",
	      &(struct expect)BY_DROP("a"));
	read_slot(x, 2);
	assert_slot("a longer text th", 16, 1);
	before = boot_ns();
	judge("udp 10.0.0.1:5 > 10.0.0.2:9 data 'short' | pad20 60=ff",
	      &(struct expect)BY_DROP("a"));
	read_slot(x, 2);
	assert_slot("short", 5, 2);
	assert_true(slot.time_ns >= before && slot.time_ns <= boot_ns());
	judge("udp 10.0.0.1:5 > 10.0.0.2:9", &(struct expect)BY_DROP("a"));
	read_slot(x, 2);
	assert_slot(NULL, 0, 3);
	judge("tcp 10.0.0.1:5 > 10.0.0.2:9 data 'abc' len 300", &(struct expect)BY_PASS("b"));
	read_slot(y, 2);
	assert_int_equal(slot.count, 1);
	assert_int_equal(slot.len, 256);
	assert_memory_equal(slot.data, "abc\0\0", 5);
}

static void slots_stay_when_lists_change(void **state)
{
	char x[] = "x", z[] = "z";

	(void)state;
	filter_load_afresh("rules: [{name: a, proto: udp, action: drop, capture: [16, slot=x]}]\n");
	filter_run("udp 10.0.0.1:5 > 10.0.0.2:9 data 'stay'");
	filter_load("rules: [{name: new, proto: tcp, action: drop, capture: [16, slot=z]},\n"
		    "        {name: b, dport: 9, action: drop, capture: [16, slot=x]}]\n");
	read_slot(x, 2);
	assert_slot("stay", 4, 1);
	read_slot(z, 2);
	assert_slot(NULL, 0, 0);
	filter_run("udp 10.0.0.1:5 > 10.0.0.2:9 data 'new'");
	read_slot(x, 2);
	assert_slot("new", 3, 2);
	/* the name is gone, and then another one's is */
	filter_load("rules: [{name: c, proto: udp, action: drop, capture: [16, slot=y]}]\n");
	read_slot(x, 1);
	filter_load("rules: [{name: c, proto: udp, action: drop, capture: [16, slot=x]}]\n");
	read_slot(x, 1);
	assert_slot(NULL, 0, 0);
}

/* --- samples --- */

#define PACKETS 10000

static void sampled(const char *list, uint32_t one_of, size_t records_each)
{
	double expected = (double)PACKETS / one_of, most;
	struct frame_bytes f;

	load_capture(list);
	read_frame("udp 10.0.0.1:5 > 10.0.0.2:9 data 'hello'", &f);
	for (int i = 0; i < PACKETS; i++)
		filter_run_frame(filter.g.prog, &f, NULL);
	read_ring();
	/* seven standard deviations: by chance once in 400 billion runs */
	most = 49 * expected * (1 - 1.0 / one_of);
	expected -= (double)got.n / (double)records_each;
	if (expected * expected > most)
		fail_msg("%zu records of %d packets", got.n, PACKETS);
	assert_int_equal(got.n % records_each, 0);
}

static void samples(void **state)
{
	(void)state;
	sampled("rules: [{name: a, action: pass, capture: 64, sample: 10}]\n", 10, 1);
	sampled("rules: [{name: a, action: pass, log: yes, sample: 100}]\n", 100, 1);
	sampled("rules: [{name: a, action: pass, capture: 4, log: yes, sample: 7}]\n", 7, 2);
	sampled("rules: [{name: a, action: pass, log: yes, sample: 1000}]\n", 1000, 1);
	sampled("rules: [{name: a, proto: udp, action: pass, log: yes, sample: 2}]\n", 2, 1);
	assert_int_equal(filter_rule_count("a").packets, 5 * PACKETS);
}

int main(void)
{
	static struct CMUnitTest tests[ARRAY_SIZE(rows) + 9];
	size_t n = 0;

	for (; n < ARRAY_SIZE(rows); n++)
		tests[n] = (struct CMUnitTest){.name = rows[n].name,
					       .test_func = test_row,
					       .initial_state = (void *)(uintptr_t)&rows[n]};
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(what_records_say);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(captured_as_it_came);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_log_has_no_data);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(records_of_a_former_list);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(one_reader_at_a_time);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(lost_captures_are_counted);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(slots_hold_the_latest);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(slots_stay_when_lists_change);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(samples);
	return cmocka_run_group_tests(tests, filter_setup, filter_teardown);
}
