// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the DNS server keeps for its askers: bounds, shares, and names that come later.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <ldns/ldns.h>
#include <poll.h>
#include <sys/resource.h>

#include "tests/lib/descriptors.h"
#include "tests/lib/dns_server.h"

static void test_queries_of_one_asker_are_bounded(void **state)
{
	autoclose int silent = dns_socket_to(SOCK_DGRAM, 0);
	autoclose int fd = dns_socket_to(SOCK_DGRAM, dns_server_port(dns.server));
	struct dns_upstream u = dns_upstream_at(dns_port_of(silent));
	int size = 1 << 20; /* they all time out at once */

	(void)state;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	dns_set_upstreams(&u, 1);
	dns_send_many(fd, 0, DNS_QUERIES_SHARE);
	assert_false(dns_run(fd, 100));
	dns_send_many(fd, DNS_QUERIES_SHARE, DNS_QUERIES_SHARE + 3);
	for (unsigned i = 0; i < 3; i++) { /* at once */
		dns_receive(fd, DNS_QUERIES_SHARE + i);
		assert_int_equal(dns_rcode(), LDNS_RCODE_SERVFAIL);
	}
	assert_false(dns_run(fd, 100));
	for (unsigned i = 0; i < DNS_QUERIES_SHARE; i++) /* the others in their time */
		dns_receive(fd, i);
	assert_false(dns_timer_is_set());
}

static void test_queries_of_all_are_bounded(void **state)
{
	autoclose int silent = dns_socket_to(SOCK_DGRAM, 0);
	struct dns_upstream u = dns_upstream_at(dns_port_of(silent));
	unsigned before = count_descriptors();
	int fd[DNS_QUERIES_MAX / DNS_QUERIES_SHARE + 2];

	(void)state;
	dns_allow_descriptors();
	dns_set_upstreams(&u, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = dns_socket_from(SOCK_DGRAM, 256 + i, dns_server_port(dns.server));
		dns_send_many(fd[i], 0, DNS_QUERIES_SHARE);
		assert_true(count_descriptors() <= before + DNS_QUERIES_MAX + ARRAY_SIZE(fd));
	}
	assert_true(count_descriptors() >= before + DNS_QUERIES_MAX);
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
}

/* What one asker takes is its own: another one's lookups are not pushed out. */
static void test_a_flood_pushes_out_nobody_else(void **state)
{
	autoclose int silent = dns_socket_to(SOCK_DGRAM, 0);
	autoclose int fd = dns_socket_from(SOCK_DGRAM, 257, dns_server_port(dns.server));
	struct dns_upstream u = dns_upstream_at(dns_port_of(silent));
	uint64_t start;
	int flood[DNS_QUERIES_MAX / DNS_QUERIES_SHARE + 2];

	(void)state;
	dns_allow_descriptors();
	dns_set_upstreams(&u, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(flood); i++)
		flood[i] = dns_socket_from(SOCK_DGRAM, 512 + i, dns_server_port(dns.server));
	start = time_mono_ns();
	/* before the first one has waited for too long */
	for (unsigned i = 0; i < 60 && time_mono_ns() - start < DNS_UPSTREAM_NS / 2; i++) {
		dns_send_many(fd, i, i + 1);
		dns_send_many(flood[i % ARRAY_SIZE(flood)], 0, 2 * DNS_QUERIES_SHARE);
		assert_false(dns_run(fd, 0));
	}
	for (unsigned i = 0; i < ARRAY_SIZE(flood); i++)
		close(flood[i]);
}

/* Whoever is failed to make room asks the next one it had: not in the middle of that. */
static void test_pipelining_clients_keep_the_bound(void **state)
{
	autoclose int silent = dns_socket_to(SOCK_STREAM, 0);
	struct dns_upstream u = dns_upstream_at(dns_port_of(silent));
	struct test_query q = test_query(7, "four.up.test", LDNS_RR_TYPE_A);
	unsigned before;
	int fd[60];

	(void)state;
	dns_allow_descriptors();
	assert_int_equal(listen(silent, 4096), 0);
	dns_set_upstreams(&u, 1);
	before = count_descriptors();
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++)
		fd[i] = dns_socket_from(SOCK_STREAM, 256 + i, dns_server_port(dns.server));
	for (unsigned n = 0; n < 100; n++)
		for (unsigned i = 0; i < ARRAY_SIZE(fd); i++)
			dns_send_framed(fd[i], &q);
	for (int i = 0; i < 100; i++) {
		dns_run(-1, 3);
		assert_true(count_descriptors() <= before + DNS_QUERIES_MAX + 2 * ARRAY_SIZE(fd));
	}
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
}

/* --- names that come later --- */

#define NOT_WAITED_FOR_MS 60000 /* longer than dns_receive() waits for an answer */

static bool late_is_there;
static uint32_t late_wait_ms;

static bool late_lookup(void *arg, const char *name, struct dns_name_info *ret)
{
	if (!streq(name, "late"))
		return test_zone("").lookup(arg, name, ret);
	*ret = (struct dns_name_info){.ip4 = test_addr("10.9.0.8")};
	return late_is_there;
}

/* 127.0.0.2 waits (for a second), and may ask outside; 127.0.0.3 only waits. */
static bool late_asker(void *arg, const struct ax_addr *from, __be16 port_be, uint8_t proto,
		       struct dns_rights *ret)
{
	(void)arg;
	(void)port_be;
	(void)proto;
	*ret = (struct dns_rights){.self = *from,
				   .forward = from->b[15] != 3,
				   .wait_ms = from->b[15] > 1 ? late_wait_ms : 0};
	return true;
}

static int setup_late(void **state)
{
	struct dns_config c = {.listen4 = test_addr("127.0.0.1"), .zone = test_zone("ax.internal")};
	struct dns_upstream u;
	struct error e = {};

	(void)state;
	late_is_there = false;
	late_wait_ms = 1000;
	dns.epoll_fd = loop_open();
	dns.upstream = dns_server_new("up.test", 0, NULL, 0);
	u = dns_upstream_at(dns_server_port(dns.upstream));
	c.zone.lookup = late_lookup;
	c.zone.asker = late_asker;
	c.upstreams = &u;
	c.n_upstreams = 1;
	return dns_server_open(dns.epoll_fd, &c, &dns.server, &e);
}

static void name_comes(void)
{
	late_is_there = true;
	dns_server_names_added(dns.server);
}

static void ask_late(int fd, unsigned id, const char *name, unsigned type)
{
	struct test_query q = test_query((uint16_t)id, name, type);

	dns_send_query(fd, &q);
	dns_run(-1, 1);
}

static void test_a_name_is_waited_for(void **state)
{
	static const char *const names[] = {"late.ax.internal", "LATE.Ax.internal", "late"};
	static const uint8_t addr[] = {10, 9, 0, 8};

	(void)state;
	for (unsigned from = 2; from <= 3; from++) {
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			autoclose int fd =
				dns_socket_from(SOCK_DGRAM, from, dns_server_port(dns.server));
			size_t len;

			late_is_there = false;
			ask_late(fd, 1, names[i], LDNS_RR_TYPE_A);
			ask_late(fd, 1, names[i], LDNS_RR_TYPE_A); /* again: one answer */
			ask_late(fd, 2, names[i], LDNS_RR_TYPE_AAAA);
			assert_false(dns_run(fd, 50));
			name_comes();
			len = dns_receive(fd, 1);
			assert_int_equal(dns_rcode(), 0);
			assert_memory_equal(dns.reply + len - 4, addr, 4);
			dns_receive(fd, 2);
			assert_int_equal(dns_rcode(), 0);
			assert_int_equal(dns_get16(dns.reply + 6), 0);
			assert_false(dns_run(fd, 20));
		}
	}
	assert_false(dns_timer_is_set());
}

static void test_the_wait_for_a_name_is_had_once(void **state)
{
	autoclose int fd = dns_socket_from(SOCK_DGRAM, 2, dns_server_port(dns.server));
	uint64_t start = time_mono_ns();

	(void)state;
	ask_late(fd, 1, "late.ax.internal", LDNS_RR_TYPE_A);
	assert_false(dns_run(fd, 500));
	ask_late(fd, 2, "late", LDNS_RR_TYPE_AAAA); /* no longer than the first one */
	dns_receive(fd, 1);
	assert_int_equal(dns_rcode(), LDNS_RCODE_NXDOMAIN);
	assert_true(time_mono_ns() - start >= 900000000u);
	dns_receive(fd, 2);
	assert_int_equal(dns_rcode(), LDNS_RCODE_NXDOMAIN);
	late_wait_ms = NOT_WAITED_FOR_MS;
	ask_late(fd, 3, "late", LDNS_RR_TYPE_A);
	dns_receive(fd, 3);
	assert_int_equal(dns_rcode(), LDNS_RCODE_NXDOMAIN);
	assert_false(dns_timer_is_set());
}

static void test_other_names_do_not_wait(void **state)
{
	static const char *const names[] = {
		"web",	     "four.up.test",	      "no.where.test", "a.late.ax.internal",
		"localhost", "9.9.9.10.in-addr.arpa", "ax.internal"};
	autoclose int fd = dns_socket_from(SOCK_DGRAM, 2, dns_server_port(dns.server));
	autoclose int other = dns_socket_to(SOCK_DGRAM, dns_server_port(dns.server));

	(void)state;
	late_wait_ms = NOT_WAITED_FOR_MS;
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		ask_late(fd, i, names[i], LDNS_RR_TYPE_A);
		dns_receive(fd, i);
	}
	ask_late(other, 9, "late.ax.internal", LDNS_RR_TYPE_A); /* does not want to wait */
	dns_receive(other, 9);
	assert_int_equal(dns_rcode(), LDNS_RCODE_NXDOMAIN);
}

static void test_waiting_by_tcp(void **state)
{
	autoclose int fd = dns_socket_from(SOCK_STREAM, 2, dns_server_port(dns.server));
	autoclose int gone = dns_socket_from(SOCK_STREAM, 2, dns_server_port(dns.server));
	struct test_query q = test_query(5, "late.ax.internal", LDNS_RR_TYPE_A);

	(void)state;
	dns_send_framed(fd, &q);
	dns_send_framed(gone, &q);
	assert_false(dns_run(fd, 100));
	close_fd(&gone);
	name_comes();
	dns_receive_framed(fd);
	assert_int_equal(dns_rcode(), 0);
	assert_int_equal(dns_get16(dns.reply + 6), 1);
}

static void test_waiting_is_bounded(void **state)
{
	autoclose int fd = dns_socket_from(SOCK_DGRAM, 2, dns_server_port(dns.server));

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		char name[32];

		snprintf(name, sizeof(name), "n%u.ax.internal", i);
		ask_late(fd, i, name, LDNS_RR_TYPE_A);
	}
	/* those that are too many, at once */
	dns_receive(fd, DNS_HELD_SHARE);
	assert_int_equal(dns_rcode(), LDNS_RCODE_NXDOMAIN);
}

static void test_who_waits_for_many_names_keeps_nobody_from_waiting(void **state)
{
	autoclose int fd = dns_socket_from(SOCK_DGRAM, 2, dns_server_port(dns.server));
	autoclose int other = dns_socket_from(SOCK_DGRAM, 3, dns_server_port(dns.server));

	(void)state;
	late_wait_ms = NOT_WAITED_FOR_MS;
	for (unsigned i = 0; i < 2 * DNS_HELD_MAX; i++) {
		char name[32];

		snprintf(name, sizeof(name), "n%u.ax.internal", i);
		ask_late(fd, i, name, LDNS_RR_TYPE_A);
	}
	ask_late(other, 1, "late.ax.internal", LDNS_RR_TYPE_A);
	assert_false(dns_run(other, 50));
	name_comes();
	dns_receive(other, 1);
	assert_int_equal(dns_rcode(), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, dns_setup, dns_teardown)
#define LATE(f) cmocka_unit_test_setup_teardown(f, setup_late, dns_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_queries_of_one_asker_are_bounded),
		TEST(test_queries_of_all_are_bounded),
		TEST(test_a_flood_pushes_out_nobody_else),
		TEST(test_pipelining_clients_keep_the_bound),
		LATE(test_a_name_is_waited_for),
		LATE(test_the_wait_for_a_name_is_had_once),
		LATE(test_other_names_do_not_wait),
		LATE(test_waiting_by_tcp),
		LATE(test_waiting_is_bounded),
		LATE(test_who_waits_for_many_names_keeps_nobody_from_waiting),
	};

	return cmocka_run_group_tests_name("dns_bounds", tests, NULL, NULL);
}
