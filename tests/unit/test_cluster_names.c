// SPDX-License-Identifier: GPL-2.0-or-later
/* Apps of other nodes: who has a name and an address, which names are to be looked at again, and at
 * which ports a service gets lists of its own. */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "registry/app_table.h"
#include "registry/names.h"
#include "registry/others.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "services/across.h"
#include "services/near.h"

static const struct other_port http[] = {{.port = 80, .proto = IPPROTO_TCP},
					 {.port = 443, .proto = IPPROTO_TCP}};
static const struct other_port dns[] = {{.port = 53, .proto = IPPROTO_UDP},
					{.port = 80, .proto = IPPROTO_TCP}};

static struct other_app other(const char *node, const char *app, const char *ip4)
{
	struct other_app r = {.node = node, .app = app};

	assert_int_equal(addr_parse(ip4, &r.ip4), 0);
	return r;
}

static void names_and_addresses(void **state)
{
	struct other_app first = other("n1", "web", "10.1.1.1"), second = first;
	struct agent a = {0};
	struct ax_addr addr;
	struct name *n;

	(void)state;
	second.node = "n2";
	assert_int_equal(addr_parse("10.1.2.1", &second.ip4), 0);
	second.ports = http;
	second.n_ports = 2;
	assert_int_equal(other_add(&a, &first), 0);
	n = name_find(&a, "web");
	assert_non_null(n);
	assert_null(other_serving(n)); /* it does not listen yet */
	assert_false(a.names_changed); /* nothing of this node's has */
	assert_int_equal(other_add(&a, &second), 0);
	assert_int_equal(n->n_others, 2);
	assert_ptr_equal(other_serving(n), &second);
	assert_ptr_equal(other_of_addr(&a, &second.ip4), &second);

	other_remove(&a, &second);
	other_remove(&a, &second);
	assert_int_equal(n->n_others, 1);
	assert_null(other_of_addr(&a, &second.ip4));
	assert_int_equal(addr_parse("10.1.1.1", &addr), 0);
	assert_ptr_equal(other_of_addr(&a, &addr), &first);
	other_remove(&a, &first);
	assert_ptr_equal(others_next_stale(&a), n); /* it stays for who looks at it */
	others_settled(&a, n);
	assert_null(name_find(&a, "web"));
	others_free(&a);
	name_free_all(&a);
}

static void an_address_is_the_first_ones(void **state)
{
	struct other_app x = other("n1", "a", "10.1.1.1"), y = other("n2", "b", "10.1.1.1");
	struct agent a = {0};

	(void)state;
	assert_int_equal(other_add(&a, &x), 0);
	assert_int_equal(other_add(&a, &y), 0);
	assert_ptr_equal(other_of_addr(&a, &x.ip4), &x);
	other_remove(&a, &y);
	assert_ptr_equal(other_of_addr(&a, &x.ip4), &x);
	others_free(&a);
	name_free_all(&a);
}

static void stale_names_come_once_and_in_order(void **state)
{
	struct other_app x = other("n1", "a", "10.1.1.1"), y = other("n1", "b", "10.1.1.2");
	struct agent a = {0};

	(void)state;
	assert_int_equal(other_add(&a, &x), 0);
	assert_int_equal(other_add(&a, &y), 0);
	other_remove(&a, &x);
	assert_true(a.others_at_ns);
	assert_true(a.timers_stale);
	assert_string_equal(others_next_stale(&a)->text, "a");
	assert_string_equal(others_next_stale(&a)->text, "b");
	assert_null(others_next_stale(&a));
	others_all_stale(&a); /* only those that other nodes have */
	assert_string_equal(others_next_stale(&a)->text, "b");
	assert_null(others_next_stale(&a));
	others_free(&a);
	name_free_all(&a);
}

static void a_member_is_one_where_it_listens(void **state)
{
	struct other_app x = other("n1", "web", "10.1.1.1");
	struct service_member m = {.other = &x}, local = {0};

	(void)state;
	x.ports = dns;
	x.n_ports = 2;
	assert_true(across_serves(&m, 80, IPPROTO_TCP, true));
	assert_true(across_serves(&m, 53, IPPROTO_UDP, false));
	assert_false(across_serves(&m, 53, IPPROTO_TCP, false));
	assert_false(across_serves(&m, 81, IPPROTO_TCP, true));
	/* at all other ports this node's own come first: they may be waited for */
	assert_false(across_serves(&m, 0, IPPROTO_TCP, true));
	assert_true(across_serves(&m, 0, IPPROTO_TCP, false));
	assert_true(across_serves(&local, 0, IPPROTO_TCP, true));
	assert_true(across_serves(&local, 81, IPPROTO_TCP, true));
}

static void ports_have_lists(void **state)
{
	struct other_app x = other("n1", "web", "10.1.1.1"), y = other("n2", "web", "10.1.2.1");
	struct service_member m[] = {{.other = &x}, {.weight = 1}, {.other = &y}};
	struct other_port *gone;
	struct service s = {0};
	size_t n_gone;

	(void)state;
	x.ports = http;
	y.ports = dns;
	x.n_ports = y.n_ports = 2;
	assert_int_equal(across_ports(&s, m, 3, &gone, &n_gone), 0);
	assert_int_equal(n_gone, 0);
	free(gone);
	assert_int_equal(s.n_ports, 3); /* 80 once */
	assert_int_equal(s.ports[0].port, 53);
	assert_int_equal(s.ports[1].port, 80);
	assert_int_equal(s.ports[2].port, 443);
	assert_int_equal(across_ports(&s, m, 2, &gone, &n_gone), 0);
	assert_int_equal(s.n_ports, 2);
	assert_int_equal(n_gone, 1);
	assert_int_equal(gone[0].port, 53);
	free(gone);
	assert_int_equal(across_ports(&s, m, 0, &gone, &n_gone), 0);
	assert_int_equal(s.n_ports, 0);
	assert_int_equal(n_gone, 2);
	free(gone);
	free(s.ports);
}

static void ports_of_one_service_are_bounded(void **state)
{
	static struct other_port many[1000];
	struct other_app x = other("n1", "web", "10.1.1.1");
	struct service_member m = {.other = &x};
	struct other_port *gone;
	struct service s = {0};
	size_t n_gone;

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		many[i] = (struct other_port){.port = (uint16_t)(1000 - i), .proto = IPPROTO_TCP};
	x.ports = many;
	x.n_ports = 1000;
	assert_int_equal(across_ports(&s, &m, 1, &gone, &n_gone), 0);
	assert_int_equal(s.n_ports, 64);
	assert_int_equal(s.ports[63].port, 64);
	free(gone);
	free(s.ports);
}

static void a_port_that_stays_is_gone_the_next_time_too(void **state)
{
	struct other_app x = other("n1", "web", "10.1.1.1");
	struct service_member m = {.other = &x};
	struct other_port *gone;
	struct service s = {0};
	size_t n_gone;

	(void)state;
	x.ports = http;
	x.n_ports = 2;
	assert_int_equal(across_ports(&s, &m, 1, &gone, &n_gone), 0);
	free(gone);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(across_ports(&s, &m, 0, &gone, &n_gone), 0);
		assert_int_equal(n_gone, i ? 1 : 2);
		assert_int_equal(gone[0].port, 80);
		assert_int_equal(across_port_stays(&s, &gone[0]), 0);
		free(gone);
	}
	assert_int_equal(across_ports(&s, &m, 1, &gone, &n_gone), 0); /* it is there again */
	assert_int_equal(s.n_ports, 2);
	assert_int_equal(n_gone, 0);
	free(gone);
	free(s.ports);
}

/* What it says of its own services is no word about this cluster's of the same name. */
static void what_another_cluster_says_of_its_app(void **state)
{
	struct other_state states[] = {
		{.service = "web", .v4 = true, .checked = true, .down = true},
		{.service = "shop", .v4 = true, .drained = true},
		{.service = "we", .v4 = true, .drained = true}};
	struct other_app x = other("n1.west", "web.west", "10.1.1.1");

	(void)state;
	x.cluster = "west";
	x.states = states;
	x.n_states = ARRAY_SIZE(states);
	assert_ptr_equal(other_state_of(&x, "shop", true), &states[0]);
	assert_ptr_equal(other_state_of(&x, "web.west", true), &states[0]);
	assert_null(other_state_of(&x, "shop", false));
}

static void the_nearest_who_serve_have_the_connections(void **state)
{
	struct other_app own = other("n2", "web", "10.1.1.1");
	struct other_app west = other("n1.west", "web.west", "10.2.1.1");
	struct service_member m[] = {{.other = &west}, {.other = &own}, {.weight = 1}};
	struct ax_endpoint ep = {.proto = IPPROTO_TCP};
	struct service s = {0};
	struct agent a = {0};

	(void)state;
	assert_int_equal(addr_parse("10.0.0.1", &ep.addr), 0);
	assert_int_equal(addr_parse("10.9.9.9", &m[2].addr), 0); /* fixed, and near */
	m[0].addr = west.ip4;
	m[1].addr = own.ip4;
	own.ports = west.ports = http;
	own.n_ports = west.n_ports = 2;
	west.cluster = "west";
	a.config.cluster.prefer_local = true;

	near_mark(&a, &s, m, 3);
	assert_int_equal(near_reach(&a, m, 3, &ep, 80), 0);
	assert_true(m[0].far && m[1].far && !m[2].far);
	m[2].down = true;
	near_mark(&a, &s, m, 3);
	assert_int_equal(near_reach(&a, m, 3, &ep, 80), NEAR_AWAY);
	assert_true(m[0].far && !m[1].far);
	own.n_ports = 0; /* it does not listen any more */
	near_mark(&a, &s, m, 3);
	assert_int_equal(near_reach(&a, m, 3, &ep, 80), NEAR_CLUSTER);
	assert_false(m[0].far);
	/* those of the own cluster are alike, unless the config says otherwise; a peer's are not */
	own.n_ports = 2;
	m[2].down = false;
	a.config.cluster.prefer_local = false;
	near_mark(&a, &s, m, 3);
	assert_true(m[0].far && !m[1].far && !m[2].far);
	/* where there are no others, nobody is far */
	near_mark(&a, &s, m, 1);
	assert_int_equal(m[0].away, 0);
	assert_false(m[0].far);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_addresses),
		cmocka_unit_test(an_address_is_the_first_ones),
		cmocka_unit_test(stale_names_come_once_and_in_order),
		cmocka_unit_test(a_member_is_one_where_it_listens),
		cmocka_unit_test(what_another_cluster_says_of_its_app),
		cmocka_unit_test(the_nearest_who_serve_have_the_connections),
		cmocka_unit_test(ports_have_lists),
		cmocka_unit_test(ports_of_one_service_are_bounded),
		cmocka_unit_test(a_port_that_stays_is_gone_the_next_time_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
