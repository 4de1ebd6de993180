/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Next hops are found as the kernel routes, and kept resolved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <net/if.h>

#include "tests/lib/instance.h"
#include "net/neighbour.h"
#include "tests/lib/netns.h"

static struct {
	struct nl *nl;
	unsigned ifindex;
} w;

static int manage(const char *to, bool on, struct next_hop *hop)
{
	struct ax_addr a = ns_addr(to);

	return neighbour_manage(w.nl, &a, on, hop);
}

static void expect_hop(const char *to, const char *via)
{
	struct ax_addr a = ns_addr(to), wanted = ns_addr(via);
	struct next_hop hop = {0};

	assert_return_code(next_hop_find(w.nl, &a, &hop), 0);
	assert_int_equal(hop.ifindex, w.ifindex);
	assert_true(addr_eq(&hop.addr, &wanted));
}

static void routes(void **state)
{
	struct ax_addr a = ns_addr("10.12.0.1"), own = ns_addr("10.9.0.1");
	struct ax_addr own6 = ns_addr("fd99::1"), none = ns_addr("192.0.2.1");
	struct ax_addr none6 = ns_addr("2001:db8::1"), all = ns_addr("10.9.0.255");
	struct next_hop hop;

	(void)state;
	expect_hop("10.9.0.2", "10.9.0.2");
	expect_hop("10.11.0.1", "10.9.0.2");
	expect_hop("10.10.0.1", "fd99::2"); /* an IPv6 gateway */
	expect_hop("fd99::2", "fd99::2");
	expect_hop("fd98::5", "fd99::2");
	assert_int_equal(next_hop_find(w.nl, &a, &hop), -EHOSTUNREACH);
	assert_int_equal(next_hop_find(w.nl, &none, &hop), -EHOSTUNREACH);
	assert_int_equal(next_hop_find(w.nl, &none6, &hop), -EHOSTUNREACH);
	assert_int_equal(next_hop_find(w.nl, &all, &hop), -EHOSTUNREACH);
	assert_int_equal(next_hop_find(w.nl, &own, &hop), -EADDRINUSE);
	assert_int_equal(next_hop_find(w.nl, &own6, &hop), -EADDRINUSE);
}

/* Whether `ip neigh` has the entry in such a state. */
static bool within(int tries, const char *addr, const char *state)
{
	char command[200];

	snprintf(command, sizeof(command),
		 "for i in $(seq %d); do ip neigh show %s dev near | grep -q '%s' && exit; "
		 "sleep 0.01; done; exit 1",
		 tries, addr, state);
	return system(command) == 0;
}

static bool neigh(const char *addr, const char *state)
{
	return within(1, addr, state);
}

static void kept(void **state)
{
	static const char *const addrs[] = {"10.9.0.2", "fd99::2"};
	struct next_hop hop;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(addrs); i++) {
		assert_return_code(manage(addrs[i], true, &hop), 0);
		assert_true(within(200, addrs[i], "lladdr .* managed .*REACHABLE"));
		/* again: nothing changes */
		assert_return_code(manage(addrs[i], true, NULL), 0);
		assert_true(neigh(addrs[i], "managed"));
		assert_return_code(next_hop_keep(w.nl, &hop, false), 0);
		assert_false(neigh(addrs[i], "managed"));
		assert_true(neigh(addrs[i], "lladdr"));
	}
}

/* Nobody is there yet; the kernel goes on asking until somebody is. */
static void kept_until_there(void **state)
{
	(void)state;
	assert_return_code(manage("10.9.0.7", true, NULL), 0);
	assert_true(neigh("10.9.0.7", "managed"));
	assert_int_equal(system("ip -n far addr add 10.9.0.7/24 dev there"), 0);
	assert_true(within(800, "10.9.0.7", "lladdr"));
	assert_return_code(manage("10.9.0.7", false, NULL), 0);
}

static void nothing_to_undo(void **state)
{
	struct next_hop hop = {.ifindex = w.ifindex, .addr = ns_addr("10.9.0.99")};

	(void)state;
	assert_return_code(next_hop_keep(w.nl, &hop, false), 0);
	assert_false(neigh("10.9.0.99", "10.9.0.99"));
	hop.ifindex = 12345;
	assert_return_code(next_hop_keep(w.nl, &hop, false), 0);
	assert_int_equal(next_hop_keep(w.nl, &hop, true), -ENODEV);
}

static int setup(void **state)
{
	static const char *const command =
		"mount -t tmpfs tmpfs /run && ip link set lo up && ip netns add far && "
		"ip link add near type veth peer name there netns far && ip link set near up && "
		"ip -n far link set there up && ip addr add 10.9.0.1/24 dev near && "
		"ip -n far addr add 10.9.0.2/24 dev there && "
		"ip addr add fd99::1/64 dev near nodad && "
		"ip -n far addr add fd99::2/64 dev there nodad && "
		"ip route add 10.11.0.0/16 via 10.9.0.2 && "
		"ip route add 10.10.0.0/16 via inet6 fd99::2 && "
		"ip -6 route add fd98::/64 via fd99::2 && "
		"ip route add unreachable 10.12.0.1 && "
		/* asks again soon; 5 s on kernels without this (6.0) */
		"{ sysctl -qw net.ipv4.neigh.near.interval_probe_time_ms=100 || true; }";

	(void)state;
	if (own_namespaces() || system(command) || nl_open(&w.nl))
		return -1;
	w.ifindex = if_nametoindex("near");
	return nl_link_wait_up(w.nl, w.ifindex, 1000);
}

static int teardown(void **state)
{
	(void)state;
	nl_closep(&w.nl);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routes),
		cmocka_unit_test(kept),
		cmocka_unit_test(kept_until_there),
		cmocka_unit_test(nothing_to_undo),
	};

	return cmocka_run_group_tests_name("neighbour", tests, setup, teardown);
}
