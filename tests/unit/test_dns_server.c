// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The DNS server on loopback: UDP, forwarding to a second server, upstreams that are silent, gone
 * or forged, and ports that are taken.
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

#include "tests/lib/dns_server.h"

static void test_udp(void **state)
{
	static const uint8_t addr[] = {10, 9, 0, 1};
	size_t len = dns_ask_udp("web.ax.internal", LDNS_RR_TYPE_A);

	(void)state;
	assert_memory_equal(dns.reply + len - 4, addr, 4);
	assert_false(dns_timer_is_set());
}

static void test_udp_ignores_junk(void **state)
{
	autoclose int fd = dns_socket_to(SOCK_DGRAM, dns_server_port(dns.server));
	struct test_query q = test_query(9, "web.ax.internal", LDNS_RR_TYPE_A);
	static const uint8_t zeros[8192];

	(void)state;
	assert_int_equal(send(fd, zeros, 0, 0), 0);
	assert_int_equal(send(fd, zeros, 5, 0), 5);
	assert_int_equal(send(fd, zeros, sizeof(zeros), 0), sizeof(zeros));
	dns_send_query(fd, &q);
	dns_receive(fd, 9); /* the first thing that comes */
}

static void test_forward_udp(void **state)
{
	static const uint8_t addr[] = {10, 9, 0, 4};
	size_t len = dns_ask_udp("fOUR.up.test", LDNS_RR_TYPE_A);

	(void)state;
	assert_int_equal(dns_rcode(), 0);
	assert_int_equal(dns_get16(dns.reply + 6), 1);
	assert_memory_equal(dns.reply + 12, "\4fOUR\2up\4test", 14);
	assert_memory_equal(dns.reply + len - 4, addr, 4);
	assert_false(dns_timer_is_set());
	/* truncation is passed on */
	dns_ask_udp("_any._tcp." LONG_NAME ".up.test", LDNS_RR_TYPE_SRV);
	assert_int_equal(dns.reply[2] & 2, 2);
}

static void test_forward_failures(void **state)
{
	(void)state;
	dns_ask_udp("example.com", LDNS_RR_TYPE_A); /* the upstream has nobody to ask */
	assert_int_equal(dns_rcode(), LDNS_RCODE_SERVFAIL);
	dns_ask_udp("nobody", LDNS_RR_TYPE_A);
	assert_int_equal(dns_rcode(), LDNS_RCODE_NXDOMAIN);
	dns_set_upstreams(NULL, 0);
	dns_ask_udp("four.up.test", LDNS_RR_TYPE_A);
	assert_int_equal(dns_rcode(), LDNS_RCODE_SERVFAIL);
	assert_memory_equal(dns.reply + 12, "\4four\2up\4test", 14);
	dns_ask_udp("nobody", LDNS_RR_TYPE_A);
	assert_int_equal(dns_rcode(), LDNS_RCODE_NXDOMAIN);
	dns_ask_udp("9.9.9.9.in-addr.arpa", LDNS_RR_TYPE_PTR);
	assert_int_equal(dns_rcode(), LDNS_RCODE_SERVFAIL);
}

static void test_not_its_own_upstream(void **state)
{
	struct dns_upstream u = dns_upstream_at(dns_server_port(dns.server));

	(void)state;
	dns_set_upstreams(&u, 1);
	dns_ask_udp("nobody",
		    LDNS_RR_TYPE_A); /* round and round it would be SERVFAIL, after a while */
	assert_int_equal(dns_rcode(), LDNS_RCODE_NXDOMAIN);
}

static void test_next_upstream_at_once(void **state)
{
	autoclose int gone = dns_socket_to(SOCK_DGRAM, 0);
	struct dns_server *useless = dns_server_new("other.test", 0, NULL, 0);
	struct dns_upstream u[] = {dns_upstream_at(dns_port_of(gone)),
				   dns_upstream_at(dns_server_port(useless)),
				   dns_upstream_at(dns_server_port(dns.upstream))};
	uint64_t took = UINT64_MAX;

	(void)state;
	close_fd(&gone); /* now nobody has the port */
	dns_set_upstreams(u, ARRAY_SIZE(u));
	/* who is waited for is so each time; a busy machine takes long now and then */
	for (int i = 0; i < 5 && took >= DNS_UPSTREAM_NS; i++) {
		uint64_t start = time_mono_ns();

		dns_ask_udp("four.up.test",
			    LDNS_RR_TYPE_A); /* ECONNREFUSED, SERVFAIL, the answer */
		assert_int_equal(dns_rcode(), 0);
		assert_int_equal(dns_get16(dns.reply + 6), 1);
		took = time_mono_ns() - start;
	}
	assert_true(took < DNS_UPSTREAM_NS);
	dns_set_upstreams(u, 2);
	dns_ask_udp("four.up.test", LDNS_RR_TYPE_A);
	assert_int_equal(dns_rcode(), LDNS_RCODE_SERVFAIL);
	dns_server_close(useless);
}

static void test_silent_upstream(void **state)
{
	autoclose int silent = dns_socket_to(SOCK_DGRAM, 0);
	struct dns_upstream u[] = {dns_upstream_at(dns_port_of(silent)),
				   dns_upstream_at(dns_server_port(dns.upstream))};
	uint64_t start = time_mono_ns();

	(void)state;
	dns_set_upstreams(u, 2);
	dns_ask_udp("four.up.test", LDNS_RR_TYPE_A);
	assert_int_equal(dns_get16(dns.reply + 6), 1);
	assert_true(time_mono_ns() - start >= 1900000000u);
	dns_set_upstreams(u, 1);
	dns_ask_udp("four.up.test", LDNS_RR_TYPE_A);
	assert_int_equal(dns_rcode(), LDNS_RCODE_SERVFAIL);
	assert_false(dns_timer_is_set());
}

static void test_forged_answers(void **state)
{
	autoclose int wire = dns_socket_to(SOCK_DGRAM, 0);
	autoclose int forger = dns_socket_to(SOCK_DGRAM, 0);
	autoclose int fd = dns_socket_to(SOCK_DGRAM, dns_server_port(dns.server));
	struct dns_upstream u = dns_upstream_at(dns_port_of(wire));
	struct test_query q = test_query(0x77, "four.up.test", LDNS_RR_TYPE_A);
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	uint8_t msg[512], bad[512];
	ssize_t n;

	(void)state;
	dns_set_upstreams(&u, 1);
	dns_send_query(fd, &q);
	assert_true(dns_run(wire, WAIT_MS));
	n = recvfrom(wire, msg, sizeof(msg), 0, (struct sockaddr *)&from, &from_len);
	assert_int_equal(n, q.len);
	assert_memory_equal(msg + 2, q.b + 2, q.len - 2);
	assert_int_not_equal(from.sin_port, dns_port_of(fd));
	msg[2] |= 0x80;

	memcpy(bad, msg, (size_t)n); /* another ID */
	bad[0] ^= 1;
	sendto(wire, bad, (size_t)n, 0, (struct sockaddr *)&from, from_len);
	memcpy(bad, msg, (size_t)n); /* another question */
	bad[13] ^= 1;
	sendto(wire, bad, (size_t)n, 0, (struct sockaddr *)&from, from_len);
	memcpy(bad, msg, (size_t)n); /* not a response */
	bad[2] &= 0x7f;
	sendto(wire, bad, (size_t)n, 0, (struct sockaddr *)&from, from_len);
	sendto(wire, msg, 11, 0, (struct sockaddr *)&from, from_len); /* short */
	/* all right, but from another port */
	sendto(forger, msg, (size_t)n, 0, (struct sockaddr *)&from, from_len);
	assert_false(dns_run(fd, 300));

	msg[3] = LDNS_RCODE_NXDOMAIN;
	sendto(wire, msg, (size_t)n, 0, (struct sockaddr *)&from, from_len);
	assert_int_equal(dns_receive(fd, 0x77), n);
	assert_int_equal(dns_rcode(), LDNS_RCODE_NXDOMAIN);
}

/* IDs and ports of upstream queries have to be hard to guess. */
static void test_upstream_ids_differ(void **state)
{
	autoclose int wire = dns_socket_to(SOCK_DGRAM, 0);
	autoclose int fd = dns_socket_to(SOCK_DGRAM, dns_server_port(dns.server));
	struct dns_upstream u = dns_upstream_at(dns_port_of(wire));
	struct test_query q = test_query(0x77, "four.up.test", LDNS_RR_TYPE_A);
	unsigned ids[8], same_id = 0, same_port = 0;
	__be16 ports[8];

	(void)state;
	dns_set_upstreams(&u, 1);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		struct sockaddr_in from = {0};
		socklen_t len = sizeof(from);

		dns_send_query(fd, &q);
		assert_true(dns_run(wire, WAIT_MS));
		assert_true(recvfrom(wire, dns.reply, sizeof(dns.reply), 0,
				     (struct sockaddr *)&from, &len) > 0);
		ids[i] = dns_get16(dns.reply);
		ports[i] = from.sin_port;
		same_id += i && ids[i] == ids[0];
		same_port += i && ports[i] == ports[0];
	}
	assert_true(same_id < 2);
	assert_int_equal(same_port, 0); /* all are open at once */
}

static void test_port_taken(void **state)
{
	__be16 port_be = dns_server_port(dns.server);
	struct dns_server *other = dns_server_new("ax.internal", port_be, NULL, 0);
	autoclose int tcp = -1, udp = -1;
	struct test_query q = test_query(6, "web.ax.internal", LDNS_RR_TYPE_A);

	(void)state;
	assert_int_not_equal(dns_server_port(other), port_be);
	tcp = dns_socket_to(SOCK_STREAM, dns_server_port(other));
	udp = dns_socket_to(SOCK_DGRAM, dns_server_port(other));
	dns_send_framed(tcp, &q);
	dns_receive_framed(tcp);
	dns_send_query(udp, &q);
	dns_receive(udp, 6);
	dns_server_close(other);
}

/* A port that somebody has for UDP alone, and would share. */
static void test_udp_port_taken(void **state)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct dns_server *other;
	int one = 1;

	(void)state;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	other = dns_server_new("ax.internal", dns_port_of(fd), NULL, 0);
	assert_int_not_equal(dns_server_port(other), dns_port_of(fd));
	dns_server_close(other);
}

static void test_both_families(void **state)
{
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct dns_config c = {.listen4 = test_addr("127.0.0.1"),
			       .listen6 = test_addr("::1"),
			       .port_be = dns_server_port(dns.server), /* taken for IPv4 */
			       .zone = test_zone("ax.internal")};
	autoclose int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct test_query q = test_query(6, "ns.dns.ax.internal", LDNS_RR_TYPE_AAAA);
	struct dns_server *s;
	struct error e;

	(void)state;
	if (fd < 0 || bind(fd, (struct sockaddr *)&sin6, sizeof(sin6)) < 0)
		skip(); /* no IPv6 here */
	assert_int_equal(dns_server_open(dns.epoll_fd, &c, &s, &e), 0);
	assert_int_not_equal(dns_server_port(s), dns_server_port(dns.server));
	sin6.sin6_port = dns_server_port(s);
	assert_int_equal(connect(fd, (struct sockaddr *)&sin6, sizeof(sin6)), 0);
	dns_send_query(fd, &q);
	dns_receive(fd, 6);
	assert_int_equal(dns_get16(dns.reply + 6), 1);
	dns_server_close(s);
}

static void test_open_fails(void **state)
{
	struct dns_config c = {.zone = test_zone("ax.internal")};
	struct dns_server *s = NULL;
	struct error e = {};

	(void)state;
	assert_int_equal(dns_server_open(dns.epoll_fd, &c, &s, &e), -EINVAL);
	assert_true(strlen(e.text) > 0);
	c.listen4 = test_addr("192.0.2.1"); /* of no interface */
	c.port_be = htons(53535);
	assert_int_equal(dns_server_open(dns.epoll_fd, &c, &s, &e), -EADDRNOTAVAIL);
	assert_non_null(strstr(e.text, "192.0.2.1:53535"));
	assert_null(s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, dns_setup, dns_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_udp),
		TEST(test_udp_ignores_junk),
		TEST(test_forward_udp),
		TEST(test_forward_failures),
		TEST(test_not_its_own_upstream),
		TEST(test_next_upstream_at_once),
		TEST(test_silent_upstream),
		TEST(test_forged_answers),
		TEST(test_upstream_ids_differ),
		TEST(test_port_taken),
		TEST(test_udp_port_taken),
		TEST(test_both_families),
		TEST(test_open_fails),
	};

	return cmocka_run_group_tests_name("dns_server", tests, NULL, NULL);
}
