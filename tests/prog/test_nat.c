// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
// timeout: 300
/* The balancer's NAT: to the backend, and its answers back to the client. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>

#include "iface/iface.h"
#include "packet/text.h"
#include "tests/lib/nat.h"

/* --- there and back --- */

static void packets_are_translated_both_ways(void **state)
{
	static const struct {
		const char *sent, *to, *answer, *back;
	} cases[] = {
		{"udp 10.1.0.5:1000 > 10.0.0.100:80 data 'hello'",
		 "udp 10.9.0.1:%u > 10.9.0.11:8080 ttl 63 len 5",
		 "udp 10.9.0.11:8080 > 10.9.0.1:%u data 'world'",
		 "udp 10.0.0.100:80 > 10.1.0.5:1000 ttl 63 len 5"},
		{"tcp 10.1.0.5:1000 > 10.0.0.100:80 flags psh,ack data 'odd'",
		 "tcp 10.9.0.1:%u > 10.9.0.11:8080 flags psh,ack ttl 63 len 3",
		 "tcp 10.9.0.11:8080 > 10.9.0.1:%u flags ack data 'x'",
		 "tcp 10.0.0.100:80 > 10.1.0.5:1000 flags ack ttl 63 len 1"},
		{"udp [fd01::5]:1000 > [fd00::100]:80 data 'hello'",
		 "udp [fd09::1]:%u > [fd09::11]:8080 ttl 63 len 5",
		 "udp [fd09::11]:8080 > [fd09::1]:%u data 'world'",
		 "udp [fd00::100]:80 > [fd01::5]:1000 ttl 63 len 5"},
		{"tcp [fd01::5]:1000 > [fd00::100]:80 flags syn",
		 "tcp [fd09::1]:%u > [fd09::11]:8080 flags syn ttl 63",
		 "tcp [fd09::11]:8080 > [fd09::1]:%u flags syn,ack",
		 "tcp [fd00::100]:80 > [fd01::5]:1000 flags syn,ack ttl 63"},
	};

	(void)state;
	start(LIST(ONE));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct result r = balance_run(cases[i].sent), again = balance_run(cases[i].sent);
		unsigned port = source_port(&r);

		assert_int_equal(r.action, XDP_TX);
		assert_macs(&r, 0x11);
		assert_in_range(port, AX_NAT_PORT, AX_NAT_PORT + AX_NAT_PORTS - 1);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		assert_line(&r, cases[i].to, port);
		assert_int_equal(source_port(&again), port);
		r = runf(cases[i].answer, port);
#pragma GCC diagnostic pop
		assert_int_equal(r.action, XDP_TX);
		assert_macs(&r, 0x19);
		assert_packet(&r, cases[i].back);
	}
}

static void flows_have_ports_of_their_own(void **state)
{
	static uint8_t seen[65536];

	(void)state;
	memset(seen, 0, sizeof(seen));
	start(LIST(ONE));
	for (unsigned i = 0; i < 500; i++) {
		struct result r = runf("udp 10.1.0.%u:%u > 10.0.0.100:80", i % 250, 1000 + i);
		unsigned port = source_port(&r);

		assert_false(seen[port]);
		seen[port] = 1;
		r = runf("udp 10.9.0.11:8080 > 10.9.0.1:%u", port);
		assert_line(&r, "udp 10.0.0.100:80 > 10.1.0.%u:%u ttl 63", i % 250, 1000 + i);
	}
	assert_int_equal(balance_real_count(0).flows, 500);
}

static void a_backend_without_a_port_keeps_the_packets(void **state)
{
	struct result r;

	(void)state;
	start(LIST("[10.9.0.12]"));
	r = balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:443");
	assert_line(&r, "tcp 10.9.0.1:%u > 10.9.0.12:443 flags syn ttl 63", source_port(&r));
	r = runf("tcp 10.9.0.12:443 > 10.9.0.1:%u flags ack", source_port(&r));
	assert_packet(&r, "tcp 10.0.0.100:443 > 10.1.0.5:1000 flags ack ttl 63");
}

static void no_checksum_stays_none(void **state)
{
	autofree uint8_t *frame = NULL;
	struct error e = {0};
	struct result r;
	size_t len;

	(void)state;
	start(LIST(ONE));
	assert_int_equal(
		packet_text_parse("udp 10.1.0.5:1000 > 10.0.0.100:80 data 'x'", &frame, &len, &e),
		0);
	frame[ETH_HLEN + 26] = frame[ETH_HLEN + 27] = 0;
	r = balance_run_frame(frame, len);
	assert_int_equal(r.action, XDP_TX);
	assert_int_equal(r.frame[ETH_HLEN + 26] | r.frame[ETH_HLEN + 27], 0);
	assert_sums(&r, ETH_HLEN);
}

static void answers_pass_rules_and_others_do_not(void **state)
{
	struct result r;
	unsigned port;

	(void)state;
	start(LIST(ONE));
	r = balance_run("udp 10.1.0.5:1000 > 10.0.0.100:80");
	port = source_port(&r);
	/* the list's default is to drop */
	assert_int_equal(runf("udp 10.9.0.11:8080 > 10.9.0.1:%u", port).action, XDP_TX);
	assert_int_equal(runf("udp 10.9.0.12:8080 > 10.9.0.1:%u", port).action, XDP_DROP);
	assert_int_equal(runf("udp 10.9.0.11:8081 > 10.9.0.1:%u", port).action, XDP_DROP);
	assert_int_equal(runf("tcp 10.9.0.11:8080 > 10.9.0.1:%u", port).action, XDP_DROP);
	assert_int_equal(runf("udp 10.9.0.11:8080 > 10.8.0.1:%u", port).action, XDP_DROP);
	assert_int_equal(runf("udp 10.9.0.11:8080 > 10.9.0.1:%u", port ^ 1).action, XDP_DROP);
}

static void both_ways_may_be_other_interfaces(void **state)
{
	struct result r;

	(void)state;
	start(LIST("['10.8.0.13:8080']"));
	r = balance_run("udp 10.1.0.5:1000 > 10.0.0.100:80");
	assert_int_equal(r.action, XDP_REDIRECT);
	assert_macs(&r, 0x13);
	assert_line(&r, "udp 10.8.0.1:%u > 10.8.0.13:8080 ttl 63", source_port(&r));
	start(LIST(ONE));
	r = balance_run("udp 10.8.0.15:1000 > 10.0.0.100:80");
	r = runf("udp 10.9.0.11:8080 > 10.9.0.1:%u", source_port(&r));
	assert_int_equal(r.action, XDP_REDIRECT);
	assert_macs(&r, 0x15);
}

static void without_a_route_answers_go_where_the_client_came_from(void **state)
{
	struct result r;

	(void)state;
	start(LIST(ONE));
	r = balance_run(
		"udp 10.3.0.5:1000 > 10.0.0.100:80 mac 02:00:00:00:00:66 > 02:00:00:00:00:55");
	assert_int_equal(r.action, XDP_TX);
	r = runf("udp 10.9.0.11:8080 > 10.9.0.1:%u", source_port(&r));
	assert_int_equal(r.action, XDP_TX);
	assert_macs(&r, 0x66);
	assert_int_equal(r.frame[11], 0x55);
	assert_packet(&r, "udp 10.0.0.100:80 > 10.3.0.5:1000 ttl 63");
}

static void what_has_no_ports_is_left_to_this_machine(void **state)
{
	(void)state;
	start(LIST(ONE));
	assert_int_equal(balance_run("icmp 10.1.0.5 > 10.0.0.100").action, XDP_PASS);
	assert_int_equal(balance_run("gre 10.1.0.5 > 10.0.0.100").action, XDP_PASS);
}

static void a_backend_here_needs_no_translation_or_cannot_be(void **state)
{
	struct result r;

	(void)state;
	start("balancers: {web: {mode: nat, backends: ['10.9.0.1:80']}}\n"
	      "rules: [{dst: 10.9.0.1, action: balance web}]\n");
	r = balance_run("udp 10.1.0.5:1000 > 10.9.0.1:80");
	assert_int_equal(r.action, XDP_PASS);
	assert_packet(&r, "udp 10.1.0.5:1000 > 10.9.0.1:80");
	assert_fails("udp 10.1.0.5:1000 > 10.9.0.1:81", AX_REASON_NO_ROUTE, XDP_DROP);
}

/* --- ICMP errors --- */

static void errors_reach_the_backend(void **state)
{
	struct result r;
	unsigned port;

	(void)state;
	start(LIST(ONE));
	r = balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80");
	port = source_port(&r);
	r = balance_run(
		"icmp 10.2.0.9 > 10.0.0.100 type 3/4 quoting (tcp 10.0.0.100:80 > 10.1.0.5:1000)");
	assert_int_equal(r.action, XDP_TX);
	assert_macs(&r, 0x11);
	assert_line(&r,
		    "icmp 10.9.0.1 > 10.9.0.11 type 3/4 ttl 63 quoting (tcp 10.9.0.11:8080 > "
		    "10.9.0.1:%u)",
		    port);
	r = balance_run("tcp [fd01::5]:1000 > [fd00::100]:80");
	port = source_port(&r);
	r = balance_run(
		"icmp6 fd02::9 > fd00::100 type 2 quoting (tcp [fd00::100]:80 > [fd01::5]:1000)");
	assert_int_equal(r.action, XDP_TX);
	assert_sums(&r, ETH_HLEN);
	assert_int_equal(backend_of(&r), 11);
	assert_int_equal(r.frame[ETH_HLEN + 48 + 40 + 2] << 8 | r.frame[ETH_HLEN + 48 + 40 + 3],
			 port);
	/* about a flow that nobody has */
	r = balance_run(
		"icmp 10.2.0.9 > 10.0.0.100 type 3/4 quoting (tcp 10.0.0.100:80 > 10.1.0.5:2000)");
	assert_int_equal(r.action, XDP_PASS);
	assert_packet(&r, "icmp 10.2.0.9 > 10.0.0.100 type 3/4 quoting (tcp 10.0.0.100:80 > "
			  "10.1.0.5:2000)");
}

static void errors_reach_the_client(void **state)
{
	struct result r;
	unsigned port;

	(void)state;
	start(LIST(ONE));
	r = balance_run("udp 10.1.0.5:1000 > 10.0.0.100:80");
	port = source_port(&r);
	/* the port is closed there; a router on the way says something */
	for (int i = 0; i < 2; i++) {
		r = runf("icmp %s > 10.9.0.1 type 3/%d quoting (udp 10.9.0.1:%u > 10.9.0.11:8080)",
			 i ? "10.9.0.18" : "10.9.0.11", i ? 4 : 3, port);
		assert_int_equal(r.action, XDP_TX);
		assert_macs(&r, 0x19);
		assert_line(&r,
			    "icmp 10.0.0.100 > 10.1.0.5 type 3/%d ttl 63 quoting (udp "
			    "10.1.0.5:1000 > 10.0.0.100:80)",
			    i ? 4 : 3);
	}
	r = balance_run("udp [fd01::5]:1000 > [fd00::100]:80");
	port = source_port(&r);
	r = runf("icmp6 fd09::11 > fd09::1 type 1/4 quoting (udp [fd09::1]:%u > [fd09::11]:8080)",
		 port);
	assert_int_equal(r.action, XDP_TX);
	assert_line(&r, "icmp6 fd00::100 > fd01::5 type 1/4 ttl 63 quoting (udp [fd01::5]:1000 > "
			"[fd00::100]:80)");
	/* about something else */
	r = balance_run(
		"icmp 10.9.0.11 > 10.9.0.1 type 3/3 quoting (udp 10.9.0.1:999 > 10.9.0.11:8080)");
	assert_int_equal(r.action, XDP_DROP);
}

/* --- fragments --- */

static void fragments_keep_together(void **state)
{
	char text[128];

	(void)state;
	start(LIST(FOUR));
	for (unsigned i = 0; i < 30; i++) {
		struct result whole, first, later;

		/* the client's whole datagrams may go elsewhere, without confusing its fragments */
		whole = runf("udp 10.1.0.%u:7 > 10.0.0.100:80", i);
		first = runf("udp 10.1.0.%u:7 > 10.0.0.100:80 frag first len 64", i);
		later = runf("udp 10.1.0.%u > 10.0.0.100 frag later len 64", i);
		assert_int_equal(first.action, XDP_TX);
		assert_int_equal(later.action, XDP_TX);
		assert_int_equal(backend_of(&first), backend_of(&later));
		assert_sums(&later, ETH_HLEN);
		snprintf(text, sizeof(text), "10.9.0.%u", backend_of(&first));
		assert_int_equal(key_of(text, "10.9.0.1", 17, source_port(&first)).proto, 17);
		first = runf("udp 10.9.0.%u:8080 > 10.9.0.1:%u", backend_of(&first),
			     source_port(&first));
		assert_line(&first, "udp 10.0.0.100:80 > 10.1.0.%u:7 ttl 63", i);
		whole = runf("udp 10.9.0.%u:8080 > 10.9.0.1:%u", backend_of(&whole),
			     source_port(&whole));
		assert_line(&whole, "udp 10.0.0.100:80 > 10.1.0.%u:7 ttl 63", i);
	}
}

static void fragments_of_answers_find_back(void **state)
{
	static const char *const sent[] = {"udp 10.1.0.5:1000 > 10.0.0.100:80",
					   "udp [fd01::5]:1000 > [fd00::100]:80"};
	struct result r, later;
	unsigned port;

	(void)state;
	start(LIST(ONE));
	for (int v6 = 0; v6 < 2; v6++) {
		r = balance_run(sent[v6]);
		port = source_port(&r);
		later = runf(v6 ? "udp fd09::11 > fd09::1 frag later len 64"
				: "udp 10.9.0.11 > 10.9.0.1 frag later len 64");
		assert_int_equal(later.action, XDP_DROP); /* nobody's yet */
		r = runf(v6 ? "udp [fd09::11]:8080 > [fd09::1]:%u frag first len 64"
			    : "udp 10.9.0.11:8080 > 10.9.0.1:%u frag first len 64",
			 port);
		later = runf(v6 ? "udp fd09::11 > fd09::1 frag later len 64"
				: "udp 10.9.0.11 > 10.9.0.1 frag later len 64");
		assert_int_equal(r.action, XDP_TX);
		assert_int_equal(later.action, XDP_TX);
		assert_macs(&later, 0x19);
		assert_int_equal(backend_of(&r), 5); /* the client's */
		assert_int_equal(backend_of(&later), 5);
		if (!v6)
			assert_sums(&later, ETH_HLEN);
	}
}

/* --- ports --- */

/* --- what cannot be --- */

static void failures_have_reasons(void **state)
{
	struct result r;
	unsigned port;

	(void)state;
	start(LIST("[]"));
	assert_fails("udp 10.1.0.5:1000 > 10.0.0.100:80", AX_REASON_NO_BACKEND, XDP_DROP);
	assert_fails("udp 10.1.0.5 > 10.0.0.100 frag later", AX_REASON_NO_BACKEND, XDP_DROP);
	start(LIST("['10.3.0.1:80']"));
	assert_fails("udp 10.1.0.5:1000 > 10.0.0.100:80", AX_REASON_NO_ROUTE, XDP_DROP);
	start(LIST("['10.9.0.99:80']"));
	assert_fails("udp 10.1.0.5:1000 > 10.0.0.100:80", AX_REASON_NO_NEIGHBOUR, XDP_DROP);
	start(LIST(ONE));
	assert_fails("udp 10.1.0.5:1000 > 10.0.0.100:80 ttl 1", AX_REASON_TTL, XDP_DROP);
	assert_int_equal(nat_entries(), 0);
	r = balance_run("udp 10.8.0.15:1000 > 10.0.0.100:80");
	port = source_port(&r);
	r = runf("udp 10.9.0.11:8080 > 10.9.0.1:%u ttl 1", port);
	assert_int_equal(r.action, XDP_DROP);
	assert_int_equal(balance_reason_count(AX_REASON_TTL), 2);
	/* too long for the link to that client: the backend is told */
	r = runf("udp 10.9.0.11:8080 > 10.9.0.1:%u len 1273", port);
	assert_int_equal(r.action, XDP_TX);
	assert_int_equal(balance_reason_count(AX_REASON_TOO_BIG), 1);
	assert_sums(&r, ETH_HLEN);
	assert_int_equal(r.frame[ETH_HLEN + 20] << 8 | r.frame[ETH_HLEN + 21], 0x304);
	assert_int_equal(r.frame[ETH_HLEN + 26] << 8 | r.frame[ETH_HLEN + 27], SMALL);
	assert_int_equal(backend_of(&r), 11);
	r = runf("udp 10.9.0.11:8080 > 10.9.0.1:%u len 1272", port);
	assert_int_equal(r.action, XDP_REDIRECT);
}

/* A flow that cannot be remembered cannot be translated. */
static void a_flood_is_dropped(void **state)
{
	uint64_t before, counted = 0;
	autoclose int map = -1;

	(void)state;
	start(LIST(ONE));
	map = balance_map("flow_windows");
	assert_true(map >= 0);
	/* a window may end between the two packets */
	for (unsigned i = 0; i < 20 && !counted; i++) {
		struct result r = runf("udp 10.1.0.5:%u > 10.0.0.100:80", 1000 + i);

		assert_int_equal(r.action, XDP_TX);
		before = balance_reason_count(AX_REASON_FLOWS_FULL);
		balance_set_window(map, AX_FLOWS_PER_WINDOW);
		r = runf("udp 10.1.0.5:%u > 10.0.0.100:80", 2000 + i);
		counted = balance_reason_count(AX_REASON_FLOWS_FULL) - before;
		assert_int_equal(r.action, counted ? XDP_DROP : XDP_TX);
		r = runf("udp 10.1.0.5:%u > 10.0.0.100:80", 1000 + i);
		assert_int_equal(r.action, XDP_TX);
	}
	assert_int_equal(counted, 1);
}

static void explaining_leaves_no_trace(void **state)
{
	CLEANUP(xdp_closep) struct xdp *x = NULL;
	autofree uint8_t *there = NULL, *back = NULL;
	struct ax_nat_key k;
	struct xdp_explanation got;
	struct error e = {0};
	struct ax_nat n;
	struct result r;
	char text[128];
	size_t len;

	(void)state;
	start(LIST(ONE));
	assert_int_equal(xdp_open(&balance.inst, IFNAME, &x, &e), 0);
	assert_int_equal(packet_text_parse("tcp 10.1.0.5:1000 > 10.0.0.100:80", &there, &len, &e),
			 0);
	assert_int_equal(xdp_explain(x, there, len, &got, &e), 0);
	assert_int_equal(got.action, XDP_TX);
	assert_int_equal(got.x.backend, 0);
	assert_int_equal(balance_entries(XDP_MAP_FLOWS4, sizeof(struct ax_flow4)), 0);
	assert_int_equal(nat_entries(), 0);
	r = balance_run_frame(there, len);
	assert_int_equal(got.out_len, r.len);
	assert_memory_equal(got.out, r.frame, r.len);
	xdp_explanation_free(&got);
	k = key_of("10.9.0.11", "10.9.0.1", 6, source_port(&r));
	n = nat_get(&k);
	snprintf(text, sizeof(text), "tcp 10.9.0.11:8080 > 10.9.0.1:%u flags rst", source_port(&r));
	assert_int_equal(packet_text_parse(text, &back, &len, &e), 0);
	assert_int_equal(xdp_explain(x, back, len, &got, &e), 0);
	assert_int_equal(got.action, XDP_TX);
	assert_int_equal(got.x.decided, AX_DECIDED_ANSWER);
	assert_int_equal(nat_get(&k).state, n.state);
	r = balance_run_frame(back, len);
	assert_memory_equal(got.out, r.frame, r.len);
	assert_packet(&r, "tcp 10.0.0.100:80 > 10.1.0.5:1000 flags rst ttl 63");
	xdp_explanation_free(&got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_are_translated_both_ways),
		cmocka_unit_test(flows_have_ports_of_their_own),
		cmocka_unit_test(a_backend_without_a_port_keeps_the_packets),
		cmocka_unit_test(no_checksum_stays_none),
		cmocka_unit_test(answers_pass_rules_and_others_do_not),
		cmocka_unit_test(both_ways_may_be_other_interfaces),
		cmocka_unit_test(without_a_route_answers_go_where_the_client_came_from),
		cmocka_unit_test(what_has_no_ports_is_left_to_this_machine),
		cmocka_unit_test(a_backend_here_needs_no_translation_or_cannot_be),
		cmocka_unit_test(errors_reach_the_backend),
		cmocka_unit_test(errors_reach_the_client),
		cmocka_unit_test(fragments_keep_together),
		cmocka_unit_test(fragments_of_answers_find_back),
		cmocka_unit_test(failures_have_reasons),
		cmocka_unit_test(a_flood_is_dropped),
		cmocka_unit_test(explaining_leaves_no_trace),
	};

	return cmocka_run_group_tests_name("NAT", tests, balance_setup, balance_teardown);
}
