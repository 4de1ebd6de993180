// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
// timeout: 300
/* The ports that the balancer's NAT gives to flows: who has one, and for how long. */
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
#include "tests/lib/quick.h"

static void a_forgotten_flow_finds_its_port_again(void **state)
{
	struct result r;
	struct ax_nat_key k;
	unsigned port;

	(void)state;
	start(LIST(ONE));
	r = balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80");
	port = source_port(&r);
	balance_forget(XDP_MAP_FLOWS4, sizeof(struct ax_flow4));
	r = balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80 flags ack");
	assert_int_equal(source_port(&r), port);
	/* and the table of answers, once the flow looks after it */
	k = key_of("10.9.0.11", "10.9.0.1", 6, port);
	nat_delete(&k);
	r = balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80 flags syn");
	assert_int_equal(source_port(&r), port);
	r = runf("tcp 10.9.0.11:8080 > 10.9.0.1:%u flags ack", port);
	assert_packet(&r, "tcp 10.0.0.100:80 > 10.1.0.5:1000 flags ack ttl 63");
}

static void a_flow_looks_after_its_port_in_time(void **state)
{
	struct result r;
	struct ax_nat_key k;
	struct ax_nat n;
	unsigned port;

	(void)state;
	start(LIST(ONE));
	r = balance_run("udp 10.1.0.5:1000 > 10.0.0.100:80");
	port = source_port(&r);
	k = key_of("10.9.0.11", "10.9.0.1", 17, port);
	/* another flow has taken it */
	n = nat_get(&k);
	n.client_port_be = htons(9);
	nat_put(&k, &n);
	usleep(600000);
	r = balance_run("udp 10.1.0.5:1000 > 10.0.0.100:80");
	assert_int_not_equal(source_port(&r), port);
	r = runf("udp 10.9.0.11:8080 > 10.9.0.1:%u", source_port(&r));
	assert_packet(&r, "udp 10.0.0.100:80 > 10.1.0.5:1000 ttl 63");
	r = runf("udp 10.9.0.11:8080 > 10.9.0.1:%u", port);
	assert_packet(&r, "udp 10.0.0.100:80 > 10.1.0.5:9 ttl 63");
}

static void the_end_of_a_connection_is_seen(void **state)
{
	struct result r;
	struct ax_nat_key k;
	unsigned port;

	(void)state;
	start(LIST(ONE));
	r = balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80");
	port = source_port(&r);
	k = key_of("10.9.0.11", "10.9.0.1", 6, port);
	assert_int_equal(nat_get(&k).state, 0);
	balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80 flags fin,ack");
	assert_int_equal(nat_get(&k).state, AX_NAT_FIN_CLIENT);
	runf("tcp 10.9.0.11:8080 > 10.9.0.1:%u flags fin,ack", port);
	assert_int_equal(nat_get(&k).state, AX_NAT_OPEN | AX_NAT_FINS);
	balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80 flags syn");
	assert_int_equal(nat_get(&k).state, 0);
	runf("tcp 10.9.0.11:8080 > 10.9.0.1:%u flags rst", port);
	assert_int_equal(nat_get(&k).state, AX_NAT_RESET);
}

/* Who forges an RST does not know its sequence number, and ends nothing. */
static void who_goes_on_was_not_reset(void **state)
{
	struct result r;
	struct ax_nat_key k;
	unsigned port;

	(void)state;
	start(LIST(ONE));
	r = balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80 flags syn");
	port = source_port(&r);
	k = key_of("10.9.0.11", "10.9.0.1", 6, port);
	runf("tcp 10.9.0.11:8080 > 10.9.0.1:%u flags ack", port);
	assert_int_equal(nat_get(&k).state, AX_NAT_OPEN);
	balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80 flags rst");
	assert_int_equal(nat_get(&k).state, AX_NAT_OPEN | AX_NAT_RESET);
	usleep(1000000 / AX_NAT_CHECKS + 20000); /* what is known of it is used for so long */
	balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80 flags ack");
	assert_int_equal(nat_get(&k).state, AX_NAT_OPEN);
	runf("tcp 10.9.0.11:8080 > 10.9.0.1:%u flags rst", port);
	assert_int_equal(nat_get(&k).state, AX_NAT_OPEN | AX_NAT_RESET);
	runf("tcp 10.9.0.11:8080 > 10.9.0.1:%u flags ack", port);
	assert_int_equal(nat_get(&k).state, AX_NAT_OPEN);
}

/* A segment over IPv4 without options, with that number at an offset of TCP's header. */
static void run_numbered(const char *text, size_t off, uint32_t number)
{
	uint32_t number_be = htonl(number);
	autofree uint8_t *frame = NULL;
	struct error e;
	size_t len;

	assert_int_equal(packet_text_parse(text, &frame, &len, &e), 0);
	memcpy(frame + sizeof(struct ethhdr) + sizeof(struct iphdr) + off, &number_be,
	       sizeof(number_be));
	balance_run_frame(frame, len);
}
#define SEQ 4
#define ACK 8

static void a_flow_is_half_open_until_both_sides_have_answered(void **state)
{
	static const char ack[] = "tcp 10.1.0.5:1000 > 10.0.0.100:80 flags ack";
	char answer[80];
	struct ax_nat_key k;
	struct result r;
	unsigned port;

	(void)state;
	start(LIST(ONE));
	r = balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80 flags syn");
	port = source_port(&r);
	k = key_of("10.9.0.11", "10.9.0.1", 6, port);
	balance_run(ack); /* of nothing */
	assert_int_equal(nat_get(&k).state, 0);
	usleep(200000); /* what is known of it is used for so long */
	snprintf(answer, sizeof(answer), "tcp 10.9.0.11:8080 > 10.9.0.1:%u flags syn,ack", port);
	run_numbered(answer, SEQ, 0xfffffffe);
	assert_int_equal(nat_get(&k).state, AX_NAT_SYN_REAL);
	/* who sends in the client's name has not seen that, and guesses */
	balance_run(ack);
	run_numbered(ack, ACK, 0xfffffffe);
	assert_int_equal(nat_get(&k).state, AX_NAT_SYN_REAL);
	/* nor does he who gets the backend to answer another SYN of his */
	snprintf(answer, sizeof(answer), "tcp 10.9.0.11:8080 > 10.9.0.1:%u flags ack", port);
	run_numbered(answer, SEQ, 0xffffffff);
	assert_int_equal(nat_get(&k).state, AX_NAT_SYN_REAL);
	run_numbered(ack, ACK, 0xffffffff);
	assert_int_equal(nat_get(&k).state, AX_NAT_SYN_REAL | AX_NAT_OPEN);
	/* whoever else says that he begins anew */
	balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80 flags syn");
	assert_int_equal(nat_get(&k).state, AX_NAT_SYN_REAL | AX_NAT_OPEN);

	r = balance_run("udp 10.1.0.5:1000 > 10.0.0.100:80");
	k = key_of("10.9.0.11", "10.9.0.1", 17, source_port(&r));
	assert_int_equal(nat_get(&k).state, 0);
	runf("udp 10.9.0.11:8080 > 10.9.0.1:%u", source_port(&r));
	assert_int_equal(nat_get(&k).state, AX_NAT_OPEN);
}

/* All ports in use, by flows that are like `like`. */
static void use_up_ports(const struct ax_nat *like)
{
	struct ax_nat_key k = key_of("10.9.0.11", "10.9.0.1", 6, 0);

	for (unsigned p = AX_NAT_PORT; p < AX_NAT_PORT + AX_NAT_PORTS; p++) {
		k.source_port_be = htons((uint16_t)p);
		nat_put(&k, like);
	}
}

static void ports_that_are_over_are_taken(void **state)
{
	static const char text[] = "tcp 10.1.0.5:1000 > 10.0.0.100:80";
	struct ax_nat other = {.client_port_be = htons(9), .state = AX_NAT_OPEN};
	struct result r;

	(void)state;
	start(LIST(ONE));
	assert_int_equal(addr_parse("10.1.0.9", &other.client), 0);
	assert_int_equal(addr_parse("10.0.0.100", &other.service), 0);
	other.seen = stamp();
	use_up_ports(&other);
	assert_fails(text, AX_REASON_NO_PORT, XDP_DROP);
	assert_int_equal(balance_entries(XDP_MAP_FLOWS4, sizeof(struct ax_flow4)), 0);
	other.state = AX_NAT_OPEN | AX_NAT_FINS; /* but only just */
	other.seen = stamp();
	use_up_ports(&other);
	assert_fails(text, AX_REASON_NO_PORT, XDP_DROP);
	other.seen = stamp() - AX_NAT_CLOSED * balance.generation.layout.hz - 1;
	use_up_ports(&other);
	r = balance_run(text);
	assert_int_equal(r.action, XDP_TX);
	r = runf("tcp 10.9.0.11:8080 > 10.9.0.1:%u flags ack", source_port(&r));
	assert_packet(&r, "tcp 10.0.0.100:80 > 10.1.0.5:1000 flags ack ttl 63");
	other.state = AX_NAT_OPEN;
	other.seen = stamp() - AX_NAT_IDLE_TCP * balance.generation.layout.hz - 1;
	use_up_ports(&other);
	assert_int_equal(balance_run("tcp 10.1.0.5:1001 > 10.0.0.100:80").action, XDP_TX);
	forget_all();
}

static void half_open_flows_make_room_for_new_clients(void **state)
{
	struct ax_nat other = {.client_port_be = htons(9)};
	struct ax_nat_key k = key_of("10.9.0.11", "10.9.0.1", 6, 0);
	uint32_t hz = balance.generation.layout.hz, now;
	unsigned open = 0;
	struct ax_nat n;

	(void)state;
	start(LIST(ONE));
	assert_int_equal(addr_parse("10.1.0.9", &other.client), 0);
	assert_int_equal(addr_parse("10.0.0.100", &other.service), 0);
	now = stamp();
	/* half of the ports are open flows', which have been idle for longer */
	for (unsigned p = AX_NAT_PORT; p < AX_NAT_PORT + AX_NAT_PORTS; p++) {
		k.source_port_be = htons((uint16_t)p);
		other.state = p % 2   ? AX_NAT_OPEN
			      : p % 4 ? AX_NAT_SYN_REAL
				      : AX_NAT_SYN_REAL | AX_NAT_RESET;
		other.seen = now - (p % 2 ? 100 * hz : p % 1000 * hz / 1000);
		nat_put(&k, &other);
	}
	for (unsigned i = 0; i < quick_or(200, 2000); i++) {
		struct result r = runf("tcp 10.1.0.5:%u > 10.0.0.100:80 flags syn", 1000 + i);

		assert_int_equal(r.action, XDP_TX);
		assert_int_equal(source_port(&r) % 2, 0);
	}
	for (unsigned p = AX_NAT_PORT; p < AX_NAT_PORT + AX_NAT_PORTS; p++) {
		k.source_port_be = htons((uint16_t)p);
		n = nat_get(&k);
		open += n.state == AX_NAT_OPEN && n.client_port_be == htons(9);
	}
	assert_int_equal(open, AX_NAT_PORTS / 2);
	forget_all();
}

#define MANY	   12
#define OPEN_FLOWS 100

/* A SYN of a client that is not there. */
static void flood_with_syns(unsigned n)
{
	autofree uint8_t *frame = NULL;
	struct error e;
	size_t len;

	assert_int_equal(
		packet_text_parse("tcp 10.1.0.5:1000 > 10.0.0.100:80 flags syn", &frame, &len, &e),
		0);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t client_be = htonl(0x0a020000 + i);

		memcpy(frame + sizeof(struct ethhdr) + offsetof(struct iphdr, saddr), &client_be,
		       sizeof(client_be));
		balance_run_frame(frame, len);
	}
}

/* To more backends than half-open flows of all have room together: those that are open have their
 * own, and what a backend says first, whose client has been silent, gets there. */
static void a_flood_to_many_backends_ends_no_open_flow(void **state)
{
	char list[1000] = "balancers: {web: {mode: nat, backends: ['10.9.0.11:8080'";
	unsigned ports[OPEN_FLOWS], reals[OPEN_FLOWS], went_on = 0;
	char text[100];
	struct result r;

	(void)state;
	for (unsigned i = 1; i < MANY; i++)
		sprintf(list + strlen(list), ", '10.9.0.11:%u'", 8080 + i);
	strcat(list, "]}}\n" RULES);
	start(list);
	for (unsigned i = 0; i < OPEN_FLOWS; i++) {
		r = runf("tcp 10.1.0.5:%u > 10.0.0.100:80 flags syn", 1000 + i);
		ports[i] = source_port(&r);
		reals[i] = (unsigned)r.frame[ETH_HLEN + 22] << 8 | r.frame[ETH_HLEN + 23];
		snprintf(text, sizeof(text), "tcp 10.9.0.11:%u > 10.9.0.1:%u flags syn,ack",
			 reals[i], ports[i]);
		run_numbered(text, SEQ, 0xfffffffe);
		snprintf(text, sizeof(text), "tcp 10.1.0.5:%u > 10.0.0.100:80 flags ack", 1000 + i);
		run_numbered(text, ACK, 0xffffffff);
	}
	flood_with_syns(700000); /* and not less in `make check-quick`: it has to be more than there
				    is room for */
	for (unsigned i = 0; i < OPEN_FLOWS; i++) {
		r = runf("tcp 10.9.0.11:%u > 10.9.0.1:%u flags psh,ack data 'x'", reals[i],
			 ports[i]);
		went_on += r.action == XDP_TX || r.action == XDP_REDIRECT;
	}
	assert_int_equal(went_on, OPEN_FLOWS);
	forget_all();
}

/* --- what cannot be --- */

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_forgotten_flow_finds_its_port_again),
		cmocka_unit_test(a_flow_looks_after_its_port_in_time),
		cmocka_unit_test(the_end_of_a_connection_is_seen),
		cmocka_unit_test(who_goes_on_was_not_reset),
		cmocka_unit_test(a_flow_is_half_open_until_both_sides_have_answered),
		cmocka_unit_test(ports_that_are_over_are_taken),
		cmocka_unit_test(half_open_flows_make_room_for_new_clients),
		cmocka_unit_test(a_flood_to_many_backends_ends_no_open_flow),
	};

	return cmocka_run_group_tests_name("ports of NAT", tests, balance_setup, balance_teardown);
}
