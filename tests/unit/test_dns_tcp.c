// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The DNS server by TCP.
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

static void test_tcp(void **state)
{
	autoclose int fd = dns_socket_to(SOCK_STREAM, dns_server_port(dns.server));
	struct test_query q = test_query(5, "web.ax.internal", LDNS_RR_TYPE_A);

	(void)state;
	dns_send_framed(fd, &q);
	assert_int_equal(dns_receive_framed(fd), q.len + 16);
	assert_true(dns_timer_is_set()); /* for the connection's time-out */
	q = test_query(6, "_any._tcp." LONG_NAME ".ax.internal", LDNS_RR_TYPE_SRV);
	dns_send_framed(fd, &q);
	assert_true(dns_receive_framed(fd) > 1500);
	assert_int_equal(dns.reply[2] & 2, 0);
	assert_int_equal(dns_get16(dns.reply + 6), 16);
	close_fd(&fd);
	dns_run(-1, 50);
	assert_false(dns_timer_is_set());
}

static void test_tcp_forward(void **state)
{
	autoclose int fd = dns_socket_to(SOCK_STREAM, dns_server_port(dns.server));
	struct test_query q = test_query(6, "_any._tcp." LONG_NAME ".up.test", LDNS_RR_TYPE_SRV);

	(void)state;
	dns_send_framed(fd, &q);
	assert_true(dns_receive_framed(fd) > 1500);
	assert_int_equal(dns_get16(dns.reply), 6);
	assert_int_equal(dns_get16(dns.reply + 6), 16);
}

static void test_tcp_next_upstream(void **state)
{
	autoclose int gone = dns_socket_to(SOCK_STREAM, 0);
	autoclose int closes = dns_socket_to(SOCK_STREAM, 0);
	autoclose int fd = dns_socket_to(SOCK_STREAM, dns_server_port(dns.server));
	struct dns_upstream u[] = {dns_upstream_at(dns_port_of(gone)),
				   dns_upstream_at(dns_port_of(closes)),
				   dns_upstream_at(dns_server_port(dns.upstream))};
	struct test_query q = test_query(6, "four.up.test", LDNS_RR_TYPE_A);
	int accepted;

	(void)state;
	close_fd(&gone);
	assert_int_equal(listen(closes, 1), 0);
	dns_set_upstreams(u, 3);
	dns_send_framed(fd, &q);
	assert_true(dns_run(closes, WAIT_MS));
	accepted = accept(closes, NULL, NULL);
	assert_true(accepted >= 0);
	assert_int_equal(send(accepted, "\0", 1, 0), 1); /* half a length, and gone */
	close(accepted);
	dns_receive_framed(fd);
	assert_int_equal(dns_get16(dns.reply + 6), 1);
	dns_set_upstreams(u, 1);
	dns_send_framed(fd, &q);
	dns_receive_framed(fd);
	assert_int_equal(dns_rcode(), LDNS_RCODE_SERVFAIL);
}

static void test_tcp_pipelining(void **state)
{
	static const char *const names[] = {"four.up.test", "web.ax.internal", "nobody"};
	autoclose int fd = dns_socket_to(SOCK_STREAM, dns_server_port(dns.server));
	unsigned seen = 0;

	(void)state;
	/* more than a connection may have open at the upstreams at once */
	for (unsigned i = 0; i < 90; i++) {
		struct test_query q = test_query((uint16_t)i, names[i % 3], LDNS_RR_TYPE_A);

		dns_send_framed(fd, &q);
	}
	assert_int_equal(shutdown(fd, SHUT_WR), 0); /* what was asked is answered still */
	for (unsigned i = 0; i < 90; i++) {
		size_t len = dns_receive_framed(fd);
		unsigned id = dns_get16(dns.reply);

		assert_true(id < 90 && len > 12);
		assert_int_equal(dns_rcode(), id % 3 == 2 ? LDNS_RCODE_NXDOMAIN : 0);
		seen += id;
	}
	assert_int_equal(seen, 89 * 90 / 2);
	dns_assert_closed(fd, WAIT_MS);
}

static void test_tcp_in_pieces(void **state)
{
	autoclose int fd = dns_socket_to(SOCK_STREAM, dns_server_port(dns.server));
	struct test_query q = test_query(6, "four.up.test", LDNS_RR_TYPE_A);
	uint8_t bytes[2 * sizeof(q.b)] = {0, (uint8_t)q.len};
	size_t len = 2 + q.len;

	(void)state;
	memcpy(bytes + 2, q.b, q.len);
	memcpy(bytes + len, bytes, len);
	for (size_t i = 0; i < 2 * len; i++) {
		assert_int_equal(send(fd, bytes + i, 1, 0), 1);
		dns_run(-1, 1);
	}
	for (int i = 0; i < 2; i++) {
		dns_receive_framed(fd);
		assert_int_equal(dns_get16(dns.reply + 6), 1);
	}
}

/* A client that asks and does not read is not served without end, and loses nothing. */
static void test_tcp_slow_reader(void **state)
{
	autoclose int fd = dns_socket_to(SOCK_STREAM, dns_server_port(dns.server));
	struct test_query q =
		test_query(1, "_any._tcp." LONG_NAME ".ax.internal", LDNS_RR_TYPE_SRV);
	uint8_t bytes[2 + sizeof(q.b)] = {0, (uint8_t)q.len};
	unsigned sent = 0, received = 0;
	size_t at = 0, len = 2 + q.len;
	int size = 4096;

	(void)state;
	memcpy(bytes + 2, q.b, q.len);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	for (int quiet = 0; quiet < 20 && sent < 20000;) {
		ssize_t n = send(fd, bytes + at, len - at, MSG_DONTWAIT);

		dns_run(-1, n < 0 ? 5 : 0);
		quiet = n < 0 ? quiet + 1 : 0;
		at += n > 0 ? (size_t)n : 0;
		sent += at == len;
		at = at == len ? 0 : at;
	}
	assert_true(sent > 16 && sent < 20000);
	shutdown(fd, SHUT_WR);
	for (; received < sent; received++)
		assert_true(dns_receive_framed(fd) > 1500);
	dns_assert_closed(fd, WAIT_MS);
}

static void test_tcp_junk_closes(void **state)
{
	static const uint8_t junk[][4] = {{0, 0, 1, 1}, {0, 2, 1, 1}, {0xff, 0xff, 1, 1}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(junk); i++) {
		autoclose int fd = dns_socket_to(SOCK_STREAM, dns_server_port(dns.server));

		assert_int_equal(send(fd, junk[i], sizeof(junk[i]), 0), sizeof(junk[i]));
		dns_assert_closed(fd, WAIT_MS);
	}
}

static void test_tcp_client_goes_away(void **state)
{
	autoclose int silent = dns_socket_to(SOCK_STREAM, 0);
	struct dns_upstream u = dns_upstream_at(dns_port_of(silent));
	struct linger reset = {.l_onoff = 1};
	int accepted[4];

	(void)state;
	assert_int_equal(listen(silent, 16), 0);
	dns_set_upstreams(&u, 1);
	for (int i = 0; i < 2; i++) {
		int fd = dns_socket_to(SOCK_STREAM, dns_server_port(dns.server));
		struct test_query q = test_query(6, "four.up.test", LDNS_RR_TYPE_A);

		for (int j = 0; j < 2; j++) {
			dns_send_framed(fd, &q);
			assert_true(dns_run(silent, WAIT_MS));
			accepted[i * 2 + j] = accept(silent, NULL, NULL);
			assert_true(accepted[i * 2 + j] >= 0);
		}
		if (i)
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(fd);
		dns_run(-1, 50);
	}
	/* a reset forgets the queries; after a mere end the client may still read, so they time out
	 */
	dns_run(-1, 2200);
	assert_false(dns_timer_is_set());
	for (size_t i = 0; i < ARRAY_SIZE(accepted); i++)
		close(accepted[i]);
}

static void test_tcp_connections_are_bounded(void **state)
{
	struct test_query q = test_query(6, "web.ax.internal", LDNS_RR_TYPE_A);
	int fd[140];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = dns_socket_to(SOCK_STREAM, dns_server_port(dns.server));
		dns_send_framed(fd[i], &q);
		dns_receive_framed(fd[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++) {
		if (i < 12) { /* they had been idle for longest */
			dns_assert_closed(fd[i], WAIT_MS);
		} else {
			dns_send_framed(fd[i], &q);
			dns_receive_framed(fd[i]);
		}
		close(fd[i]);
	}
}

/* One that has all of its connections busy does not keep others from having one. */
static void test_tcp_connections_are_shared(void **state)
{
	autoclose int silent = dns_socket_to(SOCK_STREAM, 0);
	struct test_query busy = test_query(6, "four.up.test", LDNS_RR_TYPE_A);
	struct test_query q = test_query(6, "web.ax.internal", LDNS_RR_TYPE_A);
	struct dns_upstream u = dns_upstream_at(dns_port_of(silent));
	autoclose int other = -1;
	int fd[140];

	(void)state;
	dns_allow_descriptors();
	assert_int_equal(listen(silent, 4096), 0);
	dns_set_upstreams(&u, 1);
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = dns_socket_to(SOCK_STREAM, dns_server_port(dns.server));
		dns_send_framed(fd[i], &busy);
		dns_run(-1, 1);
	}
	other = dns_socket_from(SOCK_STREAM, 257, dns_server_port(dns.server));
	dns_send_framed(other, &q);
	dns_receive_framed(other);
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
}

static void test_tcp_idle(void **state)
{
	autoclose int idle = dns_socket_to(SOCK_STREAM, dns_server_port(dns.server));
	autoclose int trickle = dns_socket_to(SOCK_STREAM, dns_server_port(dns.server));
	uint64_t start = time_mono_ns();

	(void)state;
	assert_false(dns_run(idle, 5000));
	assert_int_equal(send(trickle, "\0", 1, 0), 1); /* a byte is not a query */
	dns_assert_closed(idle, WAIT_MS);
	assert_true(time_mono_ns() - start > 9500000000u);
	dns_assert_closed(trickle, 1000);
	assert_false(dns_timer_is_set());
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, dns_setup, dns_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_tcp),
		TEST(test_tcp_forward),
		TEST(test_tcp_next_upstream),
		TEST(test_tcp_pipelining),
		TEST(test_tcp_in_pieces),
		TEST(test_tcp_slow_reader),
		TEST(test_tcp_junk_closes),
		TEST(test_tcp_client_goes_away),
		TEST(test_tcp_connections_are_bounded),
		TEST(test_tcp_connections_are_shared),
		TEST(test_tcp_idle),
	};

	return cmocka_run_group_tests_name("dns_tcp", tests, NULL, NULL);
}
