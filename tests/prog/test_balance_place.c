// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
// timeout: 300
/* Which backend a new flow gets: by the client's address alone, and the same one whatever machine
 * places it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "tests/lib/balance.h"

#define RULE "rules: [{name: web, dst: '10.0.0.100,fd00::100', action: balance web}]\n"
#define FOUR                                                                                \
	"[10.9.0.11, 10.9.0.12, 10.9.0.13, 10.9.0.14, 'fd09::11', 'fd09::12', 'fd09::13', " \
	"'fd09::14']"
#define BY_SRC(mode) "balancers: {web: {mode: " mode ", affinity: src, backends: " FOUR "}}\n" RULE

#define CLIENTS 200

static unsigned backend_for(const char *text)
{
	struct result r = balance_run(text);

	assert_int_equal(r.action, XDP_TX);
	return backend_of(&r);
}

/* Whoever asks, for whatever: all of it goes to one backend, and clients spread. */
static void check_by_src(const char *list)
{
	static const char *const packets[] =
		{
			"tcp 10.1.0.%u:1000 > 10.0.0.100:80 flags syn",
			"tcp 10.1.0.%u:1001 > 10.0.0.100:80 flags syn",
			"tcp 10.1.0.%u:1000 > 10.0.0.100:443 flags syn",
			"udp 10.1.0.%u:1000 > 10.0.0.100:443",
			"udp 10.1.0.%u > 10.0.0.100 frag later len 64",
		},
				 *const packets6[] = {
					 "tcp [fd01::%x]:1000 > [fd00::100]:80 flags syn",
					 "tcp [fd01::%x]:1001 > [fd00::100]:80 flags syn",
					 "tcp [fd01::%x]:1000 > [fd00::100]:443 flags syn",
					 "udp [fd01::%x]:1000 > [fd00::100]:443",
					 "udp fd01::%x > fd00::100 frag later len 64",
				 };
	unsigned seen[2][20] = {{0}};
	char text[128];

	balance_load_afresh(list);
	for (unsigned client = 1; client <= CLIENTS; client++) {
		for (int v6 = 0; v6 < 2; v6++) {
			unsigned first = 0;

			for (unsigned i = 0; i < ARRAY_SIZE(packets); i++) {
				snprintf(text, sizeof(text), v6 ? packets6[i] : packets[i], client);
				if (!i)
					seen[v6][first = backend_for(text)]++;
				else
					assert_int_equal(backend_for(text), first);
			}
		}
	}
	for (int v6 = 0; v6 < 2; v6++)
		for (unsigned b = 11; b < 15; b++)
			assert_in_range(seen[v6][b], CLIENTS / 8, CLIENTS / 2);
}

static void the_clients_address_decides(void **state)
{
	(void)state;
	check_by_src(BY_SRC("ipip"));
	check_by_src(BY_SRC("gue"));
	check_by_src(BY_SRC("nat"));
}

/* An ICMP error about a flow comes from anybody, and follows the flow. */
static void errors_follow_their_client(void **state)
{
	char text[256];

	(void)state;
	balance_load_afresh(BY_SRC("ipip"));
	for (unsigned i = 1; i < 60; i++) {
		unsigned flow;

		snprintf(text, sizeof(text), "tcp 10.1.0.%u:1000 > 10.0.0.100:80 flags ack", i);
		flow = backend_for(text);
		snprintf(text, sizeof(text),
			 "icmp 10.2.0.9 > 10.0.0.100 type 3/4 quoting (tcp 10.0.0.100:80 > "
			 "10.1.0.%u:7)",
			 i);
		assert_int_equal(backend_for(text), flow);
	}
}

/* Open flows stay where they are when others come to be placed elsewhere. */
static void open_flows_outlast_a_change(void **state)
{
	unsigned before[CLIENTS], moved = 0;
	char text[128];

	(void)state;
	balance_load_afresh("balancers: {web: {mode: ipip, affinity: src, backends: [10.9.0.11, "
			    "10.9.0.12]}}\n" RULE);
	for (unsigned i = 0; i < CLIENTS; i++) {
		snprintf(text, sizeof(text), "tcp 10.1.0.%u:1 > 10.0.0.100:80 flags ack", i + 1);
		before[i] = backend_for(text);
	}
	balance_load(BY_SRC("ipip"));
	for (unsigned i = 0; i < CLIENTS; i++) {
		snprintf(text, sizeof(text), "tcp 10.1.0.%u:1 > 10.0.0.100:80 flags ack", i + 1);
		assert_int_equal(backend_for(text), before[i]);
		snprintf(text, sizeof(text), "tcp 10.1.0.%u:2 > 10.0.0.100:80 flags ack", i + 1);
		moved += backend_for(text) != before[i];
	}
	assert_in_range(moved, CLIENTS / 4, CLIENTS * 3 / 4);
}

/* --- several machines --- */

static void see_places(unsigned who[2 * CLIENTS])
{
	char text[128];

	for (unsigned i = 0; i < CLIENTS; i++) {
		snprintf(text, sizeof(text), "tcp 10.1.0.%u:%u > 10.0.0.100:80 flags ack", i + 1,
			 1000 + i);
		who[i] = backend_for(text);
		snprintf(text, sizeof(text), "udp [fd01::%x]:%u > [fd00::100]:53", i + 1, 1000 + i);
		who[CLIENTS + i] = backend_for(text);
	}
}

/*
 * The same config on another machine: its backends in another order, beside other balancers, after
 * others had their numbers, some of which have gone again; and those of one that was drained and
 * is back.
 */
static void the_same_backends_are_the_same_choice(void **state)
{
	static const char others[] =
		"balancers: {a: {mode: gue, backends: [10.9.0.14, 10.9.0.11]}, web: {mode: ipip, "
		"backends: [10.9.0.13, 'fd09::14', 10.9.0.15]}}\n" RULE,
			  other[] =
				  "balancers: {z: {mode: ipip, backends: [10.9.0.12]}, web: {mode: "
				  "ipip, backends: ['fd09::13', 'fd09::14', 10.9.0.14, 'fd09::11', "
				  "{address: 10.9.0.12, weight: 3}, 10.9.0.11, 'fd09::12', "
				  "10.9.0.13]}, a: {mode: gue, backends: [10.9.0.11]}}\n" RULE;
	unsigned one[2 * CLIENTS], two[2 * CLIENTS];

	(void)state;
	balance_load_afresh("balancers: {web: {mode: ipip, backends: [10.9.0.11, {address: "
			    "10.9.0.12, weight: 3}, 10.9.0.13, 10.9.0.14, 'fd09::11', 'fd09::12', "
			    "'fd09::13', 'fd09::14']}}\n" RULE);
	see_places(one);
	balance_load_afresh(others);
	balance_load(other);
	see_places(two);
	assert_memory_equal(one, two, sizeof(one));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_clients_address_decides),
		cmocka_unit_test(errors_follow_their_client),
		cmocka_unit_test(open_flows_outlast_a_change),
		cmocka_unit_test(the_same_backends_are_the_same_choice),
	};

	return cmocka_run_group_tests_name("balancer's places", tests, balance_setup,
					   balance_teardown);
}
