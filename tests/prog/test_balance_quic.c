// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
// timeout: 300
/* The balancer by QUIC's connection ids: a connection keeps its backend, whatever addresses and
 * ports its packets come from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "tests/lib/balance.h"
#include "tests/lib/quick.h"
#include "tests/lib/rule_lists.h"

/* The numbers are the last byte of the backend's address, and 256 more. */
#define NUMBER(backend) (256 + (backend))
#define FOUR                                                                         \
	"[{address: 10.9.0.11, quic-id: 267}, {address: 10.9.0.12, quic-id: 268}, "  \
	"{address: 10.9.0.13, quic-id: 269}, {address: 10.9.0.14, quic-id: 270}, "   \
	"{address: 'fd09::11', quic-id: 267}, {address: 'fd09::12', quic-id: 268}, " \
	"{address: 'fd09::13', quic-id: 269}, {address: 'fd09::14', quic-id: 270}]"
#define RULES	   "rules: [{name: web, dst: '10.0.0.100,fd00::100', action: balance web}]\n"
#define LIST(mode) "balancers: {web: {mode: " mode ", backends: " FOUR "}}\n" RULES

/* What comes in front of the number, and how it is said; %04x is the number. */
#define SHORT	     "40 00%04x 0102030405 aabbccdd"
#define SHORT_PLAIN  "00 00%04x 0102030405 aabbccdd" /* RFC 9287 */
#define INITIAL	     "c0 00000001 08 00%04x0102030405 00 aabbccdd"
#define ZERO_RTT     "d0 00000001 08 00%04x0102030405 00 aabbccdd"
#define HANDSHAKE    "e0 00000001 08 00%04x0102030405 00 aabbccdd"
#define INITIAL_V2   "d0 6b3343cf 08 00%04x0102030405 00 aabbccdd"
#define HANDSHAKE_V2 "f0 6b3343cf 08 00%04x0102030405 00 aabbccdd"
#define UNROUTABLE   "40 e0%04x 0102030405 aabbccdd"

struct client {
	bool v6;
	unsigned host, port;
};

static void without_blanks(char *to, const char *from)
{
	for (; *from; from++)
		if (*from != ' ')
			*to++ = *from;
	*to = 0;
}

static struct result ask(struct client c, const char *header, unsigned number)
{
	char blanks[128], data[128], text[256];

	snprintf(blanks, sizeof(blanks), header, number);
	without_blanks(data, blanks);
	snprintf(text, sizeof(text),
		 c.v6 ? "udp [fd01::%x]:%u > [fd00::100]:443 data hex:%s"
		      : "udp 10.1.0.%u:%u > 10.0.0.100:443 data hex:%s",
		 c.host, c.port, data);
	return balance_run(text);
}

static bool is_gue6(const struct result *r)
{
	const struct ipv6hdr *ip = (const void *)(r->frame + ETH_HLEN);
	const struct udphdr *udp = (const void *)(ip + 1);

	return ip->version == 6 && ip->nexthdr == IPPROTO_UDP && udp->dest == htons(6080);
}

static unsigned backend_for(struct client c, const char *header, unsigned number)
{
	struct result r = ask(c, header, number);

	assert_int_equal(r.action, XDP_TX);
	if (!is_gue6(&r)) /* which has no checksum */
		assert_sums(&r, ETH_HLEN);
	return backend_of(&r);
}

/* By the flow alone, and by the way that is known of it since. */
static void assert_goes(struct client c, const char *header, unsigned number, unsigned backend)
{
	for (int i = 0; i < 2; i++)
		assert_int_equal(backend_for(c, header, number), backend);
}

#define MOVES 40

static void check_stays(const char *list)
{
	balance_load_afresh(list);
	for (unsigned i = 0; i < MOVES; i++) {
		for (unsigned backend = 11; backend <= 14; backend++) {
			struct client c = {i % 2, 1 + i, 1000 + backend};

			assert_goes(c, i % 3 ? SHORT : SHORT_PLAIN, NUMBER(backend), backend);
		}
	}
}

static void a_connection_stays_by_ipip(void **state)
{
	(void)state;
	check_stays(LIST("ipip"));
}

static void a_connection_stays_by_gue(void **state)
{
	(void)state;
	check_stays(LIST("gue"));
}

static void a_connection_stays_by_nat(void **state)
{
	(void)state;
	check_stays(LIST("nat"));
}

/* Several connections of one client's port, in turns. */
static void check_turns(const char *list)
{
	struct client c = {false, 5, 1000}, c6 = {true, 5, 1000};

	balance_load_afresh(list);
	for (unsigned i = 0; i < 12; i++) {
		assert_int_equal(backend_for(c, SHORT, NUMBER(11 + i % 4)), 11 + i % 4);
		assert_int_equal(backend_for(c6, SHORT, NUMBER(11 + i % 3)), 11 + i % 3);
	}
}

static void connections_of_one_port_are_told_apart(void **state)
{
	(void)state;
	check_turns(LIST("ipip"));
	check_turns(LIST("nat"));
}

/* Their ids may be what the client thought up. */
static void what_begins_a_connection_goes_by_its_flow(void **state)
{
	static const char *const headers[] = {INITIAL, ZERO_RTT, INITIAL_V2};
	unsigned seen[20];

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(headers); k++) {
		memset(seen, 0, sizeof(seen));
		balance_load_afresh(LIST("ipip"));
		for (unsigned i = 0; i < 100; i++) {
			struct client c = {false, 1 + i, 1000};
			unsigned first = backend_for(c, headers[k], NUMBER(11));

			assert_in_range(first, 11, 14);
			seen[first]++;
			assert_goes(c, headers[k], NUMBER(12), first);
		}
		for (unsigned b = 11; b <= 14; b++)
			assert_in_range(seen[b], 8, 50);
		assert_int_equal(balance_reason_count(AX_REASON_QUIC_ID), 0);
		assert_int_equal(balance_reason_count(AX_REASON_QUIC_UNKNOWN), 0);
	}
}

static void packets_of_the_handshake_go_by_their_id(void **state)
{
	(void)state;
	balance_load_afresh(LIST("ipip"));
	for (unsigned i = 0; i < 20; i++) {
		struct client c = {i % 2, 1 + i, 1000}, d = {i % 2, 1 + i, 1001};

		assert_goes(c, HANDSHAKE, NUMBER(11 + i % 4), 11 + i % 4);
		assert_goes(d, HANDSHAKE_V2, NUMBER(11 + i % 4), 11 + i % 4);
	}
}

/* What says nothing goes with the client's other packets. */
static void check_by_flow(const char *header, unsigned number, unsigned counted)
{
	uint64_t before = balance_reason_count(AX_REASON_QUIC_UNKNOWN);

	for (unsigned i = 0; i < 10; i++) {
		struct client c = {i % 2, 1 + i, 2000};

		assert_goes(c, header, number, backend_for(c, INITIAL, number));
	}
	assert_int_equal(balance_reason_count(AX_REASON_QUIC_UNKNOWN) - before, counted);
}

static void ids_of_nobody_are_as_none(void **state)
{
	(void)state;
	balance_load_afresh(LIST("ipip"));
	check_by_flow(SHORT, 266, 20); /* between numbers, */
	check_by_flow(SHORT, 271, 20); /* behind them, */
	check_by_flow(SHORT, 0xffff, 20);
	check_by_flow(HANDSHAKE, 1, 20);
	check_by_flow(UNROUTABLE, NUMBER(11), 20); /* the server says that there is none */
	/* too short for a number, whatever the packet is padded with, or of another version */
	check_by_flow("40 %04x", NUMBER(11), 0);
	check_by_flow("e0 00000001 02 00%04x00", NUMBER(11), 0);
	check_by_flow("e0 00000001 08 %04x", NUMBER(11), 0);
	check_by_flow("e0 ff00001d 08 00%04x0102030405 00", NUMBER(11), 0);
	assert_int_equal(balance_reason_count(AX_REASON_QUIC_ID), 0);
}

static void backends_that_are_down_lose_theirs_and_those_that_drain_keep_them(void **state)
{
	struct rule_list l = rule_list_of(LIST("ipip"));
	struct client c = {false, 7, 3000}, d = {false, 8, 3000};

	(void)state;
	balance_load_afresh(LIST("ipip"));
	assert_goes(c, SHORT, NUMBER(12), 12);
	l.balancers->backends[1].drain = true;
	balance_load_list(&l);
	assert_goes(c, SHORT, NUMBER(12), 12);
	assert_goes(d, SHORT, NUMBER(12), 12); /* it has moved since */
	l.balancers->backends[1].down = true;
	balance_load_list(&l);
	assert_int_not_equal(backend_for(c, SHORT, NUMBER(12)), 12);
	assert_int_not_equal(backend_for(d, SHORT, NUMBER(12)), 12);
	assert_int_equal(balance_reason_count(AX_REASON_QUIC_UNKNOWN), 2);
	rule_list_free(&l);
}

/* Whoever sends in a client's name does not move what it sends itself. */
static void check_forged(const char *list)
{
	for (unsigned i = 0; i < quick_or(4, 20); i++) {
		struct client c = {i % 2, 30 + i, 4000};
		unsigned first, other;

		balance_load_afresh(list);
		first = backend_for(c, INITIAL, 1);
		other = first == 11 ? 12 : 11;
		assert_goes(c, INITIAL, 1, first);
		assert_goes(c, SHORT, NUMBER(other), other);
		assert_goes(c, INITIAL, 1, first);
		assert_goes(c, SHORT, NUMBER(first), first);
		/* and the other way round: what came first by an id decides nothing */
		balance_load_afresh(list);
		assert_goes(c, SHORT, NUMBER(other), other);
		assert_goes(c, INITIAL, 1, first);
		assert_goes(c, SHORT, NUMBER(other), other);
	}
}

static void ids_move_nothing_that_has_none(void **state)
{
	(void)state;
	check_forged(LIST("ipip"));
}

/* (NAT's table outlives the lists: a port is the flow's, again) */
static void ids_move_nothing_that_has_none_by_nat(void **state)
{
	(void)state;
	check_forged(LIST("nat"));
}

static void ids_lead_to_no_other_balancers_backends(void **state)
{
	static const char list[] =
		"balancers:\n"
		"  web: {mode: ipip, backends: [{address: 10.9.0.11, quic-id: 1}]}\n"
		"  api: {mode: ipip, backends: [{address: 10.9.0.12, quic-id: 2}]}\n"
		"rules: [{name: web, dst: 10.0.0.100, action: balance web}]\n";
	struct client c = {false, 5, 1000};

	(void)state;
	balance_load_afresh(list);
	assert_goes(c, SHORT, 1, 11);
	assert_goes(c, SHORT, 2, 11);
	assert_int_equal(balance_reason_count(AX_REASON_QUIC_UNKNOWN), 2);
}

static void balancers_without_ids_look_at_none(void **state)
{
	static const char list[] =
		"balancers:\n"
		"  web: {mode: ipip, backends: [10.9.0.11]}\n"
		"  api: {mode: ipip, backends: [{address: 10.9.0.12, quic-id: 2}]}\n"
		"rules: [{name: web, dst: 10.0.0.100, action: balance web}]\n";
	struct client c = {false, 5, 1000};

	(void)state;
	balance_load_afresh(list);
	assert_goes(c, SHORT, 2, 11);
	assert_int_equal(balance_reason_count(AX_REASON_QUIC_UNKNOWN), 0);
}

/* Only datagrams are QUIC's, and fragments stay together. */
static void tcp_and_fragments_are_no_quic(void **state)
{
	static const char *const packets[] = {
		"tcp 10.1.0.%u:1000 > 10.0.0.100:443 flags ack data hex:4000010b0102030405",
		"udp 10.1.0.%u:1000 > 10.0.0.100:443 frag first data hex:4000010b0102030405060708",
	};
	char text[128];

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(packets); k++) {
		unsigned elsewhere = 0;

		balance_load_afresh(LIST("ipip"));
		for (unsigned i = 1; i <= 60; i++) {
			struct result r;

			snprintf(text, sizeof(text), packets[k], i);
			r = balance_run(text);
			assert_int_equal(r.action, XDP_TX);
			elsewhere += backend_of(&r) != 11;
		}
		assert_true(elsewhere > 20);
		assert_int_equal(balance_reason_count(AX_REASON_QUIC_ID), 0);
	}
}

/* Once for each flow that is not where its addresses would have it. */
static void flows_that_ids_move_are_counted(void **state)
{
	struct client c = {false, 9, 5000}, moved = {false, 9, 5001};
	unsigned first, number;

	(void)state;
	balance_load_afresh(LIST("ipip"));
	first = backend_for(c, INITIAL, 1);
	assert_goes(c, SHORT, NUMBER(first), first);
	assert_int_equal(balance_reason_count(AX_REASON_QUIC_ID), 0);
	assert_goes(moved, SHORT, NUMBER(first), first);
	assert_goes(moved, SHORT, NUMBER(first), first);
	assert_int_equal(balance_reason_count(AX_REASON_QUIC_ID), 1);
	number = first - 11;
	assert_int_equal(balance_real_count(number).flows, 2);
	assert_int_equal(balance_real_count(number).packets, 7);
	assert_int_equal(balance_entries(XDP_MAP_FLOWS4, sizeof(struct ax_flow4)), 2);
}

/* --- NAT --- */

static void assert_answered(unsigned backend, unsigned port, struct client c)
{
	char text[128], expected[128];
	struct result r;

	snprintf(text, sizeof(text), "udp 10.9.0.%u:443 > 10.9.0.1:%u data 'x'", backend, port);
	r = balance_run(text);
	snprintf(expected, sizeof(expected), "udp 10.0.0.100:443 > 10.1.0.%u:%u ttl 63 len 1",
		 c.host, c.port);
	assert_packet(&r, expected);
}

static void nat_answers_each_address_of_a_client(void **state)
{
	struct client c = {false, 10, 6000}, moved = {false, 11, 6001};
	struct result r, begin;
	unsigned first;

	(void)state;
	balance_load_afresh(LIST("nat"));
	begin = ask(c, INITIAL, 1);
	first = backend_of(&begin);
	/* to its backend a connection that does not move comes from one port, begun or not */
	for (int i = 0; i < 2; i++) {
		r = ask(c, SHORT, NUMBER(first));
		assert_int_equal(source_port(&r), source_port(&begin));
	}
	r = ask(moved, SHORT, NUMBER(first));
	assert_int_equal(backend_of(&r), first);
	assert_int_not_equal(source_port(&r), source_port(&begin));
	assert_answered(first, source_port(&r), moved);
	assert_answered(first, source_port(&begin), c);
}

/* --- ICMP errors --- */

static void icmp_errors_follow_flows_that_ids_moved(void **state)
{
	char text[256];

	(void)state;
	balance_load_afresh(LIST("ipip"));
	for (unsigned i = 0; i < 20; i++) {
		struct client c = {false, 1 + i, 7000};
		struct result r;

		assert_goes(c, SHORT, NUMBER(11 + i % 4), 11 + i % 4);
		snprintf(text, sizeof(text),
			 "icmp 10.2.0.9 > 10.0.0.100 type 3/4 quoting (udp 10.0.0.100:443 > "
			 "10.1.0.%u:7000)",
			 1 + i);
		r = balance_run(text);
		assert_int_equal(r.action, XDP_TX);
		assert_int_equal(backend_of(&r), 11 + i % 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_stays_by_ipip),
		cmocka_unit_test(a_connection_stays_by_gue),
		cmocka_unit_test(a_connection_stays_by_nat),
		cmocka_unit_test(connections_of_one_port_are_told_apart),
		cmocka_unit_test(what_begins_a_connection_goes_by_its_flow),
		cmocka_unit_test(packets_of_the_handshake_go_by_their_id),
		cmocka_unit_test(ids_of_nobody_are_as_none),
		cmocka_unit_test(backends_that_are_down_lose_theirs_and_those_that_drain_keep_them),
		cmocka_unit_test(ids_move_nothing_that_has_none),
		cmocka_unit_test(ids_move_nothing_that_has_none_by_nat),
		cmocka_unit_test(ids_lead_to_no_other_balancers_backends),
		cmocka_unit_test(balancers_without_ids_look_at_none),
		cmocka_unit_test(tcp_and_fragments_are_no_quic),
		cmocka_unit_test(flows_that_ids_move_are_counted),
		cmocka_unit_test(nat_answers_each_address_of_a_client),
		cmocka_unit_test(icmp_errors_follow_flows_that_ids_moved),
	};

	return cmocka_run_group_tests_name("balancer by QUIC's ids", tests, balance_setup,
					   balance_teardown);
}
